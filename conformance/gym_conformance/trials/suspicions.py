"""Traces of an earlier session: trials that it may have affected are compared to controls that it has not."""

import asyncio
import time
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from math import inf
from typing import Final

from gym_conformance.findings import Cause
from gym_conformance.session.channel import Channel, NoRoom, PathHangs
from gym_conformance.session.server_fault import ServerFault
from gym_conformance.trajectories.execute import beside, run
from gym_conformance.trajectories.outcome import Difference, Outcome, Place, differences, volatile
from gym_conformance.trajectories.trajectory import Schedule, Trajectory
from gym_conformance.trials.before_and_after import is_by_design, lasting
from gym_conformance.trials.chance import beyond_chance
from gym_conformance.trials.ending import Violation
from gym_conformance.trials.trial import Trial

#: Runs of the control that show what differs anyway.
_CONTROLS = 5

#: What is likely, where a session shows another one.
STORE: Final = (
    "One store for several sessions: a module or class attribute, a default argument such as [] or {}, which is created "
    "once, a cache, a module's random generator, or a store keyed by the row, its task or a name in it. Store it under the "
    "session's id, and create it anew with each seed."
)

#: The same where it shows in sessions that run at the same time.
MEANWHILE: Final = (
    "A request stores what it is working on where other requests find it while it waits: in a module variable, or an "
    "attribute of the server or of a client that all share, across an await or between threads; or two requests read the "
    "same number, such as the last id, and both write the next one. Or there is one store for several sessions."
)


@dataclass(frozen=True)
class Told:
    """How a difference is reported."""

    schedule: Schedule
    expected: str
    actual: str = ""
    hint: str = STORE


#: Makes a run over a channel.
Made = Callable[[Channel], Awaitable[Outcome]]

#: Runs a probe over a channel, something else over it, and the probe again.
Twice = Callable[[Channel, Callable[[], Awaitable[object]]], Awaitable[tuple[Outcome, Outcome]]]


@dataclass
class Anyway:
    """What differs between two sound outcomes, found out once for all suspicions that share it, in so many looks."""

    mask: frozenset[Place] = frozenset()
    looks: int = 0


class Suspicion(ABC):
    """The suspicion of a trace: a trial that an earlier session may have affected, and a control that it has not.

    Each comes to two outcomes, which are compared but for what differs anyway.
    """

    def __init__(self, trial: Trial, told: Told, anyway: Anyway) -> None:
        self.told = told
        self._trial, self._anyway = trial, anyway
        self._seen: tuple[Outcome, Outcome] | None = None  # of the last trial

    async def tried(self, channel: Channel) -> Difference | None:
        """How a trial differs."""
        self._seen = await self._suspect(channel)
        return self._change(*self._seen)

    async def control(self, channel: Channel) -> Difference | None:
        """How a control differs."""
        return self._change(*await self._sound(channel))

    async def settle(self) -> bool:
        """Find out what differs anyway, leave it out from now on, and say whether the last trial still differs."""

        def differs() -> bool:
            return self._seen is None or self._change(*self._seen) is not None

        while self._anyway.looks < _CONTROLS and differs():
            self._anyway.mask |= volatile(*await self._sound(Channel(self._trial.gym.endpoint)))
            self._anyway.looks += 1
        return differs()

    @abstractmethod
    async def _suspect(self, channel: Channel) -> tuple[Outcome, Outcome]:
        """Make a trial."""

    @abstractmethod
    async def _sound(self, channel: Channel) -> tuple[Outcome, Outcome]:
        """Make a control."""

    @abstractmethod
    def _change(self, before: Outcome, after: Outcome) -> Difference | None:
        """How the second outcome differs from the first."""


