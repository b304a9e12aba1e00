"""Checks that are properties: tried on generated trajectories, and shrunk to the shortest that breaks them."""

import inspect
from collections.abc import Callable, Iterable

from hypothesis.strategies import SearchStrategy

from gym_conformance.checks.check import Attempt, Check, Level, Need, the_server
from gym_conformance.checks.outcome import NotApplicable, Untestable, Violation
from gym_conformance.checks.trial import Trial
from gym_conformance.session.fault import ServerFault
from gym_conformance.trajectories.explore import explore
from gym_conformance.trajectories.generate import Knowledge
from gym_conformance.trajectories.learn import learn
from gym_conformance.trajectories.trajectory import Schedule, Trajectory


class Broken(Exception):
    """An example broke the property: how, and over which channel."""

    def __init__(self, cause: Violation | ServerFault, trial: Trial) -> None:
        super().__init__(str(cause))
        self.cause = cause
        self.trial = trial


def alone(examples: SearchStrategy[Trajectory]) -> SearchStrategy[Schedule]:
    """Schedules of one trajectory each."""
    return examples.map(lambda trajectory: Schedule((trajectory,)))


async def knowledge_of(trial: Trial) -> Knowledge:
    """What was learned of the gym, once for each run."""
    if trial.memory.knowledge is None:
        trial.memory.knowledge = await learn(trial.gym)
    return trial.memory.knowledge


def property_check(
    check_id: str,
    level: Level,
    title: str,
    *,
    why: str,
    examples: Callable[[Knowledge], SearchStrategy[Schedule]],
    needs: Iterable[Need] = (),
) -> Callable[[Attempt], Check]:
    """Make the decorated function, which tries one schedule, a check over many of them."""

    def declare(attempt: Attempt) -> Check:
        async def body(trial: Trial, _: object) -> None:
            async def try_one(schedule: Schedule) -> None:
                fresh = Trial(trial.gym, trial.memory)
                try:
                    await attempt(fresh, schedule)
                except NotApplicable:
                    return  # nothing to compare in this one
                except (Violation, ServerFault) as cause:
                    raise Broken(cause, fresh) from cause

            strategy = examples(await knowledge_of(trial))
            found = await explore(check_id, strategy, try_one, trial.memory.search, Broken)
            trial.note = f"{found.tried} trajectories in {found.seconds:.1f} s"
            if isinstance(found.failure, Broken):
                trial.channel.exchanges[:] = found.failure.trial.channel.exchanges
                trial.schedule = found.example
                raise found.failure.cause
            if not found.tried:
                raise Untestable("a trajectory to try")

        return Check(
            check_id, level, title, why, inspect.getdoc(attempt) or "", tuple(needs), the_server, body, attempt
        )

    return declare
