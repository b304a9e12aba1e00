"""Strings that match regular expressions as JSON Schema writes them (ECMA-262), by way of Python's."""

import re
from collections.abc import Sequence
from functools import cache, lru_cache
from re import _constants as opcodes  # type: ignore[attr-defined]  # the parser that `re` itself uses
from re import _parser  # type: ignore[attr-defined]
from typing import Any

from hypothesis import strategies as st

#: Python's `re` has no \p: each stands for a part of what it matches, which is enough to make strings that do.
_PROPERTIES = {
    **dict.fromkeys(("L", "Letter", "Alphabetic"), "A-Za-z\u00e9"),
    **dict.fromkeys(("Lu", "Uppercase_Letter"), "A-Z"),
    **dict.fromkeys(("Ll", "Lowercase_Letter"), "a-z"),
    **dict.fromkeys(("N", "Nd", "Number"), "0-9"),
    **dict.fromkeys(("P", "Punctuation"), "!,.?;:"),
    **dict.fromkeys(("Z", "Zs", "Separator"), " "),
}
_TOKEN = re.compile(
    r"\\[pP]\{(?P<property>[^}]*)\}|\\(?P<escape>.)|(?P<group>\(\?<(?=[A-Za-z_]))|(?P<plain>.)", re.DOTALL
)
_ONE_CLASS = re.compile(r"\^(?P<one>\[(?:\\.|[^\]\\])+\]|\\[dws]|[A-Za-z0-9.])(?P<times>[*+?]|\{\d+(?:,\d*)?\})?\\Z")
_MOST_REPEATS = 1_000
_NAMING = (opcodes.LITERAL, opcodes.RANGE)
_SIMPLE = "0123456789" + "abcdefghijklmnopqrstuvwxyz" + "".join(map(chr, range(0x250)))


@lru_cache(1024)
def compiled(pattern: str) -> re.Pattern[str] | None:
    r"""The pattern for Python; None where it uses what Python does not know.

    It may match less than the original, and it never means more by `$`, `\d`, `\w` or `\s`.
    """
    translated = _translated(pattern)
    try:
        return None if translated is None else re.compile(translated, re.ASCII)
    except (re.error, OverflowError, RecursionError):
        return None


def _translated(pattern: str) -> str | None:
    parts: list[str] = []
    in_class = False
    for token in _TOKEN.finditer(pattern):
        whole, plain = token[0], token["plain"]
        if token["property"] is not None:
            known = _PROPERTIES.get(token["property"].removeprefix("General_Category=").removeprefix("gc="))
            if known is None or whole[1] == "P":
                return None
            parts.append(known if in_class else f"[{known}]")
        elif token["group"]:
            parts.append("(?P<")
        elif token["escape"] == "z":
            parts.append(r"\Z")
        elif plain == "$" and not in_class:
            parts.append(r"\Z")  # Python's `$` also matches before a last line end
        elif plain == "[" and in_class:
            parts.append(r"\[")
        else:
            in_class = plain == "[" or (in_class and plain != "]")
            parts.append(whole)
    return "".join(parts)


def matching(
    patterns: Sequence[str], low: int, high: int | None, alphabet: st.SearchStrategy[str]
) -> st.SearchStrategy[str] | None:
    """Strings that match all patterns; None where one is not known to Python.

    Lengths (low, high) and several patterns are met as far as the patterns' form allows: the caller still filters.
    """
    known = [found for pattern in patterns if (found := compiled(pattern)) is not None]
    if len(known) < len(patterns):
        return None
    one = _within(known[0].pattern, low, high) if len(known) == 1 else _in_a_row([found.pattern for found in known])
    return st.from_regex(re.compile(one, re.ASCII), alphabet=alphabet)


