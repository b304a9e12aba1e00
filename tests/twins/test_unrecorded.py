"""Servers of which nothing is recorded are tried with answers and words that are found by asking."""

import pytest

from gym_mocks.serving import serve
from tests.twins.judging import judge, telling
from tests.twins.unrecorded import found_notes, grader, searching, sums


@pytest.mark.parametrize("fault", [{}, {"cached": True}, {"counted": True}, {"by_task": True}], ids=str)
def test_a_score_that_hangs_on_earlier_answers_is_told(fault: dict[str, bool]) -> None:
    with serve(grader(**fault)) as url:
        findings = judge(url, sums(), checks={"isolation-earlier"})
    assert telling(findings) == ({"isolation-earlier"} if fault else set())
    [finding] = findings["isolation-earlier"]
    assert ("as the first 6 times" in finding.expected) == ("counted" in fault)


@pytest.mark.parametrize("cached", [False, True])
def test_what_is_kept_under_a_part_of_the_arguments_is_told(cached: bool) -> None:
    with serve(searching(cached=cached)) as url:
        findings = judge(url, found_notes(), checks={"isolation-earlier"})
    assert telling(findings) == ({"isolation-earlier"} if cached else set())
    [finding] = findings["isolation-earlier"]
    assert ("a part of the arguments" in finding.hint) == cached
