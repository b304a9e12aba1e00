"""What a clock shows is not what it showed when a rollout was recorded, and that is no change of the environment."""

from datetime import UTC, datetime, timedelta

import pytest

from gym_conformance.trajectories.clock import both_tell_the_time


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("09:15:00", "%H:%M:%S"),
        ("at 9:15", "at %H:%M"),
        ("2020-01-01T00:00:00.25Z", "%Y-%m-%dT%H:%M:%S.75Z"),
        ("stored on 2020-01-01", "stored on %Y-%m-%d"),
    ],
    ids=["seconds", "minutes", "fractions", "date"],
)
def test_a_clock_goes_on(before: str, after: str) -> None:
    assert both_tell_the_time(before, datetime.now(UTC).strftime(after))


def test_a_clock_of_another_hour_is_another_answer() -> None:
    ahead = datetime.now(UTC) + timedelta(hours=6.5)
    assert not both_tell_the_time("09:15:00", f"{ahead:%H:%M:%S}")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("at 9:15 in Rome", "at 9:15 in Bern"),
        ("2020-01-01", "2020-01-02"),
        ("a", "b"),
        (1, 2),
    ],
    ids=["other words", "both past", "texts", "numbers"],
)
def test_another_time_is_another_answer(before: object, after: object) -> None:
    assert not both_tell_the_time(before, after)
