"""Schema pairs with the right answer, decided by hand.

LEAVES are tried both ways as the one argument `a`: the narrow one in the definition is no drift, the wide one in the
definition is refused. CALLS are whole argument schemas with every drift that they have.

An answer is `KIND PATH`; a `?` before it means that the comparison must say unknown, because only a live trial can tell
(pydantic's lax mode might convert the value) or because the search is bounded.
"""

from typing import Any

Schema = dict[str, Any]

STRING: Schema = {"type": "string"}
INTEGER: Schema = {"type": "integer"}
NUMBER: Schema = {"type": "number"}
BOOLEAN: Schema = {"type": "boolean"}
NULL: Schema = {"type": "null"}


def of(*required: str, **properties: Any) -> Schema:
    """An object with these properties."""
    return {"type": "object", "properties": properties, "required": list(required)}


def shut(*required: str, **properties: Any) -> Schema:
    """The same without others."""
    return of(*required, **properties) | {"additionalProperties": False}


def many(items: Any, **more: Any) -> Schema:
    return {"type": "array", "items": items, **more}


def either(*schemas: Any) -> Schema:
    return {"anyOf": list(schemas)}


#: name: (narrow, wide); the wide one in the definition is refused with a witness.
LEAVES: dict[str, tuple[Any, Any]] = {
    "integer in number": (INTEGER, NUMBER),
    "string in any": (STRING, {}),
    "string in string or null": (STRING, either(STRING, NULL)),
    "string in list of types": (STRING, {"type": ["string", "integer"]}),
    "integer in integer or string": (INTEGER, either(INTEGER, STRING)),
    "enum in string": ({"enum": ["x", "y"]}, STRING),
    "enum with a member less": ({"enum": ["x"]}, {"enum": ["x", "y"]}),
    "const in enum": ({"const": "x"}, {"type": "string", "enum": ["x", "y"]}),
    "const in const or other": ({"const": 1}, {"enum": [1, "one"]}),
    "minimum": ({"type": "integer", "minimum": 5}, {"type": "integer", "minimum": 4}),
    "maximum": ({"type": "integer", "maximum": 5}, {"type": "integer", "maximum": 6}),
    "maximum far out": ({"type": "integer", "maximum": 1_000_003}, INTEGER),
    "exclusive minimum": ({"type": "number", "exclusiveMinimum": 0}, {"type": "number", "minimum": 0}),
    "exclusive maximum": ({"type": "number", "exclusiveMaximum": 10}, {"type": "number", "maximum": 10}),
    "multiple of": ({"type": "integer", "multipleOf": 10}, {"type": "integer", "multipleOf": 5}),
    "multiple of a fraction": ({"type": "number", "multipleOf": 0.5}, NUMBER),
    "min length": ({"type": "string", "minLength": 1}, STRING),
    "max length": ({"type": "string", "maxLength": 10}, {"type": "string", "maxLength": 11}),
    "long max length": ({"type": "string", "maxLength": 500}, STRING),
    "pattern": ({"type": "string", "pattern": "^[A-Z]{3}$"}, STRING),
    "date": ({"type": "string", "format": "date"}, STRING),
    "date-time": ({"type": "string", "format": "date-time"}, STRING),
    "email": ({"type": "string", "format": "email"}, STRING),
    "uuid": ({"type": "string", "format": "uuid"}, STRING),
    "uri": ({"type": "string", "format": "uri"}, STRING),
    "items": (many(INTEGER), many(either(INTEGER, STRING))),
    "min items": (many(STRING, minItems=1), many(STRING)),
    "max items": (many(STRING, maxItems=2), many(STRING, maxItems=3)),
    "prefix items": (
        {"type": "array", "prefixItems": [STRING, INTEGER], "minItems": 2, "maxItems": 2},
        {"type": "array", "prefixItems": [STRING, NUMBER], "minItems": 2, "maxItems": 2},
    ),
    "tuple in list": ({"type": "array", "prefixItems": [STRING, STRING], "minItems": 2, "maxItems": 2}, many(STRING)),
    "contains": ({"type": "array", "contains": {"const": 1}}, {"type": "array"}),
    "list of lists": (many(many(INTEGER)), many(many(NUMBER))),
    "object in object": (shut("x", x=STRING), {"type": "object"}),
    "map of integers": (
        {"type": "object", "additionalProperties": INTEGER},
        {"type": "object", "additionalProperties": NUMBER},
    ),
    "map with named keys": (
        {"type": "object", "propertyNames": {"enum": ["x", "y"]}},
        {"type": "object"},
    ),
    "min properties": ({"type": "object", "minProperties": 1}, {"type": "object"}),
    "max properties": ({"type": "object", "maxProperties": 1}, {"type": "object"}),
    "not": ({"type": "string", "not": {"const": "x"}}, {"type": "string"}),
    "all of": ({"allOf": [{"type": "integer"}, {"minimum": 3}, {"maximum": 9}]}, {"type": "integer", "minimum": 3}),
    "boolean in boolean or null": (BOOLEAN, {"type": ["boolean", "null"]}),
    "null in null or string": (NULL, {"type": ["string", "null"]}),
    "array or null": (many(STRING), either(many(STRING), NULL)),
    "one of": ({"oneOf": [{"type": "string"}, {"type": "boolean"}]}, either(STRING, BOOLEAN, NULL)),
    "false is nothing": ({"type": "string", "maxLength": 0}, STRING),
    "draft 4 exclusive bound": (
        {"type": "integer", "minimum": 0, "exclusiveMinimum": True},
        {"type": "integer", "minimum": 0},
    ),
    "draft 7 tuple": (
        {"type": "array", "items": [INTEGER], "additionalItems": False, "minItems": 1},
        {"type": "array", "items": [NUMBER], "additionalItems": False, "minItems": 1},
    ),
    "openapi 3.0 nullable": (STRING, {"type": "string", "nullable": True}),
    "if then": (
        {"type": "integer", "if": {"minimum": 10}, "then": {"multipleOf": 10}},
        {"type": "integer"},
    ),
}

