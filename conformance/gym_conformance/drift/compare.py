"""One definition compared with one served tool: what the definition allows and the server refuses, drops or lacks.

The definition is read as offering only the arguments that it names (`lax.closed`). A claim is shown only with a witness
that satisfies the definition and that the server's schema refuses even after any conversion that pydantic might make.
Everything that is neither shown to be drift nor proven not to be is reported as unknown.
"""

from collections.abc import Iterator
from functools import cached_property
from typing import Any

from gym_conformance.drift.argument_places import Places
from gym_conformance.drift.definitions import Definition
from gym_conformance.drift.lax import closed, lax
from gym_conformance.drift.search import GoOn, RefusedValue, candidates, nearest, refused, without_end
from gym_conformance.drift.served import ServedTool
from gym_conformance.drift.soundness import not_json_schema
from gym_conformance.drift.tool_drift import Certainty, Drift, DriftKind, Witness
from gym_conformance.drift.wording import argument, descriptions_differ, short, why_refused
from gym_schemas import (
    Acceptance,
    Schema,
    SchemaRefusal,
    Way,
    boundary_values,
    contains,
    same,
    too_large,
    upgrade,
    without,
)

#: An argument that no definition names.
UNNAMED = "no_such_argument_conformance"


def compare(definition: Definition, served: ServedTool, go_on: GoOn = without_end) -> tuple[Drift, ...]:
    """All drift between the two, breaking drift first; () if the definition is no JSON Schema, which `unsound` reports.

    Args:
        definition: the tool as rows declare it.
        served: the tool as the server declares it.
        go_on: called between the steps; ends the comparison by raising.
    """
    go_on()
    if not_json_schema(definition):
        return ()
    if why := too_large(definition.schema):
        return (_too_large(definition, f"the definition is too large to compare: {why}"),)
    if served.too_large:
        return (_too_large(definition, f"the server's schema is too large to compare: {served.too_large}"),)
    found = list(_elsewhere(definition, served))
    if served.request is None:
        if not found:
            found += _no_body(definition, served)
    else:
        try:
            comparison = _Comparison(definition, served, go_on)
        except ValueError as error:
            message = f"the server's own schema cannot be read: {error}"
            found.append(_drift(definition, DriftKind.ARGUMENT_REFUSED, message, certainty=Certainty.UNKNOWN))
        else:
            found += comparison.drifts()
    return tuple(found)


def offered(definition: Definition) -> Schema:
    """The calls that a sound definition offers by name, as a modern schema."""
    return closed({"type": "object", **upgrade(definition.schema)})


def first_call(definition: Definition) -> Witness | None:
    """The smallest call that a sound definition offers, or None."""
    calls = (value for value in boundary_values(offered(definition)) if isinstance(value, dict))
    return next((Witness(value) for value in calls), None)


