"""What a JSON value is here, and how two of them compare."""

import json
from typing import Any, TypeAlias

Json: TypeAlias = Any
"""None, bool, int, finite float, str, list of Json, or dict from str to Json."""

LARGEST = 2**53 - 1
"""The largest integer that every JSON client carries exactly (RFC 8259, section 6)."""

TYPES = ("string", "integer", "number", "boolean", "array", "object", "null")
"""JSON Schema's types, simple values first."""


def text(value: Json) -> str:
    """The value as JSON on one line, ASCII only, keys in their order."""
    return json.dumps(value)


def shown(value: Json, limit: int = 60) -> str:
    """The value as JSON, cut in the middle where it is longer than `limit` characters."""
    whole = text(value) if not isinstance(value, str) else text(value[: limit + 1])
    return whole if len(whole) <= limit else f"{whole[: limit - 15]} ... {whole[-10:]}"


def simplicity(value: Json) -> tuple[int, str]:
    """A sort key: shorter JSON text is simpler; false is as short as true."""
    whole = text(value)
    return len(whole) - (value is False), whole


def identity(value: Json) -> str:
    """A text that two values share exactly if JSON Schema takes them for equal: 1 is 1.0, true is not 1."""
    return json.dumps(_plain(value), sort_keys=True)


def _plain(value: Json) -> Json:
    match value:
        case float() if value.is_integer():
            return int(value)
        case list():
            return [_plain(item) for item in value]
        case dict():
            return {name: _plain(item) for name, item in value.items()}
    return value
