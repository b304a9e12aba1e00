r"""Texts that match regular expressions in the dialect of JSON Schema (ECMA-262).

An expression is parsed into parts, from which a `Choices` makes a text. Look-behind and negative look-around are
ignored, and classes such as \p{L} or [^x] are represented by a sample: callers must check the text with the schema.
"""

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import NamedTuple

import jsonschema_rs

from gym_schemas.acceptance import accepted
from gym_schemas.choices import Choices

_DIGITS, _LOWER = "0123456789", "abcdefghijklmnopqrstuvwxyz"
_WORD = _LOWER + _LOWER.upper() + _DIGITS + "_"
_SAMPLE = _WORD + "- .,:;!?/@#'\"()[]{}<>+*=&%$|~^`\\\u00e9\u00df\u4e2d"
_CLASSES = {"d": _DIGITS, "w": _WORD, "s": " \t\n", "D": _LOWER + " -", "W": " -.,!/", "S": _WORD + "-.,!"}
_CONTROLS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f", "v": "\v", "0": "\0"}
_PROPERTIES = {
    **dict.fromkeys(("L", "Letter", "Alphabetic"), "aAbBzZ\u00e9"),
    **dict.fromkeys(("Lu", "Uppercase_Letter", "Uppercase"), _LOWER.upper()),
    **dict.fromkeys(("Ll", "Lowercase_Letter", "Lowercase"), _LOWER),
    **dict.fromkeys(("N", "Nd", "Number", "Decimal_Number"), _DIGITS),
    **dict.fromkeys(("P", "Punctuation"), "!,.?;:"),
    **dict.fromkeys(("Z", "Zs", "Separator", "Space_Separator"), " "),
}
_COUNT = re.compile(r"\{(\d+)(,(\d*))?\}")
_GROUP = re.compile(r"\?(?::|P?<(?P<name>[A-Za-z_$][\w$]*)>|(?P<ahead>=)|(?P<other>!|<=|<!))")
_CODE = re.compile(r"x([0-9a-fA-F]{2})|u\{([0-9a-fA-F]{1,6})\}|u([0-9a-fA-F]{4})")
_MOST, _MORE = 4_096, 4


class _Unreadable(Exception):
    pass


class _Part(NamedTuple):
    """A part of an expression: the length of its shortest match, and a function that writes a match."""

    least: int
    text: Callable[["_Writer"], str]


def _letter(members: str) -> _Part:
    return _Part(1, lambda writer: writer.choices.letter(members) if len(members) > 1 else members)


def _row(parts: Sequence[_Part]) -> _Part:
    return _Part(sum(part.least for part in parts), lambda writer: "".join(part.text(writer) for part in parts))


def _either(options: Sequence[_Part]) -> _Part:
    least = min(option.least for option in options)

    def text(writer: "_Writer") -> str:
        chosen = writer.choices.pick([one for one in options if one.least - least <= max(0, writer.room)])
        writer.spend(chosen.least - least)
        return chosen.text(writer)

    return _Part(least, text)


