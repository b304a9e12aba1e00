"""Strings that match a JSON Schema's `pattern`, by way of Python's own parser of regular expressions."""

import re
from random import Random
from re import _constants as ops  # type: ignore[attr-defined]  # the parser that `re` itself uses
from re import _parser  # type: ignore[attr-defined]
from typing import Any

LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
KINDS = {
    ops.CATEGORY_DIGIT: "0123456789",
    ops.CATEGORY_WORD: LETTERS + "0123456789_",
    ops.CATEGORY_SPACE: " ",
    ops.CATEGORY_NOT_DIGIT: LETTERS,
    ops.CATEGORY_NOT_WORD: " -.",
    ops.CATEGORY_NOT_SPACE: LETTERS,
}
# What ECMA-262 writes in another way than Python; of \p{...} a part is enough.
TRANSLATED = (
    (r"\(\?<(?=[A-Za-z_])", "(?P<"),
    (r"\\p\{(?:Lu|Uppercase_Letter)\}", "[A-Z]"),
    (r"\\p\{(?:Ll|Lowercase_Letter)\}", "[a-z]"),
    (r"\\p\{(?:L|Letter)\}", "[A-Za-z]"),
    (r"\\p\{(?:N|Nd|Number)\}", "[0-9]"),
)
MORE = 4  # repeats beyond the fewest


def matching(pattern: str, random: Random, length: int = 0) -> str:
    """A string in which the pattern is found, some `length` characters long where it may be.

    Look-around is not looked at.

    Raises:
        LookupError: the pattern is none that Python knows.
    """
    for ours, python in TRANSLATED:
        pattern = re.sub(ours, python, pattern)
    try:
        parsed = _parser.parse(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        raise LookupError(f"not a regular expression for Python: {pattern}") from error
    return _Matcher(random, length).every(parsed)


class _Matcher:
    def __init__(self, random: Random, length: int) -> None:
        self.random = random
        self.most = MORE + length
        self.groups: dict[int, str] = {}

    def every(self, nodes: Any) -> str:
        return "".join(self.one(op, argument) for op, argument in nodes)

    def one(self, op: Any, argument: Any) -> str:  # noqa: PLR0911 - one case for each kind of node
        match op:
            case ops.LITERAL:
                return chr(argument)
            case ops.NOT_LITERAL:
                return "b" if argument == ord("a") else "a"
            case ops.ANY:
                return self.random.choice(LETTERS)
            case ops.IN:
                return self.random.choice(_members(argument))
            case ops.BRANCH:
                return self.every(self.random.choice(argument[1]))
            case ops.SUBPATTERN:
                text = self.every(argument[-1])
                self.groups[argument[0]] = text
                return text
            case ops.GROUPREF:
                return self.groups.get(argument, "")
            case ops.ATOMIC_GROUP:
                return self.every(argument)
            case ops.MAX_REPEAT | ops.MIN_REPEAT | ops.POSSESSIVE_REPEAT:
                fewest, most, repeated = argument
                count = self.random.randint(fewest, max(fewest, min(int(most), fewest + self.most)))
                return "".join(self.every(repeated) for _ in range(count))
        return ""


def _members(items: Any) -> str:
    """Some characters of a class."""
    named = ""
    for op, argument in items:
        match op:
            case ops.LITERAL:
                named += chr(argument)
            case ops.RANGE:
                named += "".join(map(chr, range(argument[0], min(argument[1], argument[0] + 100) + 1)))
            case ops.CATEGORY:
                named += KINDS.get(argument, "a")
    if items[0][0] is ops.NEGATE:
        return "".join(each for each in LETTERS + "0123456789 .-" if each not in named) or "\u00e9"
    return named
