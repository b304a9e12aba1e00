"""`POST /<tool>`: runs one call of the policy.

Source: `SimpleAgent.responses` in responses_api_agents/simple_agent/app.py (0.4.0): the parsed arguments are the body,
the reply's raw text is the tool's output, whatever its status.
"""

import json
from collections.abc import Iterable
from http import HTTPStatus
from itertools import islice

from gym_conformance.checks.calls.moves import expect_own_cookie, expect_uncounted
from gym_conformance.contract.dataset_rows import Call, Tool
from gym_conformance.contract.endpoints import RESERVED, TOOL_NAME, tool_path
from gym_conformance.contract.openapi import ServerKind
from gym_conformance.contract.statuses import is_refusal
from gym_conformance.drift.tool_drift import DriftKind
from gym_conformance.probes.catch_all import knows_tool
from gym_conformance.probes.live_answer import Live, LiveAnswer
from gym_conformance.session.channel import Channel
from gym_conformance.session.contracts import CookieHabit
from gym_conformance.session.exchange import reply_of
from gym_conformance.session.unserved import NO_SUCH_TOOL, is_served
from gym_conformance.trajectories.execute import run
from gym_conformance.trajectories.known import known
from gym_conformance.trajectories.other_values import with_letters_beyond_ascii
from gym_conformance.trajectories.outcome import Outcome
from gym_conformance.trajectories.trajectory import STRANGE, Trajectory
from gym_conformance.trials.check import check
from gym_conformance.trials.ending import NotApplicable, Violation
from gym_conformance.trials.in_form import expect_text
from gym_conformance.trials.needs import (
    EXECUTED_TOOLS,
    RECORDED_CALLS,
    RESOURCES_SERVER,
    SERVED_TOOLS,
    TOOLS,
    each_tool,
)
from gym_conformance.trials.property import knowledge_of
from gym_conformance.trials.replay import recorded_trajectory
from gym_conformance.trials.solo import Solo
from gym_conformance.trials.trial import Trial, describe, expect_no_crash
from gym_schemas import properties_of

#: So many tools' calls are spoilt: each is sent before every step of a replay.
_SPOILT = 4

#: Bodies that are no call, by name; None is no body at all. The policy's own arguments are always parsed JSON, so
#: the last two come only from clients with a bug of their own. All are UTF-8, as whatever a JSON library writes.
BAD_BODIES: dict[str, bytes | None] = {
    "a list": b"[1, 2]",
    "a string": b'"text"',
    "null": b"null",
    "a number": b"0",
    "no body": None,
    "broken JSON": b'{"a": ',
}


@check(
    "tool-routed",
    "Every tool that a row declares MUST be served",
    why="the policy is offered a tool that always fails, and learns not to call it.",
    needs=[RESOURCES_SERVER, TOOLS, EXECUTED_TOOLS],
    subjects=each_tool,
    beside=True,
)
async def tool_routed(trial: Trial, tool: Tool) -> None:
    """Calls each declared tool in a seeded session; a tool without a route must not answer 404 or 405.

    A recorded call is made in its own row, after the calls before it. Since a tool may answer 404 for reasons of its
    own, it counts as missing only if each of its answers (to that call, to a call without arguments, to a list, to a
    GET) has the wording with which the server answers a tool that does not exist. On a catch-all server this wording
    decides whatever the status. A route counts as served if an OpenAPI document that FastAPI made lists it; one written
    by hand may say too much.

    The tools of a single-turn server are graded, never executed, unless the env's YAML (`configs/` next to the data)
    names an agent for these rows that is known to post each call to this server, such as simple_agent.

    Source: responses_api_agents/simple_agent/app.py (0.4.0) feeds the 404 to the model as the tool's answer.
    """
    gym = trial.gym
    if tool.name in gym.api.tools and gym.api.is_generated:
        return
    agent = gym.agent_of(tool.name)
    if gym.kind is ServerKind.SINGLE_TURN and agent is None:
        raise NotApplicable("no agent is known to execute its calls; they are graded instead")
    definition = gym.definition_of(tool.name)
    row, before, call = gym.recorded_place(tool.name) or (
        gym.row_for(definition) if definition else None,
        (),
        Call(tool.name, {}),
    )
    session = await trial.open(row)
    for earlier in before:
        await session.call(earlier)
    reply = await trial.call(session, call)
    missing = reply.status == HTTPStatus.METHOD_NOT_ALLOWED
    if reply.status == HTTPStatus.NOT_FOUND:
        asked = len(trial.channel.exchanges)
        missing = not await is_served(session, tool.name, [call.arguments, {}])
        del trial.channel.exchanges[asked:]
    if not missing and definition and gym.kind is ServerKind.CATCH_ALL:
        missing = not await knows_tool(gym, trial.channel, definition)
    if missing:
        served = ", ".join(sorted(gym.api.tools - {tool.name})) or "none by name"
        if definition:
            said = f"rows declare it, but the server has no such tool; it serves {served}"
            drift = definition.drift(DriftKind.TOOL_MISSING, said)
            trial.tell(drift, Live(LiveAnswer.CONFIRMED, describe(reply)))
        raise Violation(
            f"a POST route for {tool.name}",
            describe(reply),
            f"{agent} posts each call to the server, which has no such route: serve it, or name an agent that does not "
            "execute, such as non_executing_simple_agent."
            if gym.kind is ServerKind.SINGLE_TURN
            else f"The tool was renamed, or its route was never added in setup_webserver(). Served: {served}.",
        )


