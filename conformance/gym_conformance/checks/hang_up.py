"""Faults on the wire: a client that hangs up in the middle of a request, or loses its reply, and sends it again."""

from dataclasses import dataclass
from functools import partial
from typing import Final

from gym_conformance.checks.chance import beyond_chance
from gym_conformance.checks.check import Level, check
from gym_conformance.checks.ending import NotApplicable, Violation
from gym_conformance.checks.needs import RESOURCES_SERVER, SCORE
from gym_conformance.checks.property import knowledge_of
from gym_conformance.checks.trial import Trial
from gym_conformance.contract.statuses import is_refusal
from gym_conformance.session.channel import Channel
from gym_conformance.session.hanging_up import HangingUp
from gym_conformance.trajectories.execute import run
from gym_conformance.trajectories.first import known
from gym_conformance.trajectories.in_flight import Known, known_alone
from gym_conformance.trajectories.outcome import Difference

#: Trajectories, and calls of each, in whose midst the client hangs up.
_TRAJECTORIES, _CALLS = 2, 3

#: Seconds after which it hangs up; None for when the reply begins.
_AFTER: Final = (0.002, 0.02, None)

_HINT: Final = (
    "The handler is cancelled where it awaits something, with half of its work done or a lock in its hands: change the "
    "state in one go, after the last await, and release in `finally` (`async with`)."
)


@dataclass(frozen=True)
class _Disturbed:
    """A trajectory on whose request number `at` the client hangs up; as it is alone, and where that request acts twice."""

    once: Known
    twice: Known
    at: int
    after: float | None

    async def run(self, trial: Trial, channel: Channel) -> Difference | None:
        """Where a disturbed run is neither the one nor the other."""
        hanging = HangingUp(channel.endpoint, self.at, self.after)
        try:
            came = await run(trial.gym, hanging, self.once.trajectory)
        finally:
            channel.exchanges[:] = hanging.exchanges
        if any(is_refusal(step.status) for step in came.steps):
            return None  # in form: the client knows
        doubled = {one.place[0] for one in self.twice.differences(came)}
        return next((one for one in self.once.differences(came) if one.place[0] in doubled), None)

    async def alone(self, trial: Trial, channel: Channel) -> Difference | None:
        """Where an undisturbed run is not as it was: the control."""
        return self.once.difference(await run(trial.gym, channel, self.once.trajectory))


@check(
    "wire-hang-up",
    Level.SHOULD,
    "A request whose client hangs up SHOULD act wholly or not at all",
    why="connections break in every long run; the client sends again, and the episode goes on from a state that no policy "
    "made.",
    needs=[RESOURCES_SERVER, SCORE],
)
async def wire_hang_up(trial: Trial, _: object) -> None:
    """Hangs up on the seed, on calls and on the verify of two trajectories, at once, soon, and when the reply begins.

    Each time it sends the request again, and goes on. What comes must be as alone, or as where the request acts twice; a
    4xx will do, too. Runs with `--gym-load` only, over plain HTTP.

    Our inference: `request` in nemo_gym/server_utils.py sends again on a lost connection (every version), and from 0.7.0 on
    a middleware cancels the handler of a request whose client is gone.
    """
    if not trial.gym.endpoint.url.startswith("http://"):
        raise NotApplicable("it hangs up on plain HTTP only")
    tried = 0
    for trajectory in known(await knowledge_of(trial))[:_TRAJECTORIES]:
        if once := await known_alone(trial.gym, trajectory):
            for disturbed in await _disturbances(trial, once):
                await _expect_whole(trial, disturbed)
                tried += 1
    if not tried:
        raise NotApplicable("no episode that was tried ends well and comes to the same reward twice, alone")
    trial.note = f"hung up {tried} times"


async def _disturbances(trial: Trial, once: Known) -> list[_Disturbed]:
    """Each request that the client hangs up on, in each way; a call only if what it does twice is known, too."""
    calls, found = once.trajectory.calls, [(0, once), (len(once.trajectory.calls) + 1, once)]
    for at, call in enumerate(calls[:_CALLS]):
        # its first reply is lost, and so no part of what comes
        if twice := await known_alone(trial.gym, once.trajectory.with_noise(at, call)):
            found.append((at + 1, twice))
    return [_Disturbed(once, twice, at, after) for at, twice in found for after in _AFTER]


async def _expect_whole(trial: Trial, disturbed: _Disturbed) -> None:
    if await disturbed.run(trial, trial.channel) is None:
        return
    found = await beyond_chance(trial, partial(disturbed.run, trial), partial(disturbed.alone, trial))
    if found:
        raise Violation(
            f"{found.step} answers {found.expected!r}, as alone, or as where request {disturbed.at + 1} acts twice",
            f"{found.actual!r}, where the client hung up on it and sent it again",
            _HINT,
        )
