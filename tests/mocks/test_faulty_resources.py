"""Faults between a resources server and who asks it: a trainer's own rollout worker, or the agents of the gym."""

import json
import math
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

from gym_conformance.contract.policy_output import response
from gym_mocks.gym import MockGym
from gym_mocks.policy import PolicyFault, call, scripted_rows
from gym_mocks.reference import DATA, reference_app
from gym_mocks.resources import ResourcesServer, Score, TaskRow
from gym_mocks.rollout_faults import RolloutFault
from gym_mocks.run_helper import AnyTools

ROWS = [json.loads(line) for line in DATA.read_text().splitlines()]


def add(state: list[int], number: int) -> int:
    state.append(number)
    return len(state)


def verify(state: list[int], row: TaskRow) -> float:
    assert row
    return float(len(state) == 2)


ROW = {"responses_create_params": {"input": [{"role": "user", "content": "Add twice."}]}}


@pytest.fixture
def gym() -> Iterator[MockGym]:
    with MockGym(seed=1) as gym:
        gym.add_env(ResourcesServer("adder", tools=[add], verify=verify, state=list), [ROW])
        gym.add_resources("reference", reference_app())
        yield gym


def worker(gym: MockGym) -> Any:
    """A rollout as a worker of a trainer plays it, straight at the resources server."""
    with httpx.Client(base_url=gym.url("adder"), timeout=0.5) as client:
        client.post("/seed_session", json=ROW).raise_for_status()
        for number in (1, 2):
            client.post("/add", json={"number": number}).raise_for_status()
        return client.post("/verify", json={**ROW, "response": response([])}).raise_for_status().json()["reward"]


def by_an_agent(gym: MockGym) -> Any:
    """The same by the gym's own agent, which calls the server without a socket, and asks again where no reply comes."""
    gym.policy.script("any", [[call("add", number=1), call("add", number=2)], "Done."])
    reply = httpx.post(f"{gym.url('adder_simple_agent')}/run", json=gym.rows[0], timeout=2)
    return reply.json()["reward"] if reply.status_code == 200 else reply.status_code


FAULTS: dict[str, tuple[RolloutFault, Any, Any]] = {
    "none": (RolloutFault("lost", times=0), 1.0, 1.0),
    "a tool answers 500": (RolloutFault("status", path="/add", status=500, times=1), httpx.HTTPStatusError, 0.0),
    "a seed is refused": (RolloutFault("status", path="/seed_session", status=503), httpx.HTTPStatusError, 500),
    "a slow verify": (RolloutFault("late", path="/verify", seconds=1.0), httpx.ReadTimeout, 1.0),
    "another reward": (RolloutFault("reward", path="/verify", value=0.25), 0.25, 0.25),
    "a session is lost": (RolloutFault("session", path="/verify"), 0.0, 0.0),
    "a reply is lost": (RolloutFault("lost", path="/add", times=1), httpx.RemoteProtocolError, 0.0),  # added thrice
    "the server dies": (RolloutFault("dies", path="/verify"), httpx.TransportError, httpx.ReadTimeout),
    "of another server": (RolloutFault("status", path="/verify", agent="reference"), 1.0, 1.0),
}


@pytest.mark.parametrize("case", FAULTS)
@pytest.mark.parametrize("play", [worker, by_an_agent])
def test_a_fault_meets_whoever_asks(gym: MockGym, case: str, play: Callable[[MockGym], Any]) -> None:
    fault, for_worker, for_agent = FAULTS[case]
    gym.fail(fault)
    wanted = for_worker if play is worker else for_agent
    if isinstance(wanted, type):
        with pytest.raises(wanted):
            play(gym)
    else:
        assert play(gym) == wanted


def test_a_reward_that_is_no_number_and_a_gym_that_is_well_again(gym: MockGym) -> None:
    """A worker gets the literal NaN; an agent cannot read it."""
    gym.fail(RolloutFault("reward", path="/verify", value=math.nan))
    assert math.isnan(worker(gym))
    assert by_an_agent(gym) == 500
    gym.faults.clear()
    assert worker(gym) == by_an_agent(gym) == 1.0


def test_rates_are_drawn_for_each_attempt_from_the_gyms_seed() -> None:
    def statuses() -> list[int]:
        with MockGym(seed=7) as gym:
            gym.add_resources("reference", reference_app())
            gym.fail(RolloutFault("status", path="/seed_session", status=503, rate=0.5))
            return [httpx.post(f"{gym.url('reference')}/seed_session", json=row).status_code for row in ROWS * 2]

    first = statuses()
    assert first == statuses()
    assert set(first) == {200, 503}


@pytest.mark.parametrize(
    "values", [{"kind": "reward", "path": "/add"}, {"kind": "session"}, {"kind": "dies", "path": "verify"}]
)
def test_what_could_never_happen_is_refused(values: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="nothing of kind"):
        RolloutFault(**values)


def test_a_path_that_nobody_serves_is_refused(gym: MockGym) -> None:
    with pytest.raises(ValueError, match=r"path='/ad' is served by no resources server; /add, /add_stock, "):
        gym.fail(RolloutFault("status", path="/ad"))
    with pytest.raises(ValueError, match="path='/add' is served by no"):
        gym.fail(RolloutFault("status", path="/add", agent="reference"))
    gym.add_resources("any", AnyTools("any"))
    gym.fail(RolloutFault("status", path="/whatever"))


@pytest.mark.parametrize(
    ("path", "agent", "there"),
    [
        ("/run", "addder_simple_agent", "no agent of this gym; there are adder_simple_agent"),
        ("/verify", "adder_simple_agent", "no resources server of this gym; there are adder, reference"),
    ],
)
def test_a_server_that_is_not_there_is_refused(gym: MockGym, path: str, agent: str, there: str) -> None:
    """It could never happen: to requests to a resources server least of all where its agent is named."""
    with pytest.raises(ValueError, match=there):
        gym.fail(RolloutFault("status", path=path, agent=agent))


@pytest.mark.parametrize("fault", [lambda: RolloutFault("late"), lambda: PolicyFault("latency", seconds=-1)])
def test_a_wait_of_no_time_is_refused(fault: Callable[[], object]) -> None:
    with pytest.raises(ValueError, match="is no time to wait"):
        fault()


def test_what_an_author_mistakes_is_told_as_such() -> None:
    with pytest.raises(TypeError, match=r"verify returns a Score, or a number as reward: not \{'reward': 1\}"):
        Score.of({"reward": 1})  # type: ignore[arg-type]  # as an author may return it
    with pytest.raises(
        TypeError, match="verify is given those of state, row, response that its parameters name: not 'task'"
    ):
        ResourcesServer("sums", verify=lambda state, task: float(state == task))
    with pytest.raises(ValueError, match="a script for each row is expected: not 0 for 1 rows"):
        scripted_rows([ROW], [])
