"""Searching for an example with Hypothesis."""

import asyncio
import math
import time
import warnings

import pytest
from hypothesis import assume
from hypothesis import strategies as st

from gym_conformance.trajectories import explore as explore_module
from gym_conformance.trajectories import profiles
from gym_conformance.trajectories.explore import explore
from gym_conformance.trajectories.profiles import USUAL, Profile, Search


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


def test_an_example_that_breaks_the_property_is_not_written_out() -> None:
    async def fails(_: str) -> None:
        raise AssertionError

    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        found = asyncio.run(explore("failing", st.just("x" * 40_000), fails, USUAL, AssertionError))

    assert found.example == "x" * 40_000
    assert not warned


@st.composite
def _endless(draw: st.DrawFn) -> int:
    """Each draw takes its time and comes to nothing, as one that overruns what Hypothesis draws."""
    number = draw(st.integers())
    time.sleep(0.02)
    assume(number > math.inf)
    return number


def test_draws_that_come_to_no_example_take_no_longer_than_a_search_may() -> None:
    """As of a definition with thousands of arguments: it went on for minutes."""

    async def holds(_: int) -> None:
        pass

    found = asyncio.run(explore("endless", _endless(), holds, USUAL, AssertionError, until=time.monotonic() + 0.5))

    assert found.tried == 0
    assert found.cut_short


@pytest.mark.parametrize(("busy", "seconds"), [(1.0, 0.2), (4.0, 0.8), (1000.0, 2.0)])
def test_a_search_on_a_busy_machine_goes_on_for_longer(
    monkeypatch: pytest.MonkeyPatch, busy: float, seconds: float
) -> None:
    """Within its patience, which is ten times its seconds."""
    monkeypatch.setattr(explore_module, "slowdown", lambda _: busy)
    monkeypatch.setattr(profiles, "LEAST_PATIENCE", 0.0)

    async def holds(_: int) -> None:
        await asyncio.sleep(0.01)

    search = Search(Profile("tests", 10_000, 0.2))
    found = asyncio.run(explore("busy", st.integers(), holds, search, AssertionError))

    assert seconds <= found.seconds < seconds + 1.0
