"""Checks that are properties: tried on generated trajectories, and shrunk to the shortest that breaks them."""

import inspect
import time
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from gym_conformance.scouting.learn import find, learn
from gym_conformance.scouting.words import NOTHING_ASKED
from gym_conformance.session.channel import NoRoom
from gym_conformance.trajectories.explore import explore
from gym_conformance.trajectories.first import known_alone
from gym_conformance.trajectories.generate import Knowledge
from gym_conformance.trajectories.novelty import Novelty
from gym_conformance.trajectories.trajectory import Schedule, Trajectory
from gym_conformance.trajectories.waiting import left_waiting
from gym_conformance.trials.attempts import Attempts, Broken
from gym_conformance.trials.before_and_after import look_again
from gym_conformance.trials.check import Attempt, Check, Need, the_server
from gym_conformance.trials.trial import Trial

#: A deep search ends only after so many times as many examples with nothing new.
_DEEP = 2


def alone(examples: SearchStrategy[Trajectory]) -> SearchStrategy[Schedule]:
    """Schedules of one trajectory each."""
    return examples.map(lambda trajectory: Schedule((trajectory,)))


async def knowledge_of(trial: Trial) -> Knowledge:
    """What was learned about the gym, once for each run."""
    if trial.learned.knowledge is None:
        look = trial.learned.first_look
        found = await find(trial.gym, look.words if look else NOTHING_ASKED)
        if look:  # before anything else that they do for all sessions is done
            trial.learned.first_look = await look_again(trial.gym, look, found.taken)
        trial.learned.knowledge = await learn(trial.gym, found)
        trial.learned.waiting = await left_waiting(trial.gym, trial.learned.knowledge)
    return trial.learned.knowledge


def property_check(
    check_id: str,
    title: str,
    *,
    why: str,
    examples: Callable[[Knowledge], SearchStrategy[Schedule]],
    first: Callable[[Knowledge], list[Schedule]] = known_alone,
    before: Callable[[Trial, Knowledge], Awaitable[None]] | None = None,
    waits: bool = False,
    unseen: Callable[[Trial], str] = lambda _: "",
    needs: Iterable[Need] = (),
    together: bool = True,
    deep: bool = False,
    weight: int = 1,
) -> Callable[[Attempt], Check]:
    """Make a check that tries many schedules of the decorated function, which tries one.

    `before` tries what needs no search; if it mostly `waits`, maybe beside gentle checks. `unseen` says, as a
    caution, what a pass does not cover. `first` makes the examples that are tried before any is drawn, whatever they
    cost. `together` says that several may be tried at once, which is out of the question if other sessions are what is
    tested. `deep` says that its faults may take many examples to reach; its search goes on for longer if nothing new
    comes, and for what earlier searches have met too. `weight` says how many examples of other properties one of this
    is worth, because it takes as many sessions; that many fewer are drawn.
    """
    first_of_all = _once(check_id, before) if before else None
    examples_of = _Examples(first, examples, together=together, deep=deep, weight=weight)

    def declare(attempt: Attempt) -> Check:
        async def body(trial: Trial, _: object) -> None:
            attempts = Attempts(attempt, trial, novelty=Novelty() if deep else Novelty(met=trial.learned.met))
            knowledge = await knowledge_of(trial)
            try:
                if first_of_all:
                    await first_of_all(trial)
            except NoRoom as crowded:
                attempts.cautions.append(f"what is tried before the search was not compared, which needs {crowded}")
            began = time.monotonic()
            failure, missed = await examples_of.tried(check_id, attempts, knowledge)
            trial.note = attempts.note(time.monotonic() - began)
            trial.caution = attempts.caution(trial.settings.search.profile, missed) or unseen(trial)
            if not trial.tried.statistics.get(check_id):
                trial.tried.statistics[check_id] = attempts.statistics(check_id)
            if failure:
                broken = await attempts.reduce(failure)
                trial.channel.exchanges[:] = broken.trial.channel.exchanges
                trial.schedule = broken.trial.schedule or broken.schedule
                raise broken.cause
            attempts.ensure_compared()

        async def again(trial: Trial, schedule: Schedule) -> None:
            await attempt(trial, schedule)
            if before:  # what it found is not in the order of the steps
                await before(trial, Knowledge.of(schedule))

        doc = inspect.getdoc(attempt) or ""
        return Check(
            check_id, title, why, doc, tuple(needs), the_server, body, again, waits=first_of_all if waits else None
        )

    return declare


def _once(check_id: str, before: Callable[[Trial, Knowledge], Awaitable[None]]) -> Callable[[Trial], Awaitable[None]]:
    """What is tried before the search, until it has passed."""

    async def tried(trial: Trial) -> None:
        if check_id not in trial.learned.waited:
            await before(trial, await knowledge_of(trial))
            trial.learned.waited.add(check_id)

    return tried


@dataclass(frozen=True)
class _Examples:
    """The schedules that one property is tried on; see `property_check`."""

    first: Callable[[Knowledge], list[Schedule]]
    drawn: Callable[[Knowledge], SearchStrategy[Schedule]]
    together: bool
    deep: bool
    weight: int

    async def tried(self, name: str, attempts: Attempts, knowledge: Knowledge) -> tuple[Broken | None, int]:
        """What broke the property, and the floor that the search missed, or 0."""
        size = knowledge.several if self.together else 1
        batches = _batches(self.drawn(knowledge), size)
        search = attempts.trial.settings.search.divided(size * self.weight)
        if failure := await attempts.first(self.first(knowledge), size):
            return failure, 0
        opening = attempts.tried
        attempts.novelty.quiet = 0  # whatever the first examples and earlier searches have met, some must be drawn
        quiet = -(-search.profile.quiet * (_DEEP if self.deep else 1) // self.weight)

        def enough() -> bool:
            return 0 < quiet <= attempts.novelty.quiet

        until = attempts.trial.gym.endpoint.until
        found = await explore(name, batches, attempts.try_batch, search, Broken, enough=enough, until=until)
        attempts.trial.tried.statistics[name] = found.statistics
        attempts.drawn, attempts.settled = attempts.tried - opening, enough()
        failure = found.failure if isinstance(found.failure, Broken) else None
        return failure, search.profile.floor * size if found.cut_short else 0


def _batches(examples: SearchStrategy[Schedule], size: int) -> SearchStrategy[list[Schedule]]:
    """Lists of schedules, which shrink to one."""
    few = st.lists(examples, min_size=1, max_size=1)
    return few if size == 1 else st.one_of(few, st.lists(examples, min_size=size, max_size=size))
