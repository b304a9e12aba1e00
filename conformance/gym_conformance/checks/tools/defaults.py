"""Whether an argument that is left out is taken for the default that its definition names."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import compress
from typing import Any

from gym_conformance.contract.dataset_rows import Call
from gym_conformance.contract.statuses import is_success
from gym_conformance.printable import counted
from gym_conformance.session.channel import Channel
from gym_conformance.trajectories.execute import beside, run, run_each
from gym_conformance.trajectories.known import known
from gym_conformance.trajectories.outcome import Difference, Outcome, Place, differences, values_at
from gym_conformance.trajectories.trajectory import Trajectory, is_reference, resolve
from gym_conformance.trials.chance import beyond_chance
from gym_conformance.trials.check import check
from gym_conformance.trials.ending import NotApplicable, Violation
from gym_conformance.trials.needs import RESOURCES_SERVER, SERVED_TOOLS, TOOLS
from gym_conformance.trials.property import knowledge_of
from gym_conformance.trials.solo import Solo
from gym_conformance.trials.trial import Trial
from gym_schemas import ABSENT, Document, Way, admits, properties_of, without

#: Arguments that are tried, calls of each, and calls that come after it and may show what it did.
_ARGUMENTS, _CALLS, _AFTER = 12, 2, 4

#: Objects within each other in which a default is looked for.
_DEEP = 2

#: Arguments that are tried with a zero, and numbers of which two others are taken.
_ZEROS, _NUMBERS = 6, (7, 4, 3, 2, 20)


@dataclass(frozen=True)
class _LeftOut:
    """A trajectory with an argument left out in one call, and the same with its default there."""

    tool: str
    way: tuple[str, ...]
    default: Any
    at: int
    without: Trajectory
    explicit: Trajectory

    async def tried(self, trial: Trial, solo: Solo, channel: Channel) -> Difference | None:
        """Where a run with the default said differs from `solo`, which leaves it out."""
        return self._shown(await solo.outcome(), await run(trial.gym, channel, self.explicit), solo.mask)

    def _shown(self, alone: Outcome, tried: Outcome, mask: frozenset[Place]) -> Difference | None:
        """Where it makes a difference; a reply that repeats which arguments were given shows none."""
        calls = [outcome.steps[self.at + 1] for outcome in (alone, tried)]
        if not all(is_success(call.status) for call in calls):
            return None
        return next((one for one in differences(alone, tried, mask) if not self._repeats(one)), None)

    def _repeats(self, one: Difference) -> bool:
        texts = [value for value in (one.expected, one.actual) if isinstance(value, str)]
        argument = self.way[-1]
        return (
            one.of_time
            or one.expected is ABSENT
            or argument in one.place
            or any(argument in text for text in texts)
            or (isinstance(one.actual, list | dict) and argument in str(one.actual))
        )


@dataclass(frozen=True)
class _Zero:
    """A trajectory with a number left out in one call, the same with 0 there, and with each of two other numbers."""

    tool: str
    argument: str
    at: int
    without: Trajectory
    zero: Trajectory
    others: tuple[tuple[float, Trajectory], ...]

    async def taken_for(self, trial: Trial) -> Any:
        """What a reply says where the number is left out, and for 0, but not for others, which it repeats; None otherwise."""
        trajectories = [self.without, self.zero, *(trajectory for _, trajectory in self.others)]
        alone, zero, *others = [
            Outcome(each.steps[self.at + 1 : -1]) for each in await run_each(trial.gym, trajectories)
        ]
        if not all(is_success(outcome.steps[0].status) for outcome in (alone, zero, *others)):
            return None
        for difference in differences(zero, others[0]):
            values = [values_at(outcome, difference.place) for outcome in (alone, zero, *others)]
            repeated = values[2:] == [(number,) for number, _ in self.others]
            if repeated and values[0] == values[1] and values[0] and _is_large(values[0][0]):
                return values[0][0]
        return None


def _is_large(value: Any) -> bool:
    return isinstance(value, int | float) and abs(value) > 1


@check(
    "drift-default",
    "A default SHOULD be the one in the definition, and apply only if the argument is left out",
    why="the policy relies on the default, or passes zero on purpose, and in every rollout the tool does something else.",
    needs=[RESOURCES_SERVER, TOOLS, SERVED_TOOLS],
    gentle=True,
)
async def drift_default(trial: Trial, _: object) -> None:
    """Takes calls that are known to mean something, and makes them without an argument that has a default, and with the default spelled out.

    Replies, later reads and the reward must be the same, chance excluded. Nothing can be said if one of the two forms
    is refused, or if a reply merely repeats what it was given.

    Where zero is allowed, the tool must not replace it by the default either: if a reply repeats two other numbers, its
    answer to zero must not repeat the value that it gives when the argument is left out. A value of one does not count,
    since zero may be raised to it.

    Our inference: `default` is what JSON Schema has for "what is meant where this is left out"; no client fills it in.
    """
    if not any(_defaults(tool.parameters) or _zeros(tool.parameters) for row in trial.gym.rows for tool in row.tools):
        raise NotApplicable("no definition names a default, or a number that may be left out")
    knowledge = await knowledge_of(trial)
    found, zeros = list(_left_out(known(knowledge))), list(_with_zero(known(knowledge)))
    if not found and not zeros:
        raise NotApplicable("no meaningful call is known that has an argument with a default")

    async def differs(one: _LeftOut) -> bool:
        return await one.tried(trial, Solo(trial, one.without), Channel(trial.gym.endpoint)) is not None

    suspected = await beside([partial(differs, one) for one in found], knowledge.several)
    for one in compress(found, suspected):
        if difference := await _told(trial, one):
            raise Violation(
                f"{difference.step} answers {difference.actual!r} where {'.'.join(one.way)} of {one.tool} is left out, as where "
                f"its default, {one.default!r}, is given",
                f"{difference.expected!r}",
                "The tool has a different default: change it in the tool or in the definition.",
            )
    taken = await beside([partial(one.taken_for, trial) for one in zeros], knowledge.several)
    for each, value in zip(zeros, taken, strict=True):
        if value is not None and await each.taken_for(trial) == value:
            await run(trial.gym, trial.channel, each.zero)
            raise Violation(
                f"{each.tool} uses 0 where {each.argument} is 0",
                f"it uses {value!r}, as where {each.argument} is left out",
                f"`{each.argument} or {value!r}` takes 0 for a missing value: compare with None instead.",
            )
    trial.note = f"{counted(len(found), 'call')} with a default left out, {len(zeros)} with a zero"


async def _told(trial: Trial, one: _LeftOut) -> Difference | None:
    """How the two forms differ, chance excluded."""
    solo = Solo(trial, one.without)
    await solo.settle()
    return await beyond_chance(trial, partial(one.tried, trial, solo), solo)


def _left_out(found: Sequence[Trajectory]) -> Iterator[_LeftOut]:
    """What is tried: of each argument that has a default a few calls."""
    tried: Counter[tuple[str, Way]] = Counter()
    for trajectory in found:
        for at, call in enumerate(trajectory.calls):
            parameters = trajectory.row.parameters_of(call.name)
            for way, default in _defaults(parameters).items():
                if not _has_room(call.arguments, way):
                    continue
                key = (call.name, way)
                bare = without(call.arguments, way)
                explicit = _given(bare, way, default)
                allowed = all(admits(parameters, resolve(each, [])) for each in (bare, explicit))
                if allowed and tried[key] < _CALLS and (key in tried or len(tried) < _ARGUMENTS):
                    tried[key] += 1
                    forms = (_with(trajectory, at, each) for each in (bare, explicit))
                    yield _LeftOut(call.name, way, default, at, *forms)


def _has_room(arguments: Any, way: Sequence[str]) -> bool:
    """Whether the object is there that has the last step, or might have it."""
    for step in way[:-1]:
        arguments = arguments.get(step) if isinstance(arguments, dict) else None
    return isinstance(arguments, dict) and not is_reference(arguments)


def _given(arguments: dict[str, Any], way: Sequence[str], value: Any) -> dict[str, Any]:
    step, *rest = way
    return {**arguments, step: _given(arguments[step], rest, value) if rest else value}


def _with_zero(found: Sequence[Trajectory]) -> Iterator[_Zero]:
    """What is tried with a zero: each number that may be left out, in the first call that it may stand in."""
    tried = set[tuple[str, str]]()
    for trajectory in found:
        for at, call in enumerate(trajectory.calls):
            zeros = _zeros(trajectory.row.parameters_of(call.name)) if isinstance(call.arguments, dict) else {}
            for name, others in zeros.items():
                if (call.name, name) not in tried and len(tried) < _ZEROS:
                    tried.add((call.name, name))
                    bare = {key: value for key, value in call.arguments.items() if key != name}
                    without, zero, *more = (
                        _with(trajectory, at, each) for each in (bare, *({**bare, name: n} for n in (0, *others)))
                    )
                    yield _Zero(call.name, name, at, without, zero, tuple(zip(others, more, strict=True)))


def _zeros(parameters: Mapping[str, Any]) -> dict[str, tuple[int, ...]]:
    """The numbers that may be left out and may be zero, each with two others that it may be."""
    required = parameters.get("required")
    needed = required if isinstance(required, list) else []
    found = {}
    for name, schema in properties_of(parameters).items():
        numeric = isinstance(schema, dict) and schema.get("type") in ("integer", "number")
        if numeric and name not in needed and schema.get("default") != 0 and admits(schema, 0):
            others = [each for each in _NUMBERS if admits(schema, each) and each != schema.get("default")]
            found.update({name: tuple(others[:2])} if len(others) > 1 else {})
    return found


def _with(trajectory: Trajectory, at: int, arguments: Any) -> Trajectory:
    """The trajectory up to a few calls after this one, which has other arguments."""
    before, after = trajectory.calls[:at], trajectory.calls[at + 1 : at + 1 + _AFTER]
    return replace(trajectory, calls=(*before, Call(trajectory.calls[at].name, arguments), *after))


def _defaults(parameters: Mapping[str, Any]) -> dict[tuple[str, ...], Any]:
    """The defaults of what may be left out, in objects too; null is none: it mostly says that nothing is meant."""
    document = Document(parameters)
    found = dict[tuple[str, ...], Any]()
    waiting: list[tuple[tuple[str, ...], Any]] = [((), document.root)]
    for way, schema in waiting:
        for name, inner in properties_of(document.resolve(schema)).items():
            default = inner.get("default") if isinstance(inner, dict) else None
            found.update({} if default is None else {(*way, name): default})
            waiting += [((*way, name), inner)] if len(way) < _DEEP else []
    return found
