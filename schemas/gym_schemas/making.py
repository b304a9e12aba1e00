"""Makes values of a schema from its canonical form; `choices` makes the decisions."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache, partial
from itertools import chain, count
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

#: The longest text and the longest array to make.
LONGEST_TEXT, MOST_ITEMS = 100_000, 1_000

#: The most weight of a value: its characters, plus this for each value in it. Nested lists, even of the fewest items,
#: have no limit.
_HEAVIEST, _EACH = 200_000, 20

_ROOM = 4
"""How many optional items an array gets at the root; one fewer at each level below, but at least one."""
_MOST_EXTRAS = 3
_MOST_REFERENCES = 3
"""How many references a value follows before the smallest value is used."""
_MOST_REFUSED = 24
"""How many parts of one value are made again: nested retries would multiply without end."""
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
"""How many simple, and then random, attempts are made at a smallest value."""


class NoValue(Exception):
    """No valid value is known: there is none, or none that this package can make."""


def minimal(schema: Parameters) -> Json:
    """A smallest value that the schema admits: always the same one, as a new object.

    Raises:
        NoValue: none is known.
    """
    least = _least(read(schema))
    if least is ABSENT:
        raise NoValue
    return clone(least)


def makeable(reading: SchemaReading) -> bool:
    """Whether a value of the whole schema is known; one of its canonical form, which can be laxer, is not enough."""
    return _least(reading) is not ABSENT


@lru_cache(512)
def _least(reading: SchemaReading) -> Json:
    try:
        value = smallest(reading, reading.root)
    except NoValue:
        return ABSENT
    candidates = chain([value], _by_chance(reading, reading.root))
    return next((one for one in candidates if reading.admits(one)), ABSENT)


def sampled(schema: Parameters, random: Random) -> Json:
    """A random value that the schema admits, of an ordinary appearance.

    Raises:
        NoValue: none is known.
    """
    return Maker(read(schema), Chance(random)).value()


def smallest(reading: SchemaReading, node: CanonicalSchema) -> Json:
    """A smallest value of a node; it is shared, so copy it before passing it on.

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
    """The search for smallest values, cached in the reading. A node that recurs inside itself has none on that path."""

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
            if value is ABSENT and self._circles:  # none on this path, but perhaps on another
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
            self._reading.found[node] = ABSENT  # what chance cannot make would begin this search again, within itself
            yield from _by_chance(self._reading, node)


def _by_chance(reading: SchemaReading, node: CanonicalSchema) -> Any:
    for seed in range(_SEEDS):
        try:
            yield Maker(reading, Chance(Random(seed))).make(node)
        except (NoValue, RecursionError):
            continue


def _light(value: Json, most: int) -> int:
    """The weight of a value.

    Raises:
        NoValue: it is heavier than `most`.
    """
    weight, waiting = 0, [value]
    while waiting and weight <= most:
        one = waiting.pop()
        weight += _EACH + (len(one) if isinstance(one, str) else 0)
        if isinstance(one, dict | list):
            waiting.extend(one.values() if isinstance(one, dict) else one)
    if weight > most:
        raise NoValue
    return weight