TREE: Schema = {
    "type": "object",
    "properties": {"root": {"$ref": "#/$defs/Node"}},
    "required": ["root"],
    "$defs": {"Node": of("value", value=INTEGER, children=many({"$ref": "#/$defs/Node"}))},
}
OTHER_TREE: Schema = {
    "type": "object",
    "properties": {"root": {"$ref": "#/$defs/Tree"}},
    "required": ["root"],
    "$defs": {"Tree": of("value", value=INTEGER, children=many({"$ref": "#/$defs/Tree"}))},
}
TEXT_TREE: Schema = TREE | {"$defs": {"Node": of("value", value=STRING, children=many({"$ref": "#/$defs/Node"}))}}
SELF: Schema = {"type": "object", "properties": {"value": INTEGER, "next": {"$ref": "#"}}}
OLD_DEFINITIONS: Schema = {
    "$schema": "http://json-schema.org/draft-07/schema#",
    "type": "object",
    "properties": {"a": {"$ref": "#/definitions/A"}},
    "required": ["a"],
    "definitions": {"A": {"type": "string", "enum": ["x", "y"]}},
}

#: name: (definition, served, answers)
CALLS: dict[str, tuple[Schema, Schema, set[str]]] = {
    "the same": (of("a", a=STRING), of("a", a=STRING), set()),
    "nothing at all": ({"type": "object", "properties": {}}, {"type": "object", "properties": {}}, set()),
    "no parameters": ({}, of(a=STRING), {"argument-unoffered /a"}),
    "keys in another order": (of("b", "a", a=STRING, b=STRING), of("a", "b", b=STRING, a=STRING), set()),
    "titles": (of("a", a=STRING), {"title": "T", **of("a", a=STRING | {"title": "A"})}, set()),
    "optional and required": (of(a=STRING), of("a", a=STRING), {"argument-refused /a"}),
    "required and optional": (of("a", a=STRING), of(a=STRING), {"argument-widened /a"}),
    "required and not offered": (of(), of("a", a=STRING), {"argument-refused /a"}),
    "ignored": (of(a=STRING, b=STRING), of(a=STRING), {"argument-ignored /b"}),
    "ignored and required": (of("a", "b", a=STRING, b=STRING), of("a", a=STRING), {"argument-ignored /b"}),
    "all ignored": (of(a=STRING), {"type": "object", "properties": {}}, {"argument-ignored /a"}),
    "forbidden": (of(a=STRING, b=STRING), shut(a=STRING), {"argument-refused /b", "unnamed-argument-refused "}),
    "forbidden and shut": (shut(a=STRING, b=STRING), shut(a=STRING), {"argument-refused /b"}),
    "extra allowed": (of(a=STRING, b=STRING), of(a=STRING) | {"additionalProperties": True}, set()),
    "free body": (of("a", a=STRING, b=INTEGER), {"type": "object"}, set()),
    "any body": (of("a", a=STRING), {}, set()),
    "server forbids unnamed": (of(a=STRING), shut(a=STRING), {"unnamed-argument-refused "}),
    "both forbid": (shut(a=STRING), shut(a=STRING), set()),
    "unoffered": (of("a", a=STRING), of("a", a=STRING, b=STRING), {"argument-unoffered /b"}),
    "renamed": (
        of("city", city=STRING),
        of("location", location=STRING),
        {"argument-refused /location", "argument-ignored /city"},
    ),
    "renamed, both optional": (
        of(city=STRING),
        of(location=STRING),
        {"argument-ignored /city", "argument-unoffered /location"},
    ),
    "other type": (of("a", a=STRING), of("a", a=INTEGER), {"argument-refused /a"}),
    "other type back": (of("a", a=INTEGER), of("a", a=STRING), {"argument-refused /a"}),
    "object for string": (of("a", a=of(x=STRING)), of("a", a=STRING), {"argument-refused /a"}),
    "list for single": (of("a", a=many(STRING)), of("a", a=STRING), {"argument-refused /a"}),
    "two at once": (
        of("a", "b", a=STRING, b=NUMBER),
        of("a", "b", a=INTEGER, b=INTEGER),
        {"argument-refused /a", "argument-refused /b"},
    ),
    "nested type": (of("a", a=of("x", x=STRING)), of("a", a=of("x", x=BOOLEAN)), {"argument-refused /a/x"}),
    "nested missing": (of("a", a=of()), of("a", a=of("x", x=STRING)), {"argument-refused /a/x"}),
    "nested ignored": (of("a", a=of(x=STRING, y=STRING)), of("a", a=of(x=STRING)), {"argument-ignored /a/y"}),
    "nested unoffered": (of("a", a=of(x=STRING)), of("a", a=of(x=STRING, y=STRING)), {"argument-unoffered /a/y"}),
    "in a list": (of(a=many(of("x", x=NUMBER))), of(a=many(of("x", x=INTEGER))), {"argument-refused /a/*/x"}),
    "ignored in a list": (of(a=many(of(x=STRING, y=STRING))), of(a=many(of(x=STRING))), {"argument-ignored /a/*/y"}),
    "ignored in a nullable": (
        of(a=either(of(x=STRING, y=STRING), NULL)),
        of(a=either(of(x=STRING), NULL)),
        {"argument-ignored /a/y"},
    ),
    "in a map": (
        of(a={"type": "object", "additionalProperties": NUMBER}),
        of(a={"type": "object", "additionalProperties": BOOLEAN}),
        {"argument-refused /a/*"},
    ),
    "free object for a model": (
        of("a", a={"type": "object"}),
        of("a", a=of("x", x=STRING)),
        {"argument-refused /a/x"},
    ),
    "digits for integer": (
        of("a", a={"type": "string", "pattern": "^[0-9]+$"}),
        of("a", a=INTEGER),
        {"?argument-refused /a"},
    ),
    "zero and one for boolean": (of("a", a={"enum": [0, 1]}), of("a", a=BOOLEAN), {"?argument-refused /a"}),
    "boolean for integer": (of("a", a=BOOLEAN), of("a", a=INTEGER), {"?argument-refused /a"}),
    "list for set": (of(a=many(STRING)), of(a=many(STRING, uniqueItems=True)), {"?argument-refused /a"}),
    "set for list": (of(a=many(STRING, uniqueItems=True)), of(a=many(STRING)), {"argument-widened /a"}),
    "one pattern in another": (
        of("a", a={"type": "string", "pattern": "^[a-c]+$"}),
        of("a", a={"type": "string", "pattern": "^[a-z]+$"}),
        {"?argument-refused /a"},
    ),
    "recursive": (TREE, TREE, set()),
    "recursive by another name": (TREE, OTHER_TREE, set()),
    "recursive, other leaf": (TREE, TEXT_TREE, {"argument-refused /root/value"}),
    "recursive from the root": (SELF, SELF, set()),
    "recursive from the root, other leaf": (
        SELF,
        {"type": "object", "properties": {"value": STRING, "next": {"$ref": "#"}}},
        {"argument-refused /value"},
    ),
    "definitions of draft 7": (OLD_DEFINITIONS, of("a", a={"enum": ["x", "y"]}), set()),
    "definitions of draft 7, one less": (OLD_DEFINITIONS, of("a", a={"enum": ["x"]}), {"argument-refused /a"}),
    "tagged union": (
        of("pet", pet=either(of("kind", "lives", kind={"const": "cat"}, lives=INTEGER))),
        of(
            "pet",
            pet={
                "oneOf": [
                    of("kind", "lives", kind={"const": "cat"}, lives=INTEGER),
                    of("kind", "name", kind={"const": "dog"}, name=STRING),
                ]
            },
        ),
        {"argument-widened /pet/kind", "argument-widened /pet/lives", "argument-unoffered /pet/name"},
    ),
    "one tag less": (
        of("pet", pet=either(of("kind", kind={"const": "cat"}), of("kind", kind={"const": "dog"}))),
        of("pet", pet=either(of("kind", kind={"const": "cat"}))),
        {"argument-refused /pet/kind"},
    ),
    "dependent required": (
        of(a=STRING, b=STRING),
        of(a=STRING, b=STRING) | {"dependentRequired": {"a": ["b"]}},
        {"argument-refused /b"},
    ),
    "one of two needed": (
        of(a=STRING, b=STRING),
        of(a=STRING, b=STRING) | {"anyOf": [{"required": ["a"]}, {"required": ["b"]}]},
        {"argument-refused "},
    ),
    "many arguments, one wrong": (
        of(*"abcdefgh", **dict.fromkeys("abcdefgh", STRING)),
        of(*"abcdefgh", **dict.fromkeys("abcdefg", STRING), h=INTEGER),
        {"argument-refused /h"},
    ),
    "name with a slash": (of(**{"x/y": STRING}), of(), {"argument-ignored /x~1y"}),
    "unreadable server schema": (of(a=STRING), of(a={"$ref": "#/nowhere"}), {"?argument-refused "}),
}
