"""Prerequisites of checks, and subjects that several checks share."""

import re
from collections.abc import Callable, Iterable
from itertools import islice
from typing import Any, Final

from gym_conformance.contract.dataset_rows import Row, Tool
from gym_conformance.contract.endpoints import REVERIFY_MODE
from gym_conformance.contract.openapi import ServerKind, phrase
from gym_conformance.contract.policy_output import (
    DO_NOTHING,
    SLIPS,
    Degenerate,
    degenerate_outputs,
    function_call,
    with_long_number,
)
from gym_conformance.contract.statuses import is_success
from gym_conformance.contract.verify_reply import is_number
from gym_conformance.grouping import first_of_each
from gym_conformance.session.channel import OutOfTime
from gym_conformance.session.contracts import CookieHabit
from gym_conformance.session.exchange import Request, reply_of
from gym_conformance.session.server_fault import NotSent
from gym_conformance.session.stepping import SteppingSession
from gym_conformance.session.unserved import NO_SUCH_TOOL
from gym_conformance.trajectories.execute import run
from gym_conformance.trials.before_and_after import look, writing
from gym_conformance.trials.check import Need
from gym_conformance.trials.ending import NotApplicable, NotExamined, Untestable
from gym_conformance.trials.trial import Trial, refuse_made_up

#: Tools that are called in one turn.
_CALLED: Final = 12

#: Recorded answers of different forms that are spoilt.
_FORMS: Final = 3

#: Rows of which something is scored, where doing nothing is not.
_SCORED: Final = 3


async def _resources_server(trial: Trial) -> None:
    if trial.gym.kind in (ServerKind.GYMNASIUM, ServerKind.ENVIRONMENT):
        raise NotApplicable(f"{phrase(trial.gym.kind)} ({trial.gym.evidence}): it follows another contract")
    if trial.gym.kind is ServerKind.OTHER:
        raise Untestable(f"a resources server: {trial.gym.evidence}")
    if trial.settings.first_look:  # before anything is sent to the server that might leave something behind
        try:
            await _first_look(trial)
        except OutOfTime:
            raise
        except NotSent:
            return  # whose replies are too large to be held beside each other may be looked at one by one


async def _first_look(trial: Trial) -> None:
    if trial.learned.first_look is None:
        trial.learned.first_look = await look(trial.gym)
        for failure in trial.learned.first_look.failures:
            trial.channel.adopt(failure)


def need(
    name: str,
    holds: Callable[[Trial], object],
    reason: str | Callable[[Trial], str],
    ending: type[NotApplicable] = NotApplicable,
) -> Need:
    """A need that is known without asking the server; if it is not met, the check ends in this way, with this reason."""

    async def ask(trial: Trial) -> None:
        if not holds(trial):
            raise ending(reason if isinstance(reason, str) else reason(trial))

    return Need(name, ask)


def _graded(trial: Trial) -> str:
    return (
        f"a single-turn server ({trial.gym.evidence}): calls are graded, or made over MCP, but no route executes them"
    )


async def _resets(trial: Trial) -> None:
    """A server that resets no row has one finding, of step-resets, and not one for every check."""
    session = SteppingSession(trial.channel, trial.gym.row, CookieHabit.REPLACING)
    reply = reply_of(await session.seed())
    if not is_success(reply.status):
        raise Untestable(f"an episode: /reset answers {reply.status}; see step-resets")
    await session.close()


async def _score(trial: Trial) -> None:
    """A server that scores nothing has one finding, of verify-scores-rows, and not one for every check.

    One that scores something, if not a session in which nothing was done, is tried by all of them.
    """
    reply = await trial.verify_fresh(DO_NOTHING.response)
    refuse_made_up(trial.gym.row, reply)
    if is_success(reply.status) and isinstance(reply.said, dict):
        return
    for row in trial.gym.rows[:_SCORED]:
        if is_number((await run(trial.gym, trial.channel, writing(trial.gym, row))).reward):
            return
    what = f"{reply.status}, without a JSON object," if is_success(reply.status) else str(reply.status)
    raise Untestable(f"a score: /verify answers {what} to a plain message; see verify-scores-rows")


