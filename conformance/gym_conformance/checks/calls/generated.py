"""Tool calls in generated trajectories: what the definitions allow works, and what is refused leaves no trace.

Source: the tools of a row are what the policy is shown (`responses_create_params.tools`), and simple_agent/app.py
(0.4.0) posts what it writes.
"""

import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from http import HTTPStatus
from typing import Any, Final

from gym_conformance.checks.calls.moves import expect_own_cookie, expect_uncounted, takes_turns
from gym_conformance.contract.dataset_rows import Call, Row
from gym_conformance.contract.endpoints import CLOSE_SESSION, SEED_SESSION, VERIFY, tool_path
from gym_conformance.contract.statuses import is_crash, is_error, is_refusal, is_success
from gym_conformance.contract.verify_reply import is_number
from gym_conformance.drift.lax import SAYS_MOST, explicit, leaves_open
from gym_conformance.findings import Cause
from gym_conformance.session.channel import Channel
from gym_conformance.session.contracts import CookieHabit, post
from gym_conformance.session.exchange import Exchange, Reply, reply_of
from gym_conformance.session.likeness import Answer, alike
from gym_conformance.session.refusals import is_in_own_words, places, says_no
from gym_conformance.session.server_fault import Fault, ServerFault
from gym_conformance.trajectories.bounds import with_bounds
from gym_conformance.trajectories.disturbed import known_disturbed, with_each_tool_invalid
from gym_conformance.trajectories.execute import TrajectoryRun, run, run_each
from gym_conformance.trajectories.generate import disturbed, trajectories
from gym_conformance.trajectories.known import known
from gym_conformance.trajectories.outcome import Difference, Outcome, StepOutcome, differences, varying
from gym_conformance.trajectories.trajectory import STRANGE, Schedule, Trajectory, has_surrogates, without_surrogates
from gym_conformance.trials.check import check
from gym_conformance.trials.ending import NotApplicable, Violation
from gym_conformance.trials.in_form import expect_summed
from gym_conformance.trials.needs import COOKIES, RESOURCES_SERVER, SCORE, SERVED_TOOLS, TOOLS
from gym_conformance.trials.property import alone, knowledge_of, property_check
from gym_conformance.trials.solo import Solo
from gym_conformance.trials.trial import Trial, describe
from gym_schemas import admits, properties_of, understood, upgrade

_NEEDS = [RESOURCES_SERVER, TOOLS, SERVED_TOOLS]

_WORD: Final = re.compile(r"\w+")

#: A definition that has one of these says which numbers there are.
_SAYS_WHICH: Final = SAYS_MOST | {"enum", "const"}

#: Known trajectories of a row in which a call is made again.
_KNOWN = 2

#: Tools that are named.
_NAMED = 5

#: Known trajectories that are run to see whether any call is answered.
_TRIED = 4

#: Paths that are no tools', and what it means if the reply to any other sets no cookie.
_NO_TOOLS: Final = (SEED_SESSION, VERIFY, CLOSE_SESSION)
_WITHOUT: Final = (
    "simple_agent replaces its cookies with those of each reply: after this one it has none and continues in a fresh session. "
    "One way through the handler, such as an early return, sets no cookie: set it before the handler runs."
)

#: The longest body that every framework parses, and the most brackets in it; none takes a lone surrogate for granted.
_EASY, _SHALLOW = 10_000, 64

#: Of so many tools at least, one answers otherwise than another.
_TOOLS = 2

#: Seconds of a seed and a verify up to which one follows each invalid call that is taken.
_BRIEF: Final = 1.0

#: Runs without the calls before a refused one: what differs among them is left out.
_FORGETFUL = 3


def _never_taken(trial: Trial) -> str:
    """The tools that were never called with success; '' where there are none."""
    never = [name for name in trial.gym.tools if tool_path(name) not in trial.learned.answered]
    more = f" and {len(never) - _NAMED} more" if len(never) > _NAMED else ""
    few = f"no call of {', '.join(never[:_NAMED])}{more} was answered without an error"
    return f"{few}, so that a pass says little of what comes of it; record a rollout that calls it" if never else ""


