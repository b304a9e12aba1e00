"""A recorded rollout as a trajectory that can be replayed: returned ids come from the new replies. Pure."""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from gym_conformance.contract.dataset_rows import Call, Rollout, Row
from gym_conformance.trajectories.generate import named_alike
from gym_conformance.trajectories.returned import located, names_before, words_with_digits
from gym_conformance.trajectories.trajectory import PLAIN_ANSWER, SHORT, WORD, Reference, Trajectory
from gym_schemas import Way, mapped, name_of, scalars

#: The least length of a word with a digit that may be an id within a text although no word before it names it.
_LONG_WORD = 6

#: Characters of a text in which a shorter one is looked for.
_NEAR = 2_000

#: A rollout of this many calls reaches most states; more only cost time.
_CALLS = 24


def followed(row: Row, rollout: Rollout) -> Trajectory:
    """The rollout's calls and answer, with references in place of ids that an earlier reply returned.

    Servers create ids anew for each session. An id is a text or an integer recorded in an earlier output, either under
    the argument's own name, or with at least four characters and unknown to the row. A value that the policy had sent
    before is not an id, because the output echoes it. If an output is prose, a word with a digit in it may be an id
    too, if it is long or named by a word before it; it is found again by the text before it.
    """
    played = [(call, parsed(output)) for call, output in rollout.played[:_CALLS]]
    return Trajectory(row, linked(row, played), answer=rollout.last_text or PLAIN_ANSWER)


def linked(row: Row, played: Iterable[tuple[Call, Any]]) -> tuple[Call, ...]:
    """Calls, each with what it returned, with references as in `followed`."""
    earlier = _Earlier(json.dumps(row.data, ensure_ascii=False))
    calls = []
    for number, (call, output) in enumerate(played):
        calls.append(Call(call.name, earlier.linked(call.arguments)))
        earlier.hear(number, output)
    return tuple(calls)


@dataclass
class _Earlier:
    """What was said before a call.

    Attributes:
        known: the row, as text.
        origin: where a value was first returned, by its type, value and name; the name is '' for any.
        said: values that the policy has sent itself, by type.
        texts: returned texts, each with the index of its call and its path.
    """

    known: str
    origin: dict[tuple[type, Any, str], Reference] = field(default_factory=dict)
    said: set[tuple[type, Any]] = field(default_factory=set)
    texts: list[tuple[int, Way, str]] = field(default_factory=list)

    @cached_property
    def words(self) -> frozenset[str]:
        """The row's words."""
        return frozenset(WORD.findall(self.known))

    def linked(self, arguments: Any) -> Any:
        """The policy's next arguments, with references in place of ids from earlier replies."""
        new = [(value, name_of(way)) for value, way in scalars(arguments)]
        for value, name in new:
            if (type(value), value) not in self.said and not self._origin_of(value, name):
                self._find_in_prose(value, name)
        self.said |= {(type(value), value) for value, _ in new}

        def link(value: Any, way: Way) -> Any:
            found = self._origin_of(value, name_of(way))
            return value if found is None else found.as_json()

        return mapped(arguments, link)

    def hear(self, number: int, output: Any) -> None:
        """Record what the call of this index returned."""
        for value, path in scalars(output):
            if (type(value), value) in self.said:
                continue
            if isinstance(value, str):
                self.texts.append((number, path, value))
            if type(value) not in (str, int):
                continue
            reference = Reference(number, path, value)
            if path and isinstance(path[-1], str):
                self.origin.setdefault((type(value), value, path[-1]), reference)
            if len(str(value)) >= SHORT and str(value) not in self.known:
                self.origin.setdefault((type(value), value, ""), reference)

    def _origin_of(self, value: Any, name: str) -> Reference | None:
        return self.origin.get((type(value), value, name)) or self.origin.get((type(value), value, ""))

    def _find_in_prose(self, value: Any, name: str) -> None:
        """Note where an earlier text says the value, if it may be an id there."""
        text = str(value)
        if type(value) not in (str, int) or text in self.words:
            return
        is_long = len(text) >= (SHORT if type(value) is int else _LONG_WORD) and text not in self.known
        for number, path, said in self.texts:
            for word in words_with_digits(said if is_long else said[:_NEAR]) if text in said else ():
                if word[0] == text and (is_long or any(named_alike(name, each) for each in names_before(word))):
                    anywhere = is_long and isinstance(value, str)
                    found = Reference(number, path, value, word=located(word))
                    self.origin[type(value), value, "" if anywhere else name] = found
                    return


def parsed(output: Any) -> Any:
    """A recorded output, parsed if it is JSON."""
    try:
        return json.loads(output)
    except (TypeError, ValueError):
        return output
