"""Checks that are properties: tried on generated trajectories, and shrunk to the shortest that breaks them."""

import asyncio
import inspect
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from gym_conformance.contract.endpoints import SEED_SESSION
from gym_conformance.contract.statuses import is_error
from gym_conformance.session.channel import Channel, OutOfTime, PathHangs
from gym_conformance.session.refusals import says_error
from gym_conformance.session.server_fault import ServerFault
from gym_conformance.trajectories.explore import explore
from gym_conformance.trajectories.first import known_alone
from gym_conformance.trajectories.generate import Knowledge
from gym_conformance.trajectories.learn import learn
from gym_conformance.trajectories.novelty import Novelty
from gym_conformance.trajectories.profiles import Profile
from gym_conformance.trajectories.reduce import smaller
from gym_conformance.trajectories.trajectory import Schedule, Trajectory
from gym_conformance.trajectories.waiting import left_waiting
from gym_conformance.trials.check import Attempt, Check, Level, Need, the_server
from gym_conformance.trials.ending import NotApplicable, Untestable, Violation
from gym_conformance.trials.trial import Trial

#: How many schedules are tried at once if the property allows it, so that slow tools are waited for together.
_TOGETHER = 8

#: What breaks beside others is tried so often alone: a race does not show each time.
_ALONE = 3

#: A deep search ends only after so many times as many examples with nothing new.
_DEEP = 2

#: Seconds for reducing a failing schedule to the calls that are needed.
_REDUCING = 10.0

#: Where more than this share of the values is left out, a pass says little.
_NEARLY_ALL = 0.8

#: Volatile places that are named in the report.
_NAMED = 5


class Broken(Exception):
    """A schedule broke the property: how, and over which channel."""

    def __init__(self, cause: Violation | ServerFault, trial: Trial, schedule: Schedule) -> None:
        super().__init__(str(cause))
        self.cause = cause
        self.trial = trial
        self.schedule = schedule


def _unanswered(ended: Broken | BaseException | None) -> bool:
    return isinstance(ended, PathHangs) or (isinstance(ended, Broken) and isinstance(ended.cause, ServerFault))


def _opened_none(channel: Channel) -> bool:
    """Whether every session that was asked for was refused."""
    seeds = [one.reply.status for one in channel.exchanges if one.reply and one.request.path == SEED_SESSION]
    return bool(seeds) and all(map(is_error, seeds))


def _raised(ended: Broken | BaseException | None) -> Broken | None:
    """What a finished attempt returned; what it raised is raised."""
    if ended is None or isinstance(ended, Broken):
        return ended
    raise ended


