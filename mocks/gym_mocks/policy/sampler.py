"""Random values in the shape of a JSON Schema; nearly always valid, and whoever needs certainty validates."""

import re
from collections.abc import Mapping, Sequence
from fractions import Fraction
from random import Random
from typing import Any

from gym_mocks.policy.patterns import matching
from gym_mocks.policy.schemas import resolved, types_of

Schema = Mapping[str, Any]

WORDS = ("apple", "Paris", "blue", "seven", "note", "x")
FORMATS = {
    "date": "2024-02-29",
    "date-time": "2024-02-29T12:00:00Z",
    "time": "12:00:00Z",
    "duration": "P1D",
    "email": "ada@example.org",
    "idn-email": "ada@example.org",
    "hostname": "example.org",
    "idn-hostname": "example.org",
    "ipv4": "192.0.2.1",
    "ipv6": "2001:db8::1",
    "uri": "https://example.org/a",
    "iri": "https://example.org/a",
    "uuid": "12345678-1234-4123-8123-123456789abc",
    "json-pointer": "/a",
    "relative-json-pointer": "1/a",
    "regex": "a+",
}
DEEP = 4  # below that a recursive schema is brought to its end
DEEPEST = 40  # below that it has none
SPREAD = 10  # how far numbers range where nothing bounds them


class Sampler:
    """Makes values of one schema.

    Args:
        root: the schema, which its own references lead into.
        random: makes the choices.
    """

    def __init__(self, root: Schema, random: Random) -> None:
        self.root = root
        self.random = random

    def value(self, schema: Any = None, depth: int = 0) -> Any:
        """A value of a schema, or of the root.

        Raises:
            LookupError: the choices made lead nowhere; others may not.
        """
        if depth > DEEPEST:
            raise LookupError("the schema has no end")
        found = resolved(self.root if schema is None else schema, self.root, self.random, brief=depth > DEEP)
        if "const" in found:
            return found["const"]
        if "enum" in found:
            return self.random.choice(found["enum"])
        kinds = types_of(found)
        scalars = [kind for kind in kinds if kind not in {"object", "array"}]
        kind = self.random.choice(scalars if scalars and depth > DEEP else kinds)
        makers = {"object": self._object, "array": self._array}
        if kind in makers:
            return makers[kind](found, depth + 1)
        if kind in {"integer", "number"}:
            return self._number(found, whole=kind == "integer")
        if kind == "string":
            return self._string(found)
        return self.random.choice([True, False]) if kind == "boolean" else None

    def _object(self, schema: Schema, depth: int) -> dict[str, Any]:
        properties, required = schema.get("properties", {}), schema.get("required", [])
        most = schema.get("maxProperties", len(properties) + len(required))
        optional = [name for name in properties if name not in required]
        self.random.shuffle(optional)
        likely = 0.0 if depth > DEEP else 0.5
        names = [*required, *(name for name in optional if self.random.random() < likely)][: max(most, len(required))]
        least = schema.get("minProperties", 0)
        names += [name for name in optional if name not in names][: max(0, least - len(names))]
        names += [self._name(schema, number) for number in range(least - len(names))]
        ordered = sorted(
            dict.fromkeys(names), key=lambda name: (name not in properties, [*properties, name].index(name))
        )
        return {name: self.value(self._child(schema, name), depth) for name in ordered}

    def _child(self, schema: Schema, name: str) -> Any:
        """What a property must be: what is said of its name, of a pattern it matches, or of any other."""
        said = [schema["properties"][name]] if name in schema.get("properties", {}) else []
        patterns = schema.get("patternProperties", {})
        said += [each for pattern, each in patterns.items() if re.search(pattern, name)]
        said = said or [schema.get("additionalProperties", True)]
        return said[0] if len(said) == 1 else {"allOf": said}

    def _name(self, schema: Schema, number: int) -> str:
        """The name of a property that is not listed."""
        pattern = next(iter(schema.get("patternProperties", {})), None)
        if pattern:
            return f"{matching(pattern, self.random)}{number}"
        named = self.value({"type": "string"} | schema.get("propertyNames", {}))
        return str(named) if number == 0 else f"{named}{number}"

    def _array(self, schema: Schema, depth: int) -> list[Any]:
        least, contained = schema.get("minItems", 0), schema.get("contains")
        most = schema.get("maxItems", max(least, 1) + 2)
        count = least if depth > DEEP else self.random.randint(least, max(least, min(most, least + 2)))
        old = schema.get("items") if isinstance(schema.get("items"), Sequence) else None  # a tuple before 2020-12
        first = schema.get("prefixItems", old or [])
        rest = schema.get("additionalItems", True) if old is not None else schema.get("items", True)
        count = min(count, len(first)) if rest is False else count
        wanted = schema.get("minContains", 1) if contained is not None else 0
        kinds = [first[place] if place < len(first) else rest for place in range(max(count, wanted))]
        kinds[:wanted] = [{"allOf": [kind, contained]} for kind in kinds[:wanted]]
        return [self.value(kind, depth) for kind in kinds]

    def _number(self, schema: Schema, *, whole: bool) -> int | float:
        step = Fraction(str(schema.get("multipleOf", 1 if whole else "0.25")))
        step = step if not whole or step.denominator == 1 else Fraction(step.numerator)
        low, high = schema.get("minimum"), schema.get("maximum")
        over, under = schema.get("exclusiveMinimum"), schema.get("exclusiveMaximum")
        over, under = (low if over is True else over), (high if under is True else under)  # draft 4
        start = max((Fraction(str(each)) for each in (low, over) if _is_number(each)), default=None)
        end = min((Fraction(str(each)) for each in (high, under) if _is_number(each)), default=None)
        if start is not None and end is not None and "multipleOf" not in schema and not whole:
            step = min(step, (end - start) / 8) or step
        if start is None:
            start = (end - SPREAD * step) if end is not None else Fraction(0)
        end = start + SPREAD * step if end is None else end
        first, last = -(-start // step), end // step
        first += first * step == over if _is_number(over) else 0
        last -= last * step == under if _is_number(under) else 0
        if first > last:
            raise LookupError("no number lies between the bounds")
        chosen = step * self.random.randint(first, last)
        return int(chosen) if whole or chosen.denominator == 1 else float(chosen)

    def _string(self, schema: Schema) -> str:
        least, most = schema.get("minLength", 0), schema.get("maxLength")
        if "pattern" in schema:
            return matching(schema["pattern"], self.random, least)
        text = FORMATS.get(schema.get("format", ""), self.random.choice(WORDS))
        return text.ljust(least, "x")[:most]


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
