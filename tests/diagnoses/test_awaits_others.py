"""A verify that waits for rollouts of other rows says so in its log, and is then no verify that hangs."""

import asyncio

import httpx
import pytest

from gym_conformance.contract.openapi import Api, ServerKind
from gym_conformance.diagnoses.awaits_others import AwaitsOthers
from gym_conformance.diagnoses.diagnosis import Case, Missing
from gym_conformance.gym_under_test import Gym
from gym_conformance.session.channel import Endpoint
from gym_conformance.session.exchange import Exchange, Request
from gym_conformance.session.server_fault import Fault, ServerFault
from gym_conformance.session.transport import Transport
from gym_conformance.trials.bench import Bench
from gym_conformance.trials.launched import TimesAsked

BUFFERED = "WARNING:__main__:CritPt verify #1: batch 0 at 1/70 submissions buffered (problem_id=Challenge_1_main)"


def _explained(lines: list[str], path: str = "/verify", *, outside: int = 0) -> Missing | None:
    async def explained() -> Missing | None:
        endpoint = Endpoint("http://127.0.0.1", Transport(httpx.URL("http://127.0.0.1"), deadline=1.0), 1.0)
        asked = Exchange(1, Request("POST", path))
        fault = ServerFault(Fault.HANG, "nothing")
        fault.exchange = asked
        bench = Bench(Gym(endpoint, Api(), ServerKind.OTHER, ""))
        case = Case(bench, [asked], fault, TimesAsked(outside=outside), log=lambda: lines)
        diagnosis = AwaitsOthers()
        return await diagnosis.confirm(case) if diagnosis.suspects(case) else None

    return asyncio.run(explained())


def test_what_it_prints_is_told() -> None:
    found = _explained(["started", BUFFERED, "INFO: 127.0.0.1 - GET /"])
    assert found
    assert found.lasts
    assert found.needs == f"rollouts of other rows, without which POST /verify does not answer; it printed: {BUFFERED}"


@pytest.mark.parametrize(
    "line", ["scoring 1/70", "70/70 submissions buffered", "waiting for 10.0.0.1/24", "waiting for the lock", ""]
)
def test_other_lines_say_nothing_of_it(line: str) -> None:
    assert _explained([line]) is None


def test_nor_do_other_requests_that_hang() -> None:
    assert _explained([BUFFERED], "/search") is None
    assert _explained([BUFFERED], outside=1) is None
