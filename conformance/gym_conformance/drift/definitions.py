"""Tool definitions of a dataset, deduplicated by content while its rows are streamed."""

import json
import marshal
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

from gym_conformance.contract.dataset_rows import Source
from gym_conformance.drift.tool_drift import SOURCES, Drift, DriftKind

#: How many distinct lists of tools, and distinct definitions, are kept; further ones are only counted.
BOUND = 10_000


@dataclass(frozen=True)
class Definition:
    """A function tool as rows declare it.

    `parameters` is as given: a JSON Schema if the definition is sound, None if there is none. `nested` is the Chat
    Completions form, `{"type": "function", "function": {...}}`. `key` is equal for equal definitions.
    """

    name: str
    parameters: Any = None
    description: str = ""
    strict: bool = False
    nested: bool = False
    key: bytes = b""
    sources: tuple[Source, ...] = ()
    count: int = 1

    def __str__(self) -> str:
        return self.name

    @property
    def schema(self) -> Mapping[str, Any]:
        """The parameters as a schema; a tool without any accepts no argument."""
        if isinstance(self.parameters, dict) and self.parameters:
            return self.parameters
        return {"type": "object", "properties": {}}

    def drift(self, kind: DriftKind, what: str, **more: Any) -> Drift:
        """A drift of the definition as a whole, or of the part that `more` names."""
        message = f"{self.name or 'a tool without a name'}: {what}"
        of_it = {"sources": self.sources, "count": self.count, "definition": self.parameters, "weight": kind.weight}
        return Drift(kind, self.name, message, **of_it | more)


class Definitions:
    """All definitions of a dataset: fed one row at a time, with bounded memory however long the dataset.

    A list of tools that was seen before costs one serialization and one lookup. `left_out` counts tools beyond the
    bound, which are not compared.
    """

    def __init__(self, bound: int = BOUND) -> None:
        self.bound = bound
        self.left_out = 0
        self._lists: dict[bytes, int] = {}
        self._members: list[tuple[bytes, ...]] = []
        self._rows: Counter[int] = Counter()
        self._loose: Counter[bytes] = Counter()
        self._entries: dict[bytes, bytes] = {}
        self._found: dict[bytes, Definition] = {}
        self._sources: defaultdict[bytes, list[Source]] = defaultdict(list)

    def add(self, tools: object, source: Source) -> int:
        """Add the `responses_create_params.tools` of one row; anything but a list counts as no tools.

        Returns:
            A number for this list, to be passed to `again` when the caller knows that the same list recurs; -1 if the
            list is not kept.
        """
        if not isinstance(tools, list):
            return -1
        key = blake2b(marshal.dumps(tools, 2), digest_size=16).digest()  # version 2 is the same for equal values
        known = self._lists.get(key)
        if known is None:
            return self._add_new(key, tools, source)
        self.again(known, source)
        return known

    def again(self, number: int, source: Source) -> None:
        """Count one more row with a list of tools that `add` has seen; -1 is no list."""
        if number < 0:
            return
        self._rows[number] += 1
        if self._rows[number] <= SOURCES:
            self._remember(self._members[number], source)

    def __iter__(self) -> Iterator[Definition]:
        """The definitions, by name and then in order of appearance."""
        counts: Counter[bytes] = Counter(self._loose)
        for number, rows in self._rows.items():
            for member in self._members[number]:
                counts[member] += rows
        for key, one in sorted(self._found.items(), key=lambda pair: pair[1].name):
            yield Definition(**vars(one) | {"sources": tuple(self._sources[key]), "count": counts[key]})

    def _add_new(self, key: bytes, tools: list[Any], source: Source) -> int:
        members = []
        for entry in tools:
            text = marshal.dumps(entry, 2)
            member = self._entries.get(text) or self._add_entry(text, entry)
            if member:
                members.append(member)
        self._remember(tuple(members), source)
        if len(self._members) >= self.bound:
            self._loose.update(members)
            return -1
        self._lists[key] = number = len(self._members)
        self._members.append(tuple(members))
        self._rows[number] = 1
        return number

    def _add_entry(self, text: bytes, entry: object) -> bytes:
        """The key of an entry that is new, or written differently; b"" if it is no definition, or is left out."""
        if len(self._entries) >= self.bound <= len(self._found):  # full: a new spelling looks like a new tool
            self.left_out += 1
            return b""
        one = read_definition(entry)
        if one is None:
            return b""
        if one.key not in self._found and len(self._found) >= self.bound:
            self.left_out += 1
            return b""
        self._found.setdefault(one.key, one)
        if len(self._entries) < self.bound:
            self._entries[text] = one.key
        return one.key

    def _remember(self, members: tuple[bytes, ...], source: Source) -> None:
        for member in members:
            if len(self._sources[member]) < SOURCES:
                self._sources[member].append(source)


def read_definition(entry: object) -> Definition | None:
    """One entry of a tools list, flat or nested; None for a hosted tool, or if it is not an object."""
    if not isinstance(entry, dict) or entry.get("type", "function") != "function":
        return None
    inner = entry.get("function")
    nested = isinstance(inner, dict)
    data = inner if isinstance(inner, dict) else entry
    name, parameters, description = data.get("name"), data.get("parameters"), data.get("description")
    content = (name, parameters, description, data.get("strict") is True, nested)
    return Definition(
        name=name if isinstance(name, str) else "",
        parameters=parameters,
        description=description if isinstance(description, str) else "",
        strict=data.get("strict") is True,
        nested=nested,
        key=blake2b(json.dumps(content, sort_keys=True).encode(), digest_size=16).digest(),
    )