@property_check(
    "calls-valid",
    "A call that its tool's definition allows MUST NOT crash the server or be refused as malformed",
    why="the policy does what the definition says and is punished for it; a 5xx also costs it the session.",
    needs=_NEEDS,
    examples=lambda knowledge: alone(trajectories(knowledge, min_calls=1)),
    first=with_bounds,
    unseen=_never_taken,
    deep=True,
)
async def calls_valid(trial: Trial, schedule: Schedule) -> None:
    """Runs trajectories of calls whose arguments the rows' JSON Schemas allow; none may be answered with a 5xx or a 422.

    If verify scores a session of the row in which nothing was done, it must not fail after these calls, or give a
    reward that is not a finite number; its `reward_components`, if any, must sum to the reward.

    Some refusals do not count: a 4xx that the tool itself means (nothing found, not allowed now); a 422 in which
    nothing but pydantic validators of the server's own speak, such as of an end that comes before its begin;
    one that neither lists places in the body, as FastAPI does, nor has the wording with which surely wrong arguments are
    refused; a 422 that the same call does not get after calls that are known to mean something; one whose wording may
    be about a text of which the definition says no more than how long it is; the refusal of an empty text, an empty list
    or a large number if the definition says nothing about these; and any refusal if the definition cannot be read as it
    stands (`drift-definition-unsound` reports that).

    Where replies to calls set the session's cookie again, each reply below 500 must.

    A tool that answers nothing but errors is named in a caution, because few checks can say anything about it.

    Source: the definitions in the rows; FastAPI answers 422 where the server's model disagrees with them, which
    simple_agent/app.py (0.4.0) feeds to the policy.
    """
    trajectory = schedule.trajectories[0]
    rollout = TrajectoryRun(trial.gym, trial.channel, trajectory)
    outcome = await rollout.finish()
    await rollout.session.close()
    for call, step in zip(rollout.made, outcome.calls, strict=False):
        if is_crash(step.status):
            hint = "The tool raises on a value that its definition allows; handle the value, or narrow the definition."
            raise _not_taken(trial, step, f"{step.name} answers below 500", hint)
        if step.status == HTTPStatus.UNPROCESSABLE_ENTITY and await _is_malformed(trial, trajectory.row, call, step):
            hint = "The definition in the rows and the server's request model have drifted apart."
            raise _not_taken(trial, step, f"{step.name} takes what its definition allows", hint)
    await _expect_scored(trial, trajectory, outcome)
    await _expect_cookies(trial)


def _not_taken(trial: Trial, step: StepOutcome, expected: str, hint: str) -> Violation:
    """A call that crashed or was refused, with this hint unless its session had been lost before."""
    sent = trial.channel.exchanges
    first = next((number for number, one in enumerate(sent) if one.reply and one.reply.status == step.status), 0)
    bare = next((one for one in sent[:first] if one.request.cookies and not one.received), None)
    lost = bare is not None and not sent[first].request.cookies
    return Violation(
        expected,
        f"status {step.status}, body {step.body}",
        f"The call came without a session, because {bare} set no cookie; see cookie-sent-again." if lost else hint,
        Cause.LOST_SESSION if lost else None,
    )


async def _expect_scored(trial: Trial, trajectory: Trajectory, outcome: Outcome) -> None:
    """Hold the reward to the sum of its components; a verify that fails is told where it scores a session without calls."""
    verify = outcome.steps[-1]
    for exchange in trial.channel.exchanges:
        if exchange.request.path == VERIFY and exchange.reply:
            expect_summed(exchange.reply.said)
    if is_crash(verify.status):
        said = f"status {verify.status}"
    elif is_success(verify.status) and not is_number(verify.body):
        said = f"reward: {verify.body!r}"
    else:
        return
    if is_number((await run(trial.gym, Channel(trial.gym.endpoint), Trajectory(trajectory.row))).reward):
        raise Violation(
            "/verify scores what the calls have led to",
            said,
            "verify assumes something about the session's state that the tools do not guarantee, such as a number where "
            "they accept a text.",
        )


