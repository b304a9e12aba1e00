"""Numbers within bounds and steps, as JSON clients carry them: integers up to 2**53 - 1, finite floats."""

import math
from collections.abc import Iterator, Sequence
from decimal import Decimal
from fractions import Fraction

from hypothesis import strategies as st
from jsonschema_rs import canonical as views

from gym_conformance.values.json_values import LARGEST

Number = int | float | Decimal

#: How far a range goes past its only bound where that one is beyond what JSON clients carry.
_NEAR = 100


def integers(view: views.IntegerView | None = None) -> st.SearchStrategy[int]:
    """Integers of the view, 0 or the one nearest to it first; `not_multiple_of` is left to the caller."""
    step = math.lcm(*(_exact(number).numerator for number in (view.multiple_of if view else ())))
    low, high = _range(view.minimum if view else None, view.maximum if view else None)
    first, last = math.ceil(low / step), math.floor(high / step)
    if first > last:
        return st.nothing()
    values = st.integers(first, last)  # Hypothesis itself prefers small ones
    return values if step == 1 else values.map(lambda count: count * step)


def numbers(view: views.NumberView | None = None) -> st.SearchStrategy[int | float]:
    """Numbers of the view, integers first; `not_multiple_of`, and bounds that no float has exactly, are left to the caller."""
    if view is None:
        return st.one_of(integers(), st.floats(-float(LARGEST), float(LARGEST)))
    low, high = _range(view.minimum, view.maximum)
    step = _common_step(view.multiple_of)
    if step is not None:
        first, last = math.ceil(low / step), math.floor(high / step)
        return st.integers(first, last).map(lambda count: _plain(count * step)) if first <= last else st.nothing()
    least, most = _float_within(low, view.exclusive_minimum, 1), _float_within(high, view.exclusive_maximum, -1)
    floats = st.floats(least, most) if least <= most else st.nothing()
    if view.excludes_integers:
        return floats
    lowest = math.floor(low) + 1 if view.exclusive_minimum else math.ceil(low)
    highest = math.ceil(high) - 1 if view.exclusive_maximum else math.floor(high)
    if lowest > highest:
        return floats
    return st.one_of(st.integers(lowest, highest), floats)


def simple_numbers(view: views.IntegerView | views.NumberView) -> Iterator[int | float]:
    """Candidates for the smallest number of a view, simplest first."""
    low, high = _range(view.minimum, view.maximum)
    whole = isinstance(view, views.IntegerView)
    step = _common_step(view.multiple_of) or Fraction(1)
    step = Fraction(step.numerator) if whole else step
    nearest = min(max(Fraction(0), low), high)
    for unit in (step, step / 2, step / 10) if not whole else (step,):
        for start in (nearest / unit, low / unit, high / unit):
            for count in (math.ceil(start), math.floor(start), math.ceil(start) + 1, math.floor(start) - 1):
                yield _plain(count * unit)
    yield _plain((low + high) / 2)


def _range(minimum: Number | None, maximum: Number | None) -> tuple[Fraction, Fraction]:
    """Bounds, where a schema gives none: as far as JSON clients carry integers, or a little past the other bound."""
    low = _exact(minimum) if minimum is not None else min(Fraction(-LARGEST), _exact(maximum or 0) - _NEAR)
    high = _exact(maximum) if maximum is not None else max(Fraction(LARGEST), _exact(minimum or 0) + _NEAR)
    return low, high


def _exact(number: Number) -> Fraction:
    """The number as its JSON text says it: 0.1 is one tenth."""
    return Fraction(str(number))


def _common_step(steps: Sequence[Number]) -> Fraction | None:
    """The smallest number of which a multiple is a multiple of all steps; None without any."""
    exact = [_exact(step) for step in steps]
    if not exact:
        return None
    return Fraction(math.lcm(*(one.numerator for one in exact)), math.gcd(*(one.denominator for one in exact)))


def _plain(number: Fraction) -> int | float:
    return int(number) if number.denominator == 1 else float(number)


def _float_within(bound: Fraction, exclusive: bool, inwards: int) -> float:
    """The float at a bound, or the next one inwards where that one is outside."""
    number = float(bound)
    beyond = (exclusive and number == bound) or (bound - Fraction(number)) * inwards > 0
    return math.nextafter(number, inwards * math.inf) if beyond else number
