"""Whether arguments make a difference: a definition may offer what the tool's code never reads."""

import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import Any, Final

from gym_conformance.contract.dataset_rows import Call
from gym_conformance.drift.tool_drift import DriftKind
from gym_conformance.printable import counted
from gym_conformance.session.channel import Channel
from gym_conformance.session.refusals import refuses
from gym_conformance.trajectories.execute import beside, run
from gym_conformance.trajectories.generate import Knowledge
from gym_conformance.trajectories.known import known, reading_again
from gym_conformance.trajectories.made_up import bare_reads
from gym_conformance.trajectories.outcome import Outcome, StepOutcome, differences
from gym_conformance.trajectories.trajectory import Trajectory, is_reference, resolve
from gym_conformance.trials.check import check
from gym_conformance.trials.ending import NotApplicable, Violation
from gym_conformance.trials.needs import RESOURCES_SERVER, SERVED_TOOLS, TOOLS
from gym_conformance.trials.property import knowledge_of
from gym_conformance.trials.solo import Solo
from gym_conformance.trials.trial import Trial
from gym_schemas import Document, Schema, admits, properties_of, scalars

#: Calls of a tool in which an argument is varied, other values of it, calls after it, and reads at the end that may show
#: what it did; and how far into a trajectory such calls are looked for.
_PLACES, _VALUES, _AFTER, _READS, _CALLS = 5, 4, 4, 3, 12

#: Numbers that are tried, beside the bounds; a larger maximum may be what takes hours.
_NUMBERS, _MOST = (1, 2, 7, 20), 100

#: What a number is called that matters only if something takes long or fails, is left to chance, is nearly alike, or lies
#: deep. That pages are read is what `repeat-pages` sees: after the last one, the last one may come again.
_SELDOM: Final = re.compile(
    r"time_?out|deadline|retr(y|ies)|attempts|budget|seed|temperature|confidence|threshold|toleran|similar|fuzz|edits|"
    r"precision|decimals|depth|page(_?(no|num|number|index))?$|offset|skip|start",
    re.IGNORECASE,
)

#: What is asked of several things.
_OF_SEVERAL: Final = re.compile(r"sort|order|direction|limit|size|match|mode|operator", re.IGNORECASE)

#: Replies that must differ from each other: so many if they list things, or so many otherwise; and how many several are.
_LISTS, _OTHERS, _SEVERAL = 2, 3, 2


@dataclass(frozen=True)
class _Tried:
    """What came of a call in which an argument was varied.

    Attributes:
        read: whether another value made a difference.
        said: what the call was answered, apart from what it was given; "" if that is a refusal, or drawn anew each time.
        things: how many things its longest list has; None if it lists none.
    """

    read: bool
    said: str = ""
    things: int | None = None


@dataclass(frozen=True)
class _Varied:
    """A known trajectory, and the same with another value of one argument in one of its calls."""

    at: int
    given: Trajectory
    others: tuple[Trajectory, ...]

    async def tried(self, trial: Trial) -> _Tried:
        """Run all of them, until one makes a difference by its replies, later reads or its reward."""
        alone = Solo(trial, self.given)
        outcome = await alone.outcome()
        for other in self.others:
            tried = await run(trial.gym, Channel(trial.gym.endpoint), other)
            if any(differences(outcome, tried, alone.mask)):
                try:
                    await alone.settle(tried)
                except NotApplicable:  # it differs from itself everywhere
                    return _Tried(read=True)
                if any(differences(outcome, tried, alone.mask)):
                    return _Tried(read=True)
        drawn = any(place[0] == self.at + 1 for place in alone.mask)
        return self._same(outcome, drawn=drawn)

    def _same(self, outcome: Outcome, *, drawn: bool) -> _Tried:
        call = outcome.steps[self.at + 1]
        things = max(map(len, _lists(call.body)), default=None)
        unclear = things is None and (drawn or call.source is None or refuses(call.source))
        said = "" if unclear else _without_given(call, self.given.calls[self.at])
        return _Tried(read=False, said=said, things=things)


def _lists(value: Any) -> Iterator[Sequence[Any]]:
    """All lists in a reply, and all texts of several lines."""
    if isinstance(value, str):
        lines = value.splitlines()
        yield from [lines] if len(lines) > 1 else []
    elif isinstance(value, list):
        yield value
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _lists(inner)