async def _is_malformed(trial: Trial, row: Row, call: Call, step: StepOutcome) -> bool:
    """Whether a 422 says that a call is malformed which its definition surely allows, one argument for itself."""
    if not _says_something(row, call) or (step.source and is_in_own_words(step.source)):
        return False
    return bool(step.source and places(step.source)) or await _is_said_of_wrong_ones(trial, row, call, step)


def _says_something(row: Row, call: Call) -> bool:
    """Whether the definition surely allows it, and no text or list in it is empty or huge for which the definition does not speak.

    A policy that was recorded may have made a call that is not allowed.
    """
    definition = row.parameters_of(call.name)
    surely = understood(definition) and admits(definition, call.arguments)
    return surely and admits(explicit(upgrade(definition)), call.arguments)


async def _is_said_of_wrong_ones(trial: Trial, row: Row, call: Call, step: StepOutcome) -> bool:
    """Whether arguments that no tool can mean are answered alike.

    Not where it asks for an argument that may be left out: one state may need it, and another not. Nor where it may be a
    text that is refused: `a` is no date. Where every state needs the one, or no text is taken for what is meant,
    `drift-argument-refused` tells that.
    """
    given = {name for name, value in call.arguments.items() if value is not None}
    definition = row.parameters_of(call.name)
    may_be_left_out = set(properties_of(definition)) - given
    if may_be_left_out & set(_WORD.findall(json.dumps(step.body))):
        return False
    session = await Trial(trial.bench).open(row)
    own = Answer(Reply(step.status, (), json.dumps(step.body).encode(), 0.0), tuple(call.arguments.values()))
    schemas = properties_of(upgrade(definition))
    texts = [name for name in call.arguments if name in schemas and leaves_open(schemas[name])]

    async def is_answered_alike(wrong: Mapping[str, Any]) -> bool:
        if admits(definition, wrong):
            return False
        return alike(own, Answer(reply_of(await session.call(Call(call.name, wrong))), (STRANGE,)))

    if texts and await is_answered_alike({**call.arguments, **dict.fromkeys(texts, STRANGE)}):
        return False
    # without any arguments, what may be left out is missing, too, of which it may want one
    for wrong in (dict.fromkeys(call.arguments, STRANGE), *([] if may_be_left_out else [{}])):
        if await is_answered_alike(wrong):
            return not await _is_taken_later(trial, row, call)
    return False


async def _is_taken_later(trial: Trial, row: Row, call: Call) -> bool:
    """Whether the call is taken somewhere in a session that does what is known to mean something on the row.

    So is one with smaller numbers, where the definition does not say how large they may be: there are only so many things
    to choose from.
    """
    known_ones = [one for one in known(await knowledge_of(trial)) if one.row is row][:_KNOWN]
    for tried in {repr(one): one for one in (call, _with_small_numbers(row, call))}.values():
        for one in known_ones:
            last = len(one.calls)
            numbers = [last, *(number for at in range(last) for number in (at, last))]
            again = replace(one, calls=(*one.calls, tried), noise=frozenset()).chosen(numbers)
            outcome = await run(trial.gym, Channel(trial.gym.endpoint), again)
            if not all(step.is_refused for step in outcome.calls[::2]):
                return True
    return False


def _with_small_numbers(row: Row, call: Call) -> Call:
    small = {
        name: schema.get("minimum", 0)
        for name, schema in properties_of(upgrade(row.parameters_of(call.name))).items()
        if is_number(call.arguments.get(name)) and isinstance(schema, dict) and not _SAYS_WHICH & schema.keys()
    }
    return Call(call.name, {**call.arguments, **small})


