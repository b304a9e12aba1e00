"""Strategies for valid values, from canonical views."""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy
from jsonschema_rs import CanonicalSchema
from jsonschema_rs import canonical as views
from jsonschema_rs.canonical.schema import clone

from gym_conformance.values.formats import format_strategy
from gym_conformance.values.json_values import Json, identity
from gym_conformance.values.numbers import integers, numbers
from gym_conformance.values.objects import Shape, objects, shape_of
from gym_conformance.values.patterns import matching
from gym_conformance.values.reading import Reading, accepts, type_of, validator_of
from gym_conformance.values.smallest import LONGEST_TEXT, MOST_ITEMS, NoValue, smallest
from gym_conformance.values.soundness import subschemas

Mined = Mapping[str, Sequence[Json]]
"""Known good values, by the name of a property at any depth."""

#: Characters of valid strings: control characters and lone surrogates are for hostile ones.
ALPHABET = st.characters(codec="utf-8", exclude_categories=("Cc", "Cs"))
PATTERN_ALPHABET = st.characters(codec="utf-8")

_TRIES = 4
_ROOM = 4
"""How many items more than it must an array may have at the root; one less for each level, and at least one."""
_MOST_REFERENCES = 3
"""How often a value goes through a reference before the smallest value takes over."""
_MINED_IN_FOUR = 3


class Builder:
    """Makes the strategies of one reading; `mined` values are mixed in where a property of their name admits them."""

    def __init__(self, reading: Reading, mined: Mined) -> None:
        self.reading = reading
        self._mined = mined
        self._plain = builder(reading) if mined else self
        self._made: dict[tuple[CanonicalSchema, int, int], SearchStrategy[Json]] = {}

    def root(self) -> SearchStrategy[Json]:
        """Values of the whole schema, before they are held to its validator."""
        return self.of(self.reading.root)

    def of(self, node: CanonicalSchema, depth: int = 0, references: int = 0) -> SearchStrategy[Json]:
        """Values of one node, `depth` containers below the root and behind that many references."""
        if self._plain is not self and not self._mined.keys() & names_below(node):
            return self._plain.of(node, depth, references)
        key = (node, depth, references)
        if key not in self._made:
            self._made[key] = self._make(node, depth, references)
        return self._made[key]

    def child(self, name: str, node: CanonicalSchema | None, depth: int, references: int) -> SearchStrategy[Json]:
        """Values of one property."""
        made = free_values(depth) if node is None else self.of(node, depth, references)
        mined = [value for value in self._mined.get(name, ()) if node is None or accepts(validator_of(node), value)]
        if not mined:
            return made
        known = fresh(mined)
        return (
            known
            if made.is_empty
            else st.integers(0, 3).flatmap(lambda pick: known if pick >= 4 - _MINED_IN_FOUR else made)
        )

    def _make(  # noqa: C901, PLR0911, PLR0912 (one case for each kind of view)
        self, node: CanonicalSchema, depth: int, references: int
    ) -> SearchStrategy[Json]:
        match node.view():
            case views.TrueView():
                return free_values(depth)
            case views.FalseView():
                return st.nothing()
            case views.ConstView(value):
                return fresh([value])
            case views.EnumView(values):
                return fresh(self.reading.ordered(values))
            case views.MultiTypeView(types):
                return self._free_types(node, types, depth, references)
            case views.StringView() as view:
                return self._strings(node, view)
            case views.IntegerView() as view:
                return self._checked(integers(view), node) if view.not_multiple_of else integers(view)
            case views.NumberView() as view:
                return self._checked(numbers(view), node)
            case views.ArrayView() as view:
                return self._arrays(node, view, depth, references)
            case views.ObjectView() as view:
                return self._objects(node, shape_of(self.reading, node, view), depth, references)
            case views.AnyOfView(branches):
                return st.one_of([self.of(branch, depth, references) for branch in self._simple_first(branches)])
            case views.OneOfView(branches):
                return self._checked(st.one_of([self.of(branch, depth, references) for branch in branches]), node)
            case views.AllOfView(branches):
                return self._checked(self.of(branches[0], depth, references), node)
            case views.TypedGroupView(type_name, body):
                typed = self.of(body, depth, references).filter(lambda value: type_of(value) == type_name)
                return self._checked(typed, node)
            case views.ReferenceView() if references >= _MOST_REFERENCES:
                return self._only_smallest(node)
            case views.ReferenceView():
                target = self.reading.target(node)
                return st.deferred(lambda: self.of(target, depth, references + 1))
        try:
            return held(
                free_values(depth), lambda value: accepts(validator_of(node), value), smallest(self.reading, node)
            )
        except NoValue:
            return st.nothing()

    def _simple_first(self, branches: list[CanonicalSchema]) -> list[CanonicalSchema]:
        """Alternatives, with null last: it is the least telling of values."""
        return sorted(branches, key=lambda branch: self.reading.types(branch) == ("null",))

    def _checked(self, values: SearchStrategy[Json], node: CanonicalSchema) -> SearchStrategy[Json]:
        """Only such values as the node admits: some tries, and then its smallest one, so that no draw is in vain."""
        validator = validator_of(node)
        try:
            fallback = smallest(self.reading, node)
        except NoValue:
            return values.filter(lambda value: accepts(validator, value))
        return held(values, lambda value: accepts(validator, value), fallback)

    def _only_smallest(self, node: CanonicalSchema) -> SearchStrategy[Json]:
        try:
            value = smallest(self.reading, node)
        except NoValue:
            return st.nothing()
        return fresh([value])

    def _free_types(self, node: CanonicalSchema, types: list[str], depth: int, references: int) -> SearchStrategy[Json]:
        ordered = [name for name in _FREE if name in types]
        if "object" not in ordered:
            return st.one_of([free_of(name, depth) for name in ordered])
        shape = shape_of(self.reading, node, None)
        objects_ = self._objects(node, shape, depth, references)
        return st.one_of([objects_ if name == "object" else free_of(name, depth) for name in ordered])

    def _strings(self, node: CanonicalSchema, view: views.StringView) -> SearchStrategy[str]:
        low, high = view.min_length or 0, view.max_length
        if low > LONGEST_TEXT:
            return st.nothing()
        if view.patterns:
            made = matching(view.patterns, low, high, PATTERN_ALPHABET)
            return st.nothing() if made is None else self._checked(made, node)
        for name in view.formats:
            made = format_strategy(name)
            if made is not None:
                return self._checked(made, node)
        made = st.text(ALPHABET, min_size=low, max_size=high)
        exact = not (view.excluded or view.excluded_patterns or view.excluded_formats or view.formats)
        return made if exact else self._checked(made, node)

    def _arrays(
        self, node: CanonicalSchema, view: views.ArrayView, depth: int, references: int
    ) -> SearchStrategy[Json]:
        low, high = view.min_items or 0, view.max_items
        if low > MOST_ITEMS:
            return st.nothing()
        room = max(low, len(view.prefix_items)) + max(1, _ROOM - depth)
        high = room if high is None else min(high, room)
        below = depth + 1
        items = free_values(below) if view.items is None else self.of(view.items, below, references)
        distinct = view.distinctness == views.Distinctness.ALL_DISTINCT
        if not view.prefix_items and not view.contains and view.distinctness != views.Distinctness.SOME_REPEATED:
            return _lists(items, low, high, distinct=distinct)
        head = [self.of(item, below, references) for item in view.prefix_items]
        wanted: list[SearchStrategy[Json]] = []
        for part in view.contains:
            wanted += [self.of(part.schema, below, references)] * (
                1 if part.min_contains is None else part.min_contains
            )
        return self._checked(_mixed_arrays(head, items, wanted, low=low, high=high), node)

    def _objects(self, node: CanonicalSchema, shape: Shape, depth: int, references: int) -> SearchStrategy[Json]:
        below = depth + 1
        required = {name: self.child(name, child, below, references) for name, child in shape.required.items()}
        optional = {name: self.child(name, child, below, references) for name, child in shape.optional.items()}
        extras = [
            (extra.names, free_values(below) if extra.node is None else self.of(extra.node, below, references))
            for extra in shape.extras
        ]
        made = objects(required, optional, extras, shape.low, shape.high)
        return made if shape.exact else self._checked(made, node)