@dataclass
class _Attempts:
    """One search's attempts.

    Attributes:
        attempt: tries one schedule.
        trial: whose search it is.
        tried: how many were tried.
        jammed: several at once got no answer in time.
        among: several are tried now.
        certain: the first that broke the property, as it was found: chance is excluded for it.
        excuses: why some could not be compared.
        volatile: what was left out as volatile.
        dismissed: differences that chance may explain.
        cautions: what a pass says less for.
        settled: the search ended early, since nothing new came.
        novelty: what was met, and for how long nothing new was.
        hidden: so many values of replies were left out.
        values: of so many, where a difference was suspected.
        drawn: how many were tried that are no first examples.
        unseeded: how many came to nothing, since no session of theirs was opened.
    """

    attempt: Attempt
    trial: Trial
    tried: int = 0
    jammed: bool = False
    among: bool = False
    certain: Broken | None = None
    excuses: Counter[str] = field(default_factory=Counter)
    volatile: set[str] = field(default_factory=set)
    dismissed: list[str] = field(default_factory=list)
    cautions: list[str] = field(default_factory=list)
    settled: bool = False
    novelty: Novelty = field(default_factory=Novelty)
    hidden: int = 0
    values: int = 0
    drawn: int = 0
    unseeded: int = 0

    async def try_batch(self, schedules: list[Schedule]) -> None:
        """Try some at once.

        Raises:
            Broken: one of them broke the property, and did so alone.
        """
        endpoint = self.trial.gym.endpoint
        hangs = endpoint.hangs.copy()
        if self.jammed:
            results = [await self._try_one(schedule) for schedule in schedules]
        else:
            self.among = len(schedules) > 1
            ended = await asyncio.gather(*map(self._try_one, schedules), return_exceptions=True)
            self.among = False
            if len(schedules) > 1 and any(map(_unanswered, ended)):
                self.jammed = True
                endpoint.hangs = hangs  # what is asked one at a time may be answered
                return await self.try_batch(schedules)
            results = [_raised(one) for one in ended]
        for found in filter(None, results):
            if self.jammed or len(schedules) == 1:
                self.certain = self.certain or found
                raise found
            # what breaks only beside others is left to isolation-concurrent
            for _alone in range(_ALONE):
                if again := await self._try_one(found.schedule):
                    self.certain = self.certain or again
                    raise again
        return None

    async def first(self, schedules: list[Schedule], size: int) -> Broken | None:
        """Try these, so many at once, and say which broke the property."""
        for at in range(0, len(schedules), size):
            try:
                await self.try_batch(schedules[at : at + size])
            except Broken as broken:
                return broken
        return None

    async def _try_one(self, schedule: Schedule, *, last: bool = False) -> Broken | None:
        fresh = Trial(self.trial.bench)
        fresh.among = self.among
        fresh.shrinking = self.certain is not None and not last
        self.tried += 1
        fresh.tried.trials += 1
        try:
            await self.attempt(fresh, schedule)
            self.unseeded += _opened_none(fresh.channel)
        except NotApplicable as excuse:
            self.excuses[str(excuse)] += 1
        except (Violation, ServerFault) as cause:
            return Broken(cause, fresh, schedule)
        except (OutOfTime, PathHangs):
            if self.certain is None:
                raise
            # the finding stands, if not in its shortest form
        finally:
            self.novelty.take(fresh.channel.exchanges)
            answered = self.trial.learned.answered
            for one in fresh.channel.exchanges:
                path, reply = one.request.path, one.reply
                if path not in answered and reply and not is_error(reply.status) and not says_error(reply):
                    answered.add(path)
            self.volatile |= fresh.volatile
            self.dismissed += fresh.dismissed
            self.cautions += [fresh.caution] if fresh.caution else []
            self.hidden, self.values = self.hidden + fresh.hidden[0], self.values + fresh.hidden[1]
        return None

    async def reduce(self, broken: Broken) -> Broken:
        """Leave out sessions and calls for as long as it stays broken, and not longer than _REDUCING.

        What hangs is told as it was found: each try would take a whole deadline.
        """
        if any(one.hung for one in broken.trial.channel.exchanges):
            return self.certain or broken
        end = time.monotonic() + _REDUCING
        candidates = smaller(broken.schedule)
        while time.monotonic() < end and (candidate := next(candidates, None)):
            if found := await self._try_one(candidate):
                broken, candidates = found, smaller(found.schedule)
        if self.certain is None or broken.schedule is self.certain.schedule:
            return broken
        # chance was excluded for the original example: the short one must pass the same test, or the original is reported
        return await self._try_one(broken.schedule, last=True) or self.certain

    def caution(self, profile: Profile, missed: int) -> str:
        """Why a pass says less than it seems to; '' if it does not. `missed` is the floor that it did not reach, else 0."""
        if self.cautions:
            return self.cautions[0]
        if self.hidden > _NEARLY_ALL * self.values:
            return (
                f"nearly nothing was compared: {self.hidden} of {self.values} values differ between runs alone, where "
                "something may hide that sessions leave to each other"
            )
        if not missed:
            return ""
        few = f"only {self.drawn} of at least {missed} drawn trajectories were tried"
        return f"{few}: the server is slow; use {profile.enough}"

    def note(self, seconds: float) -> str:
        """What a pass rests on."""
        text = f"{self.tried} trajectories in {seconds:.1f} s"
        if self.settled:
            text += f", the last {self.novelty.quiet} with nothing new"
        if excused := self.excuses.total():
            text += f", {excused} of them with nothing to compare"
        if self.jammed:
            text += "; one at a time, since several at once got no answer in time"
        if self.dismissed:
            count = len(self.dismissed)
            text += f"; {count} difference{'s'[: count - 1]} may be chance: {self.dismissed[-1]}"
        if self.volatile:
            named = sorted(self.volatile)
            more = f" and {len(named) - _NAMED} more" if len(named) > _NAMED else ""
            text += f"; not compared, since it differs between runs alone: {', '.join(named[:_NAMED])}{more}"
        return text


