"""The token of a session's tools over MCP: it gives access to the session, and nothing else does.

nemo-gym signs it and never lets it expire. `tools/list` needs no token; a call does, in 0.4.0 if the tool uses the
session, in 0.7.0 always.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from gym_conformance.checks.tools.mcp_calls import by_mcp, play, scored
from gym_conformance.contract.dataset_rows import Call, Row
from gym_conformance.contract.statuses import is_refusal, is_success
from gym_conformance.drift.compare import first_call
from gym_conformance.drift.soundness import not_json_schema
from gym_conformance.mcp.carrier import NotSpoken
from gym_conformance.mcp.result import McpResult
from gym_conformance.session.channel import Channel
from gym_conformance.trajectories.outcome import Difference, Outcome, StepOutcome, differences, volatile
from gym_conformance.trials.chance import beyond_chance
from gym_conformance.trials.check import check
from gym_conformance.trials.ending import NotApplicable, Untestable, Violation
from gym_conformance.trials.needs import SCORE
from gym_conformance.trials.over_mcp import (
    MCP_TOOLS,
    Headers,
    Opened,
    connection_of,
    known_calls,
    open_session,
    over_mcp,
)
from gym_conformance.trials.trial import Trial


async def _call(trial: Trial, opened: Opened, call: Call, headers: Headers) -> McpResult:
    """A call with other headers than the session's. A refusal of the whole connection (4xx) is an error, too."""
    try:
        async with connection_of(trial, opened, headers) as connection:
            return await connection.call(call.name, call.arguments)
    except NotSpoken as refused:
        if refused.reply is None or not is_refusal(refused.reply.status):
            raise Violation(refused.expected, refused.actual, "The token is read without validation.") from None
        return McpResult(is_error=True, text=refused.actual)


def _expect_some_taken(outcome: Outcome) -> None:
    if all(not is_success(step.status) for step in outcome.steps[:-1]):
        raise Untestable("a call that is accepted over MCP: all known ones are answered with an error")


def _nothing(_: Mapping[str, str]) -> Mapping[str, str]:
    return {}


