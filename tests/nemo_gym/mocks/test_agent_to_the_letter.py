"""A resources server meets the same requests from the mock agent as from nemo-gym's own simple_agent."""

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from gym_mocks.gym import MockGym
from gym_mocks.nemo import add_simple_agent
from gym_mocks.policy import FakePolicy, Fault, call, raw_call, say, think
from gym_mocks.wire import Reply, Request
from tests.nemo_gym.mocks.notes_twin import NOTES_ENV, notes_twin

pytestmark = pytest.mark.nemo_gym

ROW = json.loads((NOTES_ENV / "data" / "example.jsonl").read_text().splitlines()[1])
READ = call("read_note", title="shopping")
WRITE = call("write_note", title="shopping", text=" and bread", mode="append")

SCRIPTS: dict[str, list[Any]] = {
    "solved": [READ, WRITE, say("Done.")],
    "at-once": [say("Done.")],
    "parallel": [[think("Hm."), READ, WRITE], say("Done.")],
    "message-beside-a-call": [[say("Let me see."), WRITE], say("Done.")],
    "reasoning-alone": [think("Hm."), WRITE, say("Done.")],
    "malformed": [raw_call("read_note", '{"title'), raw_call("read_note", ""), WRITE, say("Done.")],
    "no-object": [
        raw_call("read_note", "null"),
        raw_call("read_note", "[]"),
        raw_call("list_notes", "3"),
        "Done.",
    ],
    "no-arguments": [raw_call("list_notes", "{}"), "Done."],
    "unknown-tool": [call("no_such", a=1), call("a b/c", a=1), WRITE, "Done."],
    "refused": [call("read_note", titel="x"), WRITE, "Done."],
    "raises": [WRITE, call("divide", number=0), READ, "Done."],
    "not-a-number": [raw_call("divide", '{"number": NaN}'), WRITE, "Done."],
    "escape": [raw_call("read_note", '{"title": "\\u00e9 \\ud83d\\ude00"}'), WRITE, "Done."],
    "surrogate": [raw_call("read_note", '{"title": "\\ud800"}'), WRITE, "Done."],
    "big-integer": [raw_call("divide", '{"number": 123456789012345678901234567890}'), WRITE, "Done."],
    "contract-endpoint": [call("verify"), call("seed_session", initial_notes={}), READ, "Done."],
    "get-endpoint": [raw_call("", "{}"), raw_call("openapi.json", "{}"), WRITE, "Done."],
}


@pytest.fixture(scope="module")
def gym() -> Iterator[MockGym]:
    with MockGym() as gym:
        gym.add_policy("policy", FakePolicy())
        for name in ("mock", "real"):
            gym.add_resources(f"{name}_notes", notes_twin())
        gym.add_agent("mock", resources="mock_notes")
        add_simple_agent(gym, "real", resources="real_notes")
        gym.add_agent("mock_short", resources="mock_notes", max_steps=2)
        add_simple_agent(gym, "real_short", resources="real_notes", max_steps=2)
        yield gym


def plain(value: Any) -> Any:
    """A value without nulls and empty log probabilities, which nemo-gym's models add or drop."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items() if item is not None and key not in DROPPED}
    return [plain(item) for item in value] if isinstance(value, list) else value


DROPPED = {"created_at", "logprobs", "cache_write_tokens"}


def run(gym: MockGym, who: str, row: dict[str, Any]) -> tuple[int, Any, list[Any]]:
    """A run's status and reply, and the requests that the resources server met."""
    server: Any = gym.app(f"{who.partition('_')[0]}_notes")
    asked: list[Any] = []
    dispatch = type(server).dispatch

    async def noted(request: Request) -> Reply:
        names = [part.split("=")[0].strip() for part in request.headers.get("cookie", "").split(";")]
        body = json.loads(request.body) if request.body else None
        kinds = {name.replace(who, "agent") for name in names if name}
        asked.append((request.path, plain(body), kinds, request.headers.get("content-type")))
        reply: Reply = await dispatch(server, request)
        return reply

    server.dispatch = noted
    reply = httpx.post(f"{gym.url(who)}/run", json=row, timeout=30)
    return reply.status_code, plain(reply.json()), asked


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_run_is_the_same(gym: MockGym, name: str) -> None:
    with gym.policy.script("script", SCRIPTS[name]):
        mine, theirs = (run(gym, who, ROW) for who in ("mock", "real"))
    assert mine[2] == theirs[2]
    assert mine[0] == theirs[0]
    if mine[0] == 200:
        assert mine[1] == theirs[1]


@pytest.mark.parametrize("who", ["", "_short"])
@pytest.mark.parametrize("given", ["a string", [{"role": "user", "content": "no type"}]])
def test_inputs_and_steps(gym: MockGym, who: str, given: Any) -> None:
    row = ROW | {"responses_create_params": {"input": given, "temperature": 0.5}, "extra": {"a": [1]}}
    with gym.policy.script("script", [READ, READ, WRITE, "Done."]):
        mine, theirs = (run(gym, f"{agent}{who}", row) for agent in ("mock", "real"))
    assert mine == theirs


@pytest.mark.parametrize(
    "row",
    [{}, {"responses_create_params": {}}, ROW | {"initial_notes": {"a": 1}}, ROW | {"expected_notes": 1}],
)
def test_rows_that_do_not_run(gym: MockGym, row: dict[str, Any]) -> None:
    with gym.policy.script("script", ["Done."]):
        mine, theirs = (run(gym, who, row) for who in ("mock", "real"))
    assert mine[::2] == theirs[::2]
    assert mine[0] == theirs[0] != 200


@pytest.mark.parametrize("kind", ["cut", "no_final_message"])
def test_faults_of_the_policy(gym: MockGym, kind: Any) -> None:
    gym.policy.faults.clear()
    gym.policy.fail(Fault(kind, turn=1))
    with gym.policy.script("script", [READ, WRITE, WRITE, "Done.", "Done."]):
        mine, theirs = (run(gym, who, ROW) for who in ("mock", "real"))
    gym.policy.faults.clear()
    assert mine == theirs
