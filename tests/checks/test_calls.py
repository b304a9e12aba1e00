"""What a call is judged by is what was sent."""

from pathlib import Path
from typing import Any, Final, Literal

import pytest

from gym_conformance.checks.calls.generated import calls_valid
from gym_conformance.contract.dataset_rows import Call, Row, Source
from gym_conformance.dataset import Dataset
from gym_conformance.findings import Cause
from gym_conformance.gym_under_test import Gym
from gym_conformance.trajectories.trajectory import Reference, Schedule, Trajectory
from gym_conformance.trials.bench import Bench
from gym_conformance.trials.ending import Violation
from gym_conformance.trials.trial import Trial
from gym_mocks.reference import ReferenceServer
from gym_mocks.resources import ResourcesServer
from gym_mocks.wire import HttpReply, HttpRequest
from tests.twins.cookies import CookieOnce
from tests.twins.judging import found_by, on_gym

BOX: Final = {"type": "object", "properties": {"box": {"enum": ["red", "blue"]}}, "required": ["box"]}
TOOLS: Final = [
    {"type": "function", "name": "find_box", "parameters": {"type": "object", "properties": {}}},
    {"type": "function", "name": "open_box", "parameters": BOX},
]


def find_box() -> dict[str, Any]:
    """Find a box."""
    return {"box": "green"}


def open_box(box: Literal["red"]) -> str:
    """Open a box."""
    return box


def test_what_stands_in_for_a_reply_s_value_is_held_to_the_definition() -> None:
    """The definition refuses what another tool returned, so that `blue` is sent in its place: it must be taken."""
    row = Row({"responses_create_params": {"input": "Go on.", "tools": TOOLS}}, Source(Path("rows.jsonl"), 1))

    async def attempted(gym: Gym) -> None:
        assert calls_valid.attempt
        given = Reference(0, ("box",), otherwise="blue").as_json()
        trajectory = Trajectory(row, (Call("find_box", {}), Call("open_box", {"box": given})))
        await calls_valid.attempt(Trial(Bench(gym)), Schedule((trajectory,)))

    server = ResourcesServer("boxes", tools=[find_box, open_box], verify=lambda: 1.0)
    with pytest.raises(Violation, match="open_box takes what its definition allows"):
        on_gym(server, attempted, Dataset((row,)))


class CrashesWithoutSession(CookieOnce):
    """After a lost cookie, each call crashes."""

    async def dispatch(self, request: HttpRequest) -> HttpReply:
        if request.path.endswith("_stock") and not request.headers.get("cookie"):
            return HttpReply(500, b'"no session"')
        return await super().dispatch(request)


@pytest.mark.parametrize("check", ["calls-valid", "calls-invalid"])
def test_a_crash_after_a_lost_session_is_laid_to_the_loss(check: str) -> None:
    """Its author would look for a value that the tool chokes on, and find none."""
    (crash,) = found_by(check, CrashesWithoutSession())
    assert crash.cause is Cause.LOST_SESSION
    assert "set no cookie" in crash.hint


class Elsewhere(ReferenceServer):
    """A proxy that answers http with a redirect to https."""

    async def dispatch(self, request: HttpRequest) -> HttpReply:
        return HttpReply(308, headers=(("location", f"https://gym.example{request.path}"),))


def test_a_redirected_seed_is_laid_to_the_redirect() -> None:
    """Not to a request model, which never saw the row."""
    refused = found_by("seed-accepts-rows", Elsewhere())[0]
    assert refused.actual == "status 308 to https://gym.example/seed_session"
    assert refused.hint.startswith("It redirects")
