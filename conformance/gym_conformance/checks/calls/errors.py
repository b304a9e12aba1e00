"""Whether a call that is answered with an error, in a 200, changes something all the same."""

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import islice
from math import isclose
from typing import Any

from gym_conformance.checks.calls import generated
from gym_conformance.checks.calls.moves import expect_uncounted, takes_turns
from gym_conformance.contract.dataset_rows import Call
from gym_conformance.contract.endpoints import VERIFY
from gym_conformance.contract.verify_reply import is_number
from gym_conformance.grouping import grouped, round_robin
from gym_conformance.printable import counted
from gym_conformance.session.channel import Channel
from gym_conformance.session.refusals import may_tell_of_refusal, names_error
from gym_conformance.trajectories.disturbed import known_disturbed
from gym_conformance.trajectories.execute import TrajectoryRun, beside, run, run_each
from gym_conformance.trajectories.outcome import Difference, Outcome, Place, StepOutcome, differences, values_at
from gym_conformance.trajectories.renaming import arguments_of
from gym_conformance.trajectories.trajectory import Schedule, Trajectory, is_reference, resolve
from gym_conformance.trials.check import check
from gym_conformance.trials.ending import NotApplicable, Violation
from gym_conformance.trials.needs import RESOURCES_SERVER, SCORE, SERVED_TOOLS, TOOLS
from gym_conformance.trials.property import knowledge_of
from gym_conformance.trials.solo import Solo
from gym_conformance.trials.trial import Trial
from gym_schemas import ABSENT, mapped, name_of, scalars

#: Trajectories that are looked at: each takes dozens of sessions.
_LOOKED_AT = 4


@check(
    "calls-error-harmless",
    "A call that is answered with an error SHOULD leave the session as it was",
    why="the policy takes it that nothing has happened, and goes on from another state than it knows of.",
    needs=[RESOURCES_SERVER, TOOLS, SERVED_TOOLS, SCORE],
)
async def calls_error_harmless(trial: Trial, _: object) -> None:
    """Looks at what `calls-refused-harmless` leaves open: later replies that differ after a call was refused in a 200.

    It is a violation if the refusal plainly names an error, as `{"error": ...}` or `Error: ...` does, and a later reply
    that is no refusal differs by more than a count of refused calls, a fee, a log of them, the passing of turns, or a word
    that something was refused explains. The reward alone does not count. Calls are left out whose arguments have texts of
    several words, such as programs, which may fail when half is done, and those without arguments, such as a test run.

    Our inference: what an error names did not happen.
    """
    if trial.learned.after_errors is None:
        await _look(trial)
    found = [one for one in trial.learned.after_errors or () if _is_brief(one)]
    by_tools = grouped(lambda one: frozenset(call.name for call in _noise(one)), found)
    looked_at = list(islice(round_robin(by_tools.values()), _LOOKED_AT))
    for noisy in looked_at:
        with suppress(NotApplicable):
            await _expect_as_without(trial, noisy)
    trial.note = f"{counted(len(looked_at), 'session')} with a call answered with an error"


async def _look(trial: Trial) -> None:
    """Look for such trajectories, as `calls-refused-harmless` does first."""
    attempt = generated.calls_refused_harmless.attempt

    async def tried(schedule: Schedule) -> None:
        with suppress(NotApplicable, Violation):
            await attempt(Trial(trial.bench), schedule) if attempt else None

    knowledge = await knowledge_of(trial)
    await beside((partial(tried, each) for each in known_disturbed(knowledge)), knowledge.several, trial.gym.endpoint)


def _noise(noisy: Trajectory) -> Iterable[Call]:
    return (noisy.calls[at] for at in sorted(noisy.noise))


def _is_brief(noisy: Trajectory) -> bool:
    """Whether the refused calls have arguments, and no text of several words but a member of an enum."""
    refused = list(_noise(noisy))
    texts = [value for _, value, schema in arguments_of(noisy.row, refused) if "enum" not in schema]
    long = any(isinstance(value, str) and len(value.split()) > 1 for value in texts)
    return all(call.arguments for call in refused) and not long


