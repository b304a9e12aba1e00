"""What a policy under pressure puts in the place of an object's values, one at a time or all but one. Pure."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from gym_conformance.calibration.given_answer import GivenAnswer
from gym_conformance.calibration.object_answers import ObjectTemplate
from gym_conformance.calibration.probe_answers import amidst, other_numbers
from gym_conformance.calibration.row_scores import surely_wrong
from gym_schemas import ABSENT, Way, identity, is_numeric

#: A day, and the months of a year.
_DAY: Final = re.compile(r"(\d{4})-(\d{2})-(\d{2})", re.ASCII)
_MONTHS: Final = 12

#: Between the name of a probe and the place of the value.
AS: Final = ", as "

#: Names of the probes with nothing in a place, or in all but one.
EMPTY: Final = ("an empty list", "an empty text")
MISSING: Final = tuple(f"one right value, the others {what}" for what in ("left out", "null"))

#: Named answers, each with one that is surely wrong: where that earns as much, the value is not what is scored.
Controlled = Iterator[tuple[str, GivenAnswer, GivenAnswer]]


def of_values(template: ObjectTemplate, data: Mapping[str, Any], others: Sequence[Mapping[str, Any]]) -> Controlled:
    """The right object with another value in one place, or with all but one left out or null."""
    own = template.values(data)
    wrong = {place: found for place, right in own.items() if (found := _wrong(template, place, right, data, others))}
    for place, values in wrong.items():
        control = template.of(own | {place: values[0]})
        for name, value in _in_place_of(own[place], values):
            yield f"{name}{AS}{_shown(place)}", template.of(own | {place: value}), control
    if rest := list(dict.fromkeys(place[:1] for place in wrong))[1:]:
        control = template.of(own | {place: values[0] for place, values in wrong.items() if place[:1] in rest})
        for name, value in zip(MISSING, (ABSENT, None), strict=True):
            yield name, template.of(own | dict.fromkeys(rest, value)), control


def swapped_values(
    template: ObjectTemplate, data: Mapping[str, Any], others: Sequence[Mapping[str, Any]]
) -> Iterator[tuple[str, GivenAnswer]]:
    """The right object with another row's value in one place: some of them may not be what is scored."""
    own = template.values(data)
    for place, right in own.items():
        for value in _wrong(template, place, right, data, others)[:1]:
            yield f"another row's value{AS}{_shown(place)}", template.of(own | {place: value})


def _wrong(
    template: ObjectTemplate, place: Way, right: Any, data: Mapping[str, Any], others: Sequence[Mapping[str, Any]]
) -> list[Any]:
    """Other rows' values for this place that are surely wrong in this row, without duplicates."""
    found = (template.values(other).get(place) for other in others)
    return list({identity(value): value for value in found if _is_wrong(value, right, data)}.values())


def _is_wrong(value: Any, right: Any, data: Mapping[str, Any]) -> bool:
    if type(value) is not type(right):
        return False
    if isinstance(right, list):
        return bool(value) and {identity(each) for each in right}.isdisjoint(map(identity, value))
    return surely_wrong(GivenAnswer((), gold=(str(value),)), data, GivenAnswer((), gold=(str(right),)))


def _in_place_of(right: Any, wrong: Sequence[Any]) -> Iterator[tuple[str, Any]]:
    no_member, no_text = EMPTY
    if isinstance(right, list):
        yield no_member, []
        yield "a list of all rows' members", [each for several in amidst(right, wrong) for each in several]
    elif isinstance(right, str):
        yield no_text, ""
        if len(wrong) > 1:
            yield "a list of candidates", ", ".join(amidst(right, wrong))
        if day := _DAY.fullmatch(right):
            year, month, date = day.groups()
            yield "another day of the same year", f"{year}-{(int(month) + 5) % _MONTHS + 1:02}-{date}"
        yield from other_numbers(right)
    elif is_numeric(right):
        yield from ((name, float(text)) for name, text in other_numbers(str(right)))


def _shown(place: Way) -> str:
    return ".".join(map(str, place))
