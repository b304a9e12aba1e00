"""Traces of an earlier session: trials that it may have affected are compared to controls that it has not."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from math import inf
from typing import Final, Protocol

from gym_conformance.findings import Cause
from gym_conformance.session.channel import Channel, NoRoom, PathHangs
from gym_conformance.session.server_fault import ServerFault
from gym_conformance.trajectories.before_and_after import by_design, lasting
from gym_conformance.trajectories.execute import beside, run
from gym_conformance.trajectories.outcome import Difference, Outcome, Place, differences, masked, volatile
from gym_conformance.trajectories.trajectory import Schedule, Trajectory
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


class Suspicion(Protocol):
    """The suspicion of a trace: a trial that an earlier session may have affected, and a control that it has not."""

    told: Told

    async def tried(self, channel: Channel) -> Difference | None:
        """How a trial differs."""

    async def control(self, channel: Channel) -> Difference | None:
        """How a control differs."""

    async def settle(self) -> bool:
        """Find out what differs anyway, leave it out from now on, and say whether the last trial still differs."""


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
    """Raise a violation if the suspicion holds, chance excluded."""
    trial.channel.exchanges.clear()  # of those before it, which did not hold
    if await suspicion.tried(trial.channel) is None or not await suspicion.settle():
        return
    trial.channel.exchanges.clear()
    if found := await beyond_chance(trial, suspicion.tried, suspicion.control):
        told = suspicion.told
        trial.schedule = told.schedule
        expected = f"{found.step} answers {found.expected!r}{told.expected}"
        raise Violation(expected, f"{found.actual!r}{told.actual}", told.hint, Cause.OUTLIVING_STATE)


#: Runs a probe over a channel, something else over it, and the probe again.
Twice = Callable[[Channel, Callable[[], Awaitable[object]]], Awaitable[tuple[Outcome, Outcome]]]


class Anyway:
    """What differs between two runs of a probe with only a pause in between; found out once for each probe.

    What is `known` to differ is left out from the start.
    """

    def __init__(self, trial: Trial, twice: Twice, known: frozenset[Place] = frozenset()) -> None:
        self.twice = twice
        self.mask = known
        self._trial, self._looks = trial, 0

    async def settle(self, pause: Callable[[], Awaitable[object]], differs: Callable[[], bool]) -> None:
        """Run it a few times with only the pause in between, until nothing `differs` any longer."""
        while self._looks < _CONTROLS and differs():
            self.mask |= volatile(*await self.twice(Channel(self._trial.gym.endpoint), pause))
            self._looks += 1


class Between:
    """A probe just before another session and just after it, held to one before and after a pause that is as long."""

    def __init__(self, trial: Trial, anyway: Anyway, writes: Callable[[], Trajectory], told: Told) -> None:
        self.told = told
        self._trial, self._anyway, self._writes = trial, anyway, writes
        self._seconds = 0.0  # that the last session in between took
        self._seen: tuple[Outcome, Outcome] | None = None  # before and after it

    async def tried(self, channel: Channel) -> Difference | None:
        """How the probe differs after the session."""

        async def between() -> None:
            began = time.monotonic()
            await run(self._trial.gym, channel, self._writes())
            self._seconds = time.monotonic() - began

        self._seen = await self._anyway.twice(channel, between)
        return self._change(*self._seen)

    async def control(self, channel: Channel) -> Difference | None:
        """How it differs after the pause."""
        return self._change(*await self._anyway.twice(channel, self._pause))

    async def settle(self) -> bool:
        """Leave out what differs after a pause."""

        def differs() -> bool:
            return self._seen is None or self._change(*self._seen) is not None

        await self._anyway.settle(self._pause, differs)
        return differs()

    async def _pause(self) -> None:
        await asyncio.sleep(self._seconds)

    def _change(self, before: Outcome, after: Outcome) -> Difference | None:
        return next((one for one in lasting([before], [after]) if not masked(one.place, self._anyway.mask)), None)


#: Makes a run over a channel.
Made = Callable[[Channel], Awaitable[Outcome]]


class Likeness:
    """Runs that are compared to other runs."""

    def __init__(self, trial: Trial, tried: Made, control: Made, told: Told) -> None:
        self.told = told
        self._aside = Channel(trial.gym.endpoint)
        self._tried, self._control = tried, control
        self._reference: Outcome | None = None
        self._seen: Outcome | None = None  # the last run that is suspected
        self._mask: frozenset[Place] = frozenset()

    async def tried(self, channel: Channel) -> Difference | None:
        """How a suspected run differs from the first control."""
        if self._reference is None:
            await self._learn()
        self._seen = await self._tried(channel)
        return self._unlike(self._seen)

    async def control(self, channel: Channel) -> Difference | None:
        """How a control differs from it."""
        return self._unlike(await self._control(channel))

    async def settle(self) -> bool:
        """Leave out what differs among controls."""

        def differs() -> bool:
            return self._seen is None or self._unlike(self._seen) is not None

        looks = 0
        while looks < _CONTROLS and differs():
            await self._learn()
            looks += 1
        return differs()

    async def _learn(self) -> None:
        self._reference = self._reference or await self._control(self._aside)
        self._mask |= volatile(self._reference, await self._control(self._aside))

    def _unlike(self, outcome: Outcome) -> Difference | None:
        found = differences(self._reference, outcome, self._mask) if self._reference else ()
        return next((one for one in found if not by_design(one.place)), None)
