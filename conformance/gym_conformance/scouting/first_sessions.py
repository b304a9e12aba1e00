"""What the first sessions of a run were granted, in a form in which later ones can ask for the same.

Nothing was used up by then: no seat, no stock, no name.
"""

import time
from collections.abc import Sequence
from dataclasses import replace

from gym_conformance.contract.dataset_rows import Call, Row
from gym_conformance.contract.verify_reply import is_number
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


def noted(trajectory: Trajectory, runs: Sequence[Outcome]) -> FirstSession:
    """First sessions that did the same, with the calls that each of them was granted, and what all of them earned."""
    # a server that only grades is sent no calls
    steps = enumerate(zip(trajectory.calls, *(run.calls for run in runs), strict=False))
    refused = frozenset(at for at, (call, *each) in steps if not all(_granted(call, one) for one in each))
    earned = runs[0].reward
    reward = earned if is_number(earned) and all(run.reward == earned for run in runs) else None
    return FirstSession(replace(trajectory, noise=refused), runs[0].began, len(runs), reward)


def _granted(call: Call, step: StepOutcome) -> bool:
    return step.source is not None and grants(step.source, call.arguments)
