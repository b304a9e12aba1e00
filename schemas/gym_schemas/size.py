"""The size of a schema, measured before anything is built from it.

The cost of a canonical form or a comparison grows with the schema's expansion: the number of its nodes after each
reference is replaced by its target. A few references to references can produce millions of nodes.
"""

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Final

from gym_schemas.json_values import Json
from gym_schemas.tree import Document, Schema, walk
from gym_schemas.upgrade import upgrade

#: Nodes of a schema as written, nodes of its expansion, and levels of nesting, above which it is not compared.
MOST_NODES, MOST_EXPANDED, DEEPEST = 5_000, 20_000, 60

#: Objects and arrays in a schema as written, including its values: 60,000 in one `enum` take 300 MB to compare.
MOST_CONTAINERS = 20_000

#: All values in a schema as written: 400,000 numbers in one `enum` take 500 MB to compare.
MOST_VALUES = 100_000

#: Characters of a schema's patterns together: one of 440,000 takes 300 MB to read and to compare.
MOST_PATTERN = 20_000

#: How many cases the canonical form may have to distinguish in one place: its work grows with their number.
MOST_CASES = 256


def depth(value: Json) -> int:
    """The number of levels of a value."""
    return max(level for _, level in _levels(value))


def _levels(value: Json) -> Iterator[tuple[Json, int]]:
    """The value and all that is in it, each with its level; not recursive."""
    waiting = [(value, 1)]
    while waiting:
        one, level = waiting.pop()
        yield one, level
        inner: Iterable[Json] = one.values() if isinstance(one, dict) else one if isinstance(one, list) else ()
        waiting.extend((each, level + 1) for each in inner)


def too_large(schema: Schema) -> str:
    """Why a schema is too large to be compared, such as `it has more than 5,000 parts`; empty if it is not."""
    return next((why.format(most) for measure, most, why in _LIMITS if measure(schema) > most), "")


def _nodes(schema: Schema) -> int:
    """How many there are, but no more than say that it is too large: a hostile schema may have millions."""
    return sum(1 for _ in islice(walk(schema), MOST_NODES + 1))


def _containers(schema: Schema) -> int:
    return sum(isinstance(one, dict | list) for one, _ in _levels(schema))


def _values(schema: Schema) -> int:
    return sum(1 for _ in _levels(schema))


def _pattern_characters(schema: Schema) -> int:
    return sum(map(len, _patterns(schema)))


def _expanded(schema: Schema) -> int:
    return _Expansion(Document(upgrade(schema))).nodes


#: The measurements, in order: the last one is slow unless the limits before it are kept.
_LIMITS: Final[tuple[tuple[Callable[[Schema], int], int, str], ...]] = (
    (depth, DEEPEST, "it is nested more than {} levels deep"),
    (_nodes, MOST_NODES, "it has more than {:,} parts"),
    (_containers, MOST_CONTAINERS, "it has more than {:,} objects and arrays"),
    (_values, MOST_VALUES, "it has more than {:,} values"),
    (_pattern_characters, MOST_PATTERN, "its patterns have more than {:,} characters"),
    (_expanded, MOST_EXPANDED, "its references stand for more than {:,} parts"),
)


def _patterns(schema: Schema) -> Iterator[str]:
    for _, node in walk(schema):
        named = node.get("patternProperties")
        yield from named if isinstance(named, dict) else ()
        if isinstance(pattern := node.get("pattern"), str):
            yield pattern


def tractable(document: Document) -> bool:
    """Whether the canonical form of an upgraded schema is small enough to be compared with others."""
    expansion = _Expansion(document)
    parts = (document.root, *document.defs.values())
    return all(expansion.cases(node) <= MOST_CASES for part in parts for _, node in walk(part))


class _Expansion:
    """The size of a document after following its references; a circular reference counts once."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._nodes: dict[str, int] = {}
        self._cases: dict[str, int] = {}
        self._open: set[str] = set()

    @property
    def nodes(self) -> int:
        return self._size(self._document.root)

    def _size(self, schema: Schema) -> int:
        number = 0
        for _, node in walk(schema):
            number += 1
            reference = node.get("$ref")
            if not isinstance(reference, str) or reference in self._open:
                continue
            if reference not in self._nodes:
                self._open.add(reference)
                self._nodes[reference] = min(self._size(self._document.resolve({"$ref": reference})), 10**9)
                self._open.discard(reference)
            number += self._nodes[reference]
        return number

    def cases(self, node: Schema) -> int:
        """Approximately how many cases a node distinguishes: alternatives add up, conjunctions multiply.

        Each value that a `not` excludes is one: where that is negated once more, the work grows with the cube of them.
        """
        if not isinstance(node, dict):
            return 1
        number = 2 if "if" in node else 1
        reference = node.get("$ref")
        if isinstance(reference, str) and reference not in self._open:
            if reference not in self._cases:
                self._open.add(reference)
                self._cases[reference] = self.cases(self._document.resolve({"$ref": reference}))
                self._open.discard(reference)
            number *= self._cases[reference]
        for inner in node.get("allOf", ()):
            number *= self.cases(inner)
        for key in ("anyOf", "oneOf"):
            number *= sum(map(self.cases, node.get(key, ()))) or 1
        for inner in node.get("dependentSchemas", {}).values():
            number *= 1 + self.cases(inner)
        for names in node.get("dependentRequired", {}).values():
            number *= 1 + len(names)
        negated = node.get("not")
        excluded = len(negated.get("enum", ())) if isinstance(negated, dict) else 0
        return min(number * max(self.cases(negated), excluded), 10**9)
