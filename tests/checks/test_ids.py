"""Ids and levels are what users' baselines and gates name: a change to `ids.txt` is a change of the API."""

import re
from pathlib import Path

import pytest

from gym_conformance.checks.registry import CHECKS
from gym_conformance.trials.check import Check, Level

COMMITTED = [tuple(line.split()) for line in Path(__file__).with_name("ids.txt").read_text().splitlines()]


def test_ids_and_levels_are_the_committed_ones() -> None:
    assert sorted((check.id, check.level.value) for check in CHECKS) == sorted(COMMITTED)


def test_ids_are_unique() -> None:
    assert len({check.id for check in CHECKS}) == len(CHECKS)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.id)
def test_a_check_says_what_it_must(check: Check) -> None:
    """The id is in kebab case and begins with its section; the title says one level; the source of the rule is named."""
    assert re.fullmatch(r"[a-z]+(-[a-z]+)+", check.id)
    assert not {*Level} <= {*check.title.split(), Level.NOTE}
    assert check.why
    assert "Source: " in check.doc or "Our inference" in check.doc
    if "Our inference" in check.doc:
        assert check.level != "MUST"
