"""The token of a session's tools over MCP: whoever has it is in the session, and nobody else.

nemo-gym signs it and lets it never expire. `tools/list` asks for none; a call does, in 0.4.0 where the tool takes the
session, in 0.7.0 always.
"""

from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any, Final

from gym_conformance.checks.check import Level, check
from gym_conformance.checks.ending import NotApplicable, Untestable, Violation
from gym_conformance.checks.mcp_calls import by_mcp, play, scored
from gym_conformance.checks.needs import SCORE
from gym_conformance.checks.over_mcp import (
    MCP_TOOLS,
    Headers,
    Opened,
    connection_of,
    known_calls,
    open_session,
    over_mcp,
)
from gym_conformance.checks.trial import Trial
from gym_conformance.contract.dataset_rows import Call
from gym_conformance.contract.statuses import is_refusal
from gym_conformance.drift.compare import first_call
from gym_conformance.drift.soundness import not_json_schema
from gym_conformance.mcp.carrier import NotSpoken
from gym_conformance.mcp.result import McpResult
from gym_conformance.trajectories.outcome import Outcome, differences, volatile


async def _call(trial: Trial, opened: Opened, call: Call, headers: Headers) -> McpResult:
    """A call with other headers than the session's. A refusal of the whole connection (4xx) is an error, too."""
    try:
        async with connection_of(trial, opened, headers) as connection:
            return await connection.call(call.name, call.arguments)
    except NotSpoken as refused:
        if refused.reply is None or not is_refusal(refused.reply.status):
            raise Violation(refused.expected, refused.actual, "The token is read without asking what it is.") from None
        return McpResult(is_error=True, text=refused.actual)


def _expect_some_taken(outcome: Outcome) -> None:
    if all(step.status != HTTPStatus.OK for step in outcome.steps[:-1]):
        raise Untestable("a call that is taken over MCP: those that are known are all answered with an error")


def _nothing(_: Mapping[str, str]) -> Mapping[str, str]:
    return {}


@check(
    "mcp-token-missing",
    Level.MUST,
    "A call over MCP without the session's token MUST NOT act on a session",
    why="an agent that lost the token goes on in a session that nobody scores, or in one that all of them share.",
    needs=[*MCP_TOOLS, SCORE],
)
async def mcp_token_missing(trial: Trial, _: object) -> None:
    """Makes known calls without the token: each is an error.

    A tool that takes no session may answer all the same (0.4.0): where replies and reward are as with the token, and
    nothing shows that there is a session, it passes.
    Source: `require_mcp_session_id` in nemo_gym/base_resources_server.py (0.4.0); `_parse_session_token` in
    nemo_gym/mcp_auto_exposure.py (0.7.0).
    """
    row, calls = await known_calls(trial)
    _expect_some_taken(await play(trial, row, calls))
    opened = await open_session(trial, row)
    results = [(call, await _call(trial, opened, call, _nothing)) for call in calls]
    taken = [(call, result) for call, result in results if not result.is_error]
    if not taken:
        return
    without = Outcome((*(by_mcp(*each) for each in taken), await scored(opened.session, row, trial.gym)))
    alone = [call for call, _ in taken]
    with_it, again = await play(trial, row, alone), await play(trial, row, alone)
    for difference in differences(with_it, without, volatile(with_it, again)):
        call, result = taken[0]
        raise Violation(
            f"an error to {call.name} without the token",
            f"{result}; it is of another session: {difference.step} answers {difference.actual!r}, and with the token "
            f"{difference.expected!r}",
            "Take the session's id from the token, and refuse a call that has none.",
        )
    trial.note = f"{taken[0][0].name} takes a call without the token, and nothing shows that it has a session"


def _altered(at: float) -> Callable[[str], str]:
    """Changes one character, at this part of the value: not the last one, some of whose bits may mean nothing."""

    def alter(value: str) -> str:
        place = int(len(value) * at)
        return value[:place] + ("A" if value[place : place + 1] != "A" else "B") + value[place + 1 :]

    return alter


