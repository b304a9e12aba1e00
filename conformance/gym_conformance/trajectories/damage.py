"""Almost valid texts, such as a policy writes if it is cut off or drops a bracket. Pure.

A tool that parses a text has an error path for those that do not parse, and that path is seldom tested.
"""

import json
import re
from collections.abc import Iterator
from functools import partial
from itertools import islice
from typing import Any, Final

from gym_conformance.grouping import first_of_each
from gym_conformance.trajectories.renaming import own
from gym_conformance.trajectories.trajectory import REPLY, Trajectory
from gym_schemas import Way, filled, scalars

#: A text with one of these characters may be parsed: a formula, a query, a pattern, JSON, a template.
_STRUCTURE: Final = re.compile(r"[()\[\]{}<>\"'`=+*/\\^|$]")

#: Texts that no parser of formulas, JSON, queries, patterns or TeX accepts as complete.
_UNFINISHED: Final = ("=(", '{"a": [', "SELECT '", "(1 +", "[a", "\\frac{1")

#: A property that every JavaScript object inherits, so that a lookup by name finds it though nobody put it there.
_INHERITED: Final = "constructor"

#: How many texts are damaged, how long they may be, and how many damaged forms are made in all.
_TEXTS, _LONG, _FORMS = 3, 200, 16

#: Cuts of an answer: after each of its last tokens, and further ones spread over it.
_LAST, _SPREAD = 40, 8

#: The end of a text that encloses another, such as a closing fence, and its last word. A search begins only where a space, a
#: sign or a word does: a long run of them would be read to its end from each of its characters.
_ENDING: Final = re.compile(r"(?:(?<!\s)\s+|(?<![\s`)\]}>\"'*$]))[`)\]}>\"'*$]+\s*\Z")
_LAST_WORD: Final = re.compile(r"(?<!\w)\w+(?=\W*\Z)")

#: More brackets than a parser that calls itself for each can hold.
_DEEP: Final = "(" * 3_000 + "1" + ")" * 3_000

#: What stands where a number or a word should: a sign that is a digit and yet no number, and many brackets.
_ODD: Final = ("\u00b2", _DEEP, "[" * 3_000 + "1" + "]" * 3_000)

#: Values of other types than that of which one is wanted, how many places of an object get them, and are looked at.
_OTHERS: Final[tuple[Any, ...]] = (None, [], "many", 7)
_PLACES, _MANY = 12, 1_000

_NUMBER: Final = re.compile(r"\d+(?:\.\d+)?", re.ASCII)

#: Letters beyond those of most options.
_NO_OPTIONS: Final = ("J", "Z")

#: Numbers that are joined, as those of a day, a time or a version are.
_JOINED: Final = re.compile(r"\d+(?:[-/:.]\d+)+", re.ASCII)
_LETTERS: Final = re.compile(r"[A-Za-z]+|\d+")


def damaged(trajectory: Trajectory) -> list[str]:
    """Damaged texts of the row and calls: cut off, or with an extra sign, varied forms first; then parser breakers.

    Where there are texts that may be parsed, the first of these has more brackets than a parser can hold. Of a call's text
    of several words, as commands are, there is the first word alone.
    """
    said = [*_texts([call.arguments for call in trajectory.calls])]
    texts = [*said, *_texts(own(trajectory.row))]
    short = (text for text in texts if _STRUCTURE.search(text) and len(text) <= _LONG)
    chosen = list(first_of_each(lambda text: _LETTERS.sub("a", text), short).values())[:_TEXTS]
    forms = [form for text in chosen for form in (text[:-1], text[: len(text) // 2], f"{text}(")]
    deep = [_DEEP] if chosen else []
    bare = dict.fromkeys(text.split()[0] for text in said if len(text) <= _LONG and len(text.split()) > 1)
    forms += islice(bare, _TEXTS)
    return list(dict.fromkeys(form for form in (*deep, *forms, _INHERITED, *_UNFINISHED) if form.strip()))[:_FORMS]


def cut_off(text: str) -> list[str]:
    """The text cut off after each of its last tokens, the longest first, and then at a few earlier places."""
    ends = [token.end() for token in re.finditer(r"\w+|[^\w\s]", text)][:-1]
    before = ends[:-_LAST]
    return [text[:end] for end in (*reversed(ends[-_LAST:]), *before[:: 1 + len(before) // _SPREAD])]


def cut_within(text: str) -> list[str]:
    """The same, with the original ending, such as a code fence, appended: these look complete but are not."""
    ending = _ENDING.search(text)
    return [cut + ending[0] for cut in cut_off(text[: ending.start()])] if ending else []


def made_odd(text: str) -> list[str]:
    """The text with zero in place of each number, by which nothing can be divided, and with something odd in place of its last number or word.

    Where numbers are joined, as those of a day are, also with each of their digits a 9 or a 0: there is no such day. A last
    letter, as of an option, becomes one of which there may be no option.
    """
    last, zeros = _LAST_WORD.search(text), _NUMBER.sub("0", text)
    none = [_JOINED.sub(partial(_in_digits, digit), text) for digit in "90"]
    in_place = (*_ODD, *(_NO_OPTIONS if last and len(last[0]) == 1 and last[0].isalpha() else ()))
    odd = [text[: last.start()] + one + text[last.end() :] for one in in_place] if last else []
    return [one for one in dict.fromkeys((zeros, *none, *odd)) if one != text]


def _in_digits(digit: str, found: re.Match[str]) -> str:
    return re.sub(r"\d", digit, found[0])


def with_other_types(text: str) -> list[str]:
    """The text with a value of another type, or an empty list, in its JSON object, one at a time."""
    if (brace := text.find("{")) < 0:
        return []
    try:
        found, end = json.JSONDecoder().raw_decode(text, brace)
    except (ValueError, RecursionError):
        return []
    places = sorted(islice(_places(found), 1, _MANY), key=lambda place: len(place[0]))[:_PLACES]
    other = [
        (way, one)
        for one in _OTHERS
        for way, value in places
        if value != one and (one == [] or type(one) is not type(value))
    ]
    return [f"{text[:brace]}{json.dumps(filled(found, {way: one}))}{text[end:]}" for way, one in other]


def _places(value: Any, way: Way = ()) -> Iterator[tuple[Way, Any]]:
    """Every place in a value, the whole first, with what stands there."""
    yield way, value
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in inner:
        yield from _places(each, (*way, key))


def _texts(value: Any) -> Iterator[str]:
    return (text for text, way in scalars(value) if isinstance(text, str) and REPLY not in way)
