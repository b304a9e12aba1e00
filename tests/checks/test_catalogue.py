"""docs/checks.md is rendered from the registry, never written by hand."""

from pathlib import Path

from gym_conformance.checks.__main__ import catalogue
from gym_conformance.checks.registry import CHECKS

PAGE = Path(__file__).parents[2] / "docs" / "checks.md"


def test_the_page_is_current() -> None:
    assert PAGE.read_text() == catalogue(), "run: python -m gym_conformance.checks > docs/checks.md"


def test_every_check_says_where_its_rule_comes_from() -> None:
    """A MUST has a source; what is our inference is a SHOULD or a note."""
    for check in CHECKS:
        assert "Source:" in check.doc or "Our inference" in check.doc, check.id
        if check.level == "MUST":
            assert "Source:" in check.doc, check.id


def test_every_title_says_its_level() -> None:
    """A rule holds its RFC 2119 keyword; a note is a fact, and holds none."""
    for check in CHECKS:
        keywords = {"MUST", "SHOULD", "MAY"}.intersection(check.title.split())
        assert keywords == ({check.level.value} - {"NOTE"}), check.id