def _each_handler(trial: Trial) -> Iterable[Tool]:
    """The tools whose bodies are read by different code: a catch-all reads all of them alike."""
    tools = list(trial.gym.tools.values())
    return tools[:1] if trial.gym.kind is ServerKind.CATCH_ALL else tools


@check(
    "tool-bad-body",
    "A malformed call body MUST be refused without a 5xx",
    why="a 5xx costs the agent its cookie, and with it the session: one malformed call ruins the rollout.",
    needs=[RESOURCES_SERVER, TOOLS, SERVED_TOOLS],
    subjects=_each_handler,
)
async def tool_bad_body(trial: Trial, tool: Tool) -> None:
    """Sends each tool a list, a string, null, a number, no body and broken JSON, in a seeded session.

    A tool without arguments may ignore its body and answer 200. On a catch-all server only one tool is tried.

    Source: simple_agent/app.py (0.4.0) posts whatever JSON the policy writes, object or not; a route with a pydantic
    model answers 422.
    """
    session = await trial.open(habit=CookieHabit.KEEPING)
    for name, body in BAD_BODIES.items():
        exchange = await session.call_raw(tool.name, body)
        expect_no_crash(
            reply_of(exchange),
            given=name,
            hint="The handler parses the raw body itself; declare a pydantic model instead.",
        )
        trial.channel.forget(exchange)


def wrong_arguments(tool: Tool) -> dict[str, object]:
    """Arguments that no tool expects, by what is wrong with them."""
    names = list(properties_of(tool.parameters))
    wrong: dict[str, object] = {"no arguments": {}, "an unknown argument": {"no_such_argument_conformance": 1}}
    if not names:
        return wrong
    return wrong | {
        "null for every argument": dict.fromkeys(names),
        "an object for every argument": dict.fromkeys(names, STRANGE),
        "text for every argument": dict.fromkeys(names, "\x00 unexpected text \U0001f9ea"),
    }


@check(
    "tool-wrong-arguments",
    "A call with wrong arguments MUST be refused without a 5xx",
    why="policies write wrong arguments in every batch; a 5xx costs the agent its cookie, and with it the session.",
    needs=[RESOURCES_SERVER, TOOLS, SERVED_TOOLS],
    subjects=each_tool,
    beside=True,
)
async def tool_wrong_arguments(trial: Trial, tool: Tool) -> None:
    """Calls each tool with no arguments, with an unknown one, and with null, an object or odd text for each declared argument.

    Any status below 500 is fine: the tool may accept the call, refuse it with 422, or answer 200 with an error text.

    Source: simple_agent/app.py (0.4.0) replaces its cookies with the reply's; a 5xx from an exception carries none.
    """
    # on a new connection no call is sent again: a worker that dies of it may be back by then, and know no session
    channel = Channel(trial.gym.endpoint, fresh=True, record=trial.channel)
    session = await trial.open(habit=CookieHabit.KEEPING, channel=channel)
    for name, arguments in wrong_arguments(tool).items():
        exchange = await session.call(Call(tool.name, arguments))
        hint = "The tool's function raises; catch the exception and return it as the tool's output, with 200 or a 4xx."
        expect_no_crash(reply_of(exchange), given=name, hint=hint)
        trial.channel.forget(exchange)


@check(
    "tool-undeclared",
    "A call of an undeclared tool MUST NOT cause a 5xx",
    why="policies invent tools; a 5xx costs the agent its cookie, and with it the session.",
    needs=[RESOURCES_SERVER],
)
async def tool_undeclared(trial: Trial, _: object) -> None:
    """Calls two tools that do not exist, one of them under a name that a confused policy might write.

    A 404 is usual; a catch-all server answers 200 with an error in the body.

    Source: simple_agent/app.py (0.4.0) posts to whatever name the policy writes.
    """
    hint = "The catch-all route looks the tool up without checking that it exists."
    for name in (NO_SUCH_TOOL, "functions.no_such tool"):
        session = await trial.open()
        expect_no_crash(await trial.call(session, Call(name, {"a": 1})), hint)


