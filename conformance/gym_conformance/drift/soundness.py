"""Is a tool definition sound in itself? What a policy sees should be JSON Schema, and should mean what it says."""

from collections.abc import Iterator
from typing import Any

import jsonschema_rs

from gym_conformance.contract.endpoints import RESERVED, TOOL_NAME
from gym_conformance.drift.definitions import Definition
from gym_conformance.drift.strict import Problem, not_strict
from gym_conformance.drift.tool_drift import Drift, DriftKind, Weight
from gym_schemas import Acceptance, Document, Way, depth, pointer, too_large, upgrade, walk

#: Deeper schemas are not compared.
DEPTH = 60


def unsound(definition: Definition, *, names: bool = True) -> tuple[Drift, ...]:
    """What is wrong with the definition alone; with its name only if `names`. A missing description is only a note."""
    problems = list(_name(definition)) if names else []
    broken = not_json_schema(definition)
    if broken:
        problems.append(broken)
    else:
        problems += _inside(definition)
    found = [_drift(definition, problem, Weight.WARNING) for problem in dict.fromkeys(problems)]
    if not definition.description.strip():
        found.append(
            _drift(definition, Problem((), "has no description, so the policy must guess what it does"), Weight.NOTE)
        )
    return tuple(found)


def not_json_schema(definition: Definition) -> Problem | None:
    """Why the parameters are not a JSON Schema for a call's arguments; None if they are."""
    parameters = definition.parameters
    if parameters is None:
        return None
    if not isinstance(parameters, dict):
        return Problem((), f"its parameters are {type(parameters).__name__}, not a JSON Schema object")
    if depth(parameters) > DEPTH:
        return Problem((), f"its parameters are nested more than {DEPTH} levels deep")
    # A definition that names its draft must satisfy it; otherwise the newest one counts, and draft 7, which most tools
    # use.
    errors = [error for meta in _drafts(parameters) if (error := _meta_error(meta)) is not None]
    if len(errors) == len(_drafts(parameters)):
        return errors[0]
    try:
        Acceptance(upgrade(parameters))
    except ValueError as error:
        return Problem((), f"its parameters are not a JSON Schema: {error}")
    return None


def _name(definition: Definition) -> Iterator[Problem]:
    name = definition.name
    if not TOOL_NAME.fullmatch(name):
        yield Problem((), f"the name {name!r} is not legal: 1 to 64 letters, digits, _ and - are")
    elif name in RESERVED:
        yield Problem((), f"the name {name} is reserved: nemo-gym serves /{name} itself")


def _drafts(parameters: dict[str, Any]) -> list[dict[str, Any]]:
    if "$schema" in parameters:
        return [parameters]
    return [parameters, {**parameters, "$schema": "http://json-schema.org/draft-07/schema#"}]


def _meta_error(parameters: dict[str, Any]) -> Problem | None:
    try:
        jsonschema_rs.meta.validate(parameters)
    except jsonschema_rs.ValidationError as error:
        way = tuple(str(step) for step in error.instance_path)
        return Problem(way, f"its parameters are not a JSON Schema: {error.message.partition(chr(10))[0]}")
    except (ValueError, jsonschema_rs.ReferencingError) as error:
        return Problem((), f"its parameters are not a JSON Schema: {str(error).partition(chr(10))[0]}")
    return None


def _inside(definition: Definition) -> Iterator[Problem]:
    parameters = definition.parameters
    if too_large(parameters):
        return
    if parameters:
        given = parameters.get("type", "object")
        if given != "object":
            yield Problem(("type",), f"the arguments of a call are always an object, but it asks for {given}")
    document = Document(upgrade(definition.schema))
    for way, node in walk(definition.schema):
        yield from _required(way, node)
        yield from _values(way, node, document)
    if definition.strict:
        yield from not_strict(definition.schema)


def _required(way: Way, node: Any) -> Iterator[Problem]:
    """A required name that the object does not define is a slip, unless something else defines it."""
    named = node.get("properties")
    if not isinstance(node.get("required"), list):
        return
    combined = (way and isinstance(way[-1], int)) or node.keys() & {
        "allOf",
        "anyOf",
        "oneOf",
        "$ref",
        "patternProperties",
    }
    for name in node["required"]:
        if name == "":
            yield Problem((*way, "required"), 'required lists "", which is not an argument')
        elif isinstance(named, dict) and name not in named and not combined:
            yield Problem((*way, "required"), f"required lists {name}, which is not among its properties")
        elif named is None and not way:
            yield Problem((*way, "required"), f"required lists {name}, and there are no properties")


def _values(way: Way, node: Any, document: Document) -> Iterator[Problem]:
    bare = upgrade({key: value for key, value in node.items() if key not in ("$defs", "definitions")})
    if "default" in node and not _allows(document.alone(bare), node["default"]):
        yield Problem((*way, "default"), f"the default {node['default']!r} is not a value that its own schema allows")
    if "type" in node and ("enum" in node or "const" in node):
        values = node["enum"] if isinstance(node.get("enum"), list) else [node.get("const")]
        wrong = [value for value in values if not _allows({"type": node["type"]}, value)]
        if wrong:
            yield Problem((*way, "enum"), f"{wrong[0]!r} is among its values, but its type is {node['type']}")


def _allows(schema: Any, value: Any) -> bool:
    try:
        return Acceptance(schema).accepts(value)
    except ValueError:
        return True  # a part that is invalid alone is judged with the whole


def _drift(definition: Definition, problem: Problem, weight: Weight) -> Drift:
    text, where = f"{problem.what}{problem.extent}", pointer(problem.where)
    return definition.drift(DriftKind.DEFINITION_UNSOUND, text, path=where, weight=weight, problem=problem.what)
