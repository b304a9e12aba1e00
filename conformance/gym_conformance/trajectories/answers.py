"""Answers that earn a reward, found by trying, for rows without a recorded rollout that shows one.

Without such an answer, a server that only grades is hardly tested, because every answer earns nothing. Most rows
contain their answer, and prompts ask for it in one of a few forms.
"""

import re
from functools import partial
from typing import Final

from gym_conformance.contract.dataset_rows import Rollout, Row
from gym_conformance.contract.gold_names import may_be_gold
from gym_conformance.gym_under_test import Gym
from gym_conformance.session.channel import Channel
from gym_conformance.trajectories.execute import FEW, beside, run
from gym_conformance.trajectories.generate import named_values
from gym_conformance.trajectories.renaming import own
from gym_conformance.trajectories.trajectory import Trajectory

#: The forms in which prompts ask for an answer, with a placeholder for it.
_FORMS: Final = ("\\boxed{%s}", "%s", "<answer>%s</answer>", "Answer: %s", "#### %s", "```\n%s\n```")

#: Language names with which prompts label a block of code.
_LANGUAGE: Final = re.compile(r"\b(python|javascript|typescript|java|cpp|rust|sql|bash|json|lean4?)\b", re.IGNORECASE)

#: The longest text of a row that counts as an answer: longer ones are part of the task. A field that is named like an
#: answer may be longer, since it may hold a program.
_SHORT: Final = 200
_LONG: Final = 4000

#: How many fields are tried; those named like an answer come first.
_FIELDS = 8


async def paid_answers(gym: Gym, tries: int) -> dict[Row, str]:
    """Find an answer for each row that earns more than doing nothing.

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
    forms = [(name, form) for name in likely for form in (*_FORMS, *_fenced(first))][:tries]
    floors = [await _reward(gym, row, None) for row in (first, second)]
    alone = [(name, form) for name, form in forms if may_be_gold(name)]
    # a server that mixes up concurrent requests may reward the right answer only if it comes alone
    for asked, at_once in ((forms, FEW), (alone, 1)):
        earned = await beside(
            [partial(_reward, gym, first, form % values[first][name]) for name, form in asked], at_once
        )
        for (name, form), reward in zip(asked, earned, strict=True):
            if reward > floors[0] and await _reward(gym, second, form % values[second][name]) > floors[1]:
                return {row: form % each[name] for row, each in values.items() if name in each}
    return {}


def may_be_answer(name: str, value: str) -> bool:
    """Whether a text of the row is short enough to be its answer; a field named like one may hold a whole program."""
    return 0 < len(value) <= (_LONG if may_be_gold(name) else _SHORT)


def _fenced(row: Row) -> tuple[str, ...]:
    """A block of code in the first language that the row's input names, if any."""
    named = _LANGUAGE.search("\n".join(Rollout.input_texts(row.data)))
    return (f"```{named[0].lower()}\n%s\n```",) if named else ()


def _values(row: Row) -> dict[str, str]:
    """The row's own fields that may hold an answer: the first value of each name."""
    found: dict[str, str] = {}
    for name, value in named_values(own(row)):
        if isinstance(value, str | int | float) and not isinstance(value, bool) and may_be_answer(name, str(value)):
            found.setdefault(name, str(value))
    return found


async def _reward(gym: Gym, row: Row, answer: str | None) -> float:
    """The reward for the answer, or for doing nothing if it is None; 0 if the reward is not a number."""
    trajectory = Trajectory(row) if answer is None else Trajectory(row, answer=answer)
    return (await run(gym, Channel(gym.endpoint), trajectory)).earned
