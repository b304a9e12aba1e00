"""Reads whose names do not sound like one."""

import asyncio
from dataclasses import dataclass
from typing import Any

import pytest

from gym_conformance.findings import Verdict
from gym_mocks.resources import ResourcesServer
from tests.twins.judging import found_by
from tests.twins.twin import recorded_in_each
from tests.twins.unrecorded import rows_of


@dataclass
class Account:
    held: int = 0


def broker(*, careful: bool, shows: bool) -> ResourcesServer:
    """Shares are bought; unless it is `careful`, each purchase writes back what was held a moment ago.

    What is held is said by a read if it `shows` it, or else by the next purchase alone.
    """

    async def buy(state: Account, shares: int) -> dict[str, Any]:
        """Buy shares."""
        held = state.held
        await asyncio.sleep(0.02)
        state.held = (state.held if careful else held) + shares
        return {"bought": shares, "held": 0 if shows else state.held}

    def positions(state: Account) -> dict[str, Any]:
        """What is held."""
        return {"held": state.held if shows else 0}

    return ResourcesServer("broker", tools=[buy, positions], verify=lambda: 0.0, state=Account)


@pytest.mark.parametrize("shows", [True, False])
@pytest.mark.parametrize(("careful", "verdict"), [(True, Verdict.PASS), (False, Verdict.FAIL)])
def test_purchases_at_once_are_all_made(*, careful: bool, verdict: Verdict, shows: bool) -> None:
    server = broker(careful=careful, shows=shows)
    calls: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
        ("buy", {"shares": 3}, {"bought": 3}),
        ("positions", {}, {"held": 3}),
    ]
    data = recorded_in_each(rows_of(server), *calls)
    [finding] = found_by("calls-complete", server, data)
    assert finding.verdict is verdict, (finding.actual, finding.reason)
