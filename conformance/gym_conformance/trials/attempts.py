"""One search's attempts at a property: which schedules broke it, the shortest of them, and what a pass rests on."""

import asyncio
import time
from collections import Counter
from dataclasses import dataclass, field
from functools import partial

from gym_conformance.contract.endpoints import SEED_SESSION
from gym_conformance.contract.statuses import is_error
from gym_conformance.printable import counted
from gym_conformance.session.channel import Channel, NoRoom, OutOfTime, PathHangs
from gym_conformance.session.refusals import says_error
from gym_conformance.session.server_fault import ServerFault
from gym_conformance.trajectories.execute import again_alone
from gym_conformance.trajectories.novelty import Novelty
from gym_conformance.trajectories.profiles import Profile
from gym_conformance.trajectories.reduce import smaller
from gym_conformance.trajectories.trajectory import Schedule
from gym_conformance.trials.check import Attempt
from gym_conformance.trials.ending import NotApplicable, Untestable, Violation
from gym_conformance.trials.trial import Trial

#: What breaks beside others is tried so often alone: a race does not show each time.
_ALONE = 3

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


def _jams(ended: Broken | BaseException | None) -> bool:
    """Whether the server failed an attempt, or its path had hung before."""
    return isinstance(ended, PathHangs) or (isinstance(ended, Broken) and isinstance(ended.cause, ServerFault))


def _opened_none(channel: Channel) -> bool:
    """Whether every session that was asked for was refused."""
    seeds = [one.reply.status for one in channel.exchanges if one.reply and one.request.path == SEED_SESSION]
    return bool(seeds) and all(map(is_error, seeds))


def _raised(ended: Broken | BaseException | None) -> Broken | None:
    """What a finished attempt returned; raises what it raised."""
    if ended is None or isinstance(ended, Broken):
        return ended
    raise ended


