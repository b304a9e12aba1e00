"""No more sessions run at once than the server can do one by one in time: a slow scorer that blocks is no fault of theirs."""

import pytest

from gym_conformance.checks.isolation.beside_others import fitting


@pytest.mark.parametrize(("seconds", "at_once"), [(0.01, 15), (2.0, 5), (20.0, 4)])
def test_slow_sessions_are_fewer(seconds: float, at_once: int) -> None:
    assert fitting([seconds] * 15) == at_once
