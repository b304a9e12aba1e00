"""Learning from a gym before trajectories are made: its recorded calls, and what its tools return."""

import time
from collections import defaultdict
from dataclasses import replace
from typing import Any

from gym_conformance.contract.dataset_rows import Row
from gym_conformance.contract.openapi import ServerKind
from gym_conformance.gym_under_test import Gym
from gym_conformance.session.channel import Channel
from gym_conformance.trajectories.execute import run
from gym_conformance.trajectories.first import made_up
from gym_conformance.trajectories.followed import followed
from gym_conformance.trajectories.generate import Knowledge, named_values, places
from gym_conformance.trajectories.trajectory import Trajectory
from gym_conformance.trajectories.words import known_arguments

#: Recorded rollouts that are run to learn from.
_RUNS = 4

#: Rows of which a trajectory is made up to learn from.
_MADE_UP = 2

#: Sessions in which nothing is done, to see what one costs.
_BARE = 3

#: A text of the row that is longer is no answer but a part of the task.
_SHORT = 200

#: Values kept for each name: few, so that they meet.
_MINED = 6


async def learn(gym: Gym) -> Knowledge:
    """Run a few recorded rollouts and made-up ones, and note what their tools return.

    Raises:
        ServerFault: the server does not answer.
    """
    recorded: dict[str, dict[str, Any]] = defaultdict(dict)
    for _, calls in gym.recorded_calls:
        for call in calls:
            recorded[call.name][repr(call.arguments)] = call.arguments
    runs = _recorded(gym)
    seen = [value for _, calls in gym.recorded_calls for call in calls for value in named_values(call.arguments)]
    rows = tuple(row for row in gym.rows if row.tools) or gym.rows or (gym.row,)
    started = time.monotonic()
    for _ in range(_BARE):
        await run(gym, Channel(gym.endpoint), Trajectory(gym.row))
    executes = gym.kind is not ServerKind.SINGLE_TURN
    known = await known_arguments(gym, rows[:_MADE_UP]) if executes else {}
    knowledge = Knowledge(
        session_seconds=(time.monotonic() - started) / _BARE,
        rows=rows,
        answers={row: _answers(gym, row) for row in gym.rows or (gym.row,)},
        meaningful=known | {tool: tuple(found.values()) for tool, found in recorded.items()},
        recorded_trajectories=runs,
    )
    made = [made_up(knowledge, row) for row in rows[:_MADE_UP]] if executes else []
    returned: dict[str, dict[Any, None]] = defaultdict(dict)
    for trajectory in (*runs[:_RUNS], *made):
        outcome = await run(gym, Channel(gym.endpoint), trajectory)
        for step in outcome.calls:
            returned[step.name.removeprefix("/")] |= dict.fromkeys(places(step.body))
            seen += named_values(step.body)
    found = {tool: tuple(each) for tool, each in returned.items()}
    return replace(knowledge, returned=found, mined=_by_name(seen))


def _recorded(gym: Gym) -> tuple[Trajectory, ...]:
    """What recorded rollouts did that call a tool, the longest first; one of no row that we have stands with the first."""
    found = [followed(row, rollout) for row, rollouts in gym.recorded.items() for rollout in rollouts]
    found = [each for each in found if each.calls] or [followed(gym.row, rollout) for rollout in gym.rollouts]
    return tuple(sorted((each for each in found if each.calls), key=lambda each: -len(each.calls)))


def _answers(gym: Gym, row: Row) -> tuple[str, ...]:
    """The last words of the row's recorded rollouts, and short texts of the row: one of them may be the solution."""
    recorded = [rollout.last_text for rollout in gym.recorded.get(row, ())]
    own = {key: value for key, value in row.data.items() if key != "responses_create_params"}
    texts = [str(value) for _, value in named_values(own) if type(value) in (str, int) and len(str(value)) <= _SHORT]
    return tuple(dict.fromkeys(text for text in [*recorded, *texts[:_MINED]] if text))


def _by_name(seen: list[tuple[str, Any]]) -> dict[str, tuple[Any, ...]]:
    """A few different values for each name, as they came."""
    found: dict[str, dict[str, Any]] = defaultdict(dict)
    for name, value in seen:
        if len(found[name]) < _MINED:
            found[name].setdefault(repr(value), value)
    return {name: tuple(values.values()) for name, values in found.items()}