@dataclass
class Attempts:
    """One search's attempts.

    Attributes:
        attempt: tries one schedule.
        trial: the trial that searches.
        tried: how many were tried.
        jammed: whether several at once got no answer in time.
        among: whether several are being tried at once.
        certain: the first that broke the property, as it was found, with chance excluded.
        excuses: why some could not be compared.
        crowded: those that found no room even alone, and what they would have needed.
        volatile: places that were not compared because they are volatile.
        dismissed: differences that chance may explain.
        cautions: reasons why a pass says less than it seems to.
        settled: whether the search ended early because nothing new came.
        novelty: what was met, and for how long nothing new was.
        hidden: how many values of replies were left out.
        values: out of how many, where a difference was suspected.
        drawn: how many were tried beyond the first examples.
        unseeded: how many came to nothing because none of their sessions was opened.
    """

    attempt: Attempt
    trial: Trial
    tried: int = 0
    jammed: bool = False
    among: bool = False
    certain: Broken | None = None
    excuses: Counter[str] = field(default_factory=Counter)
    crowded: list[tuple[Schedule, str]] = field(default_factory=list)
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
        """Try several at once, and then alone those that broke the property.

        Raises:
            Broken: one of them broke it alone.
        """
        # what breaks only beside others is left to isolation-concurrent
        for schedule in await self._suspected(schedules):
            if broken := await self._tried(schedule):
                self.certain = self.certain or broken
                raise broken

    async def _suspected(self, schedules: list[Schedule]) -> list[Schedule]:
        """Those to be tried alone: what breaks once beside others, as often as a race needs, or all if that gets no answer."""
        if self.jammed or len(schedules) == 1:
            return schedules
        self.among = True
        works = [partial(self._try, schedule, once=True) for schedule in schedules]
        with self.trial.gym.endpoint.forgiving():  # what is asked one at a time may be answered
            ended = await asyncio.gather(*(work() for work in works), return_exceptions=True)
        self.among = False
        if any(map(_jams, ended)):
            self.jammed = True
            return schedules
        broken = [_raised(one) for one in await again_alone(works, ended)]
        return [one.schedule for one in broken if one for _alone in range(_ALONE)]

    async def first(self, schedules: list[Schedule], size: int) -> Broken | None:
        """Try these, `size` at once, and return what broke the property."""
        for at in range(0, len(schedules), size):
            try:
                await self.try_batch(schedules[at : at + size])
            except Broken as broken:
                return broken
        return None

    async def _tried(self, schedule: Schedule) -> Broken | None:
        """Try one; of a crowd that breaks, a smaller one that does is held to the rule of chance first, for it is cheap."""
        if self.certain is not None:
            return await self._try(schedule, once=True, shrinking=True)
        if not schedule.passing:
            return await self._try(schedule)
        broken = await self._try(schedule, once=True)
        if broken is None or isinstance(broken.cause, ServerFault):
            return broken
        few = (await self._reduced(broken)).schedule
        return (few is not schedule and await self._try(few)) or await self._try(schedule)

    async def _try(self, schedule: Schedule, *, once: bool = False, shrinking: bool = False) -> Broken | None:
        fresh = Trial(self.trial.bench)
        fresh.among, fresh.once, fresh.shrinking = self.among, once, shrinking
        self.tried += 1
        fresh.tried.trials += 1
        try:
            await self.attempt(fresh, schedule)
            self.unseeded += _opened_none(fresh.channel)
        except NotApplicable as excuse:
            self.excuses[str(excuse)] += 1
        except (Violation, ServerFault) as cause:
            return Broken(cause, fresh, schedule)
        except NoRoom as crowded:
            if self.among:
                self.tried -= 1  # it is tried again, alone
                raise
            self.crowded.append((schedule, str(crowded)))
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
        """Leave out sessions and calls while it stays broken, for no longer than _REDUCING.

        What hangs is reported as it was found, since each try would take a whole deadline. So is what has the cause of
        another check's violation, which has a short example: reports show both together.
        """
        told = isinstance(broken.cause, Violation) and broken.cause.cause in self.trial.learned.causes
        if told or any(one.hung for one in broken.trial.channel.exchanges):
            return self.certain or broken
        broken = await self._reduced(broken)
        if self.certain is None or broken.schedule is self.certain.schedule:
            return broken
        # chance was excluded for the original example: the short one must pass the same test, or the original is reported
        return await self._try(broken.schedule) or self.certain

    async def _reduced(self, broken: Broken) -> Broken:
        """The smallest schedule that breaks once, as far as the time allows."""
        end = time.monotonic() + _REDUCING
        candidates = smaller(broken.schedule)
        while time.monotonic() < end and (candidate := next(candidates, None)):
            try:
                found = await self._try(candidate, once=True, shrinking=True)
            except (OutOfTime, PathHangs):
                break  # the finding stands, if not in its shortest form
            if found:
                broken, candidates = found, smaller(found.schedule)
        return broken

    def caution(self, profile: Profile, missed: int) -> str:
        """Why a pass says less than it seems to; '' if it does not. `missed` is the floor that it missed, or 0."""
        if self.cautions:
            return self.cautions[0]
        if self.crowded:
            return f"{len(self.crowded)} of {self.tried} trajectories were left out, which need {self.crowded[-1][1]}"
        if self.hidden > _NEARLY_ALL * self.values:
            return (
                f"nearly nothing was compared: {self.hidden} of {self.values} values differ between runs alone, where "
                "something may hide that sessions leave to each other"
            )
        slow = f"fewer trajectories were drawn than {profile.name} asks for: the server is slow; use {profile.enough}"
        return slow if missed else ""

    def note(self, seconds: float) -> str:
        """What a pass is based on."""
        trajectories = "1 trajectory" if self.tried == 1 else f"{self.tried:,} trajectories"
        text = f"{trajectories} in {seconds:.1f} s"
        if self.settled:
            text += f", the last {self.novelty.quiet} with nothing new"
        if excused := self.excuses.total():
            text += f", {excused} of them with nothing to compare"
        if self.jammed:
            text += "; one at a time, since several at once got no answer in time"
        if self.dismissed:
            text += f"; {counted(len(self.dismissed), 'difference')} may be chance: {self.dismissed[-1]}"
        if self.volatile:
            named = sorted(self.volatile)
            more = f" and {len(named) - _NAMED} more" if len(named) > _NAMED else ""
            text += f"; not compared, since it differs between runs alone: {', '.join(named[:_NAMED])}{more}"
        return text

    def statistics(self, check_id: str) -> str:
        """What Hypothesis would say, if it was not used."""
        end = "nothing new came" if self.settled else "the profile's time was over"
        return f"{check_id}:\n\n  - {self.trial.note}\n  - Stopped because {end}\n"

    def ensure_compared(self) -> None:
        """Ensure that at least one was tried to its end.

        Raises:
            Untestable: none was tried, or no session was opened.
            NoRoom: there was no room for any.
            NotApplicable: none could be compared.
        """
        if not self.tried:
            raise Untestable("a trajectory to try")
        if self.unseeded == self.tried:
            raise Untestable(f"sessions: {SEED_SESSION} refused every one that was tried")
        if self.crowded and len(self.crowded) + self.excuses.total() == self.tried:
            raise NoRoom(self.crowded[-1][1])
        if self.excuses.total() == self.tried:
            raise NotApplicable(self.excuses.most_common(1)[0][0])
