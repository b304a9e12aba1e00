"""Probe by probe, our library answers as nemo-gym's own class does; where it must not, the probe says so."""

import json
from typing import Any

import httpx
import pytest

from tests.nemo_gym.mocks.probes import AGGREGATES, JSON, PROBES, ROW, VERIFY, approximately, ask, seen

pytestmark = pytest.mark.nemo_gym


@pytest.mark.parametrize("name", PROBES)
def test_answers_as_nemo_gym_does(real: httpx.Client, ours: httpx.Client, name: str) -> None:
    assert seen(ask(ours, PROBES[name])) == seen(ask(real, PROBES[name]))


@pytest.mark.parametrize("cookie", ["tampered", "truncated", "empty", "foreign", "null"])
def test_takes_cookies_as_nemo_gym_does(real: httpx.Client, ours: httpx.Client, cookie: str) -> None:
    def session_survives(client: httpx.Client) -> tuple[int, int, Any]:
        client.cookies.clear()
        seeded = client.post("/seed_session", json=ROW)
        name, value = next(iter(seeded.cookies.items()))
        broken = {
            # Not the last character: two of its bits are padding, and a change of those alone is none.
            "tampered": value[:-2] + ("A" if value[-2] != "A" else "B") + value[-1],
            "truncated": value[:-5],
            "empty": "",
            "foreign": "eyJzZXNzaW9uX2lkIjogImEifQ==.aaaaaa.bbbbbbbbbbbbbbbbbbbbbbbbbbb",
            "null": "null",
        }[cookie]
        client.cookies.clear()
        reply = client.post("/read_note", json={"title": "shopping"}, headers={"cookie": f"{name}={broken}"})
        return seeded.status_code, reply.status_code, reply.json()

    assert session_survives(ours) == session_survives(real)


def test_an_episode_scores_alike(real: httpx.Client, ours: httpx.Client) -> None:
    def play(client: httpx.Client) -> list[Any]:
        client.cookies.clear()
        replies = [client.post("/seed_session", json=ROW)]
        calls = [item for item in VERIFY["response"]["output"] if item["type"] == "function_call"]
        replies += [client.post(f"/{call['name']}", content=call["arguments"], headers=JSON) for call in calls]
        verified = client.post("/verify", json=VERIFY)
        return [seen(reply) for reply in replies] + [verified.status_code, verified.json()["reward"]]

    assert play(ours) == play(real)
    assert play(ours)[-1] == 1.0


def without_nulls(value: Any) -> Any:
    """A value without what nemo-gym's models add to an echo: nulls, and defaults of the row."""
    if isinstance(value, dict):
        return {key: without_nulls(item) for key, item in value.items() if item is not None}
    return [without_nulls(item) for item in value] if isinstance(value, list) else value


def test_the_echo_is_the_same_but_for_nulls_and_defaults(real: httpx.Client, ours: httpx.Client) -> None:
    body = {key: VERIFY[key] for key in ("responses_create_params", "response", "expected_notes")}
    theirs = without_nulls(real.post("/verify", json=body).json())
    mine = without_nulls(ours.post("/verify", json=body).json())
    defaults = {"tool_choice": "auto"}
    assert theirs["responses_create_params"] == defaults | mine["responses_create_params"]
    assert theirs["response"] == mine["response"]
    assert theirs.keys() == mine.keys()


@pytest.mark.parametrize("name", AGGREGATES)
def test_aggregates_as_nemo_gym_does(real: httpx.Client, ours: httpx.Client, name: str) -> None:
    body = {"verify_responses": AGGREGATES[name]}
    mine, theirs = (client.post("/aggregate_metrics", json=body).json() for client in (ours, real))
    assert approximately(mine) == theirs


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("escaped surrogate", rb'"\ud800"'),
        ("raw surrogate", b'"\xed\xa0\x80"'),
    ],
)
def test_better_than_nemo_gym_a_lone_surrogate_scores(ours: httpx.Client, name: str, message: bytes) -> None:
    text = json.dumps(VERIFY).encode().replace(b'"Done."', message)
    reply = ours.post("/verify", content=text, headers=JSON)
    assert reply.status_code == 200, name
    assert "\ud800" in json.dumps(reply.json(), ensure_ascii=False)


def test_better_than_nemo_gym_aggregates_responses_without_an_index(ours: httpx.Client) -> None:
    reply = ours.post("/aggregate_metrics", json={"verify_responses": [{"reward": 0.25}, {"reward": 0.75}]})
    assert reply.json()["key_metrics"] == {"mean/reward": 0.5}


def test_better_than_nemo_gym_unknown_fields_survive_verify(ours: httpx.Client) -> None:
    assert ours.post("/verify", json=VERIFY | {"unknown": {"a": [1]}}).json()["unknown"] == {"a": [1]}


def test_better_than_nemo_gym_the_cookie_cannot_be_forged(real: httpx.Client, ours: httpx.Client) -> None:
    from itsdangerous import TimestampSigner  # noqa: PLC0415

    real.cookies.clear()
    ours.cookies.clear()
    for client, forgeable in ((real, True), (ours, False)):
        name, value = next(iter(client.post("/seed_session", json=ROW).cookies.items()))
        assert TimestampSigner(name).validate(value) is forgeable