@check(
    "calls-reach-session",
    "A call MUST reach the session that was seeded",
    why="every call is refused, so that the policy learns from nothing but errors, and verify scores a session in which nothing was done.",
    needs=[*_NEEDS, COOKIES],
)
async def calls_reach_session(trial: Trial, _: object) -> None:
    """Calls each tool of a row without arguments, with the cookie and without; if one needs none, not all may be refused in the same words.

    Asked only where no call of any tool is answered without an error, whatever its arguments: then it is the session
    that is not found, or what all tools need.

    Source: simple_agent/app.py (0.4.0) sends each call with the cookies of the reply before.
    """
    row = next((row for row in trial.gym.rows if any(not one.parameters.get("required") for one in row.tools)), None)
    paths = [tool_path(tool.name) for tool in row.tools] if row else []
    if row is None or len(paths) < _TOOLS:
        raise NotApplicable(f"no row has {_TOOLS} tools of which one needs no argument")
    if not trial.learned.answered.isdisjoint(paths):
        return
    outcomes = await run_each(trial.gym, known(await knowledge_of(trial))[:_TRIED])
    if not all(step.is_refused for each in outcomes for step in each.calls):
        return
    session = await trial.open(row)
    within = [await trial.call(session, Call(tool.name, {})) for tool in row.tools]
    first = within[0]
    if not says_no(first) or first.status == HTTPStatus.NOT_FOUND or not _are_equal(within):
        return
    without = [await trial.send(post(path, {})) for path in paths]
    if _are_equal([*within, *without]):
        raise Violation(
            "a call that needs no argument is answered otherwise than all others",
            f"{describe(first)}, to calls of all tools of {row}, with the session's cookie and without",
            "The session is not found: it is kept in a thread, a process or a connection, its cookie is not the one that "
            "was set, or what the tools need was not set up.",
            Cause.LOST_SESSION,
        )


def _are_equal(replies: Sequence[Reply]) -> bool:
    return len({(reply.status, reply.text) for reply in replies}) == 1


@property_check(
    "calls-invalid",
    "A call that its tool's definition forbids MUST be refused without a 5xx",
    why="policies write such calls in every batch; a 5xx costs the agent its cookie, and with it the session.",
    needs=_NEEDS,
    examples=lambda knowledge: alone(disturbed(knowledge)),
    first=with_each_tool_invalid,
    deep=True,
)
async def calls_invalid(trial: Trial, schedule: Schedule) -> None:
    """Puts a call into a trajectory: with one fault, such as a number far out of its bounds, or with hostile values.

    Such values are the day 9999-99-99 and letters beyond ASCII. The call must not cause a 5xx. Nor must the verify after a
    call that is answered with a 2xx, if the same session without the call is scored.

    Any other answer is fine, since tools may be lenient, if it sets the session's cookie again, as the replies to other
    calls do. A 5xx that is due to a lone surrogate alone does not count,
    because many frameworks cannot encode it in an echo: the same call with U+FFFD in its place must cause a 5xx too.

    Source: simple_agent/app.py (0.4.0) feeds any answer to the policy and continues; a crash sends no cookie.
    """
    tried = schedule.trajectories[0]
    steps = await _refusals(trial, tried)
    if any(is_crash(step.status) for step in steps) and has_surrogates(tried):
        tried = without_surrogates(tried)
        steps = await _refusals(trial, tried)
    for step in steps:
        if not is_crash(step.status):
            continue
        if step.name != VERIFY:
            hint = "The tool's function raises; validate its arguments, or catch the exception and return it as the tool's output."
            raise _not_taken(trial, step, f"{step.name} answers below 500", hint)
        plain = replace(tried, calls=tried.calls[: 1 + max(tried.noise)]).without_noise()
        if is_number((await run(trial.gym, Channel(trial.gym.endpoint), plain)).reward):
            raise Violation(
                "/verify scores the session, as without the calls that the definition forbids",
                f"status {step.status}",
                "A tool keeps what its definition forbids, and verify cannot handle it: check a call's arguments first.",
            )
    await _expect_cookies(trial)


async def _expect_cookies(trial: Trial) -> None:
    """Tell a call whose reply sets no cookie, again in a session where the reply to a known call does."""
    calls = (one for one in trial.channel.exchanges if one.request.cookies and one.request.path not in _NO_TOOLS)
    bare = next(filter(_sets_none, calls), None)
    known_one = next((one for one in known(await knowledge_of(trial)) if one.calls), None) if bare else None
    if not bare or not known_one:
        return
    rollout = TrajectoryRun(trial.gym, Channel(trial.gym.endpoint), known_one, CookieHabit.KEEPING)
    await rollout.step(2)
    again = await rollout.session.send(bare.request)
    if rollout.exchanges[-1].received and _sets_none(again):
        raise Violation("a Set-Cookie header on every reply", f"none from {bare}", _WITHOUT, Cause.LOST_SESSION)


