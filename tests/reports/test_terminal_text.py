"""A finding on the terminal."""

from dataclasses import replace

from gym_conformance.reports.terminal_text import explain
from tests.reports.samples import FAILED


def test_of_a_long_trajectory_both_ends_are_shown() -> None:
    steps = tuple(f"A | call({number})" for number in range(75))
    shown = next(iter(explain([replace(FAILED, trajectory=steps)])))
    assert "    A | call(11)\n    ... and 51 more steps, which the replay makes\n    A | call(63)\n" in shown
    assert "    A | call(74)" in shown


def test_a_trajectory_of_a_few_steps_is_shown_whole() -> None:
    steps = tuple(f"A | call({number})" for number in range(25))
    assert "\n    ".join(steps) in next(iter(explain([replace(FAILED, trajectory=steps)])))
