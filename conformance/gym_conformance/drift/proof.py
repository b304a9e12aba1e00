"""A structural proof of containment, for what the canonical form leaves open: recursion, and large unions.

Sound and not complete: True is a proof, False says nothing. A pair that is met again deeper in the value is taken as
proven, which is right because every value is finite.
"""

from typing import Any

from gym_conformance.drift.containment import proven
from gym_conformance.drift.schema import ANNOTATIONS, Defs, Schema, alone, resolve, split

_OBJECT = ANNOTATIONS | {"type", "properties", "required", "additionalProperties"}
_ARRAY = ANNOTATIONS | {"type", "items", "minItems", "maxItems"}
_UNION = ANNOTATIONS | {"anyOf"}
_CHOICE = ANNOTATIONS | {"anyOf", "oneOf"}


def contained(narrow: Schema, wide: Schema) -> bool:
    """Whether everything that the modern schema `narrow` allows is proven to be allowed by `wide`."""
    ours, theirs = split(narrow), split(wide)
    return Proof(ours[1], theirs[1]).holds(ours[0], theirs[0])


class Proof:
    """One attempt, with the definitions of both sides; `holds` may be asked of any of their parts."""

    def __init__(self, narrow: Defs, wide: Defs) -> None:
        self._narrow, self._wide = narrow, wide
        self._met: frozenset[tuple[str, str]] = frozenset()

    def holds(self, narrow: Schema, wide: Schema) -> bool:
        """Whether `narrow` is contained in `wide`."""
        try:
            return self._holds(narrow, wide)
        except RecursionError:  # a union that holds itself
            return False

    def _inside(self, narrow: Schema, wide: Schema) -> bool:
        """As `_holds`, one level deeper in the value: here a pair may lean on itself."""
        pair = (repr(narrow), repr(wide))
        if pair in self._met:
            return True
        before = self._met
        self._met |= {pair}
        if self._holds(narrow, wide):
            return True
        self._met = before  # whatever leaned on this pair falls with it
        return False

    def _holds(self, narrow: Schema, wide: Schema) -> bool:
        if proven(alone(wide, self._wide), alone(narrow, self._narrow)):
            return True
        return self._by_parts(resolve(narrow, self._narrow), resolve(wide, self._wide))

    def _by_parts(self, narrow: Schema, wide: Schema) -> bool:
        if wide is True or narrow is False or (isinstance(wide, dict) and wide.keys() <= ANNOTATIONS):
            return True
        if not (isinstance(narrow, dict) and isinstance(wide, dict)):
            return False
        union = narrow.keys() & {"anyOf", "oneOf"}
        if len(union) == 1 and narrow.keys() <= _CHOICE:
            return all(self._holds(one, wide) for one in narrow[union.pop()])
        if wide.keys() <= _UNION and "anyOf" in wide:
            return any(self._holds(narrow, one) for one in wide["anyOf"])
        if narrow.get("type") != wide.get("type"):
            return False
        objects = narrow.get("type") == "object" and wide.keys() <= _OBJECT and self._objects(narrow, wide)
        return objects or (narrow.get("type") == "array" and wide.keys() <= _ARRAY and self._arrays(narrow, wide))

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
