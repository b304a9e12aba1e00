"""Whether calls that are made at once in one session come to what they do one after the other."""

import asyncio
import json
import re
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from gym_conformance.contract.dataset_rows import Call
from gym_conformance.session.channel import Channel
from gym_conformance.session.contracts import CookieHabit
from gym_conformance.session.exchange import reply_of
from gym_conformance.trajectories.execute import TrajectoryRun
from gym_conformance.trajectories.outcome import Difference, StepOutcome
from gym_conformance.trajectories.trajectory import Schedule, Trajectory
from gym_conformance.trials.chance import beyond_chance
from gym_conformance.trials.ending import Violation
from gym_conformance.trials.trial import Trial

#: Runs that show what differs anyway.
_CONTROLS: Final = 3

#: A word or a number of a reply, whatever it is written in.
_WORD: Final = re.compile(r"[\w.+-]+")

_LOST: Final = (
    "Each call reads the state, awaits something, and writes the state back, so that one call undoes the other: hold a lock "
    "for the session while a call changes it, or change it without an await in between."
)


@dataclass(frozen=True)
class AtOnce:
    """A trajectory in whose midst some calls of one tool are made at once; then come reads."""

    trajectory: Trajectory
    first: int
    calls: int

    async def made(self, trial: Trial, channel: Channel, *, seconds: float | None = None, back: bool = False) -> "Came":
        """What they come to one after the other, the last first where `back`, or at once where they have so many seconds.

        The reads after them come as late in either case.
        """
        rollout = TrajectoryRun(trial.gym, channel, self.trajectory, CookieHabit.KEEPING)
        await rollout.step(1 + self.first)
        calls = self.trajectory.calls[self.first : self.first + self.calls]
        sent = [Call(call.name, rollout.arguments(call)) for call in calls]
        began = time.monotonic()
        if seconds is None:
            in_order = sent[::-1] if back else sent
            came = [StepOutcome.of_call(each, reply_of(await rollout.session.call(each))) for each in in_order]
            # each reply in its call's place: a read may ask for what one of them gave
            came = came[::-1] if back else came
        else:
            exchanges = await asyncio.gather(*map(rollout.session.call, sent))
            came = [StepOutcome.of_call(each, reply_of(one)) for each, one in zip(sent, exchanges, strict=True)]
            await asyncio.sleep(max(0.0, began + seconds - time.monotonic()))
        took = time.monotonic() - began
        rollout.replies += [step.body for step in came]
        shown = []
        for call in self.trajectory.calls[self.first + self.calls :]:
            reply = reply_of(await rollout.session.call(Call(call.name, rollout.arguments(call))))
            shown.append(StepOutcome.of_call(call, reply))
            rollout.replies.append(shown[-1].body)
        await rollout.session.close()
        return Came(sum(step.is_refused for step in came), tuple(shown), took)

    async def suspected(self, trial: Trial) -> list["AtOnce"]:
        """It, where the reads show something else where the calls are made at once."""
        in_turn = Alike([await self.made(trial, Channel(trial.gym.endpoint)) for _ in range(2)])
        at_once = await self.made(trial, Channel(trial.gym.endpoint), seconds=in_turn.first.seconds)
        return [self] if in_turn.differs(at_once) else []


@dataclass(frozen=True)
class Came:
    """How many of the calls were refused, what the reads after them show, and how long the calls took."""

    refused: int
    shown: tuple[StepOutcome, ...]
    seconds: float

    @property
    def words(self) -> Sequence[Counter[str]]:
        """How often each word and number stands in each reply, wherever: calls at once have no order."""
        return [Counter(map(_rounded, _WORD.findall(_written(step.body)))) for step in self.shown]


class Alike:
    """Runs of the same: what is always as in the first of them, and what is not."""

    def __init__(self, runs: Sequence[Came]) -> None:
        self.first = runs[0]
        counted = list(zip(*(run.words for run in runs), strict=True))
        self._stable = [[word for word in each[0] if len({words[word] for words in each}) == 1] for each in counted]
        self._many = [len({words.total() for words in each}) == 1 for each in counted]

    def differs(self, came: Came) -> Difference | None:
        """How the reads show something else; None where more calls were refused, so that less was done."""
        if came.refused > self.first.refused:
            return None
        for at, (words, known_words) in enumerate(zip(came.words, self.first.words, strict=True)):
            other_count = self._many[at] and words.total() != known_words.total()
            if other_count or any(words[word] != known_words[word] for word in self._stable[at]):
                step = self.first.shown[at]
                return Difference((at,), step.name, step.body, came.shown[at].body)
        return None


def _written(body: Any) -> str:
    return body if isinstance(body, str) else json.dumps(body, ensure_ascii=False)


def _rounded(word: str) -> str:
    """Sums of floats hang on the order."""
    try:
        return repr(round(float(word), 6))
    except ValueError:
        return word


async def expect_none_lost(trial: Trial, one: AtOnce) -> None:
    """Require that reads after calls made at once show what they do where these are made one after the other.

    Where it matters which of them comes first, or fewer of them are taken at once, nothing is compared.
    """
    orders = [await one.made(trial, Channel(trial.gym.endpoint), back=bool(at % 2)) for at in range(2 * _CONTROLS)]
    alike = Alike(orders[::2])
    if any(alike.differs(back) or back.refused != alike.first.refused for back in orders[1::2]):
        return

    async def at_once(channel: Channel) -> Difference | None:
        return alike.differs(await one.made(trial, channel, seconds=alike.first.seconds))

    async def in_turn(channel: Channel) -> Difference | None:
        return alike.differs(await one.made(trial, channel))

    if found := await beyond_chance(trial, at_once, in_turn, together=True):
        trial.schedule = Schedule((one.trajectory,), concurrent=True)
        tool = one.trajectory.calls[one.first].name
        raise Violation(
            f"{found.answer}, as after {one.calls} calls of {tool} one after the other",
            f"{found.actual!r} after the same at once, in one session",
            _LOST,
        )