def _sets_none(exchange: Exchange) -> bool:
    """Whether a reply that is no crash sets no cookie, though no parser refuses the call before its handler sees it."""
    if exchange.reply is None or is_crash(exchange.reply.status) or exchange.received:
        return False
    body = exchange.request.body or b""
    return len(body) <= _EASY and body.count(b"[") + body.count(b"{") <= _SHALLOW and b"\\ud" not in body.lower()


async def _refusals(trial: Trial, trajectory: Trajectory) -> list[StepOutcome]:
    """What the calls that are there to be refused are answered, in a session of their own, and its verify if one is taken.

    A verify that takes long is left out.
    """
    rollout = TrajectoryRun(trial.gym, trial.channel, trajectory)
    try:
        await rollout.step(2 + max(trajectory.noise, default=-1))
    except ServerFault as fault:
        if fault.fault is not Fault.HANG or not rollout.refusals:
            raise
        trial.gym.endpoint.forgive(fault)
        raise NotApplicable("it hangs after a refused call; see calls-refused-harmless") from fault
    knowledge, is_taken = trial.learned.knowledge, any(is_success(step.status) for step in rollout.refusals)
    is_brief = knowledge is None or knowledge.session_seconds <= _BRIEF
    return [*rollout.refusals, *([await rollout.verify()] if is_taken and is_brief else [])]


@property_check(
    "calls-refused-harmless",
    "A refused call MUST NOT affect the rest of its session",
    why="the policy fixes its call and goes on; if the refused call left traces, the rollout is scored on the wrong state.",
    needs=[*_NEEDS, SCORE],
    examples=lambda knowledge: alone(disturbed(knowledge)),
    first=known_disturbed,
    deep=True,
)
async def calls_refused_harmless(trial: Trial, schedule: Schedule) -> None:
    """Runs a trajectory with and without refused calls in the middle; everything else must be the same.

    The refused calls lack arguments or have wrong ones, refer to something that does not exist, or cannot be parsed
    because the text is cut off or has an extra bracket; or the definition allows them and the state does not, such as a
    known write right after the seed, one that was refused when it was recorded, one with another member of an enum, or
    what another rollout does, done to this one's things.
    They come before or after a known call, or in its place, and reads follow. If there are several in a session, only
    those that are refused count.

    A 4xx is a refusal. So is a 2xx that reports an error, but such a call may be a move like any other; it therefore
    counts only if later replies are as though the calls before it had never been made. An environment may count refused
    calls: each may cost part of the reward, or one of a limited number of turns, or use up the next id. Values that
    differ between two runs without the refused calls are not compared. It is also a violation if a later request hangs
    that is answered in another session without the refused call.

    Source: simple_agent/app.py (0.4.0) continues after any reply.
    """
    trial.learned.after_errors = trial.learned.after_errors or []
    disturbing = await _refused(trial, schedule.trajectories[0])
    noisy = disturbing.trajectory

    async def again(channel: Channel) -> Outcome:
        return await run(trial.gym, channel, noisy)

    in_words = any(not is_error(step.status) for step in disturbing.refusals)
    solo = Solo(trial, noisy.without_noise())
    if suspected := await solo.difference(disturbing.outcome):
        # before chance is excluded, which takes dozens of runs: where refused calls are counted, all examples differ
        if not in_words:
            await expect_uncounted(trial, noisy)
        elif not await _undone(trial, noisy, suspected) or await takes_turns(trial, noisy):
            trial.learned.after_errors.append(noisy)  # which calls-error-harmless looks at
            raise NotApplicable("the call was refused only in words, and may be a move like any other")
    if not (difference := await solo.beyond_chance(again, disturbing.outcome)):
        return
    if bare := next((one for one in trial.channel.exchanges if _loses_the_session(one)), None):
        raise Violation("a Set-Cookie header on the refusal", f"none from {bare}", _REFUSED_BEFORE, Cause.LOST_SESSION)
    await expect_own_cookie(trial, solo, noisy)
    raise Violation(
        f"{difference.answer}, as without the refused call",
        f"{difference.actual!r}",
        _ROLLED_BACK if in_words else _TOO_EARLY,
    )


