"""What a call is judged by is what was sent."""

import asyncio
from pathlib import Path
from typing import Any, Final, Literal

import httpx
import pytest

from gym_conformance.checks.calls import calls_valid
from gym_conformance.contract.dataset_rows import Call, Row, Source
from gym_conformance.gym_under_test import recognise
from gym_conformance.session.channel import Endpoint
from gym_conformance.session.transport import Transport
from gym_conformance.trajectories.trajectory import Reference, Schedule, Trajectory
from gym_conformance.trials.bench import Bench
from gym_conformance.trials.ending import Violation
from gym_conformance.trials.trial import Trial
from gym_mocks.resources import ResourcesServer
from gym_mocks.serving import serve

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

    async def attempted(url: str) -> None:
        assert calls_valid.attempt
        endpoint = Endpoint(url, Transport(httpx.URL(url), deadline=5.0), 5.0)
        try:
            row = Row({"responses_create_params": {"input": "Go on.", "tools": TOOLS}}, Source(Path("rows.jsonl"), 1))
            given = Reference(0, ("box",), otherwise="blue").as_json()
            trajectory = Trajectory(row, (Call("find_box", {}), Call("open_box", {"box": given})))
            await calls_valid.attempt(Trial(Bench(await recognise(endpoint, (row,), ()))), Schedule((trajectory,)))
        finally:
            await endpoint.transport.aclose()

    server = ResourcesServer("boxes", tools=[find_box, open_box], verify=lambda: 1.0)
    with serve(server) as url, pytest.raises(Violation, match="open_box takes what its definition allows"):
        asyncio.run(attempted(url))
