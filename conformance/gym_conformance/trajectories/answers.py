"""Answers that are paid for, found by asking, where no recorded rollout shows any.

Without one, a server that only grades is hardly tried: whatever is said earns nothing. Most rows hold their answer, and
prompts ask for it in one of a few forms.
"""

import re
from functools import partial
from typing import Any, Final

from gym_conformance.contract.dataset_rows import Rollout, Row
from gym_conformance.contract.gold_names import may_be_gold
from gym_conformance.gym_under_test import Gym
from gym_conformance.session.channel import Channel
from gym_conformance.trajectories.execute import FEW, beside, run
from gym_conformance.trajectories.generate import named_values
from gym_conformance.trajectories.renaming import own
from gym_conformance.trajectories.trajectory import Trajectory

#: How prompts ask for an answer, with a placeholder in it.
_FORMS: Final = ("\\boxed{%s}", "%s", "<answer>%s</answer>", "Answer: %s", "#### %s", "```\n%s\n```")

#: Languages whose names prompts give to a block of code.
_LANGUAGE: Final = re.compile(r"\b(python|javascript|typescript|java|cpp|rust|sql|bash|json|lean4?)\b", re.IGNORECASE)

#: A text of the row that is longer is no answer but a part of the task; one whose name says otherwise may be a program.
_SHORT: Final = 200
_LONG: Final = 4000

#: Fields that are tried, those first whose names sound like an answer.
_FIELDS = 8


async def paid_answers(gym: Gym, tries: int) -> dict[Row, str]:
    """By row what earns more than doing nothing does, where one field in one form does so on the first two rows.

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
    # a server that mixes up what comes at once may pay for the right one alone
    for asked, at_once in ((forms, FEW), (alone, 1)):
        earned = await beside(
            [partial(_reward, gym, first, form % values[first][name]) for name, form in asked], at_once
        )
        for (name, form), reward in zip(asked, earned, strict=True):
            if reward > floors[0] and await _reward(gym, second, form % values[second][name]) > floors[1]:
                return {row: form % each[name] for row, each in values.items() if name in each}
    return {}


def may_be_answer(name: str, value: str) -> bool:
    """Whether a text of the row may be its answer, by its length: what is named as one may be a whole program."""
    return 0 < len(value) <= (_LONG if may_be_gold(name) else _SHORT)


def _fenced(row: Row) -> tuple[str, ...]:
    """A block of code in the first language that the row's input names."""
    named = _LANGUAGE.search("\n".join(Rollout.input_texts(row.data)))
    return (f"```{named[0].lower()}\n%s\n```",) if named else ()


def _values(row: Row) -> dict[str, str]:
    """The first value of each name among the row's own fields that may be an answer."""
    found: dict[str, str] = {}
    for name, value in named_values(own(row)):
        if isinstance(value, str | int | float) and not isinstance(value, bool) and may_be_answer(name, str(value)):
            found.setdefault(name, str(value))
    return found


async def _reward(gym: Gym, row: Row, answer: str | None) -> float:
    """What it earns; what is no number earns nothing here."""
    trajectory = Trajectory(row) if answer is None else Trajectory(row, answer=answer)
    reward: Any = (await run(gym, Channel(gym.endpoint), trajectory)).reward
    return reward if isinstance(reward, int | float) else 0.0
