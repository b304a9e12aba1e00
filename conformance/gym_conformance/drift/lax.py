"""Readings of a schema besides the literal one: what pydantic may accept, what is offered by name, what is explicit.

Source: pydantic's conversion table (https://docs.pydantic.dev/latest/concepts/conversion_table/), Python input, since
FastAPI parses the JSON body first. `lax` goes further than pydantic wherever its rules are intricate, so that a value
refused even by `lax` is refused by every pydantic model of that schema.
"""

from typing import Any

from gym_schemas import Schema, rewrite, walk

_NUMERIC_TEXT = {"type": "string", "pattern": r"^\s*[+-]?([0-9._eE+-]+|[iI][nN][fF].*|[nN][aA][nN])\s*$"}
_BOOLEAN_TEXT = {
    "type": "string",
    "pattern": r"^\s*(?:[01]|[fFnNtTyY]|[oO][nN]|[oO][fF][fF]|[tT]rue|TRUE|[fF]alse|FALSE|[yY]es|YES|[nN]o|NO)\s*$",
}
_ZERO_ONE = {"enum": [0, 1]}

#: Text in a format that pydantic may accept though the format's own rule does not allow it.
_LOOSE_TIME: list[Schema] = [{"type": ["number", "boolean"]}, {"type": "string", "pattern": "[0-9]"}]
_LOOSE_ADDRESS: list[Schema] = [{"type": "integer"}, {"type": "string", "pattern": "[0-9a-fA-F:]"}]
_LOOSE_FORMATS: dict[str, list[Schema]] = {
    "date": _LOOSE_TIME,
    "date-time": _LOOSE_TIME,
    "time": _LOOSE_TIME,
    "duration": _LOOSE_TIME,
    "ipv4": _LOOSE_ADDRESS,
    "ipv6": _LOOSE_ADDRESS,
    "uuid": [{"type": "string", "pattern": "[0-9a-fA-F]{8}"}],
    "email": [{"type": "string", "pattern": "@"}],
    "uri": [{"type": "string", "pattern": ":"}],
}
#: A longer text or list may be refused unless the schema explicitly allows it: strict mode cannot express such limits.
_AMPLE = {"maxLength": 1_000, "maxItems": 100}

#: Keywords of a schema that say whether a text or a list may be empty.
_SPEAKS_OF_EMPTY = frozenset({"enum", "const", "pattern", "format", "minLength", "minItems", "default"})

#: Keywords of a schema that say how large a number may be.
SAYS_MOST = frozenset({"maximum", "exclusiveMaximum"})

#: Keywords of a schema that say which texts there are, and not only how long they are.
_SAYS_WHICH = frozenset({"enum", "const", "pattern", "format"})

_SHUT = ("additionalProperties", "unevaluatedProperties", "patternProperties")
_COMBINING = ("allOf", "anyOf", "oneOf", "$ref", "if", "dependentSchemas", "not")


def lax(document: Schema) -> Schema:
    """A schema that accepts whatever pydantic might accept for this modern one, and more."""
    return rewrite(document, _lax)


def closed(document: Schema) -> Schema:
    """The modern schema in which an object that names its properties allows no others, unless it says so itself."""
    if not isinstance(document, dict):
        return document
    combines = any(keyword in node for _, node in walk(document) for keyword in ("allOf", "if", "not"))
    defs = document.get("$defs", {})
    made = _close(document)
    return {**made, "$defs": defs if combines else {name: _close(one) for name, one in defs.items()}} if defs else made


def explicit(document: Schema) -> Schema:
    """The modern schema without the empty or huge texts and lists that it does not explicitly allow.

    They may be refused for good reason.
    """
    least = {"minLength": 1, "minItems": 1}
    return rewrite(document, lambda node: node if _SPEAKS_OF_EMPTY & node.keys() else {**least, **_AMPLE, **node})


def leaves_open(schema: Schema) -> bool:
    """Whether it allows texts of which it says no more than how long they are: that does not tell a date from another."""
    texts = (node for _, node in walk(schema) if "string" in (node.get("type"), *_listed(node.get("type"))))
    return any(not _SAYS_WHICH & node.keys() for node in texts)


def _listed(types: Any) -> list[Any]:
    return types if isinstance(types, list) else []


def _close(node: Schema) -> Any:
    """Close objects unless something beside or above them can name further properties."""
    if not isinstance(node, dict):
        return node
    made = {key: _close_inside(key, value) for key, value in node.items()}
    if "properties" not in node and not {"allOf", "if", "not", "$ref"} & node.keys():
        unions = {key: [_close(inner) for inner in node[key]] for key in ("anyOf", "oneOf") if key in node}
        return made | unions
    if "properties" in node and not any(key in node for key in _COMBINING + _SHUT):
        made["additionalProperties"] = False
    return made


def _close_inside(key: str, value: Any) -> Any:
    """The schemas of a value's own properties and items."""
    if key in ("items", "additionalProperties"):
        return _close(value)
    if key == "properties":
        return {name: _close(inner) for name, inner in value.items()}
    return [_close(inner) for inner in value] if key == "prefixItems" else value


def _lax(node: dict[str, Any]) -> Schema:
    node.pop("uniqueItems", None)  # a set accepts duplicates, and drops them
    if "oneOf" in node and "anyOf" not in node:
        node["anyOf"] = node.pop("oneOf")  # a union accepts the first that fits
    also = _conversions(node)
    return {"anyOf": [node, *also]} if also else node


def _conversions(node: dict[str, Any]) -> list[Schema]:
    given = node.get("type")
    types = set(given) if isinstance(given, list) else {given}
    values = node["enum"] if isinstance(node.get("enum"), list) else [node["const"]] if "const" in node else []
    also: list[Schema] = []
    if types & {"integer", "number"} or any(isinstance(value, (int, float)) for value in values):
        also += [{"type": "boolean"}, _NUMERIC_TEXT]
    if "boolean" in types or any(isinstance(value, bool) for value in values):
        also += [_ZERO_ONE, _BOOLEAN_TEXT]
    return also + _LOOSE_FORMATS.get(str(node.get("format")), [])