def _within(pattern: str, low: int, high: int | None) -> str:
    """The pattern with the length bounds in it, if all it says is how often one class of characters is repeated."""
    form = _ONE_CLASS.fullmatch(pattern)
    if form is None or (not low and high is None):
        return pattern
    least, most = _counts(form["times"])
    least = max(least, low)
    most = high if most is None else most if high is None else min(most, high)
    return (
        pattern if most is not None and most < least else rf"^{form['one']}{{{least},{'' if most is None else most}}}\Z"
    )


def _counts(times: str | None) -> tuple[int, int | None]:
    match times:
        case None:
            return 1, 1
        case "*":
            return 0, None
        case "+":
            return 1, None
        case "?":
            return 0, 1
    low, comma, high = times.strip("{}").partition(",")
    return int(low), (int(high) if high else None) if comma else int(low)


def _in_a_row(patterns: list[str]) -> str:
    """One pattern whose matches hold a match of each: those tied to the start first, those tied to the end last."""
    ordered = sorted(dict.fromkeys(patterns), key=lambda one: (not one.startswith("^"), one.endswith(r"\Z")))
    return r"[\s\S]*".join(
        [ordered[0], *(one.removeprefix("^") if not one.endswith(r"\Z") else one for one in ordered[1:])]
    )


@cache
def smallest_match(pattern: str) -> str | None:
    """A smallest string that matches, or nearly: look-around is not looked at. None where Python does not know the pattern."""
    found = compiled(pattern)
    return None if found is None else _smallest(_parser.parse(found.pattern, found.flags))


def _smallest(parsed: Any) -> str:  # noqa: C901 (one case for each kind of node)
    groups: dict[int, str] = {}

    def of(op: Any, argument: Any) -> str:  # noqa: PLR0911 (likewise)
        match op:
            case opcodes.LITERAL:
                return chr(argument)
            case opcodes.NOT_LITERAL:
                return "a" if argument != ord("a") else "b"
            case opcodes.ANY:
                return "0"
            case opcodes.IN:
                return _member(argument)
            case opcodes.BRANCH:
                return min((every(branch) for branch in argument[1]), key=lambda text: (len(text), text))
            case opcodes.SUBPATTERN:
                text = every(argument[-1])
                groups[argument[0]] = text
                return text
            case opcodes.GROUPREF:
                return groups.get(argument, "")
            case opcodes.MAX_REPEAT | opcodes.MIN_REPEAT | opcodes.POSSESSIVE_REPEAT:
                return every(argument[2]) * min(int(argument[0]), _MOST_REPEATS)
            case opcodes.ATOMIC_GROUP:
                return every(argument)
        return ""

    def every(items: Any) -> str:
        return "".join(of(op, argument) for op, argument in items)

    return every(parsed)


def _member(items: Any) -> str:
    """The simplest character of a class."""
    kinds = {opcodes.CATEGORY_DIGIT: r"\d", opcodes.CATEGORY_WORD: r"\w", opcodes.CATEGORY_SPACE: r"\s"}
    kinds |= {opcodes.CATEGORY_NOT_DIGIT: r"\D", opcodes.CATEGORY_NOT_WORD: r"\W", opcodes.CATEGORY_NOT_SPACE: r"\S"}
    text = ""
    for op, argument in items:
        match op:
            case opcodes.NEGATE:
                text += "^"
            case opcodes.LITERAL:
                text += re.escape(chr(argument))
            case opcodes.RANGE:
                text += f"{re.escape(chr(argument[0]))}-{re.escape(chr(argument[1]))}"
            case opcodes.CATEGORY:
                text += kinds[argument]
    one = re.compile(f"[{text}]", re.ASCII)
    named = [chr(argument if op is opcodes.LITERAL else argument[0]) for op, argument in items if op in _NAMING]
    return next((character for character in (*_SIMPLE, *named) if one.match(character)), "")


def found_in(pattern: str, text: str) -> bool:
    """Whether the pattern is found in the text, as Python's translation of it has it; False where Python does not know it."""
    found = compiled(pattern)
    return found is not None and found.search(text) is not None