async def _tools(trial: Trial) -> None:
    if not trial.gym.rows:
        raise NotExamined("no dataset rows were given (--gym-data)")
    if not trial.gym.tools:
        raise NotApplicable("no row declares a tool")


async def reverify_mode(trial: Trial) -> Any:
    """What the server says about its verify; None if it does not say (nemo-gym before 0.5.0)."""
    reply = await trial.send(Request("GET", REVERIFY_MODE))
    return reply.json() if is_success(reply.status) and reply.is_json else None


async def _stateless(trial: Trial) -> None:
    mode = await reverify_mode(trial)
    if mode is None:
        raise NotApplicable("the server does not say (/reverify_mode): nemo-gym before 0.5.0")
    if mode != "stateless":
        raise NotApplicable(f"the server says that its verify is {mode!r}")


RESOURCES_SERVER: Final = Need("resources server", _resources_server)
FIRST_LOOK: Final = Need("first look", _first_look)
GYMNASIUM: Final = need(
    "gymnasium-style server",
    lambda trial: trial.gym.kind is ServerKind.GYMNASIUM,
    lambda trial: f"{phrase(trial.gym.kind)}, not a gymnasium-style one",
)
ENVIRONMENT: Final = need(
    "environment server",
    lambda trial: trial.gym.kind is ServerKind.ENVIRONMENT,
    lambda trial: f"{phrase(trial.gym.kind)}, not an environment server",
)
RESETS: Final = Need("an episode", _resets)
SCORE: Final = Need("score", _score)
TOOLS: Final = Need("tools", _tools)
SERVED_TOOLS: Final = need("served tools", lambda trial: trial.gym.kind is not ServerKind.SINGLE_TURN, _graded)
EXECUTED_TOOLS: Final = need(
    "executed tools", lambda trial: trial.gym.kind is not ServerKind.SINGLE_TURN or trial.gym.agents, _graded
)
ROLLOUTS: Final = need(
    "recorded rollouts",
    lambda trial: trial.gym.recorded,
    "no recorded rollout belongs to a row (NAME_rollouts.jsonl beside NAME.jsonl)",
    NotExamined,
)
RECORDED_CALLS: Final = need(
    "recorded calls",
    lambda trial: trial.gym.recorded_calls,
    "no recorded rollout calls a tool (NAME_rollouts.jsonl beside NAME.jsonl)",
    NotExamined,
)
STATELESS: Final = Need("stateless verify", _stateless)
TYPED: Final = need(
    "typed sessions",
    lambda trial: trial.gym.typed,
    "its OpenAPI document declares no typed sessions (nemo-gym 0.7.0 on)",
)
COOKIES: Final = need(
    "cookie contract",
    lambda trial: trial.gym.contract.name == "cookie",
    lambda trial: f"sessions follow the {trial.gym.contract.name} contract",
)


def each_row(trial: Trial) -> tuple[Row, ...]:
    """Every row, or the bare one if none is given."""
    return trial.gym.rows or (trial.gym.row,)


def each_degenerate_output(trial: Trial) -> tuple[Degenerate, ...]:
    """Outputs that a policy writes early in training, or by accident."""
    said = [(row, rollouts[0].last_text) for row, rollouts in trial.gym.recorded.items() if rollouts]
    forms = first_of_each(lambda each: re.sub(r"\w+", "", each[1]), said)
    numbered = filter(None, (with_long_number(row, text) for row, text in forms.values()))
    return (*degenerate_outputs(next(iter(trial.gym.tools), NO_SUCH_TOOL)), *islice(numbered, _FORMS))


def each_degenerate_turn(trial: Trial) -> tuple[Degenerate, ...]:
    """The same, and calls of all tools whose arguments are malformed: only a step hands them over as they are."""
    names = list(islice(trial.gym.tools or (NO_SUCH_TOOL,), _CALLED))
    return (
        *each_degenerate_output(trial),
        *(
            Degenerate(
                f"calls whose arguments are {slip}",
                tuple(function_call(name, arguments, f"call_{at}") for at, name in enumerate(names)),
            )
            for slip, arguments in SLIPS.items()
        ),
    )


def each_tool(trial: Trial) -> Iterable[Tool]:
    """Every tool that the rows declare."""
    return trial.gym.tools.values()