async def _expect_as_without(trial: Trial, noisy: Trajectory) -> None:
    """Require that later replies are as they are without the calls that are answered with an error.

    Raises:
        NotApplicable: no reply names an error, refused calls are counted, or nothing can be compared.
        Violation: they are not, chance excluded.
    """
    disturbed = TrajectoryRun(trial.gym, Channel(trial.gym.endpoint), noisy)
    await disturbed.finish()
    answers = dict(zip(sorted(noisy.noise), disturbed.refusals, strict=True))
    named = {at: step for at, step in answers.items() if step.source is not None and names_error(step.source)}
    if not named:
        raise NotApplicable("no reply names an error")
    noisy = noisy.without(noisy.noise - named.keys())
    if await takes_turns(trial, noisy):
        raise NotApplicable("each call is a turn")
    await expect_uncounted(trial, noisy)

    async def again(channel: Channel) -> Outcome:
        return await run(trial.gym, channel, noisy)

    trial.channel.exchanges.clear()
    solo = Solo(trial, noisy.without_noise())
    if await solo.beyond_chance(again) and (difference := await _unexplained(trial, noisy, solo.mask)):
        difference, refused = await _by_one_alone(trial, noisy, solo.mask) or (difference, next(iter(named.values())))
        raise Violation(
            f"{difference.answer}, as without the call that is answered {refused.body!r}",
            f"{difference.actual!r}",
            "The tool changes state before it has checked what it answers with an error.",
        )


async def _by_one_alone(
    trial: Trial, noisy: Trajectory, mask: frozenset[Place]
) -> tuple[Difference, StepOutcome] | None:
    """What one of several refused calls alone does, and its reply; the trial's record becomes that of its session."""
    for number in sorted(noisy.noise) if len(noisy.noise) > 1 else ():
        alone = noisy.without(noisy.noise - {number})
        if difference := await _unexplained(trial, alone, mask):
            trial.channel.exchanges.clear()
            shown = TrajectoryRun(trial.gym, trial.channel, alone)
            await shown.finish()
            return difference, shown.refusals[0]
    return None


async def _unexplained(trial: Trial, noisy: Trajectory, mask: frozenset[Place]) -> Difference | None:
    """A reply that differs by more than a count, a fee, or a word of what was refused.

    A count or a fee moves a number on by as much again with twice as many, and not by what the calls name. Where a later
    call is refused as well, the episode may be over. `denied` tells of no refusal where things are denied without one.
    """
    tried = [noisy.without_noise(), noisy, noisy.repeating(noisy.noise)]
    plain, once, twice = await run_each(trial.gym, tried)
    asked = [resolve(call.arguments, []) for call in _noise(noisy)]
    named = {abs(value) for value, _ in scalars(asked) if is_number(value)} - {1}
    usual = {
        (name_of(way), value) for step in plain.calls for value, way in scalars(step.body) if isinstance(value, str)
    }

    def may_show(one: Difference) -> bool:
        ended = any(each.steps[int(one.place[0])].is_refused for each in (plain, once))
        return one.step != VERIFY and not one.of_time and not ended

    def is_explained(one: Difference) -> bool:
        is_usual = isinstance(one.actual, str) and (name_of(one.place), one.actual) in usual
        if one.actual is not ABSENT and not is_usual and may_tell_of_refusal(one.actual, asked):
            return True
        if not (is_number(one.expected) and is_number(one.actual)):
            return False
        step, [further] = one.actual - one.expected, values_at(twice, one.place) or [None]
        return abs(step) not in named and is_number(further) and isclose(further - one.actual, step)

    found = [one for one in differences(plain, once, mask) if may_show(one)]
    return next((one for one in found if not is_explained(one)), None) or await _by_amount(trial, noisy, found)


async def _by_amount(trial: Trial, noisy: Trajectory, found: Iterable[Difference]) -> Difference | None:
    """A number that has moved on twice as far where the refused calls name twice as much, as no count does, nor a fee."""

    def doubled(value: Any, _: object) -> Any:
        return 2 * value if is_number(value) else value

    def more(call: Call) -> Call:
        return Call(call.name, mapped(call.arguments, doubled, leaf=is_reference))

    numbers = [one for one in found if is_number(one.expected) and is_number(one.actual)]
    calls = tuple(more(call) if at in noisy.noise else call for at, call in enumerate(noisy.calls))
    if not numbers or calls == noisy.calls:
        return None
    rollout = TrajectoryRun(trial.gym, Channel(trial.gym.endpoint), replace(noisy, calls=calls))
    outcome = await rollout.finish()
    await rollout.session.close()
    if not all(step.is_refused for step in rollout.refusals):
        return None
    moved = ((one, values_at(outcome, one.place) or [None]) for one in numbers)
    return next(
        (
            one
            for one, [further] in moved
            if is_number(further) and isclose(further - one.expected, 2 * (one.actual - one.expected))
        ),
        None,
    )