def _loses_the_session(exchange: Exchange) -> bool:
    """Whether it is a refusal that sets no cookie: an agent that replaces its cookies has none after it."""
    refused = exchange.reply is not None and is_refusal(exchange.reply.status)
    return refused and bool(exchange.request.cookies) and not exchange.received


async def _refused(trial: Trial, noisy: Trajectory) -> TrajectoryRun:
    """A run with those of the calls that are to be refused that are.

    Raises:
        NotApplicable: none is, or one crashes the server.
    """
    disturbing = await _disturbed(trial, trial.channel, noisy)
    if taken := _taken(disturbing):
        noisy = noisy.without(taken)
        if not noisy.noise:
            raise NotApplicable("the call was not refused")
        disturbing = await _disturbed(trial, trial.channel, noisy)
    if not all(step.is_refused for step in disturbing.refusals):
        raise NotApplicable("the call was not refused")
    if any(is_crash(step.status) for step in disturbing.refusals):
        raise NotApplicable("the call crashed the server; see calls-invalid")
    return disturbing


async def _disturbed(trial: Trial, channel: Channel, noisy: Trajectory) -> TrajectoryRun:
    """A run with the calls that are to be refused.

    Raises:
        Violation: after one of them its session hangs, again, and another one does not.
        ServerFault: it hangs otherwise, or has no answer for another reason.
    """
    endpoint = trial.gym.endpoint
    rollout = TrajectoryRun(trial.gym, channel, noisy)
    try:
        await rollout.finish()
    except ServerFault as fault:
        if fault.fault is not Fault.HANG or not rollout.refusals or trial.among or trial.once:
            raise
        if taken := _taken(rollout):
            # no trace of a refusal, unless it hangs after those alone that were refused
            endpoint.forgive(fault)
            await _disturbed(trial, Channel(endpoint), noisy.without(taken))
            raise
        asked = fault.exchange.request.path if fault.exchange else "the next call"
        await run(trial.gym, Channel(endpoint), noisy.without_noise())
        with suppress(ServerFault), endpoint.forgiving():  # other sessions are answered
            await TrajectoryRun(trial.gym, Channel(endpoint), noisy).finish()
            raise NotApplicable(f"{asked} hung once, and not again") from fault
        endpoint.forgive(fault)
        raise Violation(
            f"{asked} answers after a call that was refused, as in other sessions",
            f"{fault.fault}: {fault.detail}, twice",
            "A refused call leaves a lock or a transaction of the session open: use `async with`, or release it in `finally`.",
        ) from fault
    return rollout


def _taken(rollout: TrajectoryRun) -> list[int]:
    """Which of the calls that were to be refused were not, among those that have been made."""
    made = zip(sorted(rollout.trajectory.noise), rollout.refusals, strict=False)
    return [at for at, step in made if not step.is_refused]


_REFUSED_BEFORE = (
    "The body is refused before the session is looked up, so the reply sets no cookie, and simple_agent, which replaces its "
    "cookies with those of each reply, loses the session. Set the cookie before the body is parsed."
)
_TOO_EARLY = "The tool changes state before it has checked its arguments, or whether the state allows them."
_ROLLED_BACK = (
    "The refused call undoes the calls before it, such as by rolling back a transaction that nobody has committed: commit "
    "each call that succeeds, or roll back to a savepoint."
)


async def _undone(trial: Trial, noisy: Trajectory, difference: Difference) -> bool:
    """Whether a later call is answered as though none had been made before the refused one."""
    first, place = min(noisy.noise), int(difference.place[0])
    forgetful = noisy.without_noise().without(range(first))
    if place <= first or place > len(forgetful.calls) + first:
        return False  # before the refused call, or the reward, which a wrong move may cost by design
    runs = [Outcome(each.calls) for each in await run_each(trial.gym, [forgetful] * _FORGETFUL)]
    mask = varying(runs)
    came = await run(trial.gym, Channel(trial.gym.endpoint), noisy)
    found = differences(runs[0], Outcome(came.calls[first:]), mask)
    there = replace(difference, place=(place - 1 - first, *difference.place[1:]))
    return not there.hidden(mask) and all(each.of_time for each in found)
