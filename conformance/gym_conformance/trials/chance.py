"""Excluding chance before a difference between two runs is called a violation (`trajectories.evidence` has the rule)."""

import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from math import inf
from typing import Any, Protocol, TypeVar

from gym_conformance.session.channel import Channel, Endpoint
from gym_conformance.trajectories.evidence import (
    COSTLY,
    LOOKS,
    SEVENTEEN,
    Comparison,
    Decision,
    Look,
    allowed,
    chance_of,
    chance_so_far,
)
from gym_conformance.trajectories.execute import beside
from gym_conformance.trials.trial import Trial

D = TypeVar("D")

#: Makes a run over a channel of its own, and returns how it differs from what is expected; None if it does not.
Run = Callable[[Channel], Awaitable[D | None]]

#: Seconds after which no further look is begun: generous, because the verdict must not depend on the machine's load.
_DEADLINE = 180.0

#: Once comparisons that came to nothing have taken so many times the profile's patience, each goes on only with what is
#: this unlikely to be chance: where each run takes seconds, noise alone would take minutes.
_PATIENCE, _PROMISING = 6, 0.05

#: The same of the first look once half of its trials are made, and half of its controls.
_EVEN = 0.5

#: Comparisons in which each control differed, after which the server is known to be noisy: then one in which this many
#: controls differ, and none does not, is over. Where a reward is drawn, nearly every trajectory would take a whole look.
_NOISY, _NOISE = 3, 2

#: Runs at once, where other sessions are not what is being tested; more of them alone where the server waits for each.
_TOGETHER = 6

#: Seconds of a trial up to which all of its controls are made as slow, and how many are made in the end otherwise: as
#: slow where it takes longer, and else as they come.
_PACED, _OTHERWISE = 2.0, 3


class Control(Protocol):
    """What a trial is compared to: runs that are known to be sound, and otherwise the same."""

    async def differs(self, endpoint: Endpoint, seconds: float) -> bool:
        """Whether one more, as slow as the last trial where that took any seconds, differs from what is expected."""


@dataclass
class _EvenlyPaced:
    """A control that takes as long as a trial, since a server's answers may depend on how long a session takes.

    Attributes:
        run: makes the control.
        seconds: how long the fastest one took, without its pauses.
        requests: how many the last one sent.
    """

    run: Run[Any]
    seconds: float = inf
    requests: int = 0

    def pause(self, seconds: float) -> float:
        """How long to wait before each request to take this many seconds in all."""
        return max(0.0, seconds - self.seconds) / max(self.requests - 2, 1)

    async def differs(self, endpoint: Endpoint, seconds: float) -> bool:
        """Whether one that takes so many seconds differs."""
        pause = self.pause(seconds)
        channel, began = Channel(endpoint, pause=pause), time.monotonic()
        difference = await self.run(channel)
        self.requests = channel.sent
        self.seconds = min(self.seconds, time.monotonic() - began - channel.sent * pause)
        return difference is not None


class _Time:
    """How long one comparison may take."""

    def __init__(self, trial: Trial) -> None:
        self._began = time.monotonic()
        self._patience = _PATIENCE * trial.settings.search.profile.patience - trial.learned.doubted

    @property
    def spent(self) -> float:
        """Seconds since it began."""
        return time.monotonic() - self._began

    def allows(self, comparison: Comparison, forms: list[bool], came: list[bool]) -> bool:
        """Whether to go on with a look of which so much came: while there is patience, or hope."""
        if not came and self.spent > _DEADLINE:
            return False
        if self.spent < self._patience:
            return True
        if comparison.trials:
            return comparison.chance <= _PROMISING
        made = forms[: len(came)]
        half = all(2 * made.count(form) >= forms.count(form) for form in (True, False))
        return not half or chance_so_far(made, came) <= _EVEN


async def beyond_chance(
    trial: Trial,
    tried: Run[D],
    *controls: Run[Any] | Control,
    together: bool = False,
    costly: bool = False,
    suspected: bool = False,
) -> D | None:
    """How the trials differ, if they differ more often than the controls and chance is excluded; otherwise None.

    The trial's record becomes that of the last trial that differed. Where `trial.once`, one trial is enough: the fault is
    certain by then, or is no more than a suspicion. Each control is as slow as a trial, and three at the end are not; if
    a trial takes more than two seconds, it is the other way round.

    Args:
        trial: the trial whose suspicion it is.
        tried: makes a run that is suspected to differ.
        controls: make runs that are known to be sound, and otherwise the same; together, one after the other, they are
            one control.
        together: whether several runs may be made at once, which is out of the question if other sessions are what is
            tested. What differs then must also differ one by one.
        costly: whether a trial costs many times what a control does.
        suspected: whether a trial has been seen to differ. If not, one is made first, over the trial's own channel, and
            nothing more unless it differs.
    """
    if not suspected and await tried(trial.channel) is None:
        return None
    if trial.once:
        return await _one(trial, tried)
    looks = COSTLY if costly else LOOKS
    paced = [_EvenlyPaced(control) if callable(control) else control for control in controls]
    found = await _compared(trial, tried, paced, looks, _together(trial)) if together else None
    if together and found is None:
        return None
    # What differs among others alone is no finding of a check that looks at one session: isolation-concurrent has it.
    return await _compared(trial, tried, paced, looks, 1)


