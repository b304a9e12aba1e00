"""A row's own fields: their values, by path, and how an answer may write each of them. Pure."""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from string import ascii_uppercase
from typing import Any, Final

from gym_conformance.contract.gold_names import is_gold
from gym_schemas import Way

#: Fields of every row, whatever its answer; the last two are those of recorded rollouts.
_NO_FIELDS: Final = frozenset({"responses_create_params", "agent_ref", "response", "reward"})

#: Values that occur in an answer by accident, as do texts of one character.
COMMON: Final = (None, True, False, 0, 1, -1, "")

#: How deep fields are searched, how many elements of a list are considered, and how many fields of a row.
_DEEP, _WIDE, _FIELDS = 5, 16, 400

#: The most characters of a value that may be in an answer.
_LONGEST = 20_000

#: The most parts of a list or an object that may be in an answer.
_PARTS: Final = 5_000

#: The least number of elements that something joins, and characters of that.
_FEW: Final = 2
_BETWEEN: Final = 6

#: Characters around an answer that are not part of it.
_MARKUP: Final = " \t\r\n`$\"'*."

_NUMBER: Final = re.compile(r"[-+]?\d[\d,]*(\.\d+)?")

_WORD: Final = re.compile(r"\w")

#: The relative difference of two numbers that a verifier may take for rounding.
_CLOSE: Final = 0.1


def fields_of(data: Mapping[str, Any]) -> Iterator[tuple[Way, Any]]:
    """Every text, number, list and object of a row outside of what is sent to the policy, with its path."""
    own = ((key, value) for key, value in data.items() if key not in _NO_FIELDS and not key.startswith("_"))
    for number, found in enumerate(found for key, value in own for found in _within(value, (key,))):
        if number >= _FIELDS:
            return
        yield found


def _within(value: Any, path: Way) -> Iterator[tuple[Way, Any]]:
    if value not in (None, "", [], {}):
        yield path, value
    if len(path) < _DEEP and isinstance(value, dict):
        for key, inner in value.items():
            yield from _within(inner, (*path, key))
    if len(path) < _DEEP and isinstance(value, list):
        for at, inner in enumerate(value[:_WIDE]):
            yield from _within(inner, (*path, at))


def value_at(data: Mapping[str, Any], path: Way) -> Any:
    """The value of a row's field; None if the row has no such field."""
    value: Any = data
    for key in path:
        try:
            value = value[key]
        except (LookupError, TypeError):
            return None
    return value


def dotted(path: Way) -> str:
    """A path in its usual notation: `verifier_metadata.answers[0]`."""
    return "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in path).removeprefix(".")


def names_gold(path: Way) -> bool:
    """Whether the name of the field, or of the object around it, says that it holds the right answer."""
    return any(isinstance(key, str) and is_gold(key) for key in path)


def _listed(value: Any) -> list[Any] | None:
    """The elements of a list of scalars, even if it is JSON in a text."""
    if isinstance(value, str) and len(value) <= _LONGEST and value.lstrip().startswith("["):
        with suppress(ValueError, RecursionError):
            value = json.loads(value)
    plain = (
        isinstance(value, list) and len(value) <= _PARTS and all(isinstance(each, str | int | float) for each in value)
    )
    return value if plain and value else None


def separators_in(value: Any, words: str) -> Iterator[str]:
    """What joins the elements of a list where they stand in the words in their order, such as ` > `."""
    elements = _listed(value) or []
    if _FEW <= len(elements) <= _WIDE:
        first, second, *rest = (re.escape(str(each)) for each in elements)
        joined = f'{first}(?P<by>[^\\w"]{{1,{_BETWEEN}}}?){second}' + "".join(f"(?P=by){each}" for each in rest)
        yield from dict.fromkeys(found["by"] for found in re.finditer(joined, words, re.IGNORECASE))


def _joined(by: str) -> Callable[[Any], str | None]:
    def join(value: Any) -> str | None:
        elements = _listed(value)
        return by.join(map(str, elements)) if elements else None

    return join


def _tabled(by: str) -> Callable[[Any], str | None]:
    def table(value: Any) -> str | None:
        rows = [_listed(each) for each in value] if isinstance(value, list) and len(value) <= _PARTS else []
        return "\n".join(by.join(map(str, each)) for each in rows if each) if rows and all(rows) else None

    return table


def _letter(value: Any) -> str | None:
    is_number = isinstance(value, int) and not isinstance(value, bool)
    return ascii_uppercase[value] if is_number and 0 <= value < len(ascii_uppercase) else None


def _plain(value: Any) -> str | None:
    if isinstance(value, bool):
        return str(value).lower()
    return str(value).strip() if isinstance(value, str | int | float) else None


def _bare(value: Any) -> str | None:
    return value.strip(_MARKUP) if isinstance(value, str) else None


def _as_json(**how: Any) -> Callable[[Any], str | None]:
    def write(value: Any) -> str | None:
        return (
            json.dumps(value, ensure_ascii=False, **how) if isinstance(value, list | dict) and _small(value) else None
        )

    return write


