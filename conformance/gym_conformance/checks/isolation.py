"""Isolation: what one session does, no other can tell.

Source: the cookie contract itself: `add_session_id` in nemo_gym/server_utils.py gives each client a session of its
own (every version). Leaks of this kind shipped in real environments: tool objects rebuilt for each call, storage
shared across sessions.
"""

from collections.abc import Sequence

from gym_conformance.checks.check import Level
from gym_conformance.checks.needs import RESOURCES_SERVER, SCORE
from gym_conformance.checks.outcome import NotApplicable, Violation
from gym_conformance.checks.property import property_check
from gym_conformance.checks.trial import Trial
from gym_conformance.session.channel import Channel
from gym_conformance.trajectories.execute import run, run_schedule
from gym_conformance.trajectories.generate import crowded, interleaved
from gym_conformance.trajectories.outcome import Difference, Outcome, Place, differences, volatile
from gym_conformance.trajectories.trajectory import Schedule, Trajectory

_NEEDS = [RESOURCES_SERVER, SCORE]
_HINT = (
    "State is shared between sessions: a module or class attribute, or one keyed by something else than the session id."
)

#: A difference is a leak when it comes again in so many tries, and never in as many runs alone.
_TRIES = 6

#: How many sessions come and go while one idles.
_CROWD = 100


async def _outcomes_alone(trial: Trial, trajectories: Sequence[Trajectory]) -> list[Outcome]:
    """What each trajectory comes to alone; equal trajectories are run once. These runs are no part of the record."""
    channel = Channel(trial.gym.line)
    seen: dict[int, Outcome] = {}
    for trajectory in trajectories:
        if id(trajectory) not in seen:
            seen[id(trajectory)] = await run(trial.gym, channel, trajectory)
    return [seen[id(trajectory)] for trajectory in trajectories]


def _first_difference(
    alone: Sequence[Outcome], together: Sequence[Outcome], masks: Sequence[frozenset[Place]]
) -> tuple[int, Difference] | None:
    for at, (one, other, mask) in enumerate(zip(alone, together, masks, strict=True)):
        for difference in differences(one, other, mask):
            return at, difference
    return None


async def expect_isolated(trial: Trial, schedule: Schedule) -> None:
    """Hold a schedule to what its trajectories come to alone.

    A difference counts when it comes again and never alone: what also differs between two runs alone (times, ids,
    random text) is masked by its place.

    Raises:
        Violation: a session can tell that there are others.
    """
    nothing = [frozenset[Place]()] * len(schedule.trajectories)
    alone = await _outcomes_alone(trial, schedule.trajectories)
    together = await run_schedule(trial.gym, trial.channel, schedule)
    if _first_difference(alone, together, nothing) is None:
        return
    masks = list(nothing)
    for _again in range(_TRIES):
        control = await _outcomes_alone(trial, schedule.trajectories)
        masks = [mask | volatile(one, two) for mask, one, two in zip(masks, alone, control, strict=True)]
    if _first_difference(alone, together, masks) is None:
        raise NotApplicable("it differs alone, too")
    for _again in range(_TRIES):
        trial.channel.exchanges.clear()
        together = await run_schedule(trial.gym, trial.channel, schedule)
        if found := _first_difference(alone, together, masks):
            at, difference = found
            name = chr(ord("A") + at % 26)
            raise Violation(
                f"{difference.step} of session {name} answers {difference.expected!r}, as alone",
                f"{difference.actual!r}, while other sessions are open",
                _HINT,
            )


@property_check(
    "isolation-interleaved",
    Level.MUST,
    "Sessions MUST NOT see each other",
    why="rollouts of one batch write into each other's state: the rewards are noise, and training goes on silently.",
    needs=_NEEDS,
    examples=interleaved,
)
async def isolation_interleaved(trial: Trial, schedule: Schedule) -> None:
    """Runs two or three trajectories alone, and then with their steps interleaved, each in a session of its own.

    Every reply and reward is as it is alone. What differs already between two runs alone is not compared.

    Source: `add_session_id` in nemo_gym/server_utils.py (every version).
    """
    await expect_isolated(trial, schedule)


@property_check(
    "isolation-concurrent",
    Level.MUST,
    "Sessions MUST NOT see each other when they run at the same time",
    why="training runs hundreds at once: what only then goes wrong is never seen by hand.",
    needs=_NEEDS,
    examples=lambda knowledge: interleaved(knowledge, concurrent=True),
)
async def isolation_concurrent(trial: Trial, schedule: Schedule) -> None:
    """Runs two or three trajectories alone, and then truly at the same time, over several connections.

    Source: rollout collection runs up to `num_samples_in_parallel` rollouts at once (nemo_gym/rollout_collection.py).
    """
    await expect_isolated(trial, schedule)


@property_check(
    "isolation-crowded",
    Level.MUST,
    "A session MUST survive idling while others come and go",
    why="a policy thinks for minutes between two calls: an evicted session is scored on an untouched state.",
    needs=_NEEDS,
    examples=lambda knowledge: crowded(knowledge, _CROWD),
)
async def isolation_crowded(trial: Trial, schedule: Schedule) -> None:
    """Begins a trajectory, runs up to 100 others in sessions of their own, and goes on with it.

    Every reply and reward is as it is alone.

    Source: the session cookie is valid for 14 days (`Max-Age=1209600`, every version); nothing says that it may end.
    """
    await expect_isolated(trial, schedule)
