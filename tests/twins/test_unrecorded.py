"""A server that only grades, where nothing is recorded, is tried with answers that are found by asking."""

import pytest

from gym_mocks.serving import serve
from tests.twins.judging import judge, telling
from tests.twins.unrecorded import grader, sums


@pytest.mark.parametrize("fault", [{}, {"cached": True}, {"counted": True}, {"by_task": True}], ids=str)
def test_a_score_that_hangs_on_earlier_answers_is_told(fault: dict[str, bool]) -> None:
    with serve(grader(**fault)) as url:
        findings = judge(url, sums(), checks={"isolation-earlier"})
    assert telling(findings) == ({"isolation-earlier"} if fault else set())
    [finding] = findings["isolation-earlier"]
    assert ("as the first 6 times" in finding.expected) == ("counted" in fault)
