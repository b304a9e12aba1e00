"""What is missing only where the server scores is named as missing, and is no violation."""

from typing import Any

import pytest

from gym_conformance.findings import Verdict
from gym_mocks.reference import ReferenceServer
from gym_mocks.resources import Row, Score
from gym_mocks.serving import serve
from tests.twins.judging import judge
from tests.twins.twin import dataset


class LaunchError(Exception):
    """As the launched process raises it."""


@pytest.mark.parametrize(
    ("error", "needs"),
    [
        (ModuleNotFoundError("No module named 'jiwer'"), "the module jiwer, which is not installed"),
        (LaunchError("Ray, which is not started here"), "Ray, which is not started here"),
    ],
)
def test_it_is_named(error: Exception, needs: str) -> None:
    class Lacks(ReferenceServer):
        async def score(self, session_id: str, row: Row, response: dict[str, Any]) -> Score:  # noqa: ARG002 - it fails
            raise error

    with serve(Lacks()) as url:
        found = judge(url, dataset(), checks=["verify-scores-rows"])["verify-scores-rows"]
    assert {finding.verdict for finding in found} == {Verdict.UNTESTABLE}
    assert all(finding.reason.startswith(needs) for finding in found)
