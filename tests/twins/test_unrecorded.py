"""A server that only grades, where nothing is recorded, is tried with answers that are found by asking."""

import pytest

from gym_mocks.serving import serve
from tests.twins.judging import judge, telling
from tests.twins.unrecorded import grader, sums


@pytest.mark.parametrize("cached", [False, True])
def test_a_score_that_is_kept_under_the_answer_alone_is_told(*, cached: bool) -> None:
    with serve(grader(cached=cached)) as url:
        findings = judge(url, sums(), checks={"isolation-earlier"})
    assert telling(findings) == ({"isolation-earlier"} if cached else set())
