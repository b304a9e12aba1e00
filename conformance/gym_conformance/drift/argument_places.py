"""Places inside a call's arguments: their names, and the schemas that apply there."""

from collections.abc import Iterable, Iterator
from typing import Any

from gym_schemas import Document, Schema, Way, pointer

#: Any index of an array, and any key that the schema does not name.
ANY = "*"

_LEVELS = 6


class Places:
    """The places of one modern schema; `beside` supplies names that this one lacks."""

    def __init__(self, document: Schema, beside: "Places | None" = None) -> None:
        self._document = Document(document)
        self._beside = beside

    def path(self, way: Way, *, literal: bool = False) -> str:
        """The place as a JSON pointer, with `*` for indices and for keys that the schema does not name.

        `literal` keeps the last key as it is. Loops through a recursive schema are left out.
        """
        way = self._folded(way)
        known = self._known(way)
        also = self._beside._known(way) if self._beside else known  # noqa: SLF001 - an instance of the same class
        steps = [str(step) if here or there else ANY for step, here, there in zip(way, known, also, strict=True)]
        if literal and steps:
            steps[-1] = str(way[-1])
        return pointer(tuple(steps))

    def _folded(self, way: Way) -> Way:
        """The path without loops that lead back to the same schema, on both sides."""
        if not self._document.recursive:
            return way
        met: dict[str, int] = {}
        for end in range(len(way) + 1):
            here = repr((self.at(way[:end]), self._beside.at(way[:end]) if self._beside else None))
            if here in met and end < len(way):
                return self._folded(way[: met[here]] + way[end:])
            met.setdefault(here, end)
        return way

    def names(self, way: Way) -> bool:
        """Whether the schema names the last property of the path."""
        return bool(way) and any(self._names(node, str(way[-1])) for node in self._at(way[:-1]))

    def names_all(self, way: Way) -> bool:
        """Whether the schema names every property on the path."""
        return all(known for step, known in zip(way, self._known(way), strict=True) if isinstance(step, str))

    def at(self, way: Way) -> Schema | None:
        """The first schema that applies there, with its reference resolved, or None."""
        return next((self._document.resolve(node) for node in self._at(way)), None)

    def alone(self, way: Way) -> Schema | None:
        """As `at`, as a standalone document."""
        node = self.at(way)
        return None if node is None else self._document.alone(node)

    def arguments(self) -> tuple[str, ...]:
        """The names of the arguments."""
        return tuple(dict.fromkeys(self._named(self._document.root)))

    def _known(self, way: Way) -> list[bool]:
        """For each step, whether the schema names it."""
        nodes: list[Schema] = [self._document.root]
        known = []
        for step in way:
            known.append(isinstance(step, str) and any(self._names(node, step) for node in nodes))
            nodes = [inner for node in nodes for inner in self._step(node, step)]
        return known

    def _at(self, way: Way) -> list[Schema]:
        nodes: list[Schema] = [self._document.root]
        for step in way:
            nodes = [inner for node in nodes for inner in self._step(node, step)]
        return nodes

    def _step(self, node: Schema, step: str | int) -> Iterator[Schema]:
        for one in self._alternatives(node, _LEVELS):
            yield from _inner(one, step)

    def _names(self, node: Schema, name: str) -> bool:
        return any(name in one.get("properties", {}) for one in self._alternatives(node, _LEVELS))

    def _named(self, node: Schema) -> Iterator[str]:
        for one in self._alternatives(node, _LEVELS):
            yield from one.get("properties", {})

    def _alternatives(self, node: Schema, levels: int, met: set[int] | None = None) -> Iterator[dict[str, Any]]:
        """The schema objects that may apply to this place: the node and those it combines, without duplicates."""
        met = set() if met is None else met
        if id(node) in met:  # a schema that combines itself would double at each level
            return
        met.add(id(node))
        node = self._document.resolve(node)
        if not isinstance(node, dict) or levels == 0:
            return
        yield node
        for key in ("allOf", "anyOf", "oneOf"):
            for inner in node.get(key, ()):
                yield from self._alternatives(inner, levels - 1, met)


def _inner(node: dict[str, Any], step: str | int) -> Iterable[Schema]:
    if isinstance(step, int):
        first = node.get("prefixItems", ())
        return (first[step],) if step < len(first) else (node["items"],) if "items" in node else ()
    if step in node.get("properties", {}):
        return (node["properties"][step],)
    rest = node.get("additionalProperties")
    return (rest,) if isinstance(rest, dict) else ()
