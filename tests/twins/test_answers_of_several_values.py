"""Answers made of several values: a JSON object with those of several fields, a list, calls and last words."""

import json
import math
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from gym_conformance.calibration.answer_templates import Sample, learn
from gym_conformance.checks.registry import CHECKS
from gym_conformance.contract.dataset_rows import Call
from gym_conformance.contract.row_fields import separators_in
from gym_conformance.dataset import Dataset
from tests.twins.calibration import Quiz, Worth, quizzed
from tests.twins.judging import judge, telling
from tests.twins.twin import Json

IDS = tuple(check.id for check in CHECKS if check.section == "calibration")

#: The values of each row.
PEOPLE = [
    {"name": "Ada", "born": "1815-12-10", "height": 1.65, "towns": ["London"]},
    {"name": "Emmy", "born": "1882-03-23", "height": 2.4, "towns": ["Erlangen", "Bryn Mawr"]},
    {"name": "Sofia", "born": "1850-01-15", "height": 3.2, "towns": ["Moscow", "Stockholm"]},
    {"name": "Grace", "born": "1906-12-09", "height": 4.7, "towns": ["New York", "Arlington"]},
]

#: Says whether a value that was given is the one that was wanted.
Same = Callable[[Any, Any], bool]


def same(given: Any, wanted: Any) -> bool:
    if isinstance(wanted, float):
        return isinstance(given, float) and abs(given - wanted) < 1e-6
    if isinstance(wanted, list):
        return isinstance(given, list) and sorted(map(str, given)) == sorted(wanted)
    return bool(given == wanted)


def read(words: str) -> Json:
    """The object, if it is the only thing that is said."""
    try:
        found = json.loads(words)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def read_first(words: str) -> Json:
    """The object that is said first."""
    try:
        found = json.JSONDecoder().raw_decode(words.lstrip())[0]
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def scored(is_same: Same = same, reads: Callable[[str], Json] = read, missing: float = 0.0) -> Worth:
    """The share of values that are right."""

    def worth(row: Json, words: str) -> float:
        wanted, given = row["person"], reads(words)
        marks = [float(is_same(given[key], value)) if key in given else missing for key, value in wanted.items()]
        return sum(marks) / len(marks) if given else 0.0

    return worth


def people(worth: Worth) -> Dataset:
    rows: list[Json] = [
        {"responses_create_params": {"input": f"Who is number {at}? Answer as JSON."}, "person": person}
        for at, person in enumerate(PEOPLE)
    ]
    answered = quizzed(worth, "{said}", [row | {"said": json.dumps(row["person"], indent=1)} for row in rows])
    return replace(quizzed(worth, "", rows), rollouts=answered.rollouts)


def not_beyond(given: Any, wanted: Any) -> bool:
    if isinstance(wanted, float) and isinstance(given, float):
        return not abs(given - wanted) > 1e-6
    return same(given, wanted)


def all_that_is_given(given: Any, wanted: Any) -> bool:
    if isinstance(wanted, list) and isinstance(given, list):
        return all(one in wanted for one in given)
    return same(given, wanted)


def contains(given: Any, wanted: Any) -> bool:
    return wanted in given if isinstance(wanted, str) and isinstance(given, str) else same(given, wanted)


def rounded(given: Any, wanted: Any) -> bool:
    if isinstance(wanted, float) and isinstance(given, float):
        return math.isfinite(given) and abs(given - wanted) < 0.05 * wanted
    return same(given, wanted)


def but_for_its_birth(given: Any, wanted: Any) -> bool:
    return re.fullmatch(r"\d{4}-\d\d-\d\d", str(wanted)) is not None or same(given, wanted)


@pytest.mark.parametrize(
    ("worth", "told"),
    [
        (scored(), ""),
        (scored(rounded), ""),
        (scored(but_for_its_birth), ""),
        (scored(not_beyond), "NaN for a number, as height: 4 of 4 rows"),
        (scored(all_that_is_given), "an empty list, as towns: 4 of 4 rows"),
        (scored(contains), "a list of candidates, as name: 4 of 4 rows"),
        (scored(missing=1.0), "one right value, the others left out: 4 of 4 rows"),
        (scored(reads=read_first), "the right answer, taken back: 4 of 4 rows"),
    ],
    ids=["fair", "rounded", "one that is not scored", "NaN", "empty", "candidates", "left out", "the first"],
)
def test_each_value_of_an_object_is_tried(worth: Worth, told: str) -> None:
    found = judge(Quiz(worth), people(worth), checks=IDS)
    (gold,) = found["calibration-gold"]
    assert '{"name": "{person.name}", "born": "{person.born}"' in gold.reason
    assert telling(found) - {"calibration-strict"} == ({"calibration-pressed"} if told else frozenset())
    assert told in found["calibration-pressed"][0].actual


