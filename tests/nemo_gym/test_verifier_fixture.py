"""nemo-gym's own fixture for verifiers and our checks agree on every twin that the fixture can see.

A fixture is cases that authors write by hand: requests with the reward that they earn. Ours is made of the reference's
rows, of their recorded rollouts, and of the outputs that our checks send: so it sees as much as such a fixture can.
"""

import asyncio
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from nemo_gym.verifier_fixture import VerifierFixture, VerifierFixtureError, exercise_verifier_fixture
from pydantic import BaseModel

from gym_conformance.contract.policy_output import (
    DO_NOTHING,
    SLIPS,
    degenerate_outputs,
    function_call,
    message,
    response,
)
from gym_conformance.findings import Verdict
from gym_mocks.reference import ReferenceServer
from gym_mocks.wire import HttpReply, HttpRequest
from gym_mocks.wire.client import ASGIApp
from tests.twins import innocent, repeat, reward, verify
from tests.twins.judging import ended, judge
from tests.twins.properties import RandomReward
from tests.twins.twin import Twin, dataset, twin

pytestmark = [pytest.mark.nemo_gym, pytest.mark.filterwarnings("ignore")]

#: Twins that execute the recorded calls: of another sort of server, an author would write other cases.
TWINS = tuple(
    twin
    for twin in (
        *(*reward.TWINS, *verify.TWINS, *repeat.TWINS, *innocent.TWINS),
        twin("a random reward", "repeat-deterministic", RandomReward),
    )
    if twin.data.rollouts
)

#: What it does not see, and why. In none of these does it say that all is well: it does not look there.
UNSEEN = {
    "the same work written down in another way: each case stands for itself, and is compared with no other": {
        *("reads call ids", "reads white space", "reads the first item", "reads the first part", "counts calls"),
        "reads the order of keys where calls are made",
    },
    "what verify echoes: of the reply it reads the reward alone": {
        *("echo without the request", "echo without the reasoning", "echo without token fields", "row fields dropped"),
        *("log probabilities rounded", "the echo holds no surrogates", "a body may have a megabyte"),
        *("a text in the reply is cut within a character", "a number beside the reward overflows"),
        *(
            "a component left out where it is 0",
            "components left out where all are 0",
            "a body that is decoded piece by piece",
            "a body that is read as Latin-1",
            "an echo in ASCII alone",
            "an empty object is echoed as a list",
            "integers are echoed as floats",
        ),
    },
    "what else the server answers: it asks for verify alone": {
        *(
            "calls that count",
            "one state for each task",
            "the newest state for each task",
            "other replies where they are compressed",
            "an episode of so many calls, and their number",
            "stateless and does not say so",
        ),
    },
    "answers that no case gives: each is written by hand": {
        *("an answer of which two words are left crashes verify", "many words cost what no component says"),
        *("a digit that is no number crashes verify", "an answer of zero crashes verify"),
        "an answer in many brackets crashes verify",
        "believes that it is solved",
    },
    "requests without a session: each case is one rollout": {"verify needs a cookie", "verify needs a known session"},
    "outputs that nemo-gym's own types refuse: in process they fail before verify is asked": {"stock types"},
}


class TakesAnything(ReferenceServer):
    """Scores what is no response at all with 0."""

    async def dispatch(self, request: HttpRequest) -> HttpReply:
        reply = await super().dispatch(request)
        return HttpReply.json({"reward": 0.0}) if (request.path, reply.status) == ("/verify", 422) else reply


class Rollout(BaseModel):
    """What a case asks: a row, the calls to make in its session, and the response to verify."""

    row: dict[str, Any]
    calls: list[tuple[str, Any]] = []
    response: Any


