"""Whether one schema admits all that another does, and the difference between the two.

jsonschema_rs compares canonical forms. Its results on them are experimental, so only a proof of containment is trusted.
What it leaves open (recursion, large unions) is compared part by part; this is sound but incomplete: True is a proof,
False means nothing. A pair that recurs deeper in the value is assumed to be proven, since every value is finite.
"""

from itertools import chain
from typing import Any

import jsonschema_rs
from jsonschema_rs.canonical import Containment

from gym_schemas.acceptance import UNREADABLE, Acceptance
from gym_schemas.json_values import Json, identity, is_numeric, without_decimals
from gym_schemas.size import tractable
from gym_schemas.tree import ANNOTATIONS, Document, Schema, takes_all, walk

#: The most parts of two schemas that are subtracted: 300 take a second, and the work grows with their cube.
_MOST_SUBTRACTED = 300

#: The most numbers in all `enum`s of two schemas to compare: 256 take a second, and the work may grow with their cube.
_MOST_NUMBERS = 256

_OBJECT = ANNOTATIONS | {"type", "properties", "required", "additionalProperties"}
_ARRAY = ANNOTATIONS | {"type", "items", "minItems", "maxItems"}
_UNION = ANNOTATIONS | {"anyOf"}
_CHOICE = ANNOTATIONS | {"anyOf", "oneOf"}


def contains(wide: Schema, narrow: Schema) -> bool:
    """Whether it is proven that `wide` admits everything that the upgraded schema `narrow` admits."""
    try:
        proof = _Proof(Document(narrow), Document(wide))
        return proof.holds(proof.narrow.root, proof.wide.root)
    except RecursionError:  # a union that contains itself
        return False


def subtract(source: Schema, target: Schema) -> Schema | None:
    """A schema of the values that `source` admits and `target` refuses; None if it cannot be expressed."""
    if not (tractable(Document(source)) and tractable(Document(target)) and _few_numbers(source, target)):
        return None
    if sum(1 for schema in (source, target) for _ in walk(schema)) > _MOST_SUBTRACTED:
        return None
    try:
        difference: Schema = without_decimals(_canonical(source).subtract(_canonical(target)).to_json_schema())
    except UNREADABLE:
        return None
    return difference


def _few_numbers(*schemas: Schema) -> bool:
    listed = (node["enum"] for schema in schemas for _, node in walk(schema) if "enum" in node)
    return sum(map(is_numeric, chain.from_iterable(listed))) <= _MOST_NUMBERS


def _canonical(schema: Schema) -> jsonschema_rs.CanonicalSchema:
    return jsonschema_rs.canonicalize(schema, draft=jsonschema_rs.Draft202012, validate_formats=True, offline=True)


class _Proof:
    def __init__(self, narrow: Document, wide: Document) -> None:
        self.narrow, self.wide = narrow, wide
        self._tractable = tractable(narrow) and tractable(wide)
        self._met: frozenset[tuple[str, str]] = frozenset()

    def holds(self, narrow: Schema, wide: Schema) -> bool:
        return self._covered(narrow, wide) or self._by_parts(self.narrow.resolve(narrow), self.wide.resolve(wide))

    def _covered(self, narrow: Schema, wide: Schema) -> bool:
        ours, theirs = self.narrow.alone(narrow), self.wide.alone(wide)
        if not (self._tractable and _few_numbers(ours, theirs)):
            return False
        try:
            return _canonical(theirs).covers(_canonical(ours)) == Containment.YES
        except UNREADABLE:
            return False

    def _inside(self, narrow: Schema, wide: Schema) -> bool:
        """Like `holds`, one level deeper in the value, where a pair may rely on itself."""
        pair = (identity(narrow), identity(wide))
        if pair in self._met:
            return True
        before = self._met
        self._met |= {pair}
        if self.holds(narrow, wide):
            return True
        self._met = before  # whatever relied on this pair is no longer proven
        return False

    def _by_parts(self, narrow: Schema, wide: Schema) -> bool:
        if narrow is False or takes_all(wide):
            return True
        if not (isinstance(narrow, dict) and isinstance(wide, dict)):
            return False
        if "enum" in narrow:
            return self._members(narrow["enum"], wide)
        union = narrow.keys() & {"anyOf", "oneOf"}
        if len(union) == 1 and narrow.keys() <= _CHOICE:
            return all(self.holds(one, wide) for one in narrow[union.pop()])
        if wide.keys() <= _UNION and "anyOf" in wide:
            return any(self.holds(narrow, one) for one in wide["anyOf"])
        return narrow.get("type") == wide.get("type") and self._of_one_type(narrow, wide)

    def _members(self, members: list[Json], wide: Schema) -> bool:
        try:
            return all(map(Acceptance(self.wide.alone(wide)).accepts, members))
        except UNREADABLE:
            return False

    def _of_one_type(self, narrow: dict[str, Any], wide: dict[str, Any]) -> bool:
        match narrow.get("type"):
            case "object":
                return wide.keys() <= _OBJECT and self._objects(narrow, wide)
            case "array":
                return wide.keys() <= _ARRAY and self._arrays(narrow, wide)
        return False

    def _objects(self, narrow: dict[str, Any], wide: dict[str, Any]) -> bool:
        if "patternProperties" in narrow or not set(wide.get("required", ())) <= set(narrow.get("required", ())):
            return False
        ours, theirs = narrow.get("properties", {}), wide.get("properties", {})
        our_rest, their_rest = narrow.get("additionalProperties", True), wide.get("additionalProperties", True)
        return self._inside(our_rest, their_rest) and all(
            self._inside(ours.get(name, our_rest), theirs.get(name, their_rest)) for name in {**ours, **theirs}
        )

    def _arrays(self, narrow: dict[str, Any], wide: dict[str, Any]) -> bool:
        return (
            "prefixItems" not in narrow
            and wide.get("minItems", 0) <= narrow.get("minItems", 0)
            and ("maxItems" not in wide or narrow.get("maxItems", wide["maxItems"] + 1) <= wide["maxItems"])
            and self._inside(narrow.get("items", True), wide.get("items", True))
        )