@check(
    "tool-refused-call",
    "A refused call MUST leave the session as it was",
    why="the policy may fix its call and go on; if the refused call left traces, the rollout is scored on the wrong state.",
    needs=[RESOURCES_SERVER, SERVED_TOOLS, RECORDED_CALLS],
)
async def tool_refused_call(trial: Trial, _: object) -> None:
    """Replays a recorded rollout with refused calls before each step, and compares it with a plain replay.

    The refused calls are an unknown tool, a malformed call, and recorded calls with one argument corrupted, as far as
    the server refuses them with a 4xx. A call that is answered with 200 was accepted and may change the state, so it is
    left out. An environment may count refused calls: each may cost part of the reward, or one of a limited number of
    turns. Values that differ between two plain replays are not compared.

    Source: simple_agent/app.py (0.4.0) continues after any error reply.
    """
    calls = trial.gym.recorded_calls[0][1]
    disturb = await _refused(trial, [Call(NO_SUCH_TOOL, {}), Call(calls[0].name, [1, 2]), *_spoilt(calls)])
    if not disturb:
        raise NotApplicable("it refuses no call")
    plain = recorded_trajectory(trial)
    noisy = _with_each_step(plain, disturb)
    habit = CookieHabit.COLLECTING  # whatever the server does to the others is not this check's matter

    async def disturbed(channel: Channel) -> Outcome:
        return await run(trial.gym, channel, noisy, habit=habit)

    solo = Solo(trial, plain, habit)
    if found := await solo.beyond_chance(disturbed):
        await expect_own_cookie(trial, solo, noisy)
        await expect_uncounted(trial, noisy)
        raise Violation(
            f"{found.answer}, as without the refused calls",
            f"{found.actual!r}",
            "The tool changes state before it has checked its arguments.",
        )


def _with_each_step(trajectory: Trajectory, disturb: tuple[Call, ...]) -> Trajectory:
    """The trajectory with these calls, which are refused, before each step."""
    for at in reversed(range(len(trajectory.calls) + 1)):
        trajectory = trajectory.with_noise(at, *disturb)
    return trajectory


def _spoilt(calls: Iterable[Call]) -> list[Call]:
    """A call of a few of these tools, with the last argument spoilt."""
    spoilt = {
        call.name: Call(call.name, {**call.arguments, list(call.arguments)[-1]: STRANGE})
        for call in calls
        if call.arguments
    }
    return list(spoilt.values())[:_SPOILT]


async def _refused(trial: Trial, calls: Iterable[Call]) -> tuple[Call, ...]:
    """Those that the server refuses in a session of their own."""
    statuses = [(call, reply_of(await (await trial.open()).call(call)).status) for call in calls]
    return tuple(call for call, status in statuses if is_refusal(status))


@check(
    "tool-reply-text",
    "A tool's reply MUST be UTF-8 text",
    why="the agent decodes it; bytes that are not UTF-8 end the rollout with an exception.",
    needs=[RESOURCES_SERVER, TOOLS, SERVED_TOOLS],
    subjects=each_tool,
    beside=True,
    gentle=True,
)
async def tool_reply_text(trial: Trial, tool: Tool) -> None:
    """Calls each tool as a recorded rollout does, or without arguments, and decodes the reply.

    It does the same after calls that are known to be accepted, with letters beyond ASCII in their texts.

    Source: `(await api_response.content.read()).decode()` in simple_agent/app.py (0.4.0).
    """
    session = await trial.open()
    reply = await trial.call(session, trial.gym.example_call(tool))
    expect_text(reply)
    calling = (each for each in known(await knowledge_of(trial)) if tool.name in {call.name for call in each.calls})
    for trajectory in islice(calling, 1):
        outcome = await run(trial.gym, trial.channel, with_letters_beyond_ascii(trajectory))
        for step in outcome.calls:
            if step.source and step.name == tool_path(tool.name):
                expect_text(step.source)


@check(
    "tool-name-legal",
    "A tool's name MUST be legal and not reserved",
    why="model servers refuse the whole request, or the call reaches one of the framework's endpoints instead of the tool.",
    needs=[TOOLS],
    subjects=each_tool,
)
async def tool_name_legal(trial: Trial, tool: Tool) -> None:
    """Checks each declared name against `[A-Za-z0-9_-]{1,64}` and, where tools are executed, the framework's endpoints.

    Source: https://platform.openai.com/docs/api-reference/chat/create for function names; `RESERVED_MCP_TOOL_NAMES` in
    nemo_gym/base_resources_server.py (0.4.0).
    """
    if not TOOL_NAME.fullmatch(tool.name):
        raise Violation("letters, digits, _ and -, 1 to 64 of them", json.dumps(tool.name), "Rename the tool.")
    if trial.gym.kind is ServerKind.SINGLE_TURN:
        return
    if tool.name in RESERVED:
        raise Violation("a name of its own", f"{tool.name}, an endpoint of the framework", "Rename the tool.")


@check(
    "tool-served-declared",
    "No row declares some of the routes as a tool",
    why="a tool that no row offers is never called: it is dead code, or the dataset is out of date.",
    needs=[RESOURCES_SERVER, TOOLS, SERVED_TOOLS],
)
async def tool_served_declared(trial: Trial, _: object) -> None:
    """Compares the POST routes in the OpenAPI document with the tools of all rows read.

    Our inference.
    """
    if not trial.gym.api.tools:
        raise NotApplicable("the server names no tool routes")
    drifts = [drift for drift in trial.gym.drifts if drift.kind is DriftKind.ROUTE_UNUSED]
    for drift in drifts:
        trial.tell(drift)
    unused = [drift.tool for drift in drifts]
    if unused:
        raise Violation(
            "routes that some row declares",
            ", ".join(unused),
            "The rows were made for another version of the server, or the route is not meant as a tool.",
        )