async def invoke(server: Any, asked: BaseModel) -> Any:
    """Play a case as an agent does; the verify's reply.

    Raises:
        RuntimeError: a status that is not 2xx, with its reply.
    """
    assert isinstance(asked, Rollout)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(server), base_url="http://gym") as client:
        seeded = await client.post("/seed_session", json=asked.row)
        client.cookies.clear()  # an agent sends what it got, as it got it
        cookie = {"cookie": seeded.headers.get_list("set-cookie")[0].partition(";")[0]}
        for tool, arguments in asked.calls:
            await client.post(f"/{tool}", json=arguments, headers=cookie)
            client.cookies.clear()
        reply = await client.post("/verify", json={**asked.row, "response": asked.response}, headers=cookie)
    if not reply.is_success:
        raise RuntimeError(f"status {reply.status_code}: {reply.text}")
    return reply.json()


def cases() -> Iterator[dict[str, Any]]:
    """One case a line, as nemo-gym reads them."""
    data = dataset()
    for row in data.rows:
        plain = {"row": dict(row.data), "response": DO_NOTHING.response}
        recorded = next(rollout for rollout in data.rollouts if rollout.belongs_to(row))
        calls = [(call.name, call.arguments) for call in recorded.calls]
        solved = {**plain, "calls": calls, "response": recorded.response}
        yield {"name": f"{row} solved", "kind": "full_reward", "request": solved, "expected_reward": 1.0}
        yield {"name": f"{row} again", "kind": "determinism", "request": solved, "expected_reward": 1.0}
        yield {"name": f"{row} nothing", "kind": "zero_reward", "request": plain, "expected_reward": 0.0}
        none = {**plain, "response": {}}
        yield {"name": f"{row} no response", "kind": "malformed", "request": none, "expected_error": "status 422"}
    worthless = {str(output): output.response for output in degenerate_outputs("add_stock") if output.stock}
    for slip, arguments in SLIPS.items():
        slips = [function_call(tool.name, arguments, f"call_{at}") for at, tool in enumerate(row.tools)]
        worthless[f"calls with {slip}"] = response(slips)
    worthless["a boast"] = response([message("I have completed the task with success.")])
    for name, said in worthless.items():
        asked = {**plain, "response": said}
        yield {"name": name, "kind": "zero_reward", "request": asked, "expected_reward": 0.0}


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The fixture's file."""
    file = tmp_path_factory.mktemp("fixture") / "verifier_cases.jsonl"
    file.write_text("".join(json.dumps(case) + "\n" for case in cases()))
    return file


def objection(make: Callable[[], ASGIApp], path: Path) -> str:
    """What the fixture finds first; '' where it finds nothing."""

    async def reseed(*_: object) -> None:
        """Nothing in the reference is drawn at random."""

    fixture = VerifierFixture(make, Rollout, path, invoke, reseed)
    try:
        asyncio.run(exercise_verifier_fixture(fixture, reward_range=(0.0, 1.0), determinism="seeded"))
    except VerifierFixtureError as error:
        return str(error)
    except OverflowError as error:  # its own fault: math.isfinite takes no integer that is longer than a float
        return f"it ends with {error!r}"
    return ""


def test_it_has_nothing_to_say_of_the_reference(path: Path) -> None:
    assert objection(ReferenceServer, path) == ""


@pytest.mark.parametrize("twin", TWINS, ids=lambda twin: twin.name.replace(" ", "-"))
def test_it_and_we_agree(twin: Twin, path: Path) -> None:
    """What we say of each twin is what it declares, to which tests/twins/test_matrix.py holds it."""
    objected = objection(twin.make, path)
    assert bool(objected) == (bool(twin.fails) and twin.name not in set().union(*UNSEEN.values())), objected


def test_where_we_differ(path: Path) -> None:
    """A request that is none must raise, it says; ours asks for no more than that verify does not crash.

    It is right about its own servers, whose request model refuses such a body before verify runs. Over HTTP a server may
    have a wider model on purpose: what it then scores is its author's, and costs no rollout.
    """
    assert "did not raise an error" in objection(TakesAnything, path)
    found = judge(TakesAnything(), checks=["verify-malformed"])
    assert ended(found, Verdict.PASS) == {"verify-malformed"}
