"""Calls over MCP: they do the same as over HTTP, and tell the policy what is wrong with them."""

from collections.abc import Sequence
from functools import partial
from http import HTTPStatus
from typing import Any

from gym_conformance.checks.tools.routes import wrong_arguments
from gym_conformance.contract.dataset_rows import Call, Row, Tool
from gym_conformance.contract.openapi import ServerKind
from gym_conformance.contract.statuses import is_error, is_success
from gym_conformance.contract.verify_reply import rounded
from gym_conformance.gym_under_test import Gym
from gym_conformance.mcp.result import McpResult
from gym_conformance.session.channel import Channel
from gym_conformance.session.contracts import Session
from gym_conformance.session.exchange import Reply, reply_of
from gym_conformance.session.unserved import NO_SUCH_TOOL
from gym_conformance.trajectories.outcome import Difference, Outcome, StepOutcome, differences, volatile
from gym_conformance.trials.chance import beyond_chance
from gym_conformance.trials.check import check
from gym_conformance.trials.ending import NotApplicable, Violation
from gym_conformance.trials.needs import ROLLOUTS, SCORE
from gym_conformance.trials.over_mcp import MCP_TOOLS, known_calls, over_mcp, shown_to
from gym_conformance.trials.replay import verify_recorded
from gym_conformance.trials.trial import Trial

#: So many tools are called with wrong arguments.
_TOOLS = 12

#: Runs in which a reward that is not as recorded must stay the same: one that comes now and then is noise.
_RUNS = 20


def by_route(call: Call, reply: Reply) -> StepOutcome:
    """What a route answered, as it is compared."""
    if is_error(reply.status):
        return StepOutcome(f"/{call.name}", HTTPStatus.BAD_REQUEST.value, None)
    return StepOutcome(f"/{call.name}", HTTPStatus.OK.value, reply.said, reply)


def by_mcp(call: Call, result: McpResult, like: Any = None) -> StepOutcome:
    """The same of a call over MCP."""
    if result.is_error:
        return StepOutcome(f"/{call.name}", HTTPStatus.BAD_REQUEST.value, None)
    return StepOutcome(f"/{call.name}", HTTPStatus.OK.value, result.as_route(like))


async def scored(session: Session, row: Row, gym: Gym) -> StepOutcome:
    """The reward of the row's first recorded rollout, or of doing nothing."""
    return StepOutcome.of_verify(await verify_recorded(session, row, gym))


async def play(
    trial: Trial,
    row: Row,
    calls: Sequence[Call],
    like: Outcome | None = None,
    *,
    in_turn: bool = False,
    errors: dict[str, McpResult] | None = None,
) -> Outcome:
    """Make the calls over MCP in a fresh session, and have it scored.

    `like` is a run of the same calls over HTTP; `in_turn` makes every second one so here, too. `errors` gets what each
    step answered with over MCP, if that was an error.
    """
    steps: list[StepOutcome] = []
    async with over_mcp(trial, row) as (session, connection):
        for number, call in enumerate(calls):
            if in_turn and number % 2:
                steps.append(by_route(call, reply_of(await session.call(call))))
            else:
                result = await connection.call(call.name, call.arguments)
                steps.append(by_mcp(call, result, like.steps[number].body if like else None))
                if errors is not None and result.is_error:
                    errors.setdefault(steps[-1].name, result)
        steps.append(await scored(session, row, trial.gym))
    return Outcome(tuple(steps))


async def _by_routes(trial: Trial, row: Row, calls: Sequence[Call]) -> Outcome:
    session = await trial.open(row)
    steps = [by_route(call, reply_of(await session.call(call))) for call in calls]
    return Outcome((*steps, await scored(session, row, trial.gym)))


async def _routed(trial: Trial, row: Row, calls: Sequence[Call]) -> frozenset[str]:
    """The tools whose routes take a call, where no document names routes."""
    came = await _by_routes(trial, row, calls)
    return frozenset(call.name for call, step in zip(calls, came.steps, strict=False) if is_success(step.status))


