"""All drift of one environment: every definition of its rows against every tool that its server serves."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from gym_conformance.drift.agreement import disagreement
from gym_conformance.drift.compare import compare, first_call
from gym_conformance.drift.definitions import Definition
from gym_conformance.drift.search import GoOn, without_end
from gym_conformance.drift.served import ServedTool
from gym_conformance.drift.soundness import not_json_schema, unsound
from gym_conformance.drift.tool_drift import SOURCES, Certainty, Drift, DriftKind, Weight, Witness
from gym_conformance.grouping import grouped
from gym_schemas import Acceptance

_ORDER = list(Weight)


def survey(
    definitions: Iterable[Definition],
    served: Mapping[str, ServedTool] | None,
    *,
    executed: bool,
    go_on: GoOn = without_end,
) -> tuple[Drift, ...]:
    """Everything that can be found without a live server: breaking drift first, then by tool and argument.

    Whether a tool's name is legal is not judged here.

    Args:
        definitions: the definitions of all rows.
        served: the served tools by name; None if the server does not say what it serves, as a catch-all does. Then only
            the rows themselves are judged.
        executed: whether the env's agent posts the policy's calls to this server. It does not if calls are only graded,
            or if another server runs them (rdkit_chemistry with ns_tools, 0.4.0); then no tool is missing.
        go_on: called between the steps; ends the survey by raising.
    """
    by_name = grouped(lambda one: one.name, definitions)
    found: list[Drift] = []
    for several in by_name.values():
        found += (drift for one in several for drift in unsound(one, names=False))
        found += filter(None, [disagreement(several)])
    if served is not None:
        found += _server(by_name, served, executed, go_on)
    return tuple(
        sorted(
            _merged(found),
            key=lambda one: (_ORDER.index(one.weight), one.certainty is Certainty.UNKNOWN, one.tool, one.path),
        )
    )


def undeclared_result(served: ServedTool, reply: Any, call: Witness | None = None) -> Drift | None:
    """Drift between a reply (parsed JSON of a 200) and the response schema; None if it matches or there is none."""
    if served.response is None:
        return None
    try:
        refusals = Acceptance(served.response).refusals(reply)
    except ValueError:
        return None
    if not refusals:
        return None
    return Drift(
        DriftKind.RESULT_UNDECLARED,
        served.name,
        f"{served.name}: the reply is not what the server's own response schema says: {refusals[0].reason}",
        weight=DriftKind.RESULT_UNDECLARED.weight,
        served=served.response,
        witness=call,
    )


def _merged(found: Iterable[Drift]) -> Iterable[Drift]:
    """Merge the equal drift of several definitions of one name into one, with the rows of all."""
    merged: dict[tuple[str, ...], Drift] = {}
    for one in found:
        key: tuple[str, ...] = (one.kind, one.weight, one.certainty, one.tool, one.path, one.problem)
        first = merged.get(key)
        if first is None:
            merged[key] = one
        else:
            sources = tuple(dict.fromkeys((*first.sources, *one.sources)))[:SOURCES]
            merged[key] = replace(first, sources=sources, count=first.count + one.count)
    return merged.values()


def _server(
    by_name: Mapping[str, list[Definition]], served: Mapping[str, ServedTool], executed: bool, go_on: GoOn
) -> Iterator[Drift]:
    names = ", ".join(sorted(served)) or "none"
    for name, several in by_name.items():
        if name in served:
            for one in several:
                yield from compare(one, served[name], go_on)
        elif executed:
            one = several[0]
            yield one.drift(
                DriftKind.TOOL_MISSING,
                f"rows declare it, but the server has no such tool; it serves {names}",
                count=sum(each.count for each in several),
                witness=None if not_json_schema(one) else first_call(one),
            )
    for name in sorted(served.keys() - by_name.keys()):
        yield Drift(
            DriftKind.ROUTE_UNUSED,
            name,
            f"{name}: the server serves it, but no row declares it",
            weight=DriftKind.ROUTE_UNUSED.weight,
            served=served[name].request,
        )
