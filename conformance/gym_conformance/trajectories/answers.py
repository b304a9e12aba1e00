"""Answers that are paid for, found by asking, where no recorded rollout shows any.

Without one, a server that only grades is hardly tried: whatever is said earns nothing. Most rows hold their answer, and
prompts ask for it in one of a few forms.
"""

from functools import partial
from typing import Any, Final

from gym_conformance.contract.dataset_rows import Row
from gym_conformance.contract.gold_names import may_be_gold
from gym_conformance.gym_under_test import Gym
from gym_conformance.session.channel import Channel
from gym_conformance.trajectories.execute import beside, run
from gym_conformance.trajectories.generate import named_values
from gym_conformance.trajectories.renaming import own
from gym_conformance.trajectories.trajectory import Trajectory

#: How prompts ask for an answer, with a hole in it.
_FORMS: Final = ("\\boxed{%s}", "%s", "<answer>%s</answer>", "Answer: %s", "#### %s")

#: A text of the row that is longer is no answer but a part of the task.
SHORT: Final = 200

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
    forms = [(name, form) for name in likely for form in _FORMS][:tries]
    earned = await beside([partial(_reward, gym, first, form % values[first][name]) for name, form in forms])
    floors = [await _reward(gym, row, None) for row in (first, second)]
    for (name, form), reward in zip(forms, earned, strict=True):
        if reward > floors[0] and await _reward(gym, second, form % values[second][name]) > floors[1]:
            return {row: form % each[name] for row, each in values.items() if name in each}
    return {}


def _values(row: Row) -> dict[str, str]:
    """The first short value of each name among the row's own fields."""
    found: dict[str, str] = {}
    for name, value in named_values(own(row)):
        if isinstance(value, str | int | float) and not isinstance(value, bool) and 0 < len(str(value)) <= SHORT:
            found.setdefault(name, str(value))
    return found


async def _reward(gym: Gym, row: Row, answer: str | None) -> float:
    """What it earns; what is no number earns nothing here."""
    trajectory = Trajectory(row) if answer is None else Trajectory(row, answer=answer)
    reward: Any = (await run(gym, Channel(gym.endpoint), trajectory)).reward
    return reward if isinstance(reward, int | float) else 0.0
