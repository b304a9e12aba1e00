"""A resources server meets the same requests from the mock agent as from nemo-gym's own simple_agent.

0.4.0's, which the mock agent is made after; where other versions play otherwise, `versions.json` says how.
"""

import json
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import httpx
import pytest

from gym_mocks.agent.loop import body_of
from gym_mocks.gym import MockGym
from gym_mocks.nemo import add_simple_agent
from gym_mocks.policy import FakePolicy, PolicyFault, call, raw_call, say, think
from gym_mocks.rollout_faults import RolloutFault
from gym_mocks.wire import HttpReply, HttpRequest
from tests.nemo_gym.mocks.notes_twin import NOTES_ENV, notes_twin
from tests.nemo_gym.mocks.versions import known

#: What nemo-gym warns of is its own affair: as errors its warnings would be replies of status 500.
pytestmark = [pytest.mark.nemo_gym, pytest.mark.filterwarnings("ignore")]

ROW: dict[str, Any] = json.loads((NOTES_ENV / "data" / "example.jsonl").read_text().splitlines()[1])
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
    "odd-names": [
        *(
            raw_call(name, '{"title": "shopping"}')
            for name in (
                "./x/../read_note?a=1#b",
                "read%5Fnote",
                "/read_note",
                "r\u00e9ad\tnote ",
                "?\u00e9=\u00fc&a b",
            )
        ),
        "Done.",
    ],
    "refused": [call("read_note", titel="x"), WRITE, "Done."],
    "raises": [WRITE, call("divide", number=0), READ, "Done."],
    "not-a-number": [raw_call("divide", '{"number": NaN}'), WRITE, "Done."],
    "escape": [raw_call("read_note", '{"title": "\\u00e9 \\ud83d\\ude00"}'), WRITE, "Done."],
    "surrogate": [raw_call("read_note", '{"title": "\\ud800"}'), WRITE, "Done."],
    "big-integer": [raw_call("divide", '{"number": 123456789012345678901234567890}'), WRITE, "Done."],
    "contract-endpoint": [call("verify"), call("seed_session", initial_notes={}), READ, "Done."],
    "get-endpoint": [raw_call("", "{}"), raw_call("openapi.json", "{}"), WRITE, "Done."],
}


class Play(NamedTuple):
    """A run: what the policy says, and what else is not as usual."""

    script: list[Any]
    row: dict[str, Any] = ROW
    agent: str = ""
    fault: Any = None
    reply: tuple[str, Callable[[HttpReply], HttpReply] | None] = ("", None)  # one of `REPLIES`


def given(value: Any) -> dict[str, Any]:
    """A row with another input."""
    return ROW | {"responses_create_params": {"input": value, "temperature": 0.5}, "extra": {"a": [1]}}


def asked(**params: Any) -> dict[str, Any]:
    """A row with other parameters."""
    return ROW | {"responses_create_params": ROW["responses_create_params"] | params}


UNTYPED = [{"role": "user", "content": "no type"}]
LONG = [READ, READ, WRITE, "Done."]


def as_body(body: bytes) -> Callable[[HttpReply], HttpReply]:
    return lambda reply: HttpReply(200, body, reply.headers)


def rewarded(value: str) -> Callable[[HttpReply], HttpReply]:
    """Another reward, as it stands."""
    return lambda reply: HttpReply(200, body_of(reply).replace(b'"reward":1.0', f'"reward":{value}'.encode()))


def with_cookie(change: Callable[[str], str]) -> Callable[[HttpReply], HttpReply]:
    return lambda reply: HttpReply(
        reply.status,
        reply.body,
        tuple((name, change(value) if name == "set-cookie" else value) for name, value in reply.headers),
    )


def moved(status: int, to: str) -> Callable[[HttpReply], HttpReply]:
    return lambda _: HttpReply(status, b"", (("location", to),))


#: What a resources server of another make may reply: where, and what is made of the first reply there; None: it is lost.
REPLIES: dict[str, tuple[str, Callable[[HttpReply], HttpReply] | None]] = {
    "reward-text": ("/verify", rewarded('"0.5"')),
    "reward-nan-text": ("/verify", rewarded('"nan"')),
    "reward-nan": ("/verify", rewarded("NaN")),
    "reward-null": ("/verify", rewarded("null")),
    "reward-true": ("/verify", rewarded("true")),
    "reward-word": ("/verify", rewarded('"good"')),
    "verify-surrogate": ("/verify", rewarded('1, "said": "\\ud800"')),
    "verify-bare": ("/verify", as_body(b'{"reward": 1.0}')),
    "seed-null": ("/seed_session", as_body(b"null")),
    "seed-text": ("/seed_session", as_body(b"ok")),
    "cookie-secure": ("/seed_session", with_cookie("{}; Secure".format)),
    "cookie-path": ("/seed_session", with_cookie(lambda value: value.replace("path=/", "path=/read_note"))),
    "cookie-domain": ("/seed_session", with_cookie("{}; Domain=example.com".format)),
    "cookie-ended": ("/read_note", with_cookie(lambda value: value.replace("Max-Age=1", "Max-Age=-1"))),
    "moved": ("/read_note", moved(307, "/list_notes")),
    "found": ("/read_note", moved(302, "/openapi.json")),
    "moved-to-nowhere": ("/read_note", moved(307, "")),
    "lost-seed": ("/seed_session", None),
    "lost-tool": ("/write_note", None),
    "lost-verify": ("/verify", None),
}
CUT = [READ, WRITE, WRITE, "Done.", "Done."]

