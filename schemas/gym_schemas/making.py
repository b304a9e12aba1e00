"""Values of a schema: one reading of its canonical form, for whoever makes the choices (`choices`)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from random import Random
from typing import Any

from jsonschema_rs import CanonicalSchema
from jsonschema_rs import canonical as views
from jsonschema_rs.canonical.schema import clone

from gym_schemas.choices import Chance, Choices, Simplest
from gym_schemas.formats import PATTERNS
from gym_schemas.json_values import ABSENT, Json, identity, simplicity, type_of
from gym_schemas.numbers import LARGEST, number_of
from gym_schemas.patterns import matches, text_of
from gym_schemas.schema_reading import Parameters, SchemaReading, fits, read

Mined = Mapping[str, Sequence[Json]]
"""Known good values, by the name of a property, at any depth."""

#: Past these, a value is too large to be an example of anything.
LONGEST_TEXT, MOST_ITEMS = 100_000, 1_000

_ROOM = 4
"""How many items more than it must an array may have at the root; one less for each level, and at least one."""
_MOST_EXTRAS = 3
_MOST_REFERENCES = 3
"""How often a value goes through a reference before the smallest value takes over."""
_MOST_REFUSED = 24
"""How many parts of one value are made anew: tries within tries would be without end."""
_FREE = ("string", "integer", "number", "boolean", "array", "object", "null")
_SCALARS = ("string", "integer", "number", "boolean", "null")
_PLAIN_NAME = "[a-z_]{1,8}"
_SIMPLE: tuple[Json, ...] = (
    0,
    "",
    [],
    {},
    1,
    "0",
    False,
    True,
    None,
    "a",
    0.5,
    [0],
    {"0": 0},
    -1,
    2,
    "00",
    "text",
    [0, 1],
)
_STEPS, _SEEDS = 8, 20
"""How many simple ways, and then random ones, are tried for a smallest value."""


class NoValue(Exception):
    """No valid value is known: there is none, or none that this package can build."""


def minimal(schema: Parameters) -> Json:
    """A smallest value that the schema admits: always the same, as a new object.

    Raises:
        NoValue: none is known; `unsupported` says why.
    """
    reading = read(schema)
    value = smallest(reading, reading.root)
    if not reading.admits(value):
        value = next((one for one in _by_chance(reading, reading.root) if reading.admits(one)), ABSENT)
        if value is ABSENT:
            raise NoValue
    return clone(value)


def sampled(schema: Parameters, random: Random) -> Json:
    """A value that the schema admits, one of everyday looks, as the random number generator says.

    Raises:
        NoValue: none is known.
    """
    return Maker(read(schema), Chance(random)).value()


def smallest(reading: SchemaReading, node: CanonicalSchema) -> Json:
    """A smallest value of a node, which is shared: to be copied before it is given away.

    Raises:
        NoValue: none is known.
    """
    return _Smallest(reading).of(node)


def possible(reading: SchemaReading, node: CanonicalSchema | None) -> bool:
    """Whether a value of the node is known."""
    try:
        return node is None or smallest(reading, node) is not ABSENT
    except NoValue:
        return False


class _Smallest:
    """The search for smallest values, which are kept with the reading; a node inside itself has none on that way."""

    def __init__(self, reading: SchemaReading) -> None:
        self._reading = reading
        self._open: list[CanonicalSchema] = []
        self._circles: set[CanonicalSchema] = set()

    def of(self, node: CanonicalSchema) -> Json:
        found = self._reading.found
        if node not in found:
            if node in self._open:
                self._circles.add(node)
                raise NoValue
            self._open.append(node)
            value = next((one for one in self._candidates(node) if fits(node, one)), ABSENT)
            self._open.pop()
            self._circles.discard(node)
            if value is ABSENT and self._circles:  # none on this way; there may be one on another
                raise NoValue
            found[node] = value
        if found[node] is ABSENT:
            raise NoValue
        return found[node]

    def _candidates(self, node: CanonicalSchema) -> Any:
        if isinstance(node.view(), views.FalseView):
            return
        view = self._reading.target(node).view()
        steps = _STEPS if not isinstance(view, views.ConstView | views.EnumView) else 1
        for more in range(steps):
            try:
                yield Maker(self._reading, Simplest(more), smallest=self.of).make(node)
            except NoValue:
                continue
        yield from _SIMPLE
        if not self._circles:
            yield from _by_chance(self._reading, node)


def _by_chance(reading: SchemaReading, node: CanonicalSchema) -> Any:
    for seed in range(_SEEDS):
        try:
            yield Maker(reading, Chance(Random(seed))).make(node)  # noqa: S311 (values, no secrets)
        except (NoValue, RecursionError):
            continue


class Maker:
    """Makes one value of a reading; `mined` values are mixed in where a property of their name admits them.

    A part that cannot be made raises NoValue.
    """

    def __init__(
        self,
        reading: SchemaReading,
        choices: Choices,
        mined: Mined | None = None,
        smallest: Callable[[CanonicalSchema], Json] | None = None,
    ) -> None:
        self.reading = reading
        self.choices = choices
        self._mined = mined or {}
        self._inner = smallest
        self._references = 0
        self._refused = 0

    def value(self) -> Json:
        """A value of the whole schema, held to its own validator.

        Raises:
            NoValue: none is known.
        """
        root = self.reading.root
        if not possible(self.reading, root):
            raise NoValue
        for _ in range(self.choices.tries):
            value = self.make(root)
            if self.reading.admits(value):
                return value
        return minimal(self.reading.source)

    def of(self, node: CanonicalSchema) -> Json:
        """A value of a node inside another."""
        return self._inner(node) if self._inner else self.make(node)

    def at(self, step: str | int, node: CanonicalSchema | None) -> Json:
        """A value of a node that stands one level further inside; of None, any value."""
        before = self.choices.way
        self.choices.way = (*before, step)
        try:
            if node is not None and self.choices.settled():
                return clone(smallest(self.reading, node))
            return self._free(_FREE) if node is None else self.of(node)
        finally:
            self.choices.way = before

    def make(self, node: CanonicalSchema) -> Json:  # noqa: PLR0911 (one case for each kind of view)
        """A value of a node, held to it where it is not right by construction."""
        match view := node.view():
            case views.TrueView():
                return self._free(_FREE)
            case views.FalseView():
                raise NoValue
            case views.ConstView(value):
                return clone(value)
            case views.EnumView():
                return clone(self.choices.pick(self.reading.members(node, view)))
            case views.MultiTypeView(types):
                name = self.choices.pick([name for name in _FREE if name in types])
                return self._object(node, None) if name == "object" else self._free((name,))
            case views.StringView():
                return self._hinted(node, "string", lambda: self._string(node, view))
            case views.IntegerView() | views.NumberView():
                return self._hinted(node, "number", lambda: self._number(node, view))
            case views.ArrayView():
                return self._array(node, view)
            case views.ObjectView():
                return self._object(node, view)
        return self._composed(node)

    def _composed(self, node: CanonicalSchema) -> Json:
        """A value of a node that is made of other nodes."""
        match node.view():
            case views.AnyOfView(branches):
                return self.of(self.choices.pick(self._possible(branches)))
            case views.OneOfView(branches) | views.AllOfView(branches):
                return self._held(node, lambda: self.of(self.choices.pick(self._possible(branches))))
            case views.TypedGroupView(type_name, body):
                return self._held(node, lambda: self._typed(type_name, body))
            case views.ReferenceView():
                return self._referred(node)
        return self._held(node, lambda: self._free(_FREE))

    def _possible(self, branches: list[CanonicalSchema]) -> list[CanonicalSchema]:
        """The alternatives of which a value is known, simple ones first."""
        known: list[tuple[tuple[int, str], int, CanonicalSchema]] = []
        for branch in branches:
            try:
                value = self._inner(branch) if self._inner else smallest(self.reading, branch)
            except NoValue:
                continue
            known.append((simplicity(value), len(known), branch))
        if not known:
            raise NoValue
        return [branch for *_, branch in sorted(known, key=lambda one: one[:2])]

    def _held(self, node: CanonicalSchema, make: Callable[[], Json]) -> Json:
        """Some tries, and then the smallest value, so that no choice is in vain; who cannot try again is checked later."""
        for _ in range(self.choices.tries):
            value = make()
            if self.choices.tries == 1 or fits(node, value):
                return value
            self._refused += 1
            if self._refused > _MOST_REFUSED:
                break
        return clone(smallest(self.reading, node))

    def _referred(self, node: CanonicalSchema) -> Json:
        if self._references >= _MOST_REFERENCES and not self._inner:
            return clone(smallest(self.reading, node))
        self._references += 1
        try:
            return self.of(self.reading.target(node))
        finally:
            self._references -= 1

    def _typed(self, type_name: str, body: CanonicalSchema) -> Json:
        value = self.of(body)
        return value if type_of(value) == type_name else self._free((type_name,))

    def _hinted(self, node: CanonicalSchema, type_name: str, make: Callable[[], Json]) -> Json:
        hint = self.choices.hint(node, type_name)
        return make() if hint is ABSENT else hint

    def _free(self, types: Sequence[str]) -> Json:  # noqa: PLR0911 (one case for each type)
        """A value of one of the types, without any limit."""
        if (simple := self.choices.anything(types)) is not ABSENT:
            return simple
        room = max(1, _ROOM - len(self.choices.way))
        match self.choices.pick(types):
            case "string":
                return self.choices.text(0, None)
            case "integer":
                return self.choices.whole(-LARGEST, LARGEST)
            case "number":
                return self.choices.fraction(-1e6, 1e6)
            case "boolean":
                return self.choices.pick((False, True))
            case "array":
                return [self._free(_SCALARS) for _ in range(self.choices.count(0, room))]
            case "object":
                names = (text_of([_PLAIN_NAME], self.choices) for _ in range(self.choices.count(0, room)))
                return {name: self._free(_SCALARS) for name in names if name}
        return None

    def _number(self, node: CanonicalSchema, view: views.IntegerView | views.NumberView) -> Json:
        def make() -> Json:
            number = number_of(view, self.choices)
            if number is None:
                raise NoValue
            return number

        exact = isinstance(view, views.IntegerView) and not view.not_multiple_of
        return make() if exact else self._held(node, make)

    def _string(self, node: CanonicalSchema, view: views.StringView) -> Json:
        low, high = view.min_length or 0, view.max_length
        if low > LONGEST_TEXT:
            raise NoValue
        asked = view.patterns or [PATTERNS[name] for name in view.formats if name in PATTERNS][:1]
        if not asked:
            exact = not (view.excluded or view.excluded_patterns or view.excluded_formats or view.formats)
            free = partial(self.choices.text, low, high)
            return free() if exact else self._held(node, free)

        def text() -> str:
            made = text_of(asked, self.choices, low, high)
            if made is None:
                raise NoValue
            return made

        return self._held(node, text)

    def _array(self, node: CanonicalSchema, view: views.ArrayView) -> Json:
        low, high = view.min_items or 0, view.max_items
        if low > MOST_ITEMS:
            raise NoValue
        wanted = [
            part.schema
            for part in view.contains
            for _ in range(1 if part.min_contains is None else min(part.min_contains, MOST_ITEMS))
        ]
        low = max(low, len(wanted))
        room = max(low, len(view.prefix_items)) + max(1, _ROOM - len(self.choices.way))
        high = room if high is None else min(high, room)
        if view.items is not None and not self._known(view.items):
            high = min(high, len(view.prefix_items))
        if low > high:
            raise NoValue
        distinct = view.distinctness == views.Distinctness.ALL_DISTINCT

        def make() -> list[Json]:
            made: list[Json] = []
            seen: set[str] = set()
            for index in range(self.choices.count(low, high)):
                item = view.prefix_items[index] if index < len(view.prefix_items) else view.items
                value = self._item(index, item, seen if distinct else None)
                if value is ABSENT:
                    break
                made.append(value)
            free = list(range(len(made)))
            for one in wanted:
                index = free.pop(self.choices.pick(range(len(free)))) if free else len(made)
                made[index : index + 1] = [self.at(index, one)]
            if view.distinctness == views.Distinctness.SOME_REPEATED and made:
                made = [*made[:-1], made[0]] if len(made) > 1 else made * 2
            return made

        exact = not (view.prefix_items or wanted or distinct or view.distinctness != views.Distinctness.UNCONSTRAINED)
        return make() if exact else self._held(node, make)

    def _known(self, node: CanonicalSchema) -> bool:
        try:
            return (self._inner(node) if self._inner else smallest(self.reading, node)) is not ABSENT
        except NoValue:
            return False

    def _item(self, index: int, node: CanonicalSchema | None, seen: set[str] | None) -> Json:
        """One item; where all are to be different, one that was not seen before, `ABSENT` if none is known."""
        value = self.at(index, node)
        if seen is None:
            return value
        for more in count() if node is not None else range(MOST_ITEMS):
            if identity(value) not in seen:
                seen.add(identity(value))
                return value
            if more > len(seen) + _STEPS:
                break
            # what chance makes twice, counting makes once
            value = more
            if node is not None:
                value = Maker(self.reading, Simplest(more), smallest=self._inner or self._smallest).make(node)
                value = value if fits(node, value) else self.at(index, node)
        return ABSENT

    def _smallest(self, node: CanonicalSchema) -> Json:
        return clone(smallest(self.reading, node))

    def _object(self, node: CanonicalSchema, view: views.ObjectView | None) -> Json:
        """Properties that are required, some that are optional, few others.

        Undeclared properties are given only where the schema speaks of them, or names no property at all: a tool that
        takes {"city"} and forgot `additionalProperties: false` is not called with anything else.
        """
        shapes = self.reading.shapes
        shape = shapes.get(node) or shapes.setdefault(node, _object_shape(self.reading, node, view))
        optional = self._optional(shape)
        most = len(shape.required) + len(optional) + (max(_MOST_EXTRAS, shape.low) if shape.extras else 0)
        most = most if shape.high is None else min(shape.high, most)
        if max(shape.low, len(shape.required)) > most or shape.low > MOST_ITEMS:
            raise NoValue

        def make() -> dict[str, Json]:
            names = [*shape.required]
            least = 0 if shape.extras else shape.low - len(names)
            names += self.choices.some(optional, least, most - len(names))
            if shape.extras:
                fewest = max(0, shape.low - len(names))
                names += self._extra_names(shape, names, fewest, max(fewest, min(most - len(names), _MOST_EXTRAS)))
            return {name: self._property(name, shape.child(name)) for name in names}

        return make() if shape.exact else self._held(node, make)

    def _extra_names(self, shape: "ObjectShape", others: list[str], low: int, high: int) -> list[str]:
        taken = dict.fromkeys(others)
        for number in range(self.choices.count(low, high)):
            pattern = self.choices.pick(shape.extras)
            name = text_of([pattern], self.choices.for_names(), *shape.lengths)
            if name is not None:
                last = name[-1:] or "0"
                name = name if name not in taken else name + last * number
                while name in taken:
                    name += last
                taken[name] = None
        return list(taken)[len(others) :]

    def _optional(self, shape: "ObjectShape") -> list[str]:
        """The optional properties of which a value is known."""
        if self._inner:  # as far as it is known on the way to a smallest value
            return [name for name in shape.optional if (child := shape.child(name)) is None or self._known(child)]
        if shape.possible is None:
            shape.possible = [name for name in shape.optional if possible(self.reading, shape.child(name))]
        return shape.possible

    def _property(self, name: str, node: CanonicalSchema | None) -> Json:
        known = self._mined.get(name, ())
        admitted = [value for value in known if node is None or fits(node, value)] if known else []
        return clone(self.choices.pick(admitted)) if admitted and self.choices.whole(0, 3) else self.at(name, node)


@dataclass
class ObjectShape:
    """What an object must, may and need not have, and what other properties may be called.

    Attributes:
        optional: names of properties that it may have.
        extras: patterns for the names of other properties, of which it may have some.
        exact: whether an object made so is right by construction.
        lengths: of the other properties' names, the shortest and the longest.
        possible: those of `optional` of which a value is known, once it was asked.
    """

    optional: list[str]
    extras: list[str]
    exact: bool = True
    required: list[str] = field(default_factory=list)
    properties: Mapping[str, CanonicalSchema] = field(default_factory=dict)
    patterns: Mapping[str, CanonicalSchema] = field(default_factory=dict)
    rest: CanonicalSchema | None = None
    low: int = 0
    high: int | None = None
    lengths: tuple[int, int | None] = (0, None)
    possible: list[str] | None = None

    def child(self, name: str) -> CanonicalSchema | None:
        """What is said of one property's value; None is nothing."""
        if name in self.properties:
            return self.properties[name]
        return next((node for pattern, node in self.patterns.items() if matches(pattern, name)), self.rest)