@lru_cache(512)
def builder(reading: Reading) -> Builder:
    """The builder of a reading, without mined values."""
    return Builder(reading, {})


@lru_cache(4096)
def names_below(node: CanonicalSchema) -> frozenset[str]:
    """The names of all properties that a node speaks of."""
    return frozenset(
        name
        for _, inner in subschemas(node.to_json_schema())
        for name in (*inner.get("properties", ()), *inner.get("required", ()))
    )


def fresh(values: Sequence[Json]) -> SearchStrategy[Json]:
    """One of the values, the first ones simpler; containers are new each time."""
    chosen = st.sampled_from(values)
    return chosen.map(clone) if any(isinstance(value, list | dict) for value in values) else chosen


@st.composite
def held(draw: DrawFn, values: SearchStrategy[Json], admits: Callable[[Json], bool], fallback: Json) -> Json:
    """Values that are admitted, or, when some tries in a row were not, the fallback, which is."""
    for _ in range(_TRIES):
        value = draw(values)
        if admits(value):
            return value
    return clone(fallback)


def _lists(items: SearchStrategy[Json], low: int, high: int, *, distinct: bool) -> SearchStrategy[list[Json]]:
    if items.is_empty:
        return st.builds(list) if low == 0 else st.nothing()
    unique: dict[str, Any] = {"unique_by": identity} if distinct else {}
    return st.lists(items, min_size=low, max_size=high, **unique)


@st.composite
def _mixed_arrays(
    draw: DrawFn,
    head: list[SearchStrategy[Json]],
    items: SearchStrategy[Json],
    wanted: list[SearchStrategy[Json]],
    *,
    low: int,
    high: int,
) -> list[Json]:
    """Arrays whose first items have strategies of their own, and that hold the wanted ones somewhere."""
    most = high if not items.is_empty else min(high, len(head))
    size = draw(st.integers(min(max(low, len(wanted)), most), most))
    made = [draw(head[place] if place < len(head) else items) for place in range(size)]
    for one in wanted[:size]:
        made[draw(st.integers(0, size - 1))] = draw(one)
    return made


_SCALARS = st.one_of(st.text(ALPHABET, max_size=10), integers(), st.booleans(), st.floats(-1e6, 1e6), st.none())
_FREE = ("string", "integer", "number", "boolean", "array", "object", "null")


def free_of(type_name: str, depth: int) -> SearchStrategy[Json]:  # noqa: PLR0911 (one case for each type)
    """Values of a type without any limit."""
    match type_name:
        case "string":
            return st.text(ALPHABET)
        case "integer":
            return integers()
        case "number":
            return numbers()
        case "boolean":
            return st.booleans()
        case "array":
            return st.lists(_SCALARS, max_size=max(1, _ROOM - depth))
        case "object":
            return st.dictionaries(st.text("abcxyz_", min_size=1, max_size=6), _SCALARS, max_size=max(1, _ROOM - depth))
    return st.none()


def free_values(depth: int) -> SearchStrategy[Json]:
    """Any values, simple ones first."""
    return st.one_of([_SCALARS, free_of("array", depth), free_of("object", depth)])