def _without_given(step: StepOutcome, call: Call) -> str:
    """A reply without the values that its call was given, which it may only repeat."""
    said = json.dumps(step.body, ensure_ascii=False)
    for value, _ in scalars(call.arguments):
        said = said.replace(str(value), "") if value not in ("", None) else said
    return said


@dataclass(frozen=True)
class _Unread:
    """An argument that made no difference: where it was varied, and what came of each call."""

    tool: str
    name: str
    places: list[_Varied]
    answers: list[_Tried]

    def different(self, least: int | None) -> int:
        """How many different replies list so many things at least; for None, how many list none."""
        telling = (each for each in self.answers if each.said and (each.things is None) == (least is None))
        return len({each.said for each in telling if (each.things or 0) >= (least or 0)})

    @property
    def must_be_given(self) -> bool:
        """Whether no call may leave it out, or say null."""
        place = self.places[0]
        parameters = place.given.row.parameters_of(self.tool)
        required = parameters.get("required")
        return (
            isinstance(required, list)
            and self.name in required
            and not admits(properties_of(parameters)[self.name], None)
        )

    @property
    def values(self) -> str:
        """What was tried in one call: the value that it has, and the others."""
        place = self.telling
        made = [resolve(each.calls[place.at].arguments, []) for each in (place.given, *place.others)]
        return ", ".join(json.dumps(each[self.name]) if self.name in each else "none" for each in made)

    @property
    def telling(self) -> _Varied:
        """The first place whose reply says enough."""
        return next(place for place, answer in zip(self.places, self.answers, strict=True) if answer.said)


_Values = Callable[[Knowledge, str, str, Schema], Iterable[Any]]


@check(
    "drift-argument-unread",
    "A number that a read is given SHOULD make a difference",
    why="the policy sets the argument to no effect, and learns from noise.",
    needs=[RESOURCES_SERVER, TOOLS, SERVED_TOOLS],
    gentle=True,
)
async def drift_argument_unread(trial: Trial, _: object) -> None:
    """Gives tools that read other numbers, in up to five calls that are known to mean something.

    It is a violation if no other number changes a reply, a later read or the reward, in two calls whose replies list
    several things and differ from each other. Where an argument must be given, three other calls whose replies differ
    in more than their arguments are enough, too. Nothing is said of numbers that seldom matter, such as timeouts,
    thresholds and depths, or of those of pages, which belong to `repeat-pages`.

    Our inference: a reply shows what a read was asked for.
    """
    await _expect_none(
        trial,
        _numbers_of_reads,
        lambda one: one.different(_SEVERAL) >= _LISTS or (one.must_be_given and one.different(None) >= _OTHERS),
    )


@check(
    "drift-option-unread",
    "An argument made no difference wherever it was tried",
    why="if the tool never reads it, the policy sets it to no effect; but it may matter in other states.",
    needs=[RESOURCES_SERVER, TOOLS, SERVED_TOOLS],
    gentle=True,
)
async def drift_option_unread(trial: Trial, _: object) -> None:
    """Varies members of enums, true and false, and numbers that a write is given.

    This is done as in `drift-argument-unread`. It is told if nothing changes a reply, a later read or the reward in two
    calls whose replies differ in more than their arguments.

    Our inference.
    """

    def tells(one: _Unread) -> bool:
        least = _SEVERAL if _OF_SEVERAL.search(one.name) else 1
        return one.different(least) + one.different(None) >= _LISTS

    await _expect_none(trial, _options, tells)


async def _expect_none(trial: Trial, values: _Values, tells: Callable[[_Unread], bool]) -> None:
    """Require that each argument that has such values makes a difference, where there is enough to tell.

    Raises:
        Violation: some make none; the first is shown once more.
    """
    unread, tried = await _unread(trial, values)
    found = [one for one in unread if tells(one)]
    if not found:
        trial.note = f"{counted(tried, 'argument')} varied"
        return
    first = found[0].telling
    for trajectory in (first.given, first.others[0]):
        await run(trial.gym, trial.channel, trajectory)
    raise Violation(
        f"another reply, later read or reward for another {' or '.join(f'{one.name} of {one.tool}' for one in found)}",
        "; ".join(f"the same for {one.values}, in each of {counted(len(one.places), 'call')}" for one in found),
        "The tool does not read the argument, or reads it by another name. Use it, or remove it from the definition.",
    )


