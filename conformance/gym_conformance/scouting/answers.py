"""Answers that earn a reward, found by trying, for rows without a recorded rollout that shows one.

Without such an answer, a server is hardly tested, because every session earns nothing. Most rows contain their answer;
prompts ask for it in one of a few forms, and tools that take it have an argument for it.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import Any, Final

from gym_conformance.contract.dataset_rows import Call, Rollout, Row
from gym_conformance.contract.gold_names import may_be_gold
from gym_conformance.contract.openapi import ServerKind
from gym_conformance.contract.row_fields import written
from gym_conformance.gym_under_test import Gym
from gym_conformance.scouting.asked_forms import asked_forms
from gym_conformance.scouting.first_sessions import noted
from gym_conformance.session.channel import Channel
from gym_conformance.trajectories.execute import FEW, beside, run
from gym_conformance.trajectories.generate import named_values
from gym_conformance.trajectories.made_up import plain_arguments
from gym_conformance.trajectories.renaming import own
from gym_conformance.trajectories.trajectory import FirstSession, Trajectory
from gym_schemas import admits, properties_of

#: The forms in which prompts ask for an answer, with a placeholder for it; a prompt may ask for others.
_FORMS: Final = ("\\boxed{%s}", "%s", "<answer>%s</answer>", "Answer: %s", "#### %s", "```\n%s\n```")

#: Language names with which prompts label a block of code.
_LANGUAGE: Final = re.compile(r"\b(python|javascript|typescript|java|cpp|rust|sql|bash|json|lean4?)\b", re.IGNORECASE)

#: The longest text of a row that counts as an answer: longer ones are part of the task. A field that is named like an
#: answer may be longer, since it may hold a program.
_SHORT: Final = 200
_LONG: Final = 4000

#: Names of tools that take the final answer; any tool is tried, since the reward tells.
_HANDS_IN: Final = re.compile(r"(?<![a-z])(submit|answer|hand_?in|solution|guess|final|conclude)", re.IGNORECASE)

#: Makes what a row's answer is handed in with, of the row and the answer.
_Form = Callable[[Row, Any], Trajectory]

#: How many fields are tried; those named like an answer come first. And further rows.
_FIELDS, _UNLIKE = 8, 3

#: Answers to the first row that are tried on further ones, those that earned the most.
_BEST = 8


@dataclass(frozen=True)
class PaidAnswers:
    """What earns more than doing nothing.

    Attributes:
        by_row: a text, or a call that hands an answer in, for each row.
        sessions: the first in which this was done, with what each earned.
    """

    by_row: Mapping[Row, Trajectory] = field(default_factory=dict)
    sessions: tuple[FirstSession, ...] = ()


async def paid_answers(gym: Gym, tries: int) -> PaidAnswers:
    """Find for each row what earns more than doing nothing.

    One field in one form must do so on the first row, and on one of the next that have something else there; it is then
    taken for all rows. Empty if there is none.

    Args:
        gym: whose rows are answered.
        tries: how many answers may be tried on the first row.

    Raises:
        ServerFault: the server does not answer.
    """
    first, *rest = gym.rows or (gym.row,)
    values = {row: _values(row) for row in (first, *rest)}
    unlike = {name: rows for name, value in values[first].items() if (rows := _unlike(name, value, values, rest))}
    likely = sorted(unlike, key=lambda name: not may_be_gold(name))[:_FIELDS]
    gold = [*filter(may_be_gold, likely)]
    forms = dict.fromkeys((*asked_forms(Rollout.input_texts(first.data)), *_FORMS, *fenced_forms(first)))
    said = dict.fromkeys((name, form) for names in (gold, likely) for form in forms for name in names)
    calls = () if gym.kind is ServerKind.SINGLE_TURN else _handing_in(first, gold, values)
    tried = [*calls, *((name, partial(_said, form)) for name, form in said)][:tries]
    floor = await _reward(gym, Trajectory(first))
    alone = [(name, form) for name, form in tried if may_be_gold(name)]
    # a server that mixes up concurrent requests may reward the right answer only if it comes alone
    for asked, at_once in ((tried, FEW), (alone, 1)):
        outcomes = await beside(
            [partial(run, gym, Channel(gym.endpoint), form(first, values[first][name])) for name, form in asked],
            at_once,
        )
        best = sorted(zip(asked, outcomes, strict=True), key=lambda one: -one[1].earned)[:_BEST]
        for (name, form), outcome in best:
            others = [form(row, values[row][name]) for row in unlike[name]]
            if outcome.earned > floor and (sessions := await _first_sessions(gym, others)):
                by_row = {row: form(row, each[name]) for row, each in values.items() if name in each}
                return PaidAnswers(by_row, (noted(by_row[first], [outcome]), *sessions))
    return PaidAnswers()


def _unlike(name: str, value: Any, values: Mapping[Row, Mapping[str, Any]], others: Sequence[Row]) -> tuple[Row, ...]:
    """The next rows whose field of that name holds something else."""
    return tuple(islice((row for row in others if values[row].get(name, value) != value), _UNLIKE))


async def _first_sessions(gym: Gym, several: Sequence[Trajectory]) -> list[FirstSession]:
    """The first sessions that do this; none if all earn no more than doing nothing: the scorer may not read what one says."""
    outcomes = [await run(gym, Channel(gym.endpoint), one) for one in several]
    floors = [await _reward(gym, Trajectory(one.row)) for one in several]
    is_paid = any(outcome.earned > floor for outcome, floor in zip(outcomes, floors, strict=True))
    return [noted(one, [outcome]) for one, outcome in zip(several, outcomes, strict=True)] if is_paid else []


def _said(form: str, row: Row, value: Any) -> Trajectory:
    return Trajectory(row, answer=form % value)


def _handed_in(tool: str, others: Mapping[str, Any], key: str, row: Row, value: Any) -> Trajectory:
    return Trajectory(row, (Call(tool, {**others, key: value}),))


def _handing_in(row: Row, names: Sequence[str], values: Mapping[Row, Mapping[str, Any]]) -> Iterator[tuple[str, _Form]]:
    """The calls that can take one of these fields of the row, those that sound like handing in an answer first."""
    for tool in sorted(row.tools, key=lambda tool: not hands_in(tool.name)):
        plain = plain_arguments(tool) or {}
        for name in names:
            for key in properties_of(tool.parameters):
                if admits(tool.parameters, {**plain, key: values[row][name]}):
                    yield name, partial(_handed_in, tool.name, plain, key)


def hands_in(tool: str) -> bool:
    """Whether a tool's name says that it takes the final answer."""
    return _HANDS_IN.search(tool) is not None