def _times(part: _Part, low: int, high: int) -> _Part:
    unit = max(1, part.least)

    def text(writer: "_Writer") -> str:
        least = min(high, low + -(-max(0, writer.short) // unit))
        most = min(high, max(least, low + _MORE), low + max(0, writer.room) // unit)
        times = writer.choices.count(least, max(least, most))
        writer.spend((times - low) * unit)
        return "".join(part.text(writer) for _ in range(times))

    return _Part(low * part.least, text)


def _named(part: _Part, names: Sequence[str]) -> _Part:
    def text(writer: "_Writer") -> str:
        made = part.text(writer)
        writer.groups |= dict.fromkeys(names, made)
        return made

    return _Part(part.least, text)


def _again(name: str) -> _Part:
    return _Part(0, lambda writer: writer.groups.get(name, ""))


_NOTHING = _row(())


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = self.groups = 0

    def peek(self) -> str:
        return self.text[self.at : self.at + 1]

    def next(self) -> str:
        self.at += 1
        return self.text[self.at - 1 : self.at]

    def whole(self) -> _Part:
        part = self.either()
        if self.at < len(self.text):
            raise _Unreadable
        return part

    def either(self) -> _Part:
        options = [self.row()]
        while self.peek() == "|":
            self.at += 1
            options.append(self.row())
        return options[0] if len(options) == 1 else _either(options)

    def row(self) -> _Part:
        parts = []
        while self.peek() not in ("", "|", ")"):
            parts.append(self.times(self.one()))
        return parts[0] if len(parts) == 1 else _row(parts)

    def times(self, part: _Part) -> _Part:
        low, high = 1, 1
        if self.peek() and self.peek() in "*+?":
            low, high = {"*": (0, _MOST), "+": (1, _MOST), "?": (0, 1)}[self.next()]
        elif found := _COUNT.match(self.text, self.at):
            low = int(found[1])
            high = low if found[2] is None else int(found[3] or max(low, _MOST))
            self.at = found.end()
        else:
            return part
        if self.peek() and self.peek() in "?+":  # lazy and possessive repetitions match the same texts
            self.at += 1
        if low * max(part.least, 1) > _MOST or high < low:
            raise _Unreadable
        return _times(part, low, high)

    def one(self) -> _Part:
        char = self.next()
        match char:
            case "(":
                return self.group()
            case "[":
                return _letter(self.members())
            case "\\":
                return self.escaped()
            case "^" | "$":
                return _NOTHING
            case ".":
                return _letter(_SAMPLE)
            case "*" | "+" | "?":
                raise _Unreadable
        return _letter(char)

    def group(self) -> _Part:
        found = _GROUP.match(self.text, self.at)
        names: tuple[str, ...] = ()
        if self.peek() == "?":
            if not found:
                raise _Unreadable
            self.at = found.end()
        if not found or found["name"]:
            self.groups += 1
            names = (str(self.groups), *([found["name"]] if found else []))
        part = self.either()
        if self.next() != ")":
            raise _Unreadable
        if found and found["other"]:
            return _NOTHING
        if found and found["ahead"]:  # a look-ahead is satisfied by writing its match here
            return _times(part, 0, 1)
        return _named(part, names) if names else part

    def escaped(self) -> _Part:
        char = self.peek()
        if char in ("b", "B", "A", "Z", "z"):
            self.at += 1
            return _NOTHING
        if char.isdecimal() and char != "0":
            return _again(self.next())
        if found := re.compile(r"k<([^>]+)>").match(self.text, self.at):
            self.at = found.end()
            return _again(found[1])
        return _letter(self.class_())

    def class_(self) -> str:
        r"""What an escape matches, in a class or outside: \d, \p{L}, \u0041, \n, \-."""
        if found := _CODE.match(self.text, self.at):
            self.at = found.end()
            return chr(int(found[1] or found[2] or found[3], 16))
        if found := re.compile(r"p\{([^}]*)\}").match(self.text, self.at):
            self.at = found.end()
            known = _PROPERTIES.get(found[1].rpartition("=")[2])
            if known is None:
                raise _Unreadable
            return known
        char = self.next()
        if char in ("", "p", "P", "u", "x", "k", "c"):
            raise _Unreadable
        return _CLASSES.get(char) or _CONTROLS.get(char) or char

    def members(self) -> str:
        """The characters of a class, after its opening bracket."""
        negated = self.peek() == "^"
        self.at += negated
        found = ""
        while (char := self.next()) != "]":
            if not char:
                raise _Unreadable
            named = self.class_() if char == "\\" else char
            if len(named) == 1 and self.peek() == "-" and self.text[self.at + 1 : self.at + 2] not in ("", "]"):
                self.at += 1
                last = self.next()
                last = self.class_() if last == "\\" else last
                if len(last) != 1 or last < named:
                    raise _Unreadable
                named = "".join(map(chr, range(ord(named), min(ord(last), ord(named) + 200) + 1)))
            found += named
        if negated:
            found = "".join(char for char in _SAMPLE if char not in found)
        if not found:
            raise _Unreadable
        return found


class _Writer:
    """The choices for one text, and how many characters it still lacks, or has room for, beyond the shortest match."""

    def __init__(self, choices: Choices, short: int, room: int) -> None:
        self.choices = choices
        self.short = short
        self.room = room
        self.groups: dict[str, str] = {}

    def spend(self, characters: int) -> None:
        self.short -= characters
        self.room -= characters


@lru_cache(1024)
def _read(pattern: str) -> _Part | None:
    try:
        return _Reader(pattern).whole()
    except (_Unreadable, RecursionError):
        return None


def text_of(patterns: Sequence[str], choices: Choices, low: int = 0, high: int | None = None) -> str | None:
    """A text that all patterns match, or nearly; None if one of them cannot be parsed."""
    ordered = sorted(dict.fromkeys(patterns), key=lambda one: (not one.startswith("^"), one.endswith("$")))
    parts = [part for pattern in ordered if (part := _read(pattern)) is not None]
    if len(parts) < len(ordered) or not ordered:
        return None
    before = "" if ordered[0].startswith("^") or "^" in ordered[0][:4] else choices.padding()
    after = "" if ordered[-1].endswith("$") or "$" in ordered[-1][-4:] else choices.padding()
    row = _row(parts)
    writer = _Writer(choices, low - row.least, (_MOST if high is None else high) - row.least)
    return before + row.text(writer) + after


@lru_cache(1024)
def _validator(pattern: str) -> jsonschema_rs.Validator:
    return jsonschema_rs.validator_for({"pattern": pattern})


def matches(pattern: str, text: str) -> bool:
    """Whether the pattern matches somewhere in the text."""
    return accepted(_validator(pattern), text)
