"""What calls meet after others have been made with each other's values."""

from dataclasses import dataclass, field
from typing import Any

import pytest

from gym_conformance.findings import Verdict
from gym_mocks.resources import ResourcesServer
from tests.twins.judging import found_by
from tests.twins.twin import recorded_in_each
from tests.twins.unrecorded import rows_of


@dataclass
class Staff:
    boss_of: dict[str, str] = field(default_factory=dict)


def office(*, careful: bool) -> ResourcesServer:
    """Who works for whom; unless it is `careful`, one may work for oneself, and the walk up to the top never ends."""

    def chain(state: Staff, person_id: str) -> list[str]:
        """List a person, the boss, the boss's boss, and so on."""
        boss = state.boss_of.get(person_id)
        return [person_id, *(chain(state, boss) if boss else ())]

    def appoint(state: Staff, person_id: str, boss_id: str) -> dict[str, Any]:
        """Make one person the boss of another."""
        if careful and person_id in chain(state, boss_id):
            return {"error": f"{boss_id} works for {person_id}"}
        state.boss_of[person_id] = boss_id
        return {"appointed": boss_id}

    return ResourcesServer(
        "office", tools=[appoint, chain], verify=lambda state: float(bool(state.boss_of)), state=Staff
    )


@pytest.mark.parametrize(("careful", "verdict"), [(False, Verdict.FAIL), (True, Verdict.PASS)])
def test_a_call_that_crashes_on_what_crossed_values_led_to_is_told(*, careful: bool, verdict: Verdict) -> None:
    server = office(careful=careful)
    chain = ("chain", {"person_id": "ann"}, ["ann", "bob"])
    appoint = ("appoint", {"person_id": "ann", "boss_id": "bob"}, {"appointed": "bob"})
    [finding] = found_by("calls-valid", server, recorded_in_each(rows_of(server), appoint, chain, reward=1.0))
    assert finding.verdict is verdict, finding.actual
