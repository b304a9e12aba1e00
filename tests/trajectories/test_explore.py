"""Searching for an example with Hypothesis."""

import asyncio

from hypothesis import assume
from hypothesis import strategies as st

from gym_conformance.trajectories.explore import explore
from gym_conformance.trajectories.profiles import USUAL


@st.composite
def _rejecting(draw: st.DrawFn, _rows: str) -> int:
    """Every other draw fails; Hypothesis warns where it writes out 30,000 characters of a strategy then."""
    number = draw(st.integers())
    assume(number % 2)
    return number


def test_a_draw_that_fails_writes_out_no_arguments() -> None:
    async def holds(_: int) -> None:
        pass

    found = asyncio.run(explore("rejecting", _rejecting("x" * 40_000), holds, USUAL, AssertionError))

    assert found.tried >= USUAL.profile.floor
