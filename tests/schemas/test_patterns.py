"""Texts of regular expressions, held to jsonschema_rs's own reading of them."""

from random import Random

import pytest

from gym_schemas.choices import Chance, Choices, Simplest
from gym_schemas.patterns import matches, text_of

EVERYDAY = (
    *("^[A-Z]{3}$", r"^\d{4}-\d{2}-\d{2}$", r"^(foo|ba+r)$", r"^[a-z0-9_.-]+@[a-z]+\.com$", "^a{2,}b?$"),
    *(r"^(?:x\d)+$", r"^[^/]+$", r"^\+?[1-9]\d{1,14}$", "", r"^#[0-9a-fA-F]{6}$", r"^\w+( \w+)*$", "^[[]x$"),
    *(r"^\u0041\x42[\t\n]$", r"^(?<year>\d{4})/\d\d$", r"\bword\b", "^[a-c-]+?$", r"^\p{Lu}\p{Ll}*$", "^(a|)$"),
    *(r"^(?!bad)[a-z]+$", r"^[\w.]{3,8}$", r"^https?://[^\s/$.?#].[^\s]*$", r"^([01]\d|2[0-3]):[0-5]\d$"),
)
BEYOND = ("[", "(", "a{99999999}", "*", r"\p{Greek}", "[^\\s\\S", "(?<a", "x)")


def sources() -> list[Choices]:
    return [Simplest(), *(Chance(Random(seed)) for seed in range(20))]


@pytest.mark.parametrize("pattern", EVERYDAY)
def test_texts_match(pattern: str) -> None:
    texts = [text_of([pattern], choices) for choices in sources()]
    assert [text for text in texts if text is None or not matches(pattern, text)] == []


@pytest.mark.parametrize("pattern", [r"^(a|b)\1$", r"^(?<q>['x])\w+\k<q>$"])
def test_what_a_group_matched_is_said_again(pattern: str) -> None:
    texts = [text_of([pattern], choices) or "" for choices in sources()]
    assert all(text[0] == text[-1] for text in texts)


@pytest.mark.parametrize("pattern", BEYOND)
def test_of_what_is_beyond_the_reader_nothing_is_made(pattern: str) -> None:
    assert text_of([pattern], Simplest()) is None


@pytest.mark.parametrize(("low", "high"), [(0, 2), (5, 5), (8, 20), (30, 31)])
@pytest.mark.parametrize("pattern", ["^[a-z]+$", "^(ab?)*$", r"^\w+( \w+)*$"])
def test_lengths_are_kept_where_the_pattern_allows_it(pattern: str, low: int, high: int) -> None:
    texts = [text_of([pattern], choices, low, high) or "" for choices in sources()]
    assert sum(low <= len(text) <= high and matches(pattern, text) for text in texts) > len(texts) / 2
