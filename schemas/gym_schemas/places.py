"""The places within a value, and how to put another value there while keeping the rest valid."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from jsonschema_rs import CanonicalSchema
from jsonschema_rs import canonical as views

from gym_schemas.choices import Simplest
from gym_schemas.json_values import Json
from gym_schemas.making import Maker, names_admitted
from gym_schemas.patterns import text_of
from gym_schemas.schema_reading import SchemaReading, fits

#: More places than any bundled tool has (some 350); of a larger schema only the first ones are tested.
_MOST = 1_000
_DEEPEST = 10
_REFERENCES = 2


@dataclass(frozen=True)
class Into:
    """A step to a property or an item; `node` is the schema to make it from if it is missing."""

    key: str | int
    node: CanonicalSchema


@dataclass(frozen=True)
class Branch:
    """A step into one of several alternatives; a value of a different alternative is replaced."""

    node: CanonicalSchema


Step: TypeAlias = Into | Branch


@dataclass(frozen=True)
class SchemaPlace:
    """A place that a schema describes; each branch of an alternative is a place of its own."""

    node: CanonicalSchema
    steps: tuple[Step, ...] = ()
    is_branch: bool = False

    @property
    def path(self) -> str:
        """Where it is, as in `filter.cities[0]`; empty for the whole value."""
        keys = [step.key for step in self.steps if isinstance(step, Into)]
        return "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in keys).removeprefix(".")

    @property
    def depth(self) -> int:
        """The number of containers around it."""
        return sum(isinstance(step, Into) for step in self.steps)


def places(reading: SchemaReading) -> Iterator[SchemaPlace]:
    """All places of a schema, outer ones first; recursive references are followed a few levels down."""
    waiting: list[tuple[SchemaPlace, tuple[str, ...]]] = [(SchemaPlace(reading.root), ())]
    for count, (place, above) in enumerate(waiting):
        if count >= _MOST:
            return
        view = place.node.view()
        if isinstance(view, views.ReferenceView):
            if above.count(view.uri) < _REFERENCES:
                target = reading.target(place.node)
                waiting.append((SchemaPlace(target, place.steps, place.is_branch), (*above, view.uri)))
            continue
        yield place
        if place.depth < _DEEPEST:
            waiting += [(inner, above) for inner in _inside(place)]


def _inside(place: SchemaPlace) -> Iterator[SchemaPlace]:
    for step in _steps_into(place.node.view()):
        yield SchemaPlace(step.node, (*place.steps, step))
    match place.node.view():
        case views.AnyOfView(branches) | views.OneOfView(branches):
            for branch in branches:
                yield SchemaPlace(branch, (*place.steps, Branch(branch)), is_branch=True)
        case views.AllOfView(branches):
            yield from (SchemaPlace(branch, place.steps, is_branch=True) for branch in branches)
        case views.TypedGroupView(_, body):
            yield SchemaPlace(body, place.steps, is_branch=True)


def _steps_into(view: object) -> Iterator[Into]:
    """The steps to an object's properties, including undeclared ones, and to an array's items."""
    if isinstance(view, views.ObjectView):
        properties = view.properties
        yield from (Into(name, node) for name, node in properties.items() if node.kind != views.CanonicalKind.FALSE)
        for pattern, node in view.pattern_properties.items():
            name = text_of([pattern], Simplest())
            if name is not None and name not in properties:
                yield Into(name, node)
        if view.additional_properties is not None and not names_admitted(view):
            yield Into(fresh_name(view), view.additional_properties)
    elif isinstance(view, views.ArrayView):
        yield from (Into(number, node) for number, node in enumerate(view.prefix_items))
        if view.items is not None:
            yield Into(len(view.prefix_items), view.items)


def fresh_name(view: views.ObjectView) -> str:
    """A name that the object does not declare."""
    name, taken = "extra", {*view.properties, *view.required}
    while name in taken:
        name += "_"
    return name


def put(maker: Maker, value: Json, steps: tuple[Step, ...], change: Callable[[Json], Json]) -> Json:
    """A copy of the value, changed at the end of the steps; whatever is missing on the way is made."""
    if not steps:
        return change(value)
    step, rest = steps[0], steps[1:]
    if isinstance(step, Branch):
        return put(maker, value if fits(step.node, value) else maker.make(step.node), rest, change)
    if isinstance(step.key, int):
        items = list(value) if isinstance(value, list) else []
        while len(items) <= step.key:
            items.append(maker.at(step.key, step.node))
        items[step.key] = put(maker, items[step.key], rest, change)
        return items
    named = dict(value) if isinstance(value, dict) else {}
    old = named[step.key] if step.key in named else maker.at(step.key, step.node)
    named[step.key] = put(maker, old, rest, change)
    return named