async def _unread(trial: Trial, values: _Values) -> tuple[list[_Unread], int]:
    """Arguments that make no difference anywhere, and how many were tried."""
    knowledge = await knowledge_of(trial)
    ignored = (drift for drift in trial.gym.drifts if drift.kind is DriftKind.ARGUMENT_IGNORED)
    drifted = {(drift.tool, drift.path.removeprefix("/")) for drift in ignored}
    found = {key: places for key, places in _varied(knowledge, values).items() if key not in drifted}
    if not found:
        raise NotApplicable("no call is known that has such an argument")

    async def tried(places: Sequence[_Varied]) -> list[_Tried]:
        answers = list[_Tried]()
        for place in places:
            answers.append(await place.tried(trial))
            if answers[-1].read:
                break
        return answers

    works = [partial(tried, places) for places in found.values()]
    answered = await beside(works, knowledge.several, trial.gym.endpoint)
    ended = [_Unread(*key, places, answers) for (key, places), answers in zip(found.items(), answered, strict=True)]
    return [one for one in ended if not one.answers[-1].read], len(found)


def _varied(knowledge: Knowledge, values: _Values) -> dict[tuple[str, str], list[_Varied]]:
    """By tool and argument, a few known calls that differ in more than that."""
    found = defaultdict[tuple[str, str], dict[str, _Varied]](dict)
    for trajectory in known(knowledge):
        for at, call in enumerate(trajectory.calls[:_CALLS]):
            if not isinstance(call.arguments, dict) or is_reference(call.arguments):
                continue
            parameters = trajectory.row.parameters_of(call.name)
            document = Document(parameters)
            for name, schema in properties_of(parameters).items():
                bare = {key: value for key, value in call.arguments.items() if key != name}
                if len(found[call.name, name]) == _PLACES or repr(bare) in found[call.name, name]:
                    continue
                others = values(knowledge, call.name, name, document.resolve(schema))
                given = ({**bare, name: value} for value in others if value != call.arguments.get(name))
                allowed = list(islice((each for each in given if admits(parameters, resolve(each, []))), _VALUES))
                if allowed:
                    found[call.name, name][repr(bare)] = _with(trajectory, at, allowed)
    return {key: list(places.values()) for key, places in found.items() if places}


def _with(trajectory: Trajectory, at: int, others: Iterable[Mapping[str, Any]]) -> _Varied:
    """The trajectory up to a few calls after this one and with reads at its end, and the same with other arguments here."""
    calls = (*trajectory.calls[: at + 1 + _AFTER], *bare_reads(trajectory.row)[:_READS])
    given = reading_again(replace(trajectory, calls=calls))
    before, call, after = given.calls[:at], given.calls[at], given.calls[at + 1 :]
    return _Varied(at, given, tuple(replace(given, calls=(*before, Call(call.name, each), *after)) for each in others))


def _numbers_of_reads(knowledge: Knowledge, tool: str, name: str, schema: Schema) -> Iterator[int]:
    """Two of the least and two of the most, if the tool reads."""
    if knowledge.reads(tool) and not _SELDOM.search(name):
        yield from _numbers(schema)


def _options(knowledge: Knowledge, tool: str, _: str, schema: Schema) -> Iterator[Any]:
    """Members of enums, true and false, and, if the tool writes, numbers."""
    for branch in _branches(schema):
        members = branch.get("enum", [True, False] if branch.get("type") == "boolean" else None)
        yield from members if isinstance(members, list) else []
    if not knowledge.reads(tool):
        yield from _numbers(schema)


def _numbers(schema: Schema) -> Iterator[int]:
    for branch in _branches(schema):
        if branch.get("type") in ("integer", "number") and "enum" not in branch:
            bounds = (branch.get("minimum"), *_NUMBERS, branch.get("maximum"))
            numbers = sorted(
                {each for each in bounds if isinstance(each, int) and each <= _MOST and admits(branch, each)}
            )
            yield from dict.fromkeys((*numbers[: _VALUES // 2], *numbers[-_VALUES // 2 :]))


def _branches(schema: Schema) -> list[dict[str, Any]]:
    """The schema, or what it may be instead."""
    either = schema.get("anyOf") if isinstance(schema, dict) else []
    return [each for each in (either if isinstance(either, list) else [schema]) if isinstance(each, dict)]