class _Comparison:
    """Both schemas in several readings, and what is found by comparing them.

    Raises:
        ValueError: the server's schema cannot be read.
    """

    def __init__(self, definition: Definition, served: ServedTool, go_on: GoOn) -> None:
        self.definition, self.served, self.go_on = definition, served, go_on
        self.open = {"type": "object", **upgrade(definition.schema)}
        self.offered = closed(self.open)
        self.strict = served.arguments
        self.by_name = closed(self.strict)
        self.strictly = Acceptance(self.strict)
        self.laxly = Acceptance(lax(self.strict))
        self.laxly_by_name = Acceptance(lax(self.by_name))
        self.theirs = Places(self.strict)
        self.ours = Places(self.offered, self.theirs)

    @cached_property
    def values(self) -> list[Any]:
        """Calls that the definition offers."""
        return candidates(self.offered, (lax(self.strict), self.strict), self.go_on)

    @cached_property
    def agreed(self) -> list[Any]:
        """Those that the server's schema accepts as written, with all arguments if there are any such."""
        by_name = Acceptance(self.by_name)
        whole = [value for value in self.values if by_name.accepts(value)]
        return whole or [value for value in self.values if self.strictly.accepts(value)]

    def drifts(self) -> list[Drift]:
        """All drift, breaking first."""
        shown = refused(self.values, self.offered, self.ours, self.laxly.refusals, self.go_on)
        found = [self._refused(one) for one in shown.values()]
        if not contains(self.strict, self.offered):
            found += self._unproven(set(shown))
        found += self._ignored(set(shown))
        return [*found, *self._more({drift.path for drift in found}), *self._unnamed(), *self._descriptions()]

    def _refused(self, one: RefusedValue, certainty: Certainty = Certainty.SHOWN) -> Drift:
        self.go_on()
        # The schema as written gives the best reason, because the lax reading is full of alternatives.
        letter = (refusal for refusal in self.strictly.refusals(one.value) if refusal.way == one.way)
        why = why_refused(one, next(letter, one.refusal), self.ours, self.theirs)
        maybe = "" if certainty is Certainty.SHOWN else ", unless it converts the value, as pydantic's lax mode may"
        return self._drift(
            DriftKind.ARGUMENT_REFUSED,
            f"{why}{maybe}",
            one,
            certainty=certainty,
            counterpart=self._counterpart(one.value),
        )

    def _unproven(self, shown: set[str]) -> Iterator[Drift]:
        """What a conversion might fix, and then what remains undecided."""
        maybe = refused(self.values, self.offered, self.ours, self.strictly.refusals, self.go_on)
        maybe = {path: one for path, one in maybe.items() if not _touches(path, shown)}
        yield from (self._refused(one, Certainty.UNKNOWN) for one in maybe.values())
        refused_names = {
            refusal.way[0] for value in self.values for refusal in self.strictly.refusals(value) if refusal.way
        }
        others = [name for name in self.ours.arguments() if name not in refused_names and not self._holds(name)]
        message = "it could not be determined whether the server accepts every value that the definition allows"
        for name in others:
            yield self._unknown((name,), f"{name}: {message}")
        if not shown and not maybe and not others:
            yield self._unknown((), message)

    def _holds(self, name: str) -> bool:
        ours, theirs = self.ours.alone((name,)), self.theirs.alone((name,))
        return ours is None or theirs is None or contains(theirs, ours)

    def _unknown(self, way: Way, message: str) -> Drift:
        counterpart = nearest({}, self.agreed)
        return _drift(
            self.definition,
            DriftKind.ARGUMENT_REFUSED,
            message,
            path=self.ours.path(way),
            certainty=Certainty.UNKNOWN,
            definition=self.ours.at(way),
            served=self.theirs.at(way),
            counterpart=None if counterpart is None else Witness(counterpart),
        )

    def _ignored(self, shown: set[str]) -> Iterator[Drift]:
        def dropped(value: Any) -> list[SchemaRefusal]:
            refused_anyway = {refusal.way for refusal in self.laxly.refusals(value)}
            return [
                refusal
                for refusal in self.laxly_by_name.refusals(value)
                if refusal.way not in refused_anyway and (not refusal.unexpected or self.ours.names(refusal.way))
            ]

        for one in refused(self.values, self.offered, self.ours, dropped, self.go_on).values():
            if one.path in shown:
                continue
            unknown = [name for name in self.theirs.arguments() if name not in self.ours.arguments()]
            renamed = f"; renamed? the server reads {', '.join(unknown)}" if unknown else ""
            message = f"the definition offers {argument(one.path)}, which the server ignores{renamed}"
            yield self._drift(DriftKind.ARGUMENT_IGNORED, message, one, counterpart=self._twin(one))

    def _twin(self, one: RefusedValue) -> Witness | None:
        """Another call that differs only in the ignored argument: in its value, or else in its absence."""
        bare = without(one.value, one.way)
        absent = [bare] if one.way and Acceptance(self.offered).accepts(bare) else []
        others = [
            value
            for value in self.values
            if not same(value, one.value) and not same(value, bare) and same(without(value, one.way), bare)
        ] or absent
        taken = [value for value in others if self.laxly.accepts(value)]
        return Witness(nearest(one.value, taken)) if taken else None

    def _more(self, reported: set[str]) -> Iterator[Drift]:
        """What the server accepts beyond the definition, apart from calls that lack an argument of a strict one."""
        values = candidates(self.by_name, (self.offered,), self.go_on)
        ours = Acceptance(self.offered)

        def not_offered(value: Any) -> list[SchemaRefusal]:
            return [each for each in ours.refusals(value) if not (self.definition.strict is True and each.missing)]

        beyond = refused(values, self.by_name, self.ours, not_offered, self.go_on)
        for one in beyond.values():
            if one.path in reported or not self.theirs.names_all(one.way):
                continue
            kind = DriftKind.ARGUMENT_UNOFFERED if one.refusal.unexpected else DriftKind.ARGUMENT_WIDENED
            message = (
                f"the server takes {argument(one.path)}, which the definition does not offer"
                if one.refusal.unexpected
                else f"the server's schema also allows {short(one.value)}, which the definition does not: {one.refusal.reason}"
            )
            yield self._drift(kind, message, one, counterpart=self._counterpart(one.value))

    def _unnamed(self) -> Iterator[Drift]:
        open_ = Acceptance(self.open)
        for value in self.agreed[:1]:
            more = {**value, UNNAMED: "a"}
            if open_.accepts(more) and not self.laxly.accepts(more):
                message = "the server refuses unknown arguments, but the definition does not forbid them"
                one = RefusedValue("", (), SchemaRefusal((), "additionalProperties", ""), more)
                yield self._drift(DriftKind.UNNAMED_REFUSED, message, one, counterpart=Witness(value))

    def _descriptions(self) -> Iterator[Drift]:
        pairs = [(name, self.ours.at((name,)), self.theirs.at((name,))) for name in self.ours.arguments()]
        differing = [name for name, ours, theirs in pairs if descriptions_differ(ours, theirs)]
        if differing:
            message = f"the descriptions of {', '.join(differing)} differ"
            yield _drift(self.definition, DriftKind.DESCRIPTION_DIFFERS, message)
        if not self.served.route and descriptions_differ(vars(self.definition), vars(self.served)):
            yield _drift(self.definition, DriftKind.DESCRIPTION_DIFFERS, "the descriptions of the tool differ")

    def _counterpart(self, value: Any) -> Witness | None:
        return Witness(nearest(value, self.agreed)) if self.agreed else None

    def _drift(self, kind: DriftKind, message: str, one: RefusedValue, **more: Any) -> Drift:
        return _drift(
            self.definition,
            kind,
            message,
            path=one.path,
            definition=self.ours.at(one.way),
            served=self.theirs.at(one.way),
            witness=Witness(one.value),
            **more,
        )