def in_order(given: list[str], wanted: list[str]) -> bool:
    return given == wanted


def any_of_them(given: list[str], wanted: list[str]) -> bool:
    return set(given) <= set(wanted)


def none_but_them(given: list[str], wanted: list[str]) -> bool:
    return {each for each in given if each} <= set(wanted)


def as_far_as_it_goes(given: list[str], wanted: list[str]) -> bool:
    return all(one == two for one, two in zip(given, wanted, strict=False))


@pytest.mark.parametrize(
    ("orders", "told"),
    [
        (in_order, ""),
        (any_of_them, ""),
        (none_but_them, "nothing in the place of several: 4 of 4 rows"),
        (as_far_as_it_goes, "the first of several alone: 4 of 4 rows"),
    ],
)
def test_lists_are_known_by_what_joins_them(orders: Callable[[list[str], list[str]], bool], told: str) -> None:
    def worth(row: Json, words: str) -> float:
        found = re.fullmatch(r"<order>(.*)</order>", words)
        return float(found is not None and orders(found[1].split(" > "), row["ranks"]))

    rows: list[Json] = [
        {
            "responses_create_params": {"input": f"Rank number {at}."},
            "ranks": [f"{person['name']}{end}" for end in ("ina", "otto", "ulf")],
        }
        for at, person in enumerate(PEOPLE)
    ]
    answered = quizzed(worth, "<order>{said}</order>", [row | {"said": " > ".join(row["ranks"])} for row in rows])
    found = judge(Quiz(worth), replace(quizzed(worth, "", rows), rollouts=answered.rollouts), checks=IDS)
    (gold,) = found["calibration-gold"]
    assert "{ranks with ' > '}" in gold.reason
    assert telling(found) - {"calibration-strict"} == ({"calibration-pressed"} if told else frozenset())
    assert told in found["calibration-pressed"][0].actual


def test_last_words_after_calls_may_say_a_field() -> None:
    calls = (Call("submit", {"query": "from trees | take 1"}),)
    row = {"rows": [{"first": "ash"}], "solution": "from trees | take 1", "first": "ash"}
    templates = [str(one.template) for one in learn([Sample(row, calls, "Answer: ash.")])]
    assert templates[:2] == ["submit(query={solution})", "submit(query={solution}), Answer: {first}."]
    filled = learn([Sample(row, calls, "Answer: ash.")])[1].template.fill({"solution": "from birds", "first": "owl"})
    assert filled is not None
    assert (filled.words, filled.calls) == ("Answer: owl.", (Call("submit", {"query": "from birds"}),))


def trusting_types(given: Any, wanted: Any) -> bool:
    return float(given) == wanted if isinstance(wanted, float) else same(given, wanted)


def mean_of_hits(given: Any, wanted: Any) -> float:
    if isinstance(wanted, list) and isinstance(given, list):
        return sum(one in wanted for one in given) / len(given) if given else math.nan
    return float(same(given, wanted))


@pytest.mark.parametrize(
    ("is_same", "told"),
    [(same, frozenset()), (trusting_types, {"verify-unfinished"}), (mean_of_hits, {"verify-unfinished"})],
)
def test_values_of_another_type_are_scored(is_same: Callable[[Any, Any], Any], told: frozenset[str]) -> None:
    worth = scored(is_same)
    assert telling(judge(Quiz(worth), people(worth), checks={"verify-unfinished"})) == told


@pytest.mark.parametrize(
    ("value", "words", "by"),
    [([1, 2, 30], "It is 1 > 2 > 30.", " > "), (["a", "b", "3"], "a, b, 3", ", "), ([1, 2, 3], "1 > 2, 3", None)],
)
def test_what_joins_a_list_is_learned_from_words(value: list[Any], words: str, by: str | None) -> None:
    assert list(separators_in(value, words)) == ([by] if by else [])