def may_be_answer(name: str, value: str) -> bool:
    """Whether a text of the row is short enough to be its answer; a field named like one may hold a whole program."""
    return 0 < len(value) <= (_LONG if may_be_gold(name) else _SHORT)


def fenced_forms(row: Row) -> tuple[str, ...]:
    """A block of code in the first language that the row's input names, if any, with `%s` in place of the code."""
    named = _LANGUAGE.search("\n".join(Rollout.input_texts(row.data)))
    return (f"```{named[0].lower()}\n%s\n```",) if named else ()


def _values(row: Row) -> dict[str, str | int | float]:
    """The row's own fields that may hold an answer: the first value of each name."""
    found: dict[str, str | int | float] = {}
    for name, value in named_values(own(row)):
        if isinstance(value, str | int | float) and not isinstance(value, bool) and may_be_answer(name, str(value)):
            found.setdefault(name, value)
    for name, value in own(row).items():
        found |= {f"{name} {how}": text for how, text in _ways(value, row) if may_be_answer(name, text)}
    return found


def _ways(value: Any, row: Row) -> Iterator[tuple[str, str]]:
    """The ways to write a list or an object as a text, and a number as the letter of one of the row's options."""
    lists = [each for each in own(row).values() if isinstance(each, list)]
    if isinstance(value, list | dict) or (isinstance(value, int) and any(value < len(each) for each in lists)):
        yield from written(value)


def asks_for_python(row: Row) -> bool:
    """Whether Python is the first language that the row's input names."""
    return any(form.startswith("```python") for form in fenced_forms(row))


async def _reward(gym: Gym, trajectory: Trajectory) -> float:
    """The reward for what is done; 0 if it is not a number."""
    return (await run(gym, Channel(gym.endpoint), trajectory)).earned