def _object_shape(reading: SchemaReading, node: CanonicalSchema, view: views.ObjectView | None) -> ObjectShape:
    at_root = node == reading.root
    undeclared = reading.root_names if at_root else reading.open_names
    is_open = at_root and reading.root_is_open
    if view is None:  # nothing is said of its properties
        return ObjectShape(list(undeclared), [_PLAIN_NAME] if is_open or not at_root else [])
    listed = names_admitted(view)
    shape = ObjectShape(
        _optional_names(view, listed or (() if view.additional_properties else undeclared)),
        [*view.pattern_properties],
        required=view.required,
        properties=view.properties,
        patterns=view.pattern_properties,
        rest=view.additional_properties,
        low=view.min_properties or 0,
        high=view.max_properties,
    )
    if not listed and (is_open or _others_expected(view, shape)):
        others, shape.lengths = _name_patterns(view.property_names)
        shape.extras += others
    shape.exact = not (shape.extras or view.violations or (view.property_names and not listed))
    return shape


def _others_expected(view: views.ObjectView, shape: ObjectShape) -> bool:
    """Whether the schema speaks of properties that it does not name, names none at all, or asks for more than it names."""
    spoken_of = shape.rest is not None or not (view.properties or view.required)
    return spoken_of or bool(view.violations) or shape.low > len(view.required) + len(shape.optional)


def _optional_names(view: views.ObjectView, undeclared: Sequence[str]) -> list[str]:
    """Declared names, and then others, that are not required and that the object's `propertyNames` admits."""
    names, required = view.property_names, {*view.required}
    candidates = [name for name in dict.fromkeys((*view.properties, *undeclared)) if name not in required]
    return [name for name in candidates if names is None or fits(names, name)]


def _name_patterns(names: CanonicalSchema | None) -> tuple[list[str], tuple[int, int | None]]:
    """Patterns for names that `propertyNames` admits, and how short and how long those may be."""
    if names is None:
        return [_PLAIN_NAME], (0, None)
    view = names.view()
    if not isinstance(view, views.StringView):
        return [], (0, None)
    shortest, longest = view.min_length or 0, view.max_length
    patterns = list(view.patterns[:1]) or [f"[a-z_]{{{max(shortest, 1)},{longest or shortest + 8}}}"]
    return patterns, (shortest, longest)


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
