"""Upgraded schemas as validators that say where and why a value is refused. Nothing is fetched; formats are checked."""

from collections.abc import Iterator
from dataclasses import dataclass

import jsonschema_rs

from gym_schemas.json_values import Json, Way
from gym_schemas.tree import Schema

UNREADABLE = (ValueError, jsonschema_rs.ReferencingError)
"""What jsonschema_rs raises of a schema; its other errors are ValueErrors."""

_BRANCHED = frozenset({"anyOf", "oneOf"})


@dataclass(frozen=True)
class SchemaRefusal:
    """Why a value is refused: the location in the value, the keyword, and a message.

    If a property is missing or unexpected, the location ends in its name.
    """

    way: Way
    keyword: str
    reason: str
    missing: bool = False
    unexpected: bool = False


class Acceptance:
    """An upgraded schema as a validator.

    Raises:
        ValueError: it is not a JSON Schema, or has a reference that leads nowhere.
    """

    def __init__(self, schema: Schema) -> None:
        try:
            self._validator = jsonschema_rs.Draft202012Validator(schema, validate_formats=True, offline=True)
        except UNREADABLE as error:
            raise ValueError(str(error).partition("\n")[0]) from None

    def accepts(self, value: Json) -> bool:
        """Whether the schema admits the value."""
        return accepted(self._validator, value)

    def refusals(self, value: Json) -> list[SchemaRefusal]:
        """All violations of the schema by the value, each at the innermost location that can be determined."""
        return [refusal for error in self._validator.iter_errors(value) for refusal in _located(error)]


def accepted(validator: jsonschema_rs.Validator, value: Json) -> bool:
    """Whether the validator accepts the value; none can read a property name with a lone surrogate."""
    try:
        return validator.is_valid(value)
    except (ValueError, RecursionError):
        return False


def _located(error: jsonschema_rs.ValidationError) -> Iterator[SchemaRefusal]:
    """The error; for a union, the errors of the one branch that the value seems meant for."""
    kind = error.kind
    if kind.name in _BRANCHED and (branches := getattr(kind, "context", None)):
        meant = [branch for branch in branches if branch and not _other_type(branch, error)]
        if len(meant) == 1:
            for inner in meant[0]:
                yield from _located(inner)
        else:
            firsts = (_reason(branch[0]) for branch in meant or branches if branch)
            yield SchemaRefusal(
                tuple(error.instance_path), kind.name, " and ".join(dict.fromkeys(firsts)) or _reason(error)
            )
        return
    way = tuple(error.instance_path)
    if kind.name == "required":
        name = str(getattr(kind, "property", ""))
        yield SchemaRefusal((*way, name), kind.name, f"{name} is required", missing=True)
    elif names := getattr(kind, "unexpected", None):
        yield from (
            SchemaRefusal((*way, name), kind.name, f"{name} is not among its properties", unexpected=True)
            for name in names
        )
    else:
        yield SchemaRefusal(way, kind.name, _reason(error))


def _reason(error: jsonschema_rs.ValidationError) -> str:
    return error.message.partition("\n")[0]


def _other_type(branch: list[jsonschema_rs.ValidationError], error: jsonschema_rs.ValidationError) -> bool:
    return any(one.kind.name == "type" and one.instance_path == error.instance_path for one in branch)
