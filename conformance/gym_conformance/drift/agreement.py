"""Do the rows agree? One name should stand for one tool, whatever the row."""

from collections.abc import Sequence
from typing import Any

from gym_conformance.drift.definitions import Definition
from gym_conformance.drift.spelling import plain
from gym_conformance.drift.tool_drift import SOURCES, Drift, DriftKind, Witness
from gym_schemas import Schema, differences, rewrite

_NAMED = 4

#: Keys of a schema whose values may follow the row.
_BOUNDS = (
    *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"),
    *("minLength", "maxLength", "minItems", "maxItems"),
)


def disagreement(definitions: Sequence[Definition]) -> Drift | None:
    """The difference between definitions of one name, or None.

    Different descriptions are a note; nested versus flat, strict versus not, and different schemas are a warning. The
    members of an enum and the bounds of numbers, lists and texts may depend on the row, such as the symbols that its task
    is about, or the size of its board; only the members' types are compared, and which bounds there are.
    """
    first, *others = definitions
    for kind, descriptions in ((DriftKind.ROWS_DISAGREE, False), (DriftKind.DESCRIPTION_DIFFERS, True)):
        for other in others:
            found = list(differences(_spelled(first, descriptions), _spelled(other, descriptions)))
            if not found:
                continue
            named = ", ".join(str(change) for change in found[:_NAMED])
            more = f", and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
            sources = dict.fromkeys(one.sources[0] for one in (first, other, *others) if one.sources)
            return first.drift(
                kind,
                f"rows declare it in {len(definitions)} ways; between the first two that differ, {named}{more}",
                path=found[0].path,
                sources=tuple(sources)[:SOURCES],
                count=sum(one.count for one in definitions),
                counterpart=Witness(other.parameters),
            )
    return None


def _spelled(definition: Definition, descriptions: bool) -> object:
    parameters = definition.parameters
    return {
        "parameters": rewrite(plain(parameters, descriptions=descriptions), _without_values)
        if isinstance(parameters, dict)
        else parameters,
        "strict": definition.strict,
        "nested": definition.nested,
        "description": definition.description if descriptions else "",
    }


def _without_values(node: dict[str, Any]) -> Schema:
    members = [node.pop("const")] if "const" in node else node.get("enum")
    if isinstance(members, list):
        node.pop("type", None)
        node["enum"] = sorted({type(member).__name__ for member in members})
    return node | {key: 0 for key in _BOUNDS if type(node.get(key)) in (int, float)}
