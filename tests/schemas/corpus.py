"""A schema, or several, for each JSON Schema keyword that tools' schemas use: sound ones, with values and with faults."""

from typing import Any


def properties(*required: str, **schemas: Any) -> dict[str, Any]:
    """An object schema."""
    return {"type": "object", "properties": schemas, "required": list(required)}


TEXT, WHOLE = {"type": "string"}, {"type": "integer"}
NODE = properties("v", v=WHOLE, next={"anyOf": [{"$ref": "#/$defs/node"}, {"type": "null"}]})
TREE = properties("name", name=TEXT, kids={"type": "array", "items": {"$ref": "#"}})

KEYWORDS: dict[str, dict[str, Any]] = {
    "boolean": {"type": "boolean"},
    "null": {"type": "null"},
    "nullable": {"type": ["string", "null"]},
    "type list": {"type": ["integer", "boolean", "array"]},
    "enum": {"enum": ["low", "high", "medium"]},
    "mixed enum": {"enum": ["b", 1, None, "a", [1], {"k": 2}]},
    "const": {"const": 3},
    "minLength": {"type": "string", "minLength": 3},
    "maxLength": {"type": "string", "maxLength": 3},
    "pattern": {"type": "string", "pattern": "^[A-Z]{2}-\\d{3}$"},
    "unanchored pattern": {"type": "string", "pattern": "foo|ba[rz]"},
    "pattern and length": {"type": "string", "pattern": "^[a-z]+$", "minLength": 4, "maxLength": 6},
    "two patterns": {"allOf": [{"type": "string", "pattern": "^a"}, {"pattern": "b$", "maxLength": 9}]},
    "unicode pattern": {"type": "string", "pattern": "^\\p{Lu}\\p{L}*$"},
    "look-ahead": {"type": "string", "pattern": "^(?!bad)[a-z]+$"},
    "dollar is the end": {"type": "string", "pattern": "^x$"},
    "named group": {"type": "string", "pattern": "^(?<year>\\d{4})/(?<month>0[1-9])$"},
    "minimum and maximum": {"type": "integer", "minimum": -3, "maximum": 4},
    "huge bound": {"type": "integer", "minimum": 10**16},
    "exclusive bounds": {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1},
    "float bounds": {"type": "number", "minimum": 0.1, "maximum": 0.3},
    "multipleOf": {"type": "integer", "multipleOf": 7, "minimum": 1},
    "float multipleOf": {"type": "number", "multipleOf": 0.01, "minimum": 0, "maximum": 100},
    "minItems and maxItems": {"type": "array", "items": WHOLE, "minItems": 1, "maxItems": 3},
    "uniqueItems": {"type": "array", "items": {"enum": ["a", "b", "c"]}, "uniqueItems": True, "minItems": 2},
    "prefixItems": {"type": "array", "prefixItems": [TEXT, WHOLE], "items": False, "minItems": 2},
    "prefixItems and items": {"type": "array", "prefixItems": [TEXT], "items": WHOLE},
    "contains": {"type": "array", "items": WHOLE, "contains": {"minimum": 5}, "minContains": 2},
    "maxContains": {"type": "array", "items": WHOLE, "contains": {"const": 5}, "maxContains": 1},
    "required": properties("city", city=TEXT, count={"type": "integer", "minimum": 0}),
    "required, undeclared": properties("zz", a=TEXT),
    "required, empty name": properties("", a=TEXT),
    "nothing to give": {"type": "object", "properties": {}},
    "nothing to give, closed": {"type": "object", "properties": {}, "additionalProperties": False},
    "additionalProperties false": {**properties("city", city=TEXT, days=WHOLE), "additionalProperties": False},
    "additionalProperties typed": {**properties(a=TEXT), "additionalProperties": WHOLE},
    "additionalProperties true": {**properties(a=TEXT), "additionalProperties": True},
    "patternProperties": {"type": "object", "patternProperties": {"^x_": WHOLE}, "additionalProperties": False},
    "propertyNames": {"type": "object", "propertyNames": {"pattern": "^[a-z]+$"}, "minProperties": 1},
    "maxProperties": {**properties(a=TEXT, b=TEXT, c=TEXT), "maxProperties": 2},
    "minProperties": {**properties(a=TEXT, b=TEXT), "additionalProperties": False, "minProperties": 1},
    "dependentRequired": {**properties(card=TEXT, address=TEXT), "dependentRequired": {"card": ["address"]}},
    "dependentSchemas": {**properties(a=TEXT, b={}), "dependentSchemas": {"a": {"properties": {"b": WHOLE}}}},
    "dependencies": {**properties(a=TEXT, b=TEXT), "dependencies": {"a": ["b"]}},
    "if then else": {
        **properties("kind", kind=TEXT, size=WHOLE, name=TEXT),
        "if": {"properties": {"kind": {"const": "box"}}},
        "then": {"required": ["size"]},
        "else": {"required": ["name"]},
    },
    "anyOf": {"anyOf": [{"type": "string", "minLength": 2}, {"type": "integer", "minimum": 0}]},
    "anyOf of objects": {"anyOf": [properties("a", a=WHOLE), properties("b", b=TEXT)]},
    "oneOf": {"oneOf": [{"type": "integer", "multipleOf": 3}, {"type": "integer", "multipleOf": 5}]},
    "oneOf, tagged": {
        "oneOf": [properties("k", "n", k={"const": "a"}, n=WHOLE), properties("k", "t", k={"const": "b"}, t=TEXT)]
    },
    "allOf": {"allOf": [properties("a", a=WHOLE), properties("b", b=TEXT, a={"minimum": 2})]},
    "not": {"not": {"type": ["string", "object"]}},
    "not an enum": {"type": "string", "not": {"enum": ["root", ""]}},
    "not required": {"type": "object", "properties": {"a": WHOLE, "b": WHOLE}, "not": {"required": ["a", "b"]}},
    "$ref": {"$defs": {"id": {"type": "string", "minLength": 1}}, **properties("id", id={"$ref": "#/$defs/id"})},
    "definitions": {"definitions": {"id": WHOLE}, **properties("id", id={"$ref": "#/definitions/id"})},
    "recursion": {"$defs": {"node": NODE}, "$ref": "#/$defs/node"},
    "recursion to the root": TREE,
    "$anchor": {"$defs": {"a": {"$anchor": "id", "type": "integer"}}, **properties("a", a={"$ref": "#id"})},
    "unevaluatedProperties": {
        "allOf": [properties(a=TEXT)],
        "properties": {"b": WHOLE},
        "unevaluatedProperties": False,
    },
    "draft 4": {"$schema": "http://json-schema.org/draft-04/schema#", "minimum": 0, "exclusiveMinimum": True, **WHOLE},
    "draft 7": {"$schema": "http://json-schema.org/draft-07/schema#", "type": "array", "items": [TEXT, WHOLE]},
    "notes only": properties("q", q={"description": "anything", "title": "Q", "default": 1, "examples": [2]}),
    "nested": properties(
        "orders",
        orders={
            "type": "array",
            "minItems": 1,
            "items": properties("id", "lines", id=TEXT, lines={"type": "array", "items": properties("n", n=WHOLE)}),
        },
    ),
    **{
        f"format {name}": {"type": "string", "format": name}
        for name in (
            *(
                "date",
                "time",
                "date-time",
                "duration",
                "email",
                "idn-email",
                "hostname",
                "idn-hostname",
                "ipv4",
                "ipv6",
            ),
            *(
                "uri",
                "uri-reference",
                "iri",
                "iri-reference",
                "uri-template",
                "uuid",
                "json-pointer",
                "relative-json-pointer",
            ),
            "regex",
        )
    },
    "format and length": {"type": "string", "format": "email", "maxLength": 9},
}

