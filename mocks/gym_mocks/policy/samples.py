"""Values of a JSON Schema, for policies that call tools: small and valid."""

from random import Random
from typing import Any

WORDS = ("apple", "Paris", "blue", "seven", "note", "x")


def sample(schema: dict[str, Any], random: Random) -> Any:
    """A value that a schema allows. It knows neither `pattern` nor `$ref`."""
    if "const" in schema:
        return schema["const"]
    if schema.get("enum"):
        return random.choice(schema["enum"])
    for key in ("anyOf", "oneOf"):
        if schema.get(key):
            return sample(random.choice(schema[key]), random)
    kind = schema.get("type", "object" if "properties" in schema else "string")
    if isinstance(kind, list):
        kind = random.choice(kind)
    makers = {"object": _object, "array": _array, "integer": _integer, "number": _number, "string": _string}
    if kind in makers:
        return makers[kind](schema, random)
    return random.choice([True, False]) if kind == "boolean" else None


def _object(schema: dict[str, Any], random: Random) -> dict[str, Any]:
    required = schema.get("required", [])
    properties = schema.get("properties", {})
    return {
        name: sample(each, random)
        for name, each in properties.items()
        if name in required or random.random() < 0.5  # noqa: PLR2004 - half of the optional ones
    }


def _array(schema: dict[str, Any], random: Random) -> list[Any]:
    least = schema.get("minItems", 0)
    count = random.randint(least, max(least, min(schema.get("maxItems", least + 2), least + 2)))
    return [sample(schema.get("items", {}), random) for _ in range(count)]


def _bounds(schema: dict[str, Any], step: float) -> tuple[float, float]:
    low = schema.get("minimum", schema.get("exclusiveMinimum", -step) + step)
    high = schema.get("maximum", schema.get("exclusiveMaximum", low + 10 + step) - step)
    return low, high


def _integer(schema: dict[str, Any], random: Random) -> int:
    low, high = _bounds(schema, 1)
    factor = schema.get("multipleOf", 1)
    return int(random.randint(-(-int(low) // factor), int(high) // factor) * factor)


def _number(schema: dict[str, Any], random: Random) -> float:
    low, high = _bounds(schema, 0.5)
    return round(random.uniform(low, high), 2) if high - low > 1 else low


def _string(schema: dict[str, Any], random: Random) -> str:
    formats = {"date": "2024-02-29", "date-time": "2024-02-29T12:00:00Z", "email": "ada@example.org"}
    text = formats.get(schema.get("format", ""), random.choice(WORDS))
    return text.ljust(schema.get("minLength", 0), "x")[: schema.get("maxLength", len(text) + 1000)]