PLAYS = {name: Play(script) for name, script in SCRIPTS.items()} | {
    "text-input": Play(LONG, given("a string")),
    "untyped-input": Play(LONG, given(UNTYPED)),
    "text-input-short": Play(LONG, given("a string"), "_short"),
    "untyped-input-short": Play(LONG, given(UNTYPED), "_short"),
    "cut": Play(CUT, fault="cut"),
    "no-params": Play(["Done."], {}),
    "chat-tools": Play(["Done."], asked(tools=[{"type": "function", "function": {"name": "a", "parameters": {}}}])),
    "lax-tools": Play(["Done."], asked(tools=[{"type": "function", "name": "a", "parameters": {}}])),
    "chat-parts": Play(["Done."], asked(input=[{"role": "user", "content": [{"type": "text", "text": "x"}]}])),
    "streamed": Play(["Done."], asked(stream=True)),
    "no-input": Play(["Done."], {"responses_create_params": {}}),
    "seed-refused": Play(["Done."], ROW | {"initial_notes": {"a": 1}}),
    "verify-refused": Play(["Done."], ROW | {"expected_notes": 1}),
    "no-final-message": Play(CUT, fault="no_final_message"),
    **{name: Play([READ, WRITE, "Done."], reply=reply) for name, reply in REPLIES.items()},
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


def run(gym: MockGym, who: str, play: Play) -> tuple[int, Any, list[Any]]:
    """A run's status and reply, and the requests that the resources server met."""
    notes = f"{who}_notes"
    server: Any = gym.app(notes)
    odd, change = play.reply
    if odd and not change:
        gym.fail(RolloutFault("lost", path=odd, agent=notes, times=1))
    asked: list[Any] = []
    dispatch = type(server).dispatch

    async def noted(request: HttpRequest) -> HttpReply:
        names = [part.split("=")[0].strip() for part in request.headers.get("cookie", "").split(";")]
        body = json.loads(request.body) if request.body else None
        kinds = {name.replace(f"{who}{play.agent}", "agent") for name in names if name}
        asked.append((request.path, plain(body), kinds, request.headers.get("content-type")))
        reply: HttpReply = await dispatch(server, request)
        first = [path for path, *_ in asked].count(odd) == 1 and request.path == odd
        return change(reply) if change and first else reply

    server.dispatch = noted
    reply = httpx.post(f"{gym.url(f'{who}{play.agent}')}/run", json=play.row, timeout=30)
    return reply.status_code, plain(reply.json()), asked


@pytest.mark.parametrize("name", PLAYS)
def test_a_run_is_the_same_or_differs_as_is_known(gym: MockGym, name: str) -> None:
    play = PLAYS[name]
    if play.fault:
        gym.policy.fail(PolicyFault(play.fault, turn=1))
    with gym.policy.script("script", play.script):
        mine, theirs = (run(gym, agent, play) for agent in ("mock", "real"))
    gym.policy.faults.clear()
    gym.faults.clear()
    found = differences(mine, theirs) or None
    assert found == known("agent", name, found)


def without(*path: str) -> Callable[[Any], None]:
    """Takes a member out of a response; `output` stands for its first item."""

    def take(response: Any) -> None:
        *outer, name = path
        for each in outer:
            response = response[each][0] if each in {"output", "content"} else response[each]
        del response[name]

    return take


#: What a model server may leave out or get wrong, and nemo-gym's agents of every version refuse.
MODEL_REPLIES: dict[str, Callable[[Any], None]] = {
    **{name: without(name) for name in ("id", "created_at", "object", "model", "tools", "parallel_tool_calls")},
    "message-id": without("output", "id"),
    "annotations": without("output", "content", "annotations"),
    "usage": without("usage", "input_tokens_details"),
    "user": lambda response: response["output"][0].update(role="user"),
    "arguments": lambda response: response["output"].append(
        {"type": "function_call", "call_id": "c", "name": "list_notes", "arguments": {}}
    ),
    "reasoning": lambda response: response["output"].append({"type": "reasoning", "summary": []}),
}


@pytest.mark.parametrize("name", MODEL_REPLIES)
def test_a_models_reply_that_lacks_something_is_refused(
    gym: MockGym, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    dispatch = gym.policy.dispatch

    async def odd(request: HttpRequest) -> HttpReply:
        reply = await dispatch(request)
        response = json.loads(body_of(reply))
        MODEL_REPLIES[name](response)
        return HttpReply.json(response)

    with gym.policy.script("script", ["Done."]):
        assert [run(gym, agent, Play([]))[0] for agent in ("mock", "real")] == [200, 200]
        monkeypatch.setattr(gym.policy, "dispatch", odd)
        assert [run(gym, agent, Play([]))[0] for agent in ("mock", "real")] == [500, 500]


def differences(mine: tuple[int, Any, list[Any]], theirs: tuple[int, Any, list[Any]]) -> list[str]:
    """In what two runs differ; causes only: what was asked otherwise is answered otherwise."""
    if mine[0] != theirs[0]:
        return [f"status {theirs[0]}"]
    if [path for path, *_ in mine[2]] != [path for path, *_ in theirs[2]]:
        return ["requests"]
    if [rest for _, _, *rest in mine[2]] != [rest for _, _, *rest in theirs[2]]:
        return ["cookies"]
    pairs = [(one[1], other[1]) for one, other in zip(mine[2], theirs[2], strict=True)]
    replies = [(mine[1], theirs[1])] if mine[0] == 200 else []
    return sorted({name for one, other in pairs + replies for name in unlike(one, other)})


def unlike(one: Any, other: Any) -> set[str]:
    """The fields that differ in two bodies, or in the policy's responses in them."""
    if not isinstance(one, dict) or not isinstance(other, dict):
        return set() if one == other else {"body"}
    names = {name for name in one.keys() | other.keys() if one.get(name) != other.get(name)}
    inner = unlike(one["response"], other["response"]) if {"response"} <= names & one.keys() & other.keys() else set()
    return names - {"response"} | inner if inner else names
