"""A server that has so many places and no more is told with their number; one that has enough is not."""

import pytest

from gym_conformance.checks.wearing_out import resources_seeds
from gym_conformance.findings import Finding, Verdict
from gym_conformance.options import Options
from gym_conformance.plugin.target_run import Run
from gym_mocks.reference import ReferenceServer
from gym_mocks.serving import serve
from gym_mocks.wire import HttpRefusal
from tests.twins.twin import Json, dataset


class HasPlaces(ReferenceServer):
    def __init__(self, places: int) -> None:
        super().__init__()
        self.places = places

    async def seed(self, session_id: str, row: Json) -> Json:
        self.places -= 1
        if self.places < 0:
            raise HttpRefusal(503, "no place is left")
        return await super().seed(session_id, row)


def judge(places: int) -> Finding:
    with serve(HasPlaces(places)) as url:
        run = Run(url, Options(url=url), dataset())
        try:
            (finding,) = run.judge(resources_seeds)
        finally:
            run.close()
    return finding


@pytest.mark.parametrize("places", [50, 100])
def test_a_fixed_number_of_places_is_told_with_the_number(places: int) -> None:
    finding = judge(places)
    assert finding.verdict is Verdict.FAIL
    assert f"the first {places} seeds" in finding.expected
    assert "no place is left" in finding.actual


def test_a_server_with_places_enough_passes() -> None:
    assert judge(10_000).verdict is Verdict.PASS
