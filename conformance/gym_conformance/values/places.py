"""The places within a value, and how to put another value there while the rest stays valid."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from hypothesis.strategies import DrawFn, SearchStrategy
from jsonschema_rs import CanonicalSchema
from jsonschema_rs import canonical as views

from gym_conformance.values.build import Builder
from gym_conformance.values.json_values import Json
from gym_conformance.values.patterns import smallest_match
from gym_conformance.values.reading import accepts, validator_of
from gym_conformance.values.smallest import names_admitted

#: More than any bundled tool has (some 350); a schema with more is probed in its first ones.
_MOST = 1_000
_DEEPEST = 10
_REFERENCES = 2


@dataclass(frozen=True)
class Into:
    """A step to a property, or to an item; `values` makes one where there is none."""

    key: str | int
    values: SearchStrategy[Json]


@dataclass(frozen=True)
class Branch:
    """A step to one of several alternatives: where the value is of another, it is made anew."""

    node: CanonicalSchema
    values: SearchStrategy[Json]


Step: TypeAlias = Into | Branch


@dataclass(frozen=True)
class Place:
    """A place that a schema speaks of; a branch of an alternative is a place of its own."""

    node: CanonicalSchema
    steps: tuple[Step, ...] = ()
    is_branch: bool = False

    @property
    def path(self) -> str:
        """Where it is, as in `filter.cities[0]`; empty for the whole value."""
        return path_of(self.steps)

    @property
    def depth(self) -> int:
        """How many containers it is in."""
        return sum(isinstance(step, Into) for step in self.steps)


def path_of(steps: tuple[Step, ...]) -> str:
    """Steps as a reader writes them."""
    keys = [step.key for step in steps if isinstance(step, Into)]
    return "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in keys).removeprefix(".")


def places(builder: Builder) -> Iterator[Place]:
    """All places of a schema, outer ones first; recursion is followed a few levels down."""
    waiting: list[tuple[Place, tuple[str, ...]]] = [(Place(builder.reading.root), ())]
    for count, (place, above) in enumerate(waiting):
        if count >= _MOST:
            return
        view = place.node.view()
        if isinstance(view, views.ReferenceView):
            if above.count(view.uri) < _REFERENCES:
                target = builder.reading.target(place.node)
                waiting.append((Place(target, place.steps, place.is_branch), (*above, view.uri)))
            continue
        yield place
        if place.depth < _DEEPEST:
            waiting += [(inner, above) for inner in _inside(builder, place)]


def _inside(builder: Builder, place: Place) -> Iterator[Place]:  # noqa: C901, PLR0912 (one case for each kind of view)
    def into(key: str | int, node: CanonicalSchema) -> Place:
        return Place(node, (*place.steps, Into(key, builder.of(node, place.depth + 1))))

    match place.node.view():
        case views.ObjectView() as view:
            for name, node in view.properties.items():
                if node.kind != views.CanonicalKind.FALSE:
                    yield into(name, node)
            for pattern, node in view.pattern_properties.items():
                match_ = smallest_match(pattern)
                if match_ is not None and match_ not in view.properties:
                    yield into(match_, node)
            if view.additional_properties is not None and not names_admitted(view):
                yield into(fresh_name(view), view.additional_properties)
        case views.ArrayView() as view:
            for number, node in enumerate(view.prefix_items):
                yield into(number, node)
            if view.items is not None:
                yield into(len(view.prefix_items), view.items)
        case views.AnyOfView(branches) | views.OneOfView(branches):
            for branch in branches:
                step = Branch(branch, builder.of(branch, place.depth))
                yield Place(branch, (*place.steps, step), is_branch=True)
        case views.AllOfView(branches):
            for branch in branches:
                yield Place(branch, place.steps, is_branch=True)
        case views.TypedGroupView(_, body):
            yield Place(body, place.steps, is_branch=True)


def fresh_name(view: views.ObjectView) -> str:
    """A name that the object does not declare."""
    name = "extra"
    while name in view.properties or name in view.required:
        name += "_"
    return name


def put(draw: DrawFn, value: Json, steps: tuple[Step, ...], change: Callable[[Json], Json]) -> Json:
    """The value with what is at the end of the steps changed; whatever is missing on the way is made. Nothing is altered."""
    if not steps:
        return change(value)
    step, rest = steps[0], steps[1:]
    if isinstance(step, Branch):
        fits = accepts(validator_of(step.node), value)
        return put(draw, value if fits else draw(step.values), rest, change)
    if isinstance(step.key, int):
        items = list(value) if isinstance(value, list) else []
        while len(items) <= step.key:
            items.append(draw(step.values))
        items[step.key] = put(draw, items[step.key], rest, change)
        return items
    named = dict(value) if isinstance(value, dict) else {}
    old = named[step.key] if step.key in named else draw(step.values)
    named[step.key] = put(draw, old, rest, change)
    return named
