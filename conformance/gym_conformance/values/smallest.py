"""A smallest valid value of a schema, without chance: what shrunk examples end at, and where recursion stops."""

from collections.abc import Iterator

from jsonschema_rs import CanonicalSchema
from jsonschema_rs import canonical as views
from jsonschema_rs.canonical.schema import clone

from gym_conformance.values.formats import SMALLEST
from gym_conformance.values.json_values import Json, identity, simplicity
from gym_conformance.values.numbers import simple_numbers
from gym_conformance.values.patterns import found_in, smallest_match
from gym_conformance.values.reading import Reading, accepts, validator_of

#: Past these, a value is too large to be an example of anything.
LONGEST_TEXT, MOST_ITEMS = 100_000, 1_000

_SIMPLE: dict[str, tuple[Json, ...]] = {
    "string": ("", "0", "a", "00", "text"),
    "integer": (0, 1, 2, -1),
    "number": (0, 1, 0.5, -0.5),
    "boolean": (False, True),
    "array": ([], [0], [0, 1]),
    "object": ({}, {"0": 0}),
    "null": (None,),
}
_SIMPLEST_FIRST = sorted((value for values in _SIMPLE.values() for value in values), key=simplicity)


class NoValue(Exception):
    """No valid value is known: there is none, or none that this package can build."""


def smallest(reading: Reading, node: CanonicalSchema | None = None) -> Json:
    """A smallest value that the node (by default the whole schema) admits; a new object on each call.

    Raises:
        NoValue: none is known.
    """
    return clone(_Search(reading).of(node or reading.root))


class _Search:
    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._found: dict[CanonicalSchema, Json] = {}
        self._open: set[CanonicalSchema] = set()

    def of(self, node: CanonicalSchema) -> Json:
        """The smallest value of a node; a node inside itself has none on that way."""
        if node in self._found:
            return self._found[node]
        if node in self._open:
            raise NoValue
        self._open.add(node)
        try:
            validator = validator_of(node)
            for value in self._candidates(node):
                if accepts(validator, value):
                    self._found[node] = value
                    return value
        finally:
            self._open.discard(node)
        raise NoValue

    def _candidates(self, node: CanonicalSchema) -> Iterator[Json]:  # noqa: C901 (one case for each kind of view)
        match node.view():
            case views.ConstView(value):
                yield value
            case views.EnumView(values):
                yield self._reading.ordered(values)[0]
            case views.MultiTypeView(types):
                yield from sorted((_SIMPLE[name][0] for name in types), key=simplicity)
            case views.IntegerView() | views.NumberView() as view:
                yield from simple_numbers(view)
            case views.StringView() as view:
                yield from _strings(view)
            case views.ArrayView() as view:
                yield from self._arrays(view)
            case views.ObjectView() as view:
                yield from self._objects(view)
            case views.AnyOfView(branches) | views.OneOfView(branches) | views.AllOfView(branches):
                yield from sorted(self._each(branches), key=simplicity)
                yield from _SIMPLEST_FIRST
            case views.ReferenceView():
                yield self.of(self._reading.target(node))
            case views.TypedGroupView(type_name, body):
                yield from self._each([body])
                yield from _SIMPLE[type_name]
            case views.FalseView():
                return
            case _:
                yield from _SIMPLEST_FIRST

    def _each(self, nodes: list[CanonicalSchema]) -> Iterator[Json]:
        for node in nodes:
            try:
                yield self.of(node)
            except NoValue:
                continue

    def _arrays(self, view: views.ArrayView) -> Iterator[Json]:
        low = view.min_items or 0
        if low > MOST_ITEMS:
            return
        items: list[Json] = []
        for part in view.contains:
            items += [self.of(part.schema)] * (1 if part.min_contains is None else part.min_contains)
        yield items
        head = [self.of(node) for node in view.prefix_items[:low]]
        rest = low - len(head)
        if view.items is None:
            yield (
                [*head, *[0] * rest] if view.distinctness != views.Distinctness.ALL_DISTINCT else [*head, *range(rest)]
            )
        elif view.distinctness == views.Distinctness.ALL_DISTINCT:
            yield [*head, *self._distinct(view.items, rest, {identity(value) for value in head})]
        else:
            yield [*head, *([self.of(view.items)] * rest if rest > 0 else [])]
            yield [*head, *items, *([self.of(view.items)] * (rest - len(items)) if rest > len(items) else [])]

    def _distinct(self, node: CanonicalSchema, count: int, used: set[str]) -> list[Json]:
        """Different values of a node, as many as are asked for if that many are known."""
        found: list[Json] = []
        validator = validator_of(node)
        view = self._reading.target(node).view()
        candidates: Iterator[Json] = iter(
            self._reading.ordered(view.values) if isinstance(view, views.EnumView) else [*self._each([node]), *_many()]
        )
        for value in candidates:
            if len(found) >= count:
                break
            if identity(value) not in used and accepts(validator, value):
                used.add(identity(value))
                found.append(value)
        return found

    def _objects(self, view: views.ObjectView) -> Iterator[Json]:
        value = {name: self.of(node) if (node := child_of(view, name)) else 0 for name in view.required}
        yield value
        for name in (name for name in (*view.properties, *names_admitted(view)) if name not in value):
            node = child_of(view, name)
            try:
                value = {**value, name: 0 if node is None else self.of(node)}
            except NoValue:
                continue
            yield value
        for match_ in (smallest_match(pattern) for pattern in view.pattern_properties):
            if match_ is not None:
                node = child_of(view, match_)
                value = {**value, match_: 0 if node is None else self.of(node)}
                yield value
        for number in range(len(value), min(view.min_properties or 0, MOST_ITEMS) + 1):
            name = _nth_name(view, number)
            node = child_of(view, name)
            value = {**value, name: 0 if node is None else self.of(node)}
            yield value


def child_of(view: views.ObjectView, name: str) -> CanonicalSchema | None:
    """What an object's view says of one property's value; None is nothing."""
    if name in view.properties:
        return view.properties[name]
    for pattern, node in view.pattern_properties.items():
        if found_in(pattern, name):
            return node
    return view.additional_properties


def names_admitted(view: views.ObjectView) -> tuple[str, ...]:
    """The property names that are all that may be used; empty where the object does not list them."""
    if view.property_names is None:
        return ()
    match view.property_names.view():
        case views.ConstView(value):
            return (str(value),)
        case views.EnumView(values):
            return tuple(map(str, values))
    return ()


def _strings(view: views.StringView) -> Iterator[str]:
    low = view.min_length or 0
    if low > LONGEST_TEXT:
        return
    for text in (
        *(smallest_match(pattern) for pattern in view.patterns),
        *(SMALLEST.get(name) for name in view.formats),
    ):
        if text is not None:
            yield text
            yield text + (text[-1:] or "0") * (low - len(text))
    found = [text for pattern in view.patterns if (text := smallest_match(pattern)) is not None]
    yield "".join(found)
    yield "".join(reversed(found))
    for filler in "0a1bA-_ ":
        yield filler * low
        yield filler * (low + 1)


def _nth_name(view: views.ObjectView, number: int) -> str:
    """A name for one more property, of the shape that the names must have."""
    shapes = view.property_names.view() if view.property_names is not None else None
    if isinstance(shapes, views.StringView):
        seed = next((text for text in _strings(shapes) if text), "")
        return seed + (seed[-1:] or "0") * number
    return str(number)


def _many() -> Iterator[Json]:
    yield from range(MOST_ITEMS)
    yield from ("0" * length for length in range(MOST_ITEMS))
