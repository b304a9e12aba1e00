"""Answers that earn a reward, found by trying, for rows without a recorded rollout that shows one.

Without such an answer, a server is hardly tested, because every session earns nothing. Most rows contain their answer;
prompts ask for it in one of a few forms, and tools that take it have an argument for it.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final

from gym_conformance.contract.dataset_rows import Call, Rollout, Row
from gym_conformance.contract.gold_names import may_be_gold
from gym_conformance.contract.openapi import ServerKind
from gym_conformance.gym_under_test import Gym
from gym_conformance.session.channel import Channel
from gym_conformance.trajectories.execute import FEW, beside, run
from gym_conformance.trajectories.first import plain_arguments
from gym_conformance.trajectories.generate import named_values
from gym_conformance.trajectories.renaming import own
from gym_conformance.trajectories.trajectory import Trajectory
from gym_schemas import admits, properties_of

#: The forms in which prompts ask for an answer, with a placeholder for it.
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

#: How many fields are tried; those named like an answer come first.
_FIELDS = 8


async def paid_answers(gym: Gym, tries: int) -> dict[Row, Trajectory]:
    """Find for each row what earns more than doing nothing: a text, or a call that hands an answer in.

    One field in one form must do so on the first two rows; it is then taken for all rows. Empty if there is none.

    Args:
        gym: whose rows are answered.
        tries: how many answers may be tried on the first row.

    Raises:
        ServerFault: the server does not answer.
    """
    values = {row: _values(row) for row in gym.rows}
    first, second = (*gym.rows, *gym.rows[:1])[:2] if gym.rows else (gym.row, gym.row)
    shared = [
        name for name in values.get(first, {}) if values[second].get(name, values[first][name]) != values[first][name]
    ]
    likely = sorted(shared, key=lambda name: not may_be_gold(name))[:_FIELDS]
    texts = [(name, partial(_said, form)) for name in likely for form in (*_FORMS, *_fenced(first))]
    calls = () if gym.kind is ServerKind.SINGLE_TURN else _handing_in(first, [*filter(may_be_gold, likely)], values)
    forms = [*calls, *texts][:tries]
    floors = [await _reward(gym, Trajectory(row)) for row in (first, second)]
    alone = [(name, form) for name, form in forms if may_be_gold(name)]
    # a server that mixes up concurrent requests may reward the right answer only if it comes alone
    for asked, at_once in ((forms, FEW), (alone, 1)):
        earned = await beside(
            [partial(_reward, gym, form(first, values[first][name])) for name, form in asked], at_once
        )
        for (name, form), reward in zip(asked, earned, strict=True):
            if reward > floors[0] and await _reward(gym, form(second, values[second][name])) > floors[1]:
                return {row: form(row, each[name]) for row, each in values.items() if name in each}
    return {}


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


def _fenced(row: Row) -> tuple[str, ...]:
    """A block of code in the first language that the row's input names, if any."""
    named = _LANGUAGE.search("\n".join(Rollout.input_texts(row.data)))
    return (f"```{named[0].lower()}\n%s\n```",) if named else ()


def _values(row: Row) -> dict[str, str | int | float]:
    """The row's own fields that may hold an answer: the first value of each name."""
    found: dict[str, str | int | float] = {}
    for name, value in named_values(own(row)):
        if isinstance(value, str | int | float) and not isinstance(value, bool) and may_be_answer(name, str(value)):
            found.setdefault(name, value)
    return found


async def _reward(gym: Gym, trajectory: Trajectory) -> float:
    """The reward for what is done; 0 if it is not a number."""
    return (await run(gym, Channel(gym.endpoint), trajectory)).earned