#: Not sound, and what it is read as.
UNSOUND: dict[str, tuple[Any, Any]] = {
    "draft 4 bound": (
        {"type": "integer", "minimum": 0, "exclusiveMinimum": True},
        {"type": "integer", "exclusiveMinimum": 0},
    ),
    "draft 3 required": (properties(a={"type": "string", "required": True}), properties("a", a=TEXT)),
    "old tuple": ({"type": "array", "items": [WHOLE]}, {"type": "array", "prefixItems": [WHOLE]}),
    "Python's type": (properties("a", a={"type": "float"}), properties("a", a={"type": "number"})),
    "any": (properties("a", a={"type": "any"}), properties("a", a={})),
    "no type": ({"type": []}, {}),
    "required twice": ({"type": "object", "required": ["a", "a"]}, {"type": "object", "required": ["a"]}),
    "properties null": ({"type": "object", "properties": None}, {"type": "object"}),
    "length as text": ({"type": "string", "minLength": "3"}, TEXT),
    "additionalProperties as text": ({**properties(a=WHOLE), "additionalProperties": "false"}, properties(a=WHOLE)),
    "broken pattern": ({"type": "string", "pattern": "("}, TEXT),
    "lost reference": (properties(a={"$ref": "#/$defs/none"}), properties(a={})),
    "remote reference": ({"$ref": "http://example.invalid/schema"}, {}),
    "unknown draft": ({"$schema": "wat", "type": "integer"}, WHOLE),
    "unknown format": ({"type": "string", "format": "colour"}, {"type": "string", "format": "colour"}),
    "no schema": ("wat", {}),
}

#: Sound, but no value is valid.
UNSATISFIABLE: dict[str, Any] = {
    "false": False,
    "empty enum": {"enum": []},
    "closed, but required": {"type": "object", "required": ["a"], "additionalProperties": False},
    "endless": properties("next", next={"$ref": "#"}),
    "bounds the wrong way": {"type": "integer", "minimum": 3, "maximum": 2},
}