class Between(Suspicion):
    """A probe just before other sessions and just after them, held to one before and after a pause that is as long."""

    def __init__(
        self, trial: Trial, twice: Twice, anyway: Anyway, writes: Callable[[], Sequence[Trajectory]], told: Told
    ) -> None:
        super().__init__(trial, told, anyway)
        self._twice, self._writes = twice, writes
        self._seconds = 0.0  # that the last sessions in between took

    async def _suspect(self, channel: Channel) -> tuple[Outcome, Outcome]:
        async def between() -> None:
            began = time.monotonic()
            for one in self._writes():
                await run(self._trial.gym, channel, one)
            self._seconds = time.monotonic() - began

        return await self._twice(channel, between)

    async def _sound(self, channel: Channel) -> tuple[Outcome, Outcome]:
        return await self._twice(channel, lambda: asyncio.sleep(self._seconds))

    def _change(self, before: Outcome, after: Outcome) -> Difference | None:
        return next((one for one in lasting([before], [after]) if not one.hidden(self._anyway.mask)), None)


class Likeness(Suspicion):
    """Runs that are compared to the first of others."""

    def __init__(self, trial: Trial, tried: Made, control: Made, told: Told) -> None:
        super().__init__(trial, told, Anyway())
        self._tried, self._control = tried, control
        self._reference: Outcome | None = None

    async def _suspect(self, channel: Channel) -> tuple[Outcome, Outcome]:
        if self._reference is None:
            self._anyway.mask |= volatile(*await self._sound(Channel(self._trial.gym.endpoint)))
        return await self._first(), await self._tried(channel)

    async def _sound(self, channel: Channel) -> tuple[Outcome, Outcome]:
        return await self._first(), await self._control(channel)

    async def _first(self) -> Outcome:
        self._reference = self._reference or await self._control(Channel(self._trial.gym.endpoint))
        return self._reference

    def _change(self, before: Outcome, after: Outcome) -> Difference | None:
        return next((one for one in differences(before, after, self._anyway.mask) if not is_by_design(one)), None)


#: Makes it anew for each use.
Maker = Callable[[], Suspicion]


@dataclass
class Patience:
    """How much of what there is to try is tried: some in any case, and more while there is time.

    Attributes:
        seconds: the time for this, from when the first is asked for.
        least: how many are tried in any case.
        left_out: how many were not tried.
    """

    seconds: float
    least: int
    left_out: int = 0
    _end: float = inf
    _begun: int = 0

    def allows(self) -> bool:
        """Whether one more may be tried."""
        now = time.monotonic()
        self._end = min(self._end, now + self.seconds)
        self._begun += 1
        allowed = now < self._end or self._begun <= self.least
        self.left_out += not allowed
        return allowed


async def suspected(trial: Trial, makers: Sequence[Maker], at_once: int, patience: Patience) -> Sequence[Maker]:
    """Those whose trial differs, several of them tried at once; all of them if that gets no answer, or has no room.

    This is no verdict: what differs here is tried again alone.
    """
    if at_once == 1:
        return makers

    async def differs(make: Maker) -> bool:
        return patience.allows() and await make().tried(Channel(trial.gym.endpoint)) is not None

    try:
        with trial.gym.endpoint.forgiving():
            differing = await beside([partial(differs, make) for make in makers], at_once)
    except (ServerFault, PathHangs, NoRoom):
        patience.left_out = 0
        return makers
    return [make for make, each in zip(makers, differing, strict=True) if each]


async def expect_none(trial: Trial, suspicion: Suspicion) -> None:
    """Raise a violation if the suspicion holds, chance excluded.

    It is tried twice where it does not show at once: what sessions before the first trial left may look the same.
    """
    trial.channel.exchanges.clear()  # of those before it, which did not hold
    differs = await suspicion.tried(trial.channel) or await suspicion.tried(trial.channel)
    if differs is None or not await suspicion.settle():
        return
    trial.channel.exchanges.clear()
    if found := await beyond_chance(trial, suspicion.tried, suspicion.control):
        told = suspicion.told
        trial.schedule = told.schedule
        raise Violation(
            f"{found.answer}{told.expected}", f"{found.actual!r}{told.actual}", told.hint, Cause.OUTLIVING_STATE
        )
