"""Answers that are one JSON object, the values of which stand in several fields of the row. Pure."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

from gym_conformance.calibration.given_answer import GivenAnswer
from gym_conformance.contract.row_fields import COMMON, dotted, fields_of, names_gold, value_at
from gym_schemas import Way, filled, name_of, same

#: Where objects may begin in a text, and how many are parsed.
_BRACE: Final = re.compile(r"\{")
_OBJECTS: Final = 16

#: The least number of the row's fields in an object: a single one stands in a text like any other.
_PARTS: Final = 2


@dataclass(frozen=True)
class ObjectTemplate:
    """A final text with a JSON object.

    Attributes:
        before: the text before the object.
        form: the object, as JSON, with null for what is taken from the row.
        parts: the places of these values in the object, each with the row's field.
        after: the text after the object.
    """

    before: str
    form: str
    parts: tuple[tuple[Way, Way], ...]
    after: str

    def __str__(self) -> str:
        return json.dumps(self._object({place: f"{{{dotted(path)}}}" for place, path in self.parts}))

    @property
    def names_gold(self) -> bool:
        """Whether all its fields are named like an answer."""
        return all(names_gold(path) for _, path in self.parts)

    def values(self, data: Mapping[str, Any]) -> dict[Way, Any]:
        """The row's values, by their places in the object; those that the row lacks are left out."""
        found = {place: value_at(data, path) for place, path in self.parts}
        return {place: value for place, value in found.items() if value is not None}

    def fill(self, data: Mapping[str, Any]) -> GivenAnswer | None:
        """A message; None if the row lacks one of the fields."""
        values = self.values(data)
        return self.of(values) if len(values) == len(self.parts) else None

    def of(self, values: Mapping[Way, Any]) -> GivenAnswer:
        """A message with these values in the object; one that is ABSENT is left out."""
        written = self.written(values)
        return GivenAnswer.of((), self.write(written), (written,))

    def written(self, values: Mapping[Way, Any]) -> str:
        """The object alone."""
        return json.dumps(self._object(values), ensure_ascii=False)

    def write(self, text: str) -> str:
        """The final text with `text` in the place of the object."""
        return f"{self.before}{text}{self.after}"

    def _object(self, values: Mapping[Way, Any]) -> Any:
        return filled(json.loads(self.form), values)


def of_object(words: str, data: Mapping[str, Any]) -> Iterator[ObjectTemplate]:
    """The text as a template, if it has an object with values of several fields of the row."""
    for brace in islice(_BRACE.finditer(words), _OBJECTS):
        with suppress(ValueError, RecursionError):
            found, end = json.JSONDecoder().raw_decode(words, brace.start())
            fields = list(fields_of(data))
            parts = tuple(_parts(found, fields, ()))
            if len({path for _, path in parts}) >= _PARTS:
                form = json.dumps(filled(found, {place: None for place, _ in parts}))
                yield ObjectTemplate(words[: brace.start()], form, parts, words[end:])
            return


def _parts(value: Any, fields: Sequence[tuple[Way, Any]], way: Way) -> Iterator[tuple[Way, Way]]:
    """The places in a value at which a field of the row stands, whole lists rather than what is in them."""
    likely = [path for path, own in fields if way and not isinstance(own, dict) and _is(own, value, path, way)]
    if likely:
        keys = {step for step in way if isinstance(step, str)}
        yield way, max(likely, key=lambda path: (len(keys.intersection(path)), names_gold(path)))
    elif isinstance(value, dict | list):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _parts(inner, fields, (*way, key))


def _is(own: Any, value: Any, path: Way, way: Way) -> bool:
    """Whether the field holds the value; what occurs by accident must stand under the same key."""
    return type(own) is type(value) and same(own, value) and (own not in COMMON or name_of(path) == name_of(way))
