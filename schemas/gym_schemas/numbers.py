"""Numbers within bounds and steps, limited to what JSON clients can carry: integers up to 2**53 - 1, finite floats."""

import math
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction

from jsonschema_rs import canonical as views

from gym_schemas.choices import Choices

LARGEST = 2**53 - 1
"""The largest integer that every JSON client carries exactly (RFC 8259, section 6)."""

Number = int | float | Decimal

#: How far a range extends from its only bound, if that is beyond what JSON clients can carry.
_NEAR = 100


def number_of(view: views.IntegerView | views.NumberView, choices: Choices) -> int | float | None:
    """A number of the view, integers first; None if there is none.

    The caller must check `not_multiple_of`, and bounds that no float expresses exactly.
    """
    low, high = _range(view.minimum, view.maximum)
    step = _common_step(view.multiple_of)
    if isinstance(view, views.IntegerView):
        whole = Fraction(step.numerator if step else 1)
        return _multiple(choices, whole, math.ceil(low / whole), math.floor(high / whole))
    if step is None:
        return _between(view, low, high, choices)
    first, last = math.ceil(low / step), math.floor(high / step)
    first += view.exclusive_minimum and first * step == low
    last -= view.exclusive_maximum and last * step == high
    return _multiple(choices, step, first, last)


def _multiple(choices: Choices, step: Fraction, first: int, last: int) -> int | float | None:
    return _plain(choices.whole(first, last) * step) if first <= last else None


def _between(view: views.NumberView, low: Fraction, high: Fraction, choices: Choices) -> int | float | None:
    """A number of a view without `multipleOf`."""
    least, most = _float_within(low, view.exclusive_minimum, 1), _float_within(high, view.exclusive_maximum, -1)
    lowest = math.floor(low) + 1 if view.exclusive_minimum else math.ceil(low)
    highest = math.ceil(high) - 1 if view.exclusive_maximum else math.floor(high)
    if lowest <= highest and not view.excludes_integers and (least > most or choices.pick((True, False))):
        return choices.whole(lowest, highest)
    return choices.fraction(least, most) if least <= most else None


def _range(minimum: Number | None, maximum: Number | None) -> tuple[Fraction, Fraction]:
    """Bounds; one that is missing is as far as JSON clients carry integers, or a little beyond the other one."""
    low = _exact(minimum) if minimum is not None else min(Fraction(-LARGEST), _exact(maximum or 0) - _NEAR)
    high = _exact(maximum) if maximum is not None else max(Fraction(LARGEST), _exact(minimum or 0) + _NEAR)
    return low, high


def _exact(number: Number) -> Fraction:
    """The number as its JSON text says: 0.1 is exactly one tenth."""
    return Fraction(str(number))


def _common_step(steps: Sequence[Number]) -> Fraction | None:
    """The smallest number whose multiples are multiples of all steps; None if there are none."""
    exact = [_exact(step) for step in steps]
    if not exact:
        return None
    return Fraction(math.lcm(*(one.numerator for one in exact)), math.gcd(*(one.denominator for one in exact)))


def _plain(number: Fraction) -> int | float:
    return int(number) if number.denominator == 1 else float(number)


def _float_within(bound: Fraction, exclusive: bool, inwards: int) -> float:
    """The float at a bound, or the next one inwards if that is outside."""
    number = float(bound)
    beyond = (exclusive and number == bound) or (bound - Fraction(number)) * inwards > 0
    return math.nextafter(number, inwards * math.inf) if beyond else number
