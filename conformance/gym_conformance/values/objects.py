"""What properties an object may, must and need not have, and strategies for such objects."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy
from jsonschema_rs import CanonicalSchema
from jsonschema_rs import canonical as views

from gym_conformance.values.json_values import Json
from gym_conformance.values.patterns import matching
from gym_conformance.values.reading import Reading, accepts, validator_of
from gym_conformance.values.smallest import child_of, names_admitted

_MOST_EXTRAS = 3
_NAME_ALPHABET = st.characters(min_codepoint=32, max_codepoint=126)
_PLAIN_NAMES = st.text("abcdefghijklmnopqrstuvwxyz_", min_size=1, max_size=8)


@dataclass(frozen=True)
class Extra:
    """Properties that the schema does not name: where their names come from, and what it says of their values."""

    names: SearchStrategy[str]
    node: CanonicalSchema | None


@dataclass(frozen=True)
class Shape:
    """The properties of an object; a node of None says nothing of the value."""

    required: Mapping[str, CanonicalSchema | None]
    optional: Mapping[str, CanonicalSchema | None]
    extras: tuple[Extra, ...]
    low: int
    high: int | None
    exact: bool
    """Whether every object of this shape is valid."""


def shape_of(reading: Reading, node: CanonicalSchema, view: views.ObjectView | None) -> Shape:
    """The shape of an object node; a view of None is an object without any limit.

    Undeclared properties are given only where the schema speaks of them, or names no property at all: a tool that
    takes {"city"} and forgot `additionalProperties: false` is not called with anything else.
    """
    at_root = node == reading.root
    loose = reading.root_names if at_root else reading.open_names
    if view is None:
        anything = [Extra(_PLAIN_NAMES, None)] if reading.root_is_open or not at_root else []
        return Shape({}, dict.fromkeys(loose), tuple(anything), 0, None, exact=True)
    names = validator_of(view.property_names) if view.property_names is not None else None
    listed = names_admitted(view)
    candidates = (*view.properties, *(listed or (() if view.additional_properties else loose)))
    optional = [name for name in dict.fromkeys(candidates) if name not in view.required]
    optional = [name for name in optional if names is None or accepts(names, name)]
    extras = tuple(
        _extras(view, listed, open_anyway=at_root and reading.root_is_open, known=len(view.required) + len(optional))
    )
    return Shape(
        {name: child_of(view, name) for name in view.required},
        {name: child_of(view, name) for name in optional},
        extras,
        view.min_properties or 0,
        view.max_properties,
        exact=not (extras or view.violations or view.pattern_properties or (names is not None and not listed)),
    )


def _extras(view: views.ObjectView, listed: Sequence[str], *, open_anyway: bool, known: int) -> list[Extra]:
    extras = []
    for pattern, node in view.pattern_properties.items():
        named = matching([pattern], 0, None, _NAME_ALPHABET)
        if named is not None:
            extras.append(Extra(named, node))
    if listed:
        return extras
    unnamed = not view.properties and not view.required
    if (
        view.additional_properties is not None
        or unnamed
        or open_anyway
        or view.violations
        or (view.min_properties or 0) > known
    ):
        names = _names(view)
        if names is not None:
            extras.append(Extra(names, view.additional_properties))
    return extras


def _names(view: views.ObjectView) -> SearchStrategy[str] | None:
    if view.property_names is None:
        return _PLAIN_NAMES
    shape = view.property_names.view()
    if not isinstance(shape, views.StringView):
        return None
    low, high = shape.min_length or 0, shape.max_length
    if shape.patterns:
        return matching(shape.patterns, low, high, _NAME_ALPHABET)
    return st.text("abcdefghijklmnopqrstuvwxyz_", min_size=max(low, 1), max_size=high if high is not None else low + 8)


def objects(
    required: Mapping[str, SearchStrategy[Json]],
    optional: Mapping[str, SearchStrategy[Json]],
    extras: Sequence[tuple[SearchStrategy[str], SearchStrategy[Json]]],
    low: int,
    high: int | None,
) -> SearchStrategy[dict[str, Json]]:
    """Objects of `low` to `high` properties: all that are required, some that are optional, few others."""
    if any(values.is_empty for values in required.values()):
        return st.nothing()
    optional = {name: values for name, values in optional.items() if not values.is_empty}
    others = [st.tuples(names, values) for names, values in extras if not names.is_empty and not values.is_empty]
    most = len(required) + len(optional) + (max(_MOST_EXTRAS, low) if others else 0)
    if low > most or (high is not None and high < len(required)):
        return st.nothing()
    if not others and low <= len(required) and (high is None or high >= most):
        return st.fixed_dictionaries(dict(required), optional=dict(optional))
    return _counted(required, optional, others, low=low, high=most if high is None else min(high, most))


@st.composite
def _counted(
    draw: DrawFn,
    required: Mapping[str, SearchStrategy[Json]],
    optional: Mapping[str, SearchStrategy[Json]],
    others: Sequence[SearchStrategy[tuple[str, Json]]],
    *,
    low: int,
    high: int,
) -> dict[str, Json]:
    made = {name: draw(values) for name, values in required.items()}
    if optional:
        least = 0 if others else max(0, low - len(made))
        names = st.lists(
            st.sampled_from(list(optional)), unique=True, min_size=least, max_size=min(len(optional), high - len(made))
        )
        made |= {name: draw(optional[name]) for name in draw(names)}
    if others:
        least, most = max(0, low - len(made)), high - len(made)
        pairs = st.lists(
            st.one_of(list(others)),
            min_size=least,
            max_size=max(least, min(most, _MOST_EXTRAS)),
            unique_by=lambda pair: pair[0],
        )
        made = {**dict(draw(pairs)), **made}
    return made
