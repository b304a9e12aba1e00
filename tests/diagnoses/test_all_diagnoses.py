"""Diagnoses are tried in order; the first that holds decides, and what verify lacks for good is not looked for again."""

import asyncio
from collections.abc import Sequence

import httpx

from gym_conformance.contract.openapi import Api, ServerKind
from gym_conformance.diagnoses.all_diagnoses import Diagnoses
from gym_conformance.diagnoses.diagnosis import Case, Missing, TryAgain
from gym_conformance.gym_under_test import Gym
from gym_conformance.session.channel import Endpoint
from gym_conformance.session.exchange import Exchange, Request
from gym_conformance.session.transport import Transport
from gym_conformance.trials.bench import Bench

VERIFIED = (Exchange(1, Request("POST", "/verify")),)


class Fixed:
    """Suspects and finds what it is told to."""

    def __init__(self, found: Missing | TryAgain | None, *, suspects: bool = True) -> None:
        self.found, self.suspicious = found, suspects
        self.asked = 0

    def suspects(self, case: Case) -> bool:  # noqa: ARG002 - fixed
        return self.suspicious

    async def confirm(self, case: Case) -> Missing | TryAgain | None:  # noqa: ARG002 - fixed
        self.asked += 1
        return self.found


def explained(diagnoses: Diagnoses, exchanges: Sequence[Exchange] = ()) -> Missing | TryAgain | None:
    async def explain() -> Missing | TryAgain | None:
        endpoint = Endpoint("http://127.0.0.1", Transport(httpx.URL("http://127.0.0.1"), deadline=1.0), 1.0)
        return await diagnoses.explain(Case(Bench(Gym(endpoint, Api(), ServerKind.OTHER, "")), exchanges))

    return asyncio.run(explain())


def test_the_first_that_holds_decides() -> None:
    unasked, silent = Fixed(Missing("x"), suspects=False), Fixed(None)
    first, second = Fixed(TryAgain("busy")), Fixed(Missing("y"))
    assert explained(Diagnoses([unasked, silent, first, second])) == TryAgain("busy")
    assert [one.asked for one in (unasked, silent, first, second)] == [0, 1, 1, 0]
    assert explained(Diagnoses([silent])) is None


def test_what_verify_lacks_for_good_is_not_looked_for_again() -> None:
    ray = Fixed(Missing("Ray", lasts=True))
    diagnoses = Diagnoses([ray])
    assert explained(diagnoses, VERIFIED) == explained(diagnoses, VERIFIED) == Missing("Ray", lasts=True)
    assert (ray.asked, diagnoses.needs) == (1, "Ray")
    assert explained(diagnoses) == Missing("Ray", lasts=True)
    assert ray.asked == 2