#: What a token is changed to; the id and the cookie are the session's own.
_FORGERIES: Final[Mapping[str, Callable[[str], str]]] = {
    "a token with another content": _altered(0.2),
    "a token with another signature": _altered(0.9),
    "half a token": lambda token: token[: len(token) // 2],
    "a text that is no token": lambda _: "no-such-token-conformance",
}
_ID, _COOKIE = "the session's plain id", "the session's cookie"


def _forged(opened: Opened, forgery: str) -> Headers:
    session: Any = opened.session
    if forgery == _ID:
        if session.id is None:
            raise NotApplicable("the session's id is not to be seen")
        return lambda given: dict.fromkeys(given, session.id)
    if forgery == _COOKIE:
        if not session.cookies:
            raise NotApplicable("the session has no cookie")
        return lambda given: dict.fromkeys(given, session.cookies.session[1])
    return lambda given: {name: _FORGERIES[forgery](value) for name, value in given.items()}


@check(
    "mcp-token-forged",
    Level.MUST,
    "A forged token MUST be refused",
    why="any client can act in any session, and one corrupted token spoils another's rollout.",
    needs=MCP_TOOLS,
    subjects=lambda _: (*_FORGERIES, _ID, _COOKIE),
)
async def mcp_token_forged(trial: Trial, forgery: str) -> None:
    """Makes a known call with a token that the server has not signed: a tool error, or a 4xx.

    Of a tool that takes a call without any token nothing is asked.
    Source: `Invalid Gym MCP session token.` in nemo_gym/base_resources_server.py (0.4.0) and
    nemo_gym/mcp_auto_exposure.py (0.7.0).
    """
    row, calls = await known_calls(trial)
    known = await play(trial, row, calls)
    _expect_some_taken(known)
    opened = await open_session(trial, row)
    forged = _forged(opened, forgery)
    good = {call.name: call for call, step in zip(calls, known.steps, strict=False) if step.status == HTTPStatus.OK}
    for call in good.values():
        result = await _call(trial, opened, call, forged)
        if result.is_error:
            continue
        if not (await _call(trial, opened, call, _nothing)).is_error:
            trial.note = f"{call.name} asks for no token"
            continue
        raise Violation("an error", str(result), "The token is read, and its signature not checked.")


@check(
    "mcp-sessions-apart",
    Level.MUST,
    "Sessions over MCP MUST NOT see each other",
    why="rollouts of one batch write into each other's state: the rewards are noise, and training goes on silently.",
    needs=[*MCP_TOOLS, SCORE],
)
async def mcp_sessions_apart(trial: Trial, _: object) -> None:
    """Makes known calls in a session, while another one makes the same in between, each with its own token.

    Both come to what they come to alone; and a third, in which nothing is done meanwhile, to what doing nothing does.
    Source: the token names the session, per rollout (`build_mcp_session_metadata` in
    nemo_gym/base_resources_server.py, 0.4.0).
    """
    row, calls = await known_calls(trial)
    alone, again = await play(trial, row, calls), await play(trial, row, calls)
    idle, idle_again = await play(trial, row, ()), await play(trial, row, ())
    _expect_some_taken(alone)
    steps: list[Any] = [[], []]
    async with (
        over_mcp(trial, row) as (first, one),
        over_mcp(trial, row) as (second, two),
        over_mcp(trial, row) as (third, _three),
    ):
        for call in calls:
            for its_steps, connection in zip(steps, (one, two), strict=True):
                result = await connection.call(call.name, call.arguments)
                its_steps.append(by_mcp(call, result))
        outcomes = [
            Outcome((*its_steps, await scored(session, row, trial.gym)))
            for its_steps, session in zip(steps, (first, second), strict=True)
        ]
        untouched = Outcome((await scored(third, row, trial.gym),))
    trials = [("one of two", alone, outcome, volatile(alone, again)) for outcome in outcomes]
    for name, expected, came, mask in (*trials, ("an idle one", idle, untouched, volatile(idle, idle_again))):
        for difference in differences(expected, came, mask):
            raise Violation(
                f"{difference.step} of {name} answers {difference.expected!r}, as alone",
                f"{difference.actual!r}, while other sessions are open",
                "The session is taken from something that all calls share, and not from the call's own token.",
            )


@check(
    "mcp-restricted",
    Level.MUST,
    "A tool that a session is not shown over MCP MUST be refused to it",
    why="a policy that guesses the tool's name does what its row forbids, and is rewarded for it.",
    needs=MCP_TOOLS,
)
async def mcp_restricted(trial: Trial, _: object) -> None:
    """Lists the tools of the first rows' sessions, and calls in each what only others are shown: an error.

    Source: `mcp_allowed_tools_for_session` in nemo_gym/base_resources_server.py (0.7.0): the token "lists and calls
    only those tools" (nemo_gym/mcp_auto_exposure.py).
    """
    offer = trial.learned.offer
    every = frozenset().union(*offer.shown.values())
    if all(names == every for names in offer.shown.values()):
        raise NotApplicable("every session is shown the same tools")
    calls = {one.name: first_call(one) for one in offer.definitions if not not_json_schema(one)}
    for row, names in offer.shown.items():
        trial.channel.exchanges.clear()
        async with over_mcp(trial, row) as (_session, connection):
            for name in sorted(every - names):
                witness = calls.get(name)
                result = await connection.call(name, witness.value if witness else {})
                if not result.is_error:
                    raise Violation(
                        f"an error to {name}, which the session of {row} is not shown",
                        str(result),
                        "The list is narrowed, and the call is not: hold both to the token.",
                    )
