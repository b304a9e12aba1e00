"""What a clock shows is not what it showed when a rollout was recorded, and that is no change of the environment."""

from datetime import UTC, datetime, timedelta

import pytest

from gym_conformance.trajectories.clock import both_tell_the_time

NOW = datetime.now(UTC)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("09:15:00", f"{NOW:%H:%M:%S}"),
        ("at 9:15", f"at {NOW:%H:%M}"),
        ("2020-01-01T00:00:00.25Z", f"{NOW:%Y-%m-%dT%H:%M:%S}.75Z"),
        ("stored on 2020-01-01", f"stored on {NOW:%Y-%m-%d}"),
    ],
    ids=["seconds", "minutes", "fractions", "date"],  # of their own: every worker must collect the same names
)
def test_a_clock_goes_on(before: str, after: str) -> None:
    assert both_tell_the_time(before, after)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("09:15:00", f"{NOW + timedelta(hours=6.5):%H:%M:%S}"),
        ("at 9:15 in Rome", f"at {NOW:%H:%M} in Bern"),
        ("2020-01-01", "2020-01-02"),
        ("a", "b"),
        (1, 2),
    ],
    ids=["hours ahead", "other words", "both past", "texts", "numbers"],
)
def test_another_time_is_another_answer(before: object, after: object) -> None:
    assert not both_tell_the_time(before, after)
