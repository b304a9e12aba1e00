"""What the first sessions of a run were granted, in a form in which later ones can ask for the same.

Nothing was used up by then: no seat, no stock, no name.
"""

import time
from dataclasses import replace

from gym_conformance.contract.dataset_rows import Call, Row
from gym_conformance.session.contracts import Session
from gym_conformance.session.exchange import Reply, reply_of
from gym_conformance.session.refusals import grants
from gym_conformance.trajectories.followed import linked
from gym_conformance.trajectories.outcome import Outcome, StepOutcome
from gym_conformance.trajectories.trajectory import FirstSession, Trajectory


class Noted:
    """A session that notes its calls, and what came of each."""

    def __init__(self, session: Session, row: Row) -> None:
        self._session, self._row = session, row
        self._played: list[tuple[Call, Reply]] = []
        self._began: list[float] = []

    async def seed(self) -> None:
        """Seed it."""
        self._began.append(time.monotonic())
        await self._session.seed()

    async def call(self, call: Call) -> Reply:
        """Make a call."""
        self._began.append(time.monotonic())
        self._played.append((call, reply_of(await self._session.call(call))))
        return self._played[-1][1]

    @property
    def first_session(self) -> FirstSession:
        """What was done so far."""
        calls = linked(self._row, [(call, reply.said) for call, reply in self._played])
        refused = frozenset(at for at, (call, reply) in enumerate(self._played) if not grants(reply, call.arguments))
        return FirstSession(Trajectory(self._row, calls, refused), tuple(self._began))


def noted(trajectory: Trajectory, outcome: Outcome) -> FirstSession:
    """A session that was run alone, with the calls that it was granted, and what it earned."""
    steps = enumerate(zip(trajectory.calls, outcome.calls, strict=False))  # a server that only grades is sent none
    refused = frozenset(at for at, (call, step) in steps if not granted(call, step))
    return FirstSession(replace(trajectory, noise=refused), outcome.began, reward=outcome.earned)


def granted(call: Call, step: StepOutcome) -> bool:
    """Whether the call was granted."""
    return step.source is not None and grants(step.source, call.arguments)
