"""Noise is never taken for a fault, whatever its weight; a fault is, however rarely it shows."""

from collections import Counter
from itertools import combinations
from random import Random

import pytest

from gym_conformance.trajectories.evidence import CHANCE, COSTLY, LOOKS, Comparison, Decision, Look, allowed, chance_of

#: How often a run differs that is nothing but noise.
WEIGHTS = (0.001, 0.01, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9, 0.99)


def drawing(seed: str) -> Random:
    """The same numbers each time."""
    return Random(seed)


def compared(
    trials: float, controls: float, draw: Random, number: int = 1, looks: tuple[Look, ...] = LOOKS
) -> Comparison:
    """A comparison whose trials and controls differ so often."""
    comparison = Comparison(looks, number, draw=draw)
    while comparison.decision is Decision.OPEN:
        forms = comparison.order()
        comparison.record(forms, [draw.random() < (trials if form else controls) for form in forms])
    return comparison


@pytest.mark.parametrize("looks", [LOOKS, COSTLY], ids=["usual", "costly"])
@pytest.mark.parametrize("weight", WEIGHTS)
def test_a_coin_is_no_fault_in_hundreds_of_runs(weight: float, looks: tuple[Look, ...]) -> None:
    """Ten weights, twice, 300 runs each, with ten comparisons: 60,000 of them."""
    draw = drawing(f"{weight}")
    for _run in range(300):
        for number in range(1, 11):
            assert compared(weight, weight, draw, number, looks).decision is Decision.ALIKE


def test_noise_that_drifts_is_no_fault() -> None:
    """The order is drawn, so that a server which changes once, for good, or at every other run, is no fault either."""
    draw = drawing("1")
    for _run in range(2000):
        comparison, runs, changed = Comparison(number=1, draw=draw), 0, draw.randrange(60)
        other = draw.random() < 0.5
        while comparison.decision is Decision.OPEN:
            forms = comparison.order()
            numbers = range(runs, runs + len(forms))
            comparison.record(forms, [number % 2 == 1 if other else number >= changed for number in numbers])
            runs += len(forms)
        assert comparison.decision is Decision.ALIKE


def test_a_fault_that_shows_each_time_takes_seventeen_pairs() -> None:
    for number in range(1, 18):
        comparison = compared(1, 0, drawing("1"), number)
        assert comparison.decision is Decision.DIFFERENT
        assert str(comparison) == "17 of 17 trials differed, and 0 of 17 controls"


def test_a_costly_one_takes_nine_trials() -> None:
    comparison = compared(1, 0, drawing("1"), looks=COSTLY)
    assert (comparison.decision, str(comparison)) == (
        Decision.DIFFERENT,
        "9 of 9 trials differed, and 0 of 40 controls",
    )


@pytest.mark.parametrize(("trials", "controls"), [(0.5, 0), (0.2, 0), (1, 0.3), (0.9, 0.1)])
def test_a_race_is_found_most_times(trials: float, controls: float) -> None:
    """What is not found here is found by one of the many examples after it."""
    draw = drawing("1")
    decisions = Counter(compared(trials, controls, draw).decision for _ in range(100))
    assert decisions[Decision.DIFFERENT] >= 75


def test_all_comparisons_of_a_run_together_use_no_more_than_all_of_the_chance() -> None:
    assert sum(allowed(number) for number in range(1, 100_000)) <= CHANCE
    for looks in (LOOKS, COSTLY):
        assert sum(look.share for look in looks) <= 1


@pytest.mark.parametrize(("look", "trials", "controls"), [(Look(3, 3, 1, 1), 2, 1), (Look(2, 5, 1, 1), 2, 0)])
def test_the_chance_is_what_counting_all_orders_gives(look: Look, trials: int, controls: int) -> None:
    differed = [True] * (trials + controls) + [False] * (look.trials + look.controls - trials - controls)
    orders = list(combinations(range(len(differed)), look.trials))
    at_least = sum(sum(differed[at] for at in order) >= trials for order in orders)
    assert chance_of([(look, trials, controls)]) == pytest.approx(at_least / len(orders))


def test_the_chance_of_two_looks_is_what_counting_all_orders_of_both_gives() -> None:
    look = Look(2, 2, 1, 1)
    first, second = [True, True, False, False], [True, False, False, False]
    orders = [(one, two) for one in combinations(range(4), 2) for two in combinations(range(4), 2)]
    differed = [sum(first[at] for at in one) + sum(second[at] for at in two) for one, two in orders]
    expected = sum(each >= 3 for each in differed) / len(orders)
    assert chance_of([(look, 2, 0), (look, 1, 0)]) == pytest.approx(expected)