@check(
    "mcp-token-missing",
    "A call over MCP without the session's token MUST NOT act on a session",
    why="an agent without the token would go on in a session that is never scored, or in one that all of them share.",
    needs=[*MCP_TOOLS, SCORE],
)
async def mcp_token_missing(trial: Trial, _: object) -> None:
    """Makes known calls without the token; each must get an error.

    A tool that uses no session may answer all the same (0.4.0). It passes if replies and reward are as with the token,
    and nothing shows that there is a session.

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
            "Take the session's id from the token, and refuse a call without one.",
        )
    trial.note = f"{taken[0][0].name} accepts a call without the token, and nothing shows that it has a session"


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
    "a text that is not a token": lambda _: "no-such-token-conformance",
}
_ID, _COOKIE = "the session's plain id", "the session's cookie"


def _forged(opened: Opened, forgery: str) -> Headers:
    session: Any = opened.session
    if forgery == _ID:
        if session.id is None:
            raise NotApplicable("the session's id cannot be read")
        return lambda given: dict.fromkeys(given, session.id)
    if forgery == _COOKIE:
        if not session.cookies:
            raise NotApplicable("the session has no cookie")
        return lambda given: dict.fromkeys(given, session.cookies.session[1])
    return lambda given: {name: _FORGERIES[forgery](value) for name, value in given.items()}


@check(
    "mcp-token-forged",
    "A forged token MUST be refused",
    why="any client could act in any session, and one corrupted token could ruin another's rollout.",
    needs=MCP_TOOLS,
    subjects=lambda _: (*_FORGERIES, _ID, _COOKIE),
)
async def mcp_token_forged(trial: Trial, forgery: str) -> None:
    """Makes a known call with a token that the server did not sign, and expects a tool error or a 4xx.

    Tools that accept a call without any token are exempt.
    Source: `Invalid Gym MCP session token.` in nemo_gym/base_resources_server.py (0.4.0) and
    nemo_gym/mcp_auto_exposure.py (0.7.0).
    """
    row, calls = await known_calls(trial)
    known = await play(trial, row, calls)
    _expect_some_taken(known)
    opened = await open_session(trial, row)
    forged = _forged(opened, forgery)
    good = {call.name: call for call, step in zip(calls, known.steps, strict=False) if is_success(step.status)}
    for call in good.values():
        result = await _call(trial, opened, call, forged)
        if result.is_error:
            continue
        if not (await _call(trial, opened, call, _nothing)).is_error:
            trial.note = f"{call.name} needs no token"
            continue
        raise Violation("an error", str(result), "The token is read, but its signature is not checked.")


@check(
    "mcp-sessions-apart",
    "Sessions over MCP MUST NOT see each other",
    why="rollouts of one batch overwrite each other's state; the rewards are noise, and nothing reports it.",
    needs=[*MCP_TOOLS, SCORE],
)
async def mcp_sessions_apart(trial: Trial, _: object) -> None:
    """Makes known calls in one session while another makes the same calls in between, each with its own token.

    Both must get what they get alone, and a third session, which stays idle, must score what doing nothing scores;
    chance is excluded.

    Source: the token names the session, per rollout (`build_mcp_session_metadata` in nemo_gym/base_resources_server.py,
    0.4.0).
    """
    row, calls = await known_calls(trial)
    alone, again = await play(trial, row, calls), await play(trial, row, calls)
    idle, idle_again = await play(trial, row, ()), await play(trial, row, ())
    _expect_some_taken(alone)
    masks = volatile(alone, again), volatile(idle, idle_again)

    async def in_turn(channel: Channel) -> tuple[str, Difference] | None:
        *both, untouched = await _three_at_once(Trial(trial.bench, channel), row, calls)
        trials = [
            *(("one of two sessions", alone, outcome, masks[0]) for outcome in both),
            ("an idle session", idle, untouched, masks[1]),
        ]
        found = ((name, one) for name, expected, came, mask in trials for one in differences(expected, came, mask))
        return next(found, None)

    async def one_by_one(channel: Channel) -> Difference | None:
        aside = Trial(trial.bench, channel)
        for expected, its_calls, mask in (*[(alone, calls, masks[0])] * 2, (idle, (), masks[1])):
            if difference := next(differences(expected, await play(aside, row, its_calls), mask), None):
                return difference
        return None

    if found := await beyond_chance(trial, in_turn, one_by_one):
        name, difference = found
        raise Violation(
            f"{difference.answer} in {name}, as alone",
            f"{difference.actual!r}, while other sessions are open",
            "The session is taken from something that all calls share instead of from the call's own token.",
        )


async def _three_at_once(trial: Trial, row: Row, calls: Sequence[Call]) -> list[Outcome]:
    """What comes of the calls in two sessions, a call of each in turn, and of none in a third one."""
    steps: list[list[StepOutcome]] = [[], []]
    async with (
        over_mcp(trial, row) as (first, one),
        over_mcp(trial, row) as (second, two),
        over_mcp(trial, row) as (third, _three),
    ):
        for call in calls:
            for its_steps, connection in zip(steps, (one, two), strict=True):
                its_steps.append(by_mcp(call, await connection.call(call.name, call.arguments)))
        sessions = zip((first, second, third), (*steps, ()), strict=True)
        return [Outcome((*its_steps, await scored(session, row, trial.gym))) for session, its_steps in sessions]


@check(
    "mcp-restricted",
    "A session MUST NOT be able to call a tool that it is not shown over MCP",
    why="a policy that guesses the tool's name could do what its row forbids, and be rewarded for it.",
    needs=MCP_TOOLS,
)
async def mcp_restricted(trial: Trial, _: object) -> None:
    """Lists the tools of the first rows' sessions, and calls in each the tools that only others are shown; each call must get an error.

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
                        f"an error to {name}, which tools/list does not offer to the session of {row}",
                        str(result),
                        "The list is restricted but the call is not; apply the token to both.",
                    )
