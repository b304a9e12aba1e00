"""What earlier sessions left shows in a probe of many steps, too, which no two runs take equally long."""

from gym_conformance.contract.dataset_rows import Call
from gym_conformance.gym_under_test import Gym
from gym_conformance.trajectories.trajectory import Trajectory
from gym_conformance.trials.before_and_after import changed, writing
from tests.twins.judging import on_gym
from tests.twins.properties import OneStore


def test_a_probe_of_many_steps_shows_what_was_left() -> None:
    async def look(gym: Gym) -> object:
        probe = Trajectory(gym.rows[0], (Call("list_stock", {"category": None}),) * 15)
        return (await changed(gym, (probe,), [writing(gym, gym.rows[0])])).change

    assert on_gym(OneStore(), look) is not None