class Maker:
    """Makes one value of a reading; `mined` values are used at times for properties of their name that admit them.

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
        """A value of the whole schema, checked by its own validator.

        Raises:
            NoValue: none is known.
        """
        least = _least(self.reading)
        if least is ABSENT:
            raise NoValue
        for _ in range(self.choices.tries):
            with suppress(NoValue):
                value = self.make(self.reading.root)
                if self.reading.admits(value):
                    return value
        return clone(least)

    def of(self, node: CanonicalSchema) -> Json:
        """A value of a node inside another."""
        return self._inner(node) if self._inner else self.make(node)

    def at(self, step: str | int, node: CanonicalSchema | None) -> Json:
        """A value of a node one level further inside; any value for None."""
        before = self.choices.way
        self.choices.way = (*before, step)
        try:
            if node is not None and self.choices.settled():
                return clone(smallest(self.reading, node))
            return self._free(_FREE) if node is None else self.of(node)
        finally:
            self.choices.way = before

    def make(self, node: CanonicalSchema) -> Json:  # noqa: PLR0911 (one case for each kind of view)
        """A value of a node, checked against it unless it is valid by construction."""
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
        """A value of a node that is composed of other nodes."""
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
        """The alternatives for which a value is known, simple ones first."""
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
        """A value that fits the node: a few attempts, then the smallest value. With only one attempt, the caller checks the whole."""
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
        counts = [1 if part.min_contains is None else part.min_contains for part in view.contains]
        if max(low, sum(counts)) > MOST_ITEMS:
            raise NoValue
        self._ensure_light([part.schema for part in view.contains], counts)
        wanted = [part.schema for part, count in zip(view.contains, counts, strict=True) for _ in range(count)]
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
            weight = 0
            seen = _Seen() if distinct else None
            size = self.choices.count(low, high)
            free = list(range(size))
            placed = {free.pop(self.choices.pick(range(len(free)))): one for one in wanted}
            known = True
            for index in range(size):
                if index in placed:
                    value = self.at(index, placed[index])
                else:
                    item = view.prefix_items[index] if index < len(view.prefix_items) else view.items
                    value = self._item(index, item, seen) if known else ABSENT
                    known = value is not ABSENT
                if value is not ABSENT:
                    weight += _light(value, _HEAVIEST - weight)
                    made.append(value)
            if view.distinctness == views.Distinctness.SOME_REPEATED and made:
                made = [*made[:-1], made[0]] if len(made) > 1 else made * 2
            return made

        exact = not (view.prefix_items or wanted or distinct or view.distinctness != views.Distinctness.UNCONSTRAINED)
        return make() if exact else self._held(node, make)

    def _ensure_light(self, parts: Sequence[CanonicalSchema], counts: Sequence[int]) -> None:
        """Continue only if this many of each part may be light enough, instead of making them in vain."""
        for part, often in zip(parts, counts, strict=True):
            if often:
                _light(self._inner(part) if self._inner else smallest(self.reading, part), _HEAVIEST // often)

    def _known(self, node: CanonicalSchema) -> bool:
        try:
            return (self._inner(node) if self._inner else smallest(self.reading, node)) is not ABSENT
        except NoValue:
            return False

    def _item(self, index: int, node: CanonicalSchema | None, seen: "_Seen | None") -> Json:
        """One item; if all must differ, one that was not seen before, or `ABSENT` if none is known."""
        value = self.at(index, node)
        if seen is None:
            return value
        first = seen.counted.get(node, 0)  # what was counted before is among those seen
        for more in count(first) if node is not None else range(first, MOST_ITEMS):
            if identity(value) not in seen.names:
                seen.names.add(identity(value))
                seen.counted[node] = more
                return value
            if more > len(seen.names) + _STEPS:
                break
            # random choices repeat; counting does not
            value = more
            if node is not None:
                value = Maker(self.reading, Simplest(more), smallest=self._inner or self._smallest).make(node)
                value = value if fits(node, value) else self.at(index, node)
        return ABSENT

    def _smallest(self, node: CanonicalSchema) -> Json:
        return clone(smallest(self.reading, node))

    def _object(self, node: CanonicalSchema, view: views.ObjectView | None) -> Json:
        """An object with the required properties, some optional ones, and a few others.

        Undeclared properties are only added if the schema mentions them, or names no property at all: a tool that takes
        {"city"} and forgot `additionalProperties: false` is not called with anything else.
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
            made: dict[str, Json] = {}
            weight = 0
            for name in names:
                made[name] = self._property(name, shape.child(name))
                weight += _light(made[name], _HEAVIEST - weight)
            return made

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
        """The optional properties for which a value is known."""
        if self._inner:  # as far as known while the smallest value is still being searched
            return [name for name in shape.optional if (child := shape.child(name)) is None or self._known(child)]
        if shape.possible is None:
            shape.possible = [name for name in shape.optional if possible(self.reading, shape.child(name))]
        return shape.possible

    def _property(self, name: str, node: CanonicalSchema | None) -> Json:
        known = self._mined.get(name, ())
        admitted = [value for value in known if node is None or fits(node, value)] if known else []
        return clone(self.choices.pick(admitted)) if admitted and self.choices.whole(0, 3) else self.at(name, node)


@dataclass
class _Seen:
    """The items of an array whose items all differ, and how far was counted in search of more, by what they must be."""

    names: set[str] = field(default_factory=set)
    counted: dict[CanonicalSchema | None, int] = field(default_factory=dict)


@dataclass
class ObjectShape:
    """The required, optional and other properties of an object, and the names that the others may have.

    Attributes:
        optional: names of optional properties.
        extras: patterns for the names of other properties that it may have.
        exact: whether an object made this way is valid by construction.
        lengths: the shortest and the longest names of other properties.
        possible: those of `optional` for which a value is known; None until computed.
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
        """The schema of one property's value; None if there is none."""
        if name in self.properties:
            return self.properties[name]
        return next((node for pattern, node in self.patterns.items() if matches(pattern, name)), self.rest)


def _object_shape(reading: SchemaReading, node: CanonicalSchema, view: views.ObjectView | None) -> ObjectShape:
    at_root = node == reading.root
    undeclared = reading.root_names if at_root else reading.open_names
    is_open = at_root and reading.root_is_open
    if view is None:  # its properties are unconstrained
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
    """Whether the schema mentions properties that it does not name, names none, or requires more than it names."""
    spoken_of = shape.rest is not None or not (view.properties or view.required)
    return spoken_of or bool(view.violations) or shape.low > len(view.required) + len(shape.optional)


def _optional_names(view: views.ObjectView, undeclared: Sequence[str]) -> list[str]:
    """Declared names, and then others, that are not required and that the object's `propertyNames` admits."""
    names, required = view.property_names, {*view.required}
    candidates = [name for name in dict.fromkeys((*view.properties, *undeclared)) if name not in required]
    return [name for name in candidates if names is None or fits(names, name)]


def _name_patterns(names: CanonicalSchema | None) -> tuple[list[str], tuple[int, int | None]]:
    """Patterns for names that `propertyNames` admits, and their minimum and maximum length."""
    if names is None:
        return [_PLAIN_NAME], (0, None)
    view = names.view()
    if not isinstance(view, views.StringView):
        return [], (0, None)
    shortest, longest = view.min_length or 0, view.max_length
    patterns = list(view.patterns[:1]) or [f"[a-z_]{{{max(shortest, 1)},{longest or shortest + 8}}}"]
    return patterns, (shortest, longest)


def names_admitted(view: views.ObjectView) -> tuple[str, ...]:
    """The only property names that are allowed; empty if the object does not list them."""
    if view.property_names is None:
        return ()
    match view.property_names.view():
        case views.ConstView(value):
            return (str(value),)
        case views.EnumView(values):
            return tuple(map(str, values))
    return ()
