"""Probe by probe, our library answers as nemo-gym's own class does; where it must not, the probe says so."""

import json
from typing import Any

import httpx
import pytest

from tests.nemo_gym.mocks.notes_twin import NOTES_ENV

pytestmark = pytest.mark.nemo_gym

JSON = {"content-type": "application/json"}
ROW = json.loads((NOTES_ENV / "data" / "example.jsonl").read_text().splitlines()[1])
ROLLOUT = json.loads((NOTES_ENV / "data" / "example_rollouts.jsonl").read_text().splitlines()[1])
VERIFY = ROW | {"response": ROLLOUT["response"]}

PROBES: dict[str, tuple[str, str, bytes | None, dict[str, str]]] = {
    "liveness": ("GET", "/", None, {}),
    "liveness-head": ("HEAD", "/", None, {}),
    "liveness-post": ("POST", "/", b"{}", JSON),
    "exception": ("POST", "/divide", b'{"number": 0}', JSON),
    "unknown": ("POST", "/no_such_tool", b"{}", JSON),
    "unknown-get": ("GET", "/no_such_tool", None, {}),
    "tool-get": ("GET", "/read_note", None, {}),
    "slash": ("POST", "/read_note/", b'{"title": "a"}', JSON),
    "slash-query": ("POST", "/read_note/?a=1", b'{"title": "a"}', JSON),
    "tool": ("POST", "/read_note", b'{"title": "shopping"}', JSON),
    "tool-query": ("POST", "/read_note?a=1", b'{"title": "shopping"}', JSON),
    "tool-without-arguments": ("POST", "/list_notes", b"{}", JSON),
    "charset": ("POST", "/read_note", b'{"title": "a"}', {"content-type": "application/json; charset=utf-8"}),
    "json-suffix": ("POST", "/read_note", b'{"title": "a"}', {"content-type": "application/x+json"}),
    "empty": ("POST", "/read_note", b"", JSON),
    "no-body": ("POST", "/read_note", None, {}),
    "no-type": ("POST", "/read_note", b'{"title": "a"}', {}),
    "form": ("POST", "/read_note", b"title=a", {"content-type": "application/x-www-form-urlencoded"}),
    "text": ("POST", "/read_note", b'{"title": "a"}', {"content-type": "text/plain"}),
    "null": ("POST", "/read_note", b"null", JSON),
    "list": ("POST", "/read_note", b'[{"title": "a"}]', JSON),
    "string": ("POST", "/read_note", b'"title"', JSON),
    "number": ("POST", "/read_note", b"3", JSON),
    "not-json": ("POST", "/read_note", b'{"title": ', JSON),
    "not-json-2": ("POST", "/read_note", b"{'title': 'a'}", JSON),
    "not-utf-8": ("POST", "/read_note", b'{"title": "\xff"}', JSON),
    "nested": ("POST", "/read_note", b"[" * 100_000, JSON),
    "missing": ("POST", "/read_note", b"{}", JSON),
    "extra": ("POST", "/read_note", b'{"title": "a", "more": [1]}', JSON),
    "wrong-type": ("POST", "/read_note", b'{"title": 3}', JSON),
    "null-argument": ("POST", "/read_note", b'{"title": null}', JSON),
    "too-short": ("POST", "/read_note", b'{"title": ""}', JSON),
    "too-long": ("POST", "/read_note", json.dumps({"title": "x" * 41}).encode(), JSON),
    "enum": ("POST", "/write_note", b'{"title": "a", "text": "b", "mode": "other"}', JSON),
    "several": ("POST", "/write_note", b'{"text": 1, "mode": "other", "more": null}', JSON),
    "unicode": ("POST", "/write_note", '{"title": "é", "text": "日本", "mode": "append"}'.encode(), JSON),
    "seed": ("POST", "/seed_session", json.dumps(ROW).encode(), JSON),
    "seed-empty": ("POST", "/seed_session", b"{}", JSON),
    "seed-null": ("POST", "/seed_session", b"null", JSON),
    "seed-wrong": ("POST", "/seed_session", b'{"initial_notes": {"a": 1}}', JSON),
    "verify-no-response": ("POST", "/verify", json.dumps(ROW).encode(), JSON),
    "verify-list": ("POST", "/verify", b"[]", JSON),
    "verify-no-row-field": (
        "POST",
        "/verify",
        json.dumps({key: VERIFY[key] for key in ("responses_create_params", "response")}).encode(),
        JSON,
    ),
    "aggregate-nothing": ("POST", "/aggregate_metrics", b'{"verify_responses": []}', JSON),
    "aggregate-missing": ("POST", "/aggregate_metrics", b"{}", JSON),
    "aggregate-wrong": ("POST", "/aggregate_metrics", b'{"verify_responses": [1]}', JSON),
    "reverify": ("GET", "/reverify_mode", None, {}),
}


def seen(reply: httpx.Response) -> dict[str, Any]:
    """What a client can see of a reply, without the signed value of its cookie."""
    cookie = reply.headers.get("set-cookie", "")
    name, _, rest = cookie.partition("=")
    try:
        body = reply.json()
    except ValueError:
        body = reply.content
    return {
        "status": reply.status_code,
        "body": body,
        "cookie": (name, rest.partition(";")[2]),
        **{name: reply.headers.get(name) for name in ("content-type", "vary", "allow")},
        "location": httpx.URL(reply.headers.get("location", "")).raw_path,
    }


def ask(client: httpx.Client, probe: tuple[str, str, bytes | None, dict[str, str]]) -> httpx.Response:
    method, path, body, headers = probe
    client.cookies.clear()
    return client.request(method, path, content=body, headers=headers)


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


TASK, ROLLOUT_INDEX = "_ng_task_index", "_ng_rollout_index"
AGGREGATES: dict[str, list[dict[str, Any]]] = {
    "one": [{TASK: 0, ROLLOUT_INDEX: 0, "reward": 1.0}],
    "two-tasks": [
        {TASK: task, ROLLOUT_INDEX: rollout, "reward": task + rollout / 3, "ok": rollout == 1, "name": "x"}
        for task in (3, 1)
        for rollout in (1, 0, 2)
    ],
    "gaps": [
        {TASK: 0, ROLLOUT_INDEX: 0, "reward": 1.0, "a": 1},
        {TASK: 0, ROLLOUT_INDEX: 1, "reward": 0.0},
        {TASK: 1, ROLLOUT_INDEX: 0, "reward": 0.5, "b": 2, "nothing": None},
    ],
    "one-each": [{TASK: task, ROLLOUT_INDEX: 0, "reward": 0.5 * task} for task in range(3)],
    "usage": [
        {TASK: 0, ROLLOUT_INDEX: n, "reward": 1, "response": {"usage": {"input_tokens": 5 + n, "x": {}}}}
        for n in range(2)
    ],
}


@pytest.mark.parametrize("name", AGGREGATES)
def test_aggregates_as_nemo_gym_does(real: httpx.Client, ours: httpx.Client, name: str) -> None:
    body = {"verify_responses": AGGREGATES[name]}
    mine, theirs = (client.post("/aggregate_metrics", json=body).json() for client in (ours, real))
    assert approximately(mine) == theirs


def approximately(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: approximately(item) for key, item in value.items()}
    if isinstance(value, list):
        return [approximately(item) for item in value]
    return pytest.approx(value) if isinstance(value, float) else value


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
