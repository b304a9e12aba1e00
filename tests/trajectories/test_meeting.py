"""Sessions that run at once and meet at their verify."""

from pathlib import Path

import pytest

from gym_conformance.contract.dataset_rows import Call
from gym_conformance.gym_under_test import Gym
from gym_conformance.session.channel import Channel
from gym_conformance.trajectories.execute import run_schedule
from gym_conformance.trajectories.trajectory import Schedule, Trajectory, dump, parse
from gym_mocks.reference import ReferenceServer
from gym_mocks.wire import HttpReply, HttpRequest
from tests.twins.judging import on_gym
from tests.twins.twin import dataset


class Listens(ReferenceServer):
    """What it is asked, in its order."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[str] = []

    async def dispatch(self, request: HttpRequest) -> HttpReply:
        self.asked.append(request.path)
        return await super().dispatch(request)


def sessions() -> tuple[Trajectory, ...]:
    """A busy one and idle ones."""
    row = dataset().rows[0]
    return (Trajectory(row, (Call("list_stock", {"category": None}),) * 8), *[Trajectory(row)] * 3)


@pytest.mark.parametrize("meeting", [True, False])
def test_those_that_meet_verify_when_all_calls_are_made(meeting: bool) -> None:
    async def run(gym: Gym) -> None:
        server.asked.clear()
        await run_schedule(gym, Channel(gym.endpoint), Schedule(sessions(), concurrent=True, meeting=meeting))

    server = Listens()
    on_gym(server, run)
    assert (server.asked[-4:] == ["/verify"] * 4) is meeting


def test_that_they_meet_is_kept_for_a_replay() -> None:
    text = dump(Schedule(sessions(), concurrent=True, meeting=True), "isolation-concurrent")
    check, schedule = parse(text, Path("replay.json"))
    assert (check, schedule.concurrent, schedule.meeting) == ("isolation-concurrent", True, True)
    assert not parse(text.replace('"meeting": true,', ""), Path("older.json"))[1].meeting
