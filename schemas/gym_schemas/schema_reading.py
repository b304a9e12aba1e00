"""A schema, parsed once: its canonical form and its validator."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any

import jsonschema_rs
from jsonschema_rs import CanonicalSchema, Validator
from jsonschema_rs import canonical as views

from gym_schemas.acceptance import accepted
from gym_schemas.json_values import TYPES, Json, identity, simplicity, type_of
from gym_schemas.mending import mended
from gym_schemas.size import too_large, tractable
from gym_schemas.tree import Document, Schema, properties_of, rewrite, takes_all, walk
from gym_schemas.upgrade import upgrade

Parameters = Mapping[str, Any] | bool
"""A tool's `parameters`: a JSON Schema, of draft 2020-12 unless its `$schema` says otherwise."""

#: How many schemas to keep compiled. A tool server has tens; nemo-gym's largest bundled one has 62.
_KEPT = 512


#: The types that a view admits, if all views of its class admit the same; references lead here only in a cycle.
_TYPES_OF: Mapping[type, tuple[str, ...]] = {
    views.StringView: ("string",),
    views.IntegerView: ("integer",),
    views.NumberView: ("integer", "number"),
    views.ArrayView: ("array",),
    views.ObjectView: ("object",),
    views.FalseView: (),
    views.ReferenceView: (),
}


@dataclass(frozen=True, eq=False)
class SchemaReading:
    """One schema as this package understands it. Readings of equal schemas are the same object (`read`)."""

    source: Schema
    """The schema, sound."""
    whole: bool
    """Whether nothing that limits its values was left out to make it sound."""
    root: CanonicalSchema
    validator: Validator
    """Of `source`; it asserts formats, and ignores those that it does not know."""
    found: dict[CanonicalSchema, Json] = field(default_factory=dict, repr=False)
    """The smallest values that are known, for `making.smallest`."""
    shapes: dict[CanonicalSchema, Any] = field(default_factory=dict, repr=False)
    """What is known of the properties of its objects, for `making.Maker`."""
    enums: dict[CanonicalSchema, list[Json]] = field(default_factory=dict, repr=False)
    """The members of its enums, for `members`."""

    def admits(self, value: Json) -> bool:
        """Whether the value is valid."""
        return accepted(self.validator, value)

    def target(self, node: CanonicalSchema) -> CanonicalSchema:
        """The node that a reference leads to, through any chain of references; any other node is its own target."""
        for _ in range(len(self._definitions) + 2):
            view = node.view()
            if not isinstance(view, views.ReferenceView):
                return node
            node = self.root if view.uri == "#" else self._definitions[view.uri]
        return jsonschema_rs.canonicalize(True)  # circular references constrain nothing

    def types(self, node: CanonicalSchema) -> tuple[str, ...]:
        """The JSON types, in the order of TYPES, of which the node may admit a value; "number" implies "integer"."""
        return tuple(name for name in TYPES if name in set(self._types(node, frozenset())))

    def ordered(self, values: list[Json]) -> list[Json]:
        """The members of an enum in the order in which the schema first names them, else the simplest first."""
        return sorted(values, key=lambda value: (self._ranks.get(identity(value), len(self._ranks)), simplicity(value)))

    def members(self, node: CanonicalSchema, view: views.EnumView) -> list[Json]:
        """The values that an enum admits, in order; computed once."""
        if node not in self.enums:
            self.enums[node] = self.ordered(view.values)
        return self.enums[node]

    @cached_property
    def open_names(self) -> tuple[str, ...]:
        """Names of properties declared without constraints on their values, which the canonical form drops."""
        declared: dict[str, None] = {}
        for _, inner in walk(self.source):
            declared |= dict.fromkeys(name for name, limit in properties_of(inner).items() if takes_all(limit))
        return tuple(declared)

    @cached_property
    def root_names(self) -> tuple[str, ...]:
        """The names that the root declares in `properties`."""
        return tuple(properties_of(self.source))

    @cached_property
    def root_is_open(self) -> bool:
        """Whether the root explicitly allows undeclared properties."""
        return isinstance(self.source, dict) and self.source.get("additionalProperties", False) is not False

    @cached_property
    def _definitions(self) -> dict[str, CanonicalSchema]:
        return self.root.definitions()

    @cached_property
    def _ranks(self) -> dict[str, int]:
        ranks: dict[str, int] = {}
        for _, inner in walk(self.source):
            if isinstance(inner.get("enum"), list):
                for value in inner["enum"]:
                    ranks.setdefault(identity(value), len(ranks))
        return ranks

    def _types(self, node: CanonicalSchema, above: frozenset[str]) -> Iterator[str]:
        match view := node.view():
            case views.MultiTypeView(types):
                yield from types
                if "number" in types:
                    yield "integer"
            case views.TypedGroupView(type_name):
                yield type_name
            case views.ConstView(value):
                yield type_of(value)
            case views.EnumView(values):
                yield from map(type_of, values)
            case views.AnyOfView(branches) | views.OneOfView(branches):
                for branch in branches:
                    yield from self._types(branch, above)
            case views.AllOfView(branches):
                yield from set[str].intersection(*(set(self._types(branch, above)) for branch in branches))
            case views.ReferenceView(uri) if uri not in above:
                yield from self._types(self.target(node), above | {uri})
            case _:
                yield from _TYPES_OF.get(type(view), TYPES)


def admits(schema: Parameters, value: Json) -> bool:
    """Whether the schema's validator accepts the value."""
    return read(schema).admits(value)


def understood(schema: Parameters) -> bool:
    """Whether it can be read as it is; otherwise it may refuse what `admits` accepts."""
    return read(schema).whole


def read(schema: Parameters) -> SchemaReading:
    """The reading of a schema; equal schemas (with their keys in the same order) are read only once."""
    return _read(json.dumps(schema, default=dict))


@lru_cache(_KEPT)
def _read(text: str) -> SchemaReading:
    given = json.loads(text)
    source, whole = (False, False) if too_large(given) else mended(given)
    validator = jsonschema_rs.validator_for(source, validate_formats=True, offline=True)
    return SchemaReading(source, whole, _canonical(source), validator)


def _canonical(source: Schema) -> CanonicalSchema:
    """The canonical form; it omits what it cannot express, which then only the validator checks."""
    if not tractable(Document(upgrade(source))):
        return jsonschema_rs.canonicalize(_types_only(source))
    try:
        root = jsonschema_rs.canonicalize(source, validate_formats=True, offline=True)
    except ValueError:
        return jsonschema_rs.canonicalize(True)
    return jsonschema_rs.canonicalize(_types_only(source)) if isinstance(root.view(), views.RawView) else root


def _types_only(source: Schema) -> Schema:
    """The same schema without the keywords that combine others, on which canonical forms fail."""
    plain = ("type", "properties", "required", "enum", "const", "items", "additionalProperties")
    return rewrite(source, lambda node: {key: value for key, value in node.items() if key in plain})


@lru_cache(_KEPT * 8)
def validator_of(node: CanonicalSchema) -> Validator:
    """The validator of one node of a canonical form."""
    return jsonschema_rs.validator_for(node.to_json_schema(), validate_formats=True, offline=True)  # type: ignore[arg-type]


def fits(node: CanonicalSchema, value: Json) -> bool:
    """Whether a node of a canonical form admits the value."""
    return accepted(validator_of(node), value)