def alone(examples: SearchStrategy[Trajectory]) -> SearchStrategy[Schedule]:
    """Schedules of one trajectory each."""
    return examples.map(lambda trajectory: Schedule((trajectory,)))


async def knowledge_of(trial: Trial) -> Knowledge:
    """What was learned of the gym; learned once for each run."""
    if trial.learned.knowledge is None:
        trial.learned.knowledge = await learn(trial.gym)
        trial.learned.waiting = await left_waiting(trial.gym, trial.learned.knowledge)
    return trial.learned.knowledge


def property_check(
    check_id: str,
    level: Level,
    title: str,
    *,
    why: str,
    examples: Callable[[Knowledge], SearchStrategy[Schedule]],
    first: Callable[[Knowledge], list[Schedule]] = known_alone,
    before: Callable[[Trial, Knowledge], Awaitable[None]] | None = None,
    unseen: Callable[[Trial], str] = lambda _: "",
    needs: Iterable[Need] = (),
    together: bool = True,
    deep: bool = False,
    weight: int = 1,
    url: str = "",
) -> Callable[[Attempt], Check]:
    """Make the decorated function, which tries one schedule, a check over many of them.

    `before` tries what needs no search. `unseen` says of a pass what it says nothing of, as a caution. `first` makes the
    examples that are tried before any is drawn, whatever they cost. `together` says that several may be tried at once: not where other sessions are what is being tested. `deep` says that
    its faults may take many examples to reach: its search goes on for longer where nothing new comes, and for what earlier
    ones have met, too. `weight` says how many examples of other properties one of this stands for, because it takes as many
    sessions: so many fewer are drawn.
    """

    def declare(attempt: Attempt) -> Check:
        async def body(trial: Trial, _: object) -> None:
            attempts = _Attempts(attempt, trial, novelty=Novelty() if deep else Novelty(met=trial.learned.met))
            knowledge = await knowledge_of(trial)
            if before:
                await before(trial, knowledge)
            size = knowledge.beside(_TOGETHER) if together else 1
            batches = _batches(examples(knowledge), size)
            search = trial.settings.search.divided(size * weight)
            began = time.monotonic()
            failure = await attempts.first(first(knowledge), size)
            cut_short = False
            if failure is None:
                opening = attempts.tried
                attempts.novelty.quiet *= (
                    deep  # where earlier searches have met the same, ten must be drawn all the same
                )
                quiet = -(-search.profile.quiet * (_DEEP if deep else 1) // weight)

                def enough() -> bool:
                    return 0 < quiet <= attempts.novelty.quiet

                found = await explore(check_id, batches, attempts.try_batch, search, Broken, enough=enough)
                failure = found.failure if isinstance(found.failure, Broken) else None
                trial.tried.statistics[check_id] = found.statistics
                cut_short, attempts.drawn = found.cut_short, attempts.tried - opening
                attempts.settled = enough()
            trial.note = attempts.note(time.monotonic() - began)
            trial.caution = attempts.caution(
                trial.settings.search.profile, search.profile.floor * size if cut_short else 0
            ) or unseen(trial)
            end = "nothing new came" if attempts.settled else "the profile's time was over"
            own = f"{check_id}:\n\n  - {trial.note}\n  - Stopped because {end}\n"
            trial.tried.statistics[check_id] = trial.tried.statistics.get(check_id) or own
            if failure:
                broken = await attempts.reduce(failure)
                trial.channel.exchanges[:] = broken.trial.channel.exchanges
                trial.schedule = broken.trial.schedule or broken.schedule
                raise broken.cause
            if not attempts.tried:
                raise Untestable("a trajectory to try")
            if attempts.unseeded == attempts.tried:
                raise Untestable(f"sessions: {SEED_SESSION} refused every one that was tried")
            if attempts.excuses.total() == attempts.tried:
                raise NotApplicable(attempts.excuses.most_common(1)[0][0])

        return Check(
            check_id, level, title, why, inspect.getdoc(attempt) or "", tuple(needs), the_server, body, attempt, url=url
        )

    return declare


def _batches(examples: SearchStrategy[Schedule], size: int) -> SearchStrategy[list[Schedule]]:
    """Lists of schedules, which shrink to one."""
    few = st.lists(examples, min_size=1, max_size=1)
    return few if size == 1 else st.one_of(few, st.lists(examples, min_size=size, max_size=size))