def _elsewhere(definition: Definition, served: ServedTool) -> Iterator[Drift]:
    """What the server requires and no agent sends, so that every call is refused."""
    call = first_call(definition)
    for name, where in served.elsewhere:
        message = f"the server reads {name} from the {where}; agents send arguments as a JSON body, so declare a model"
        yield _drift(
            definition, DriftKind.ARGUMENT_REFUSED, message, path=Places({}).path(()) + f"/{name}", witness=call
        )
    if served.other_body:
        message = f"the server wants a body of {served.other_body}; agents send JSON"
        yield _drift(definition, DriftKind.ARGUMENT_REFUSED, message, witness=call)


def _no_body(definition: Definition, served: ServedTool) -> Iterator[Drift]:
    """The document declares no body: the handler ignores it, or reads the request itself."""
    places = Places(offered(definition))
    values = list(boundary_values(offered(definition)))
    for name in places.arguments():
        call = next((value for value in values if isinstance(value, dict) and name in value), None)
        others = [
            value
            for value in values
            if call and not same(value, call) and same(without(value, (name,)), without(call, (name,)))
        ]
        yield _drift(
            definition,
            DriftKind.ARGUMENT_IGNORED,
            f"{served.route} declares no body: {name} is ignored, unless the handler reads the request itself",
            path=places.path((name,)),
            certainty=Certainty.UNKNOWN,
            definition=places.at((name,)),
            witness=None if call is None else Witness(call),
            counterpart=Witness(others[0]) if others else None,
        )


def _drift(declared: Definition, kind: DriftKind, message: str, **more: Any) -> Drift:
    """A drift of a part of the definition, with its schema if there is one."""
    return declared.drift(kind, message, **{"definition": None} | more)


def _too_large(declared: Definition, message: str) -> Drift:
    return _drift(declared, DriftKind.ARGUMENT_REFUSED, message, certainty=Certainty.UNKNOWN)


def _touches(path: str, others: set[str]) -> bool:
    """Whether one of the others is the path, inside it, or around it."""
    return any(
        other == path or not other or f"{other}/".startswith(f"{path}/") or path.startswith(f"{other}/")
        for other in others
    )