def _together(trial: Trial) -> int:
    """How many runs may be made concurrently."""
    known = trial.learned.knowledge
    return _TOGETHER if trial.among or known is None else max(_TOGETHER, known.at_once)


async def _compared(
    trial: Trial, tried: Run[D], controls: Sequence[Control], looks: Sequence[Look], size: int
) -> D | None:
    """The same, with this many runs at once."""
    comparison = Comparison(looks)
    last: D | None = None
    seconds = 0.0  # that the last trial took
    time_of = _Time(trial)

    async def controlled(seconds: float) -> bool:
        return any([await control.differs(trial.gym.endpoint, seconds) for control in controls])

    async def run(form: bool) -> bool:
        nonlocal last, seconds
        if not form:
            return await controlled(seconds if seconds <= _PACED else 0.0)
        began = time.monotonic()
        difference = await _one(trial, tried)
        seconds = time.monotonic() - began
        last = last if difference is None else difference
        return difference is not None

    for form in (True, False):  # to know how long they take
        await run(form)
    await _decide(trial, comparison, run, size, partial(time_of.allows, comparison))
    if comparison.decision is Decision.DIFFERENT and not await _differs_otherwise(controlled, seconds):
        return last
    trial.learned.doubted += time_of.spent
    trial.learned.all_noise += comparison.is_noise
    trial.dismissed.append(str(comparison))
    if comparison.decision is Decision.OPEN:
        trial.caution = (
            f"a difference could not be distinguished from chance, after {trial.learned.doubted:.0f} s of trying in this "
            f"run: {comparison}; use {trial.settings.search.profile.enough}"
        )
    return None


def rules_out_chance(trial: Trial, runs: int) -> bool:
    """Whether it is no chance that all of so many runs before are alike, all after are, and the two differ."""
    trial.tried.comparisons += 1
    return chance_of([(Look(runs, runs, 1, 1), runs, 0)]) <= allowed(trial.tried.comparisons)


async def _differs_otherwise(controlled: Callable[[float], Awaitable[bool]], seconds: float) -> bool:
    """Whether controls differ at another pace than those that were compared: then it is the time that a run takes.

    A control that is made to wait may come later than a trial, which is never kept waiting: on a busy machine a sleep
    is longer than asked for. Of those that do not wait, all must differ, since of noise alone one may.
    """
    if seconds <= _PACED:
        return all([await controlled(0.0) for _ in range(_OTHERWISE)])
    return any([await controlled(seconds) for _ in range(_OTHERWISE)])


async def _decide(
    trial: Trial,
    comparison: Comparison,
    run: Callable[[bool], Awaitable[bool]],
    size: int,
    allows: Callable[[list[bool], list[bool]], bool] = lambda *_: True,
) -> None:
    """Make the runs of each look, so many at once, until it is decided or no more are allowed.

    One that comes to no look has taken nothing of what chance is allowed in a run.
    """
    noisy = trial.learned.all_noise >= _NOISY
    while comparison.decision is Decision.OPEN:
        forms = comparison.order()
        came: list[bool] = []
        while len(came) < len(forms) and allows(forms, came):
            came += await beside([partial(run, form) for form in forms[len(came) :][:size]], size)
            controls = [differs for form, differs in zip(forms, came, strict=False) if not form]
            if noisy and not comparison.trials and len(controls) >= _NOISE and all(controls):
                comparison.decision = Decision.ALIKE
                return
        if len(came) < len(forms):
            return
        if not comparison.number:
            trial.tried.comparisons += 1
            comparison.number = trial.tried.comparisons
        comparison.record(forms, came)


async def waiting_beyond_chance(
    trial: Trial, tried: Run[D], control: Run[Any], at_once: int, looks: Sequence[Look] = SEVENTEEN
) -> D | None:
    """The same for runs that take long because they wait: this many at once, with controls that need not be as slow."""
    if trial.once:
        return await _one(trial, tried)
    comparison = Comparison(looks)
    found: list[D | None] = []

    async def run(form: bool) -> bool:
        difference = await (_one(trial, tried) if form else control(Channel(trial.gym.endpoint)))
        found.extend([difference] if form and difference is not None else [])
        return difference is not None

    await _decide(trial, comparison, run, at_once)
    return found[-1] if comparison.decision is Decision.DIFFERENT else None


async def _one(trial: Trial, tried: Run[D]) -> D | None:
    """One trial; if it differs, its record becomes that of the whole."""
    channel = Channel(trial.gym.endpoint)
    difference = await tried(channel)
    if difference is not None:
        trial.channel.exchanges[:] = channel.exchanges
    return difference
