"""Texts that are nearly right: what a policy writes that is cut off, or loses a bracket. Pure.

A tool that parses a text has a way out for one that does not parse, and that way is seldom tried.
"""

import re
from collections.abc import Iterator
from typing import Any, Final

from gym_conformance.grouping import first_of_each
from gym_conformance.trajectories.renaming import own
from gym_conformance.trajectories.trajectory import REPLY, Trajectory
from gym_schemas import scalars

#: A text with one of these may be parsed: a formula, a query, a pattern, JSON, a template.
_STRUCTURE: Final = re.compile(r"[()\[\]{}<>\"'`=+*/\\^|$]")

#: What no parser of formulas, JSON, queries, patterns or TeX takes for whole.
_UNFINISHED: Final = ("=(", '{"a": [', "SELECT '", "(1 +", "[a", "\\frac{1")

#: What every object of JavaScript holds, and a look-up of a name finds where nobody has put it.
_INHERITED: Final = "constructor"

#: Texts that are damaged, none longer, and forms that are made in all.
_TEXTS, _LONG, _FORMS = 3, 200, 13

#: Cuts of an answer: after each of its last words and signs, and further ones spread over it.
_LAST, _SPREAD = 40, 8

#: What ends a text that something is put into.
_ENDING: Final = re.compile(r"\s*[`)\]}>\"'*$]+\s*\Z")

_LETTERS: Final = re.compile(r"[A-Za-z]+|\d+")


def damaged(trajectory: Trajectory) -> list[str]:
    """Texts of its row and calls, cut off or with a sign too many, those of other forms first; then others that trip parsers."""
    texts = [*_texts([call.arguments for call in trajectory.calls]), *_texts(own(trajectory.row))]
    short = (text for text in texts if _STRUCTURE.search(text) and len(text) <= _LONG)
    chosen = list(first_of_each(lambda text: _LETTERS.sub("a", text), short).values())[:_TEXTS]
    forms = [form for text in chosen for form in (text[:-1], text[: len(text) // 2], f"{text}(")]
    return list(dict.fromkeys(form for form in (*forms, _INHERITED, *_UNFINISHED) if form.strip()))[:_FORMS]


def cut_off(text: str) -> list[str]:
    """The text cut off after each of its last words and signs, the longest first, and then at a few places before."""
    ends = [token.end() for token in re.finditer(r"\w+|[^\w\s]", text)][:-1]
    before = ends[:-_LAST]
    return [text[:end] for end in (*reversed(ends[-_LAST:]), *before[:: 1 + len(before) // _SPREAD])]


def cut_within(text: str) -> list[str]:
    """The same, and then ended as the whole one is, as with the fence of a block of code: it looks whole, and is not."""
    ending = _ENDING.search(text)
    return [cut + ending[0] for cut in cut_off(text[: ending.start()])] if ending else []


def _texts(value: Any) -> Iterator[str]:
    return (text for text, way in scalars(value) if isinstance(text, str) and REPLY not in way)