def _small(value: Any) -> bool:
    """Whether the value has few enough parts to be in an answer."""
    left, parts = _PARTS, [value]
    while parts and left > 0:
        part = parts.pop()
        left -= 1 + (len(part) if isinstance(part, list | dict) else 0)
        if left > 0 and isinstance(part, list | dict):
            parts += part.values() if isinstance(part, dict) else part
    return left > 0


#: How lists are joined, by name.
_JOINED: Final = {"with commas": ", ", "on lines": "\n", "with spaces": " "}

#: How an answer may write a value, by name: each returns the text, or None if the value cannot be written that way.
RENDERINGS: Final[Mapping[str, Callable[[Any], str | None]]] = {
    "as it stands": _plain,
    "without its mark-up": _bare,
    **{name: _joined(by) for name, by in _JOINED.items()},
    **{name: _tabled(by) for name, by in (("in rows", " "), ("in rows without spaces", ""))},
    "as an option's letter": _letter,
    "as JSON": _as_json(),
    "as compact JSON": _as_json(separators=(",", ":")),
}


@dataclass(frozen=True)
class Placeholder:
    """What fills a template: a field of the row, and its notation.

    With a `key`, the field holds choices, and that other field names the chosen one. With a `separator`, that stands
    between the elements of a list.
    """

    path: Way
    rendering: str = "as it stands"
    key: Way = ()
    separator: str = ""

    def __str__(self) -> str:
        how = "" if self.rendering == "as it stands" else f" {self.rendering}"
        how = f" with {self.separator!r}" if self.separator else how
        return f"{{{dotted(self.path)}{f'[{dotted(self.key)}]' if self.key else ''}{how}}}"

    @property
    def names_gold(self) -> bool:
        """Whether its field is named like an answer."""
        return names_gold(self.key or self.path)

    @property
    def joins(self) -> bool:
        """Whether it is filled by several values, each of which an answer may have to contain somewhere."""
        return bool(self.separator) or self.rendering in _JOINED

    @property
    def joint(self) -> str:
        """What stands between the values that fill it, or could if there were several."""
        return self.separator or _JOINED.get(self.rendering, ", ")

    def elements(self, data: Mapping[str, Any]) -> list[str]:
        """The several values that fill it, each as text; none unless it joins them."""
        return list(map(str, _listed(value_at(data, self.path)) or [])) if self.joins else []

    def text(self, data: Mapping[str, Any]) -> str | None:
        """The row's text for it; None if the row has none."""
        value = value_at(data, self.path)
        text = self.render(chosen(value, value_at(data, self.key)) if self.key else value)
        return text if text and len(text) <= _LONGEST else None

    def others(self, data: Mapping[str, Any]) -> list[str]:
        """The row's other choices in the same notation; none if the field holds no choices."""
        choices, right = value_at(data, self.path), self.text(data)
        names = [
            name
            for each in (choices if isinstance(choices, list) else [choices])
            if isinstance(each, dict)
            for name in each
        ]
        texts = (self.render(chosen(choices, name)) for name in names) if self.key else ()
        return [text for text in dict.fromkeys(texts) if text and text != right]

    def render(self, value: Any) -> str | None:
        """The text for a value."""
        return (_joined(self.separator) if self.separator else RENDERINGS[self.rendering])(value)


def chosen(choices: Any, key: Any) -> Any:
    """The choice of that name, in an object, or in a list of objects with one key each, as `options` often is."""
    for each in choices if isinstance(choices, list) else [choices]:
        if isinstance(each, dict) and isinstance(key, str) and key in each:
            return each[key]
    return None


def written(value: Any) -> Iterator[tuple[str, str]]:
    """The ways to write a value, each with its name, without duplicate texts."""
    seen = set()
    for name, render in RENDERINGS.items():
        if (text := render(value)) and len(text) <= _LONGEST and text not in seen:
            seen.add(text)
            yield name, text


def plain(text: str) -> str:
    """A text in lower case, without surrounding white space and markup, as most verifiers read it."""
    return " ".join(text.strip(_MARKUP).casefold().split())


def may_be_the_same(one: str, other: str) -> bool:
    """Whether a fair verifier might equate two texts: same words in any order, one part of the other, close numbers.

    Of tables, the order of the rows may not matter; that of what stands in a row does.
    """
    rows, others = _rows(one), _rows(other)
    if rows and others:
        return sorted(rows) == sorted(others)
    first, second = plain(one), plain(other)
    if sorted(first.split()) == sorted(second.split()) or _is_part(first, second) or _is_part(second, first):
        return True
    if _NUMBER.fullmatch(first) and _NUMBER.fullmatch(second):
        x, y = float(first.replace(",", "")), float(second.replace(",", ""))
        return abs(x - y) <= _CLOSE * min(abs(x), abs(y))
    return False


def _rows(text: str) -> list[list[str]]:
    """The rows of a table in words; none if lines have one word, or different numbers of words."""
    rows = [line.split() for line in text.strip().splitlines()]
    return rows if len(rows) > 1 and len(rows[0]) > 1 and len({*map(len, rows)}) == 1 else []


def _is_part(one: str, other: str) -> bool:
    """Whether one text occurs in the other as whole words."""
    at = other.find(one) if one else -1
    while at >= 0:
        if not _WORD.match(other[at - 1 : at]) and not _WORD.match(other, at + len(one)):
            return True
        at = other.find(one, at + 1)
    return False
