"""What jsonschema-rs says of two schemas. Its canonical form is experimental: only a proof of containment is trusted.

Nothing is ever fetched, formats count, and a schema that the library cannot read gives no answer instead of an error.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import jsonschema_rs
from jsonschema_rs.canonical import Containment

from gym_conformance.drift.combining import cases
from gym_conformance.drift.schema import Schema, split, walk

_UNREADABLE = (ValueError, jsonschema_rs.ReferencingError)  # the library's other errors are ValueErrors

#: How many cases the canonical form may be asked to tell apart in one place: its work grows with them.
_CASES = 256

_BRANCHED = frozenset({"anyOf", "oneOf"})


@dataclass(frozen=True)
class Refusal:
    """Why a value is refused: where in the value, by which keyword, in words.

    Where a property is missing or unexpected, the way ends in its name.
    """

    way: tuple[str | int, ...]
    keyword: str
    reason: str
    missing: bool = False
    unexpected: bool = False


class Acceptance:
    """A modern schema as a validator.

    Raises:
        ValueError: it is no JSON Schema, or refers to what is not there.
    """

    def __init__(self, document: Schema) -> None:
        try:
            self._validator = jsonschema_rs.Draft202012Validator(document, validate_formats=True, offline=True)
        except _UNREADABLE as error:
            raise ValueError(str(error).partition("\n")[0]) from None

    def accepts(self, value: Any) -> bool:
        """Whether the schema allows the value."""
        return self._validator.is_valid(value)

    def refusals(self, value: Any) -> list[Refusal]:
        """All that the schema has against the value, each as deep inside as can be told."""
        return [refusal for error in self._validator.iter_errors(value) for refusal in _located(error)]


def proven(wide: Schema, narrow: Schema) -> bool:
    """Whether every value that `narrow` allows is proven to be allowed by `wide`."""
    if not (tractable(wide) and tractable(narrow)):
        return False
    try:
        return _canonical(wide).covers(_canonical(narrow)) == Containment.YES
    except _UNREADABLE:
        return False


def difference(source: Schema, target: Schema) -> Schema | None:
    """A schema of the values that `source` allows and `target` refuses; None where it cannot be written."""
    if not (tractable(source) and tractable(target)):
        return None
    try:
        return _canonical(source).subtract(_canonical(target)).to_json_schema()
    except _UNREADABLE:
        return None


def tractable(document: Schema) -> bool:
    """Whether the canonical form of the schema is small enough to be asked for."""
    _, defs = split(document)
    return all(cases(node, defs) <= _CASES for _, node in walk(document))


def _canonical(document: Schema) -> jsonschema_rs.CanonicalSchema:
    return jsonschema_rs.canonicalize(document, draft=jsonschema_rs.Draft202012, validate_formats=True, offline=True)


def _located(error: jsonschema_rs.ValidationError) -> Iterator[Refusal]:
    """The error, or those of the one branch of a union that the value seems meant for."""
    kind = error.kind
    if kind.name in _BRANCHED and (branches := getattr(kind, "context", None)):
        meant = [branch for branch in branches if branch and not _other_type(branch, error)]
        if len(meant) == 1:
            for inner in meant[0]:
                yield from _located(inner)
        else:
            firsts = (_reason(branch[0]) for branch in meant or branches if branch)
            yield Refusal(tuple(error.instance_path), kind.name, " and ".join(dict.fromkeys(firsts)) or _reason(error))
        return
    way = tuple(error.instance_path)
    if kind.name == "required":
        name = str(getattr(kind, "property", ""))
        yield Refusal((*way, name), kind.name, f"{name} is required", missing=True)
    elif names := getattr(kind, "unexpected", None):
        yield from (
            Refusal((*way, name), kind.name, f"{name} is not among its properties", unexpected=True) for name in names
        )
    else:
        yield Refusal(way, kind.name, _reason(error))


def _reason(error: jsonschema_rs.ValidationError) -> str:
    return error.message.partition("\n")[0]


def _other_type(branch: list[jsonschema_rs.ValidationError], error: jsonschema_rs.ValidationError) -> bool:
    return any(one.kind.name == "type" and one.instance_path == error.instance_path for one in branch)