@check(
    "mcp-same-as-route",
    "A call over MCP MUST do the same as over HTTP",
    why="otherwise training uses a different environment from the one that was tested, and rollouts are silently ruined.",
    needs=[*MCP_TOOLS, SCORE],
)
async def mcp_same_as_route(trial: Trial, _: object) -> None:
    """Makes recorded calls, or others that are accepted, by their routes, then over MCP, then alternating between the two, each time in a session of their own.

    Results and reward must be the same; values that differ between two runs over HTTP are not compared.

    Source: "a wrong dispatch would corrupt rollouts silently" (nemo_gym/mcp_auto_exposure.py, 0.7.0).
    """
    gym = trial.gym
    row, calls = await known_calls(trial)
    if gym.kind is not ServerKind.CATCH_ALL:
        routed = gym.api.tools if gym.api.known else await _routed(trial, row, calls)
        calls = tuple(call for call in calls if call.name in routed)
    if not calls or gym.kind is ServerKind.SINGLE_TURN:
        raise NotApplicable("no tool is served both by a route and over MCP")
    plain, again = await _by_routes(trial, row, calls), await _by_routes(trial, row, calls)
    mask = volatile(plain, again)

    errors: dict[str, McpResult] = {}

    async def over_both(channel: Channel, *, in_turn: bool) -> Difference | None:
        outcome = await play(Trial(trial.bench, channel), row, calls, plain, in_turn=in_turn, errors=errors)
        return next(differences(plain, outcome, mask), None)

    async def by_routes(channel: Channel) -> Difference | None:
        return next(differences(plain, await _by_routes(Trial(trial.bench, channel), row, calls), mask), None)

    for in_turn in (False, True):
        dispatched = partial(over_both, in_turn=in_turn)
        if found := await beyond_chance(trial, dispatched, by_routes):
            refused = found.where == "status" and is_error(found.actual)
            raise Violation(
                f"{found.answer}, as over HTTP",
                str(errors[found.step]) if refused and found.step in errors else f"{found.actual!r}",
                "The tool is implemented twice, or the call over MCP runs in another session.",
            )


@check(
    "mcp-recorded",
    "A recorded rollout SHOULD earn its recorded reward over MCP",
    why="otherwise what the tools do over MCP does not reach the session that is scored, and no rollout can earn anything.",
    needs=[*MCP_TOOLS, ROLLOUTS, SCORE],
    subjects=lambda trial: [row for row, calls in trial.gym.recorded_calls if row in trial.gym.recorded] or ("server",),
)
async def mcp_recorded(trial: Trial, row: Any) -> None:
    """Makes a recorded rollout's calls over MCP and verifies its output.

    Our inference: tool calls share the session of `/seed_session` and `/verify` (`MCPResourcesServer`, 0.4.0), but the
    record may have been made with an older version.
    """
    gym = trial.gym
    if not isinstance(row, Row):
        raise NotApplicable("no recorded rollout calls a tool")
    rollout = gym.recorded[row][0]
    calls = [trial.learned.offer.own(call) for call in rollout.calls]
    if not {call.name for call in calls} <= await shown_to(trial, row):
        raise NotApplicable("it calls tools that its session is not shown")
    now = await play(trial, row, calls)
    if not is_success(now.steps[-1].status) or not isinstance(rollout.reward, int | float):
        raise NotApplicable("its reward cannot be compared: it is not scored")
    as_recorded = now.reward == rounded(rollout.reward)
    for _again in range(0 if as_recorded else _RUNS):
        if (await play(Trial(trial.bench), row, calls)).reward != now.reward:  # its requests are no part of the finding
            raise NotApplicable("its reward cannot be compared: it is not the same each time")
    if not as_recorded:
        raise Violation(
            f"reward {rollout.reward!r}, as recorded in {rollout}",
            f"reward {now.reward!r}",
            "The tools work on a different session from the one that /verify scores, or the record is out of date.",
        )


@check(
    "mcp-unknown-tool",
    "An unknown tool over MCP MUST get an error that the policy can read",
    why="policies invent tools in every batch; if that breaks the connection, the rollout loses all its tools.",
    needs=MCP_TOOLS,
)
async def mcp_unknown_tool(trial: Trial, _: object) -> None:
    """Calls two tools that do not exist and lists the tools again; each call must get a tool error or a JSON-RPC error.

    Source: nemo_gym/mcp_auto_exposure.py (0.7.0): "Models hallucinate tool names, so answer the miss cheaply with a
    plain isError result"; so does FastMCP (0.4.0).
    """
    async with over_mcp(trial) as (_, connection):
        for name in (NO_SUCH_TOOL, "functions.no_such tool"):
            result = await connection.call(name, {"a": 1})
            if not result.is_error:
                raise Violation("isError", str(result), "Without isError the result claims that the call was made.")
        await connection.tools()


@check(
    "mcp-bad-arguments",
    "A call with wrong arguments over MCP MUST be answered",
    why="policies write wrong arguments in every batch; if that breaks the connection, the rollout loses all its tools.",
    needs=MCP_TOOLS,
    subjects=lambda trial: [Tool(one.name, one.schema) for one in trial.learned.offer.definitions[:_TOOLS]],
)
async def mcp_bad_arguments(trial: Trial, tool: Tool) -> None:
    """Calls each listed tool with no arguments, with an unknown one, and with null, an object or odd text for its own.

    Any result is fine, a tool error or not, and so is a JSON-RPC error; an HTTP error or a broken result is not. The
    tools are listed again afterwards.
    Source: `mcp/client/streamable_http.py` of the official client raises on an HTTP error, and the agent loses its tools;
    nemo_gym/mcp_auto_exposure.py (0.7.0) answers with a tool error.
    """
    async with over_mcp(trial) as (_, connection):
        for arguments in wrong_arguments(tool).values():
            await connection.call(tool.name, dict(arguments) if isinstance(arguments, dict) else {})
        await connection.tools()
