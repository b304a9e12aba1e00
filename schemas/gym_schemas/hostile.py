"""Values that are valid JSON but break servers, each placed somewhere in otherwise valid arguments."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from gym_schemas.json_values import Json
from gym_schemas.places import SchemaPlace, places, put
from gym_schemas.schema_reading import Parameters, SchemaReading, read
from gym_schemas.strategies import drawn_maker, valid_arguments

#: Levels of nesting: below the 255 that pydantic can write, as when FastAPI echoes in a 422 what it refuses.
_DEPTHS = (20, 100, 200)
_LENGTHS = (256, 5_000, 70_000)


@dataclass(frozen=True)
class Hostile:
    """Arguments that may or may not be valid; a server must survive them."""

    value: Json
    label: str
    """What is hostile, and where: `city: a lone surrogate`."""


_STRINGS = {
    "a lone surrogate": ("\ud800", "a\udfffz", "\udc00\ud800"),
    "NUL": ("\0", "a\0b"),
    "control characters": ("\x1b[31m", "\r\n", "\x7f\x85", "\b\f\v"),
    "line separators": ("\u2028", "a\u2029b"),
    "right to left": ("\u202egnp.exe", "\u05d0\u200f1"),
    "invisible characters": ("\u200b", "\ufeff", "\u2060a", "\U000e0041"),
    "combining marks": ("e" + "\u0301" * 50, "\u0300"),
    "beyond the basic plane": ("\U0001f9d1\u200d\U0001f52c", "\U0001d518", "\U0010ffff"),
    "letters that change length with case": ("\u0130", "\u00df", "\ufb03"),
    "digits of another script": ("\u0663", "\u00b2", "\uff11"),
    "white space": (" ", "\t", "\u00a0", " a "),
    "a path upwards": ("../../etc/passwd", "/", "..", "file:///etc/hosts"),
    "code": ("{{7*7}}", "${x}", "%s%n", "'; --", '"', "`id`", "<b>", "__import__('os')", "\\"),
    "a word for nothing": ("null", "None", "undefined", "NaN", "-Infinity", "true"),
    "a name that all objects have": ("constructor", "__proto__", "toString", "hasOwnProperty"),
    "a number as text": ("0", "-1", "1e999", "0x10", "1_000", "00"),
}
_NUMBERS = {
    "past 53 bits": (2**53, -(2**53) - 1),
    "past 64 bits": (2**63, 2**64, -(2**63) - 1),
    "a number past all floats": (10**400, -(10**400)),
    "a largest or smallest float": (1.7976931348623157e308, -1.7976931348623157e308, 5e-324),
    "zero": (0, -0.0),
    "a float without fraction": (1.0, 1e16),
    "a negative number": (-1, -0.5),
}
_NAMES = ("", "\0", "__proto__", "__class__", "$ref", "a.b", "self", "session_id", "\u00e9", "x" * 300)


def hostile_arguments(schema: Parameters) -> SearchStrategy[Hostile]:
    """Valid arguments with one hostile value in one place, or with an additional hostile property.

    Strings may contain lone surrogates: send them as JSON escapes (as `json.dumps` does), not as UTF-8. Nothing is
    nested deeper than 200 levels, or longer than 70,000 characters. Empty if no valid value is known.
    """
    right = valid_arguments(schema)
    return st.nothing() if right.is_empty else _hostile(right, read(schema))


@lru_cache(512)
def _sites(reading: SchemaReading) -> tuple[SchemaPlace, ...]:
    """Where a value can be placed: each path once, and the whole value only if there is no other."""
    found = {place.path: place for place in places(reading)}
    return tuple(place for path, place in found.items() if path) or tuple(found.values())


def _labelled(table: dict[str, tuple[Any, ...]]) -> SearchStrategy[tuple[Json, str]]:
    return st.sampled_from([(value, label) for label, values in table.items() for value in values])


def _nested(depth: int, *, named: bool) -> tuple[Json, str]:
    value: Json = 0
    for _ in range(depth):
        value = {"a": value} if named else [value]
    return value, f"{depth} levels of {'objects' if named else 'arrays'}"


def _long(length: int, character: str) -> tuple[Json, str]:
    return character * length, f"{length} characters"


_VALUES: SearchStrategy[tuple[Json, str]] = st.one_of(
    _labelled(_STRINGS),
    _labelled(_NUMBERS),
    st.builds(_long, st.sampled_from(_LENGTHS), st.sampled_from("0 \u00e9\U0001f600")),
    st.builds(_nested, st.sampled_from(_DEPTHS), named=st.booleans()),
    st.sampled_from([([0] * 1_000, "1,000 items"), ({str(number): 0 for number in range(1_000)}, "1,000 properties")]),
    st.text(st.characters(categories=("Cs", "Cc", "Cf", "Co", "Cn", "Zl", "Zp", "Mn")), min_size=1).map(
        lambda odd: (odd, "unusual characters")
    ),
)


@st.composite
def _hostile(draw: DrawFn, right: SearchStrategy[Json], reading: SchemaReading) -> Hostile:
    value = draw(right)
    place = draw(st.sampled_from([*_sites(reading), None]))
    if place is None and isinstance(value, dict):
        name = draw(st.sampled_from(_NAMES))
        return Hostile({**value, name: 0}, f"a property named {name[:20]!r}")
    odd, label = draw(_VALUES)
    if place is None or not place.path:
        return Hostile(odd, label)
    return Hostile(put(drawn_maker(draw, reading), value, place.steps, lambda _: odd), f"{place.path}: {label}")
