"""A recorded rollout as a trajectory that can be replayed: returned ids come from the new replies. Pure."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from gym_conformance.contract.dataset_rows import Call, Rollout, Row
from gym_conformance.trajectories.trajectory import PLAIN_ANSWER, SHORT, WORD, Reference, Trajectory
from gym_schemas import Way, mapped, name_of, scalars

#: The least length of a word with a digit that may be an id within a text; the most text before it that locates it.
_LONG_WORD, _BEFORE = 6, 24

_LAST_WORD: Final = re.compile(r"\w*\W*\Z")

#: A rollout of this many calls reaches most states; more only cost time.
_CALLS = 24


def followed(row: Row, rollout: Rollout) -> Trajectory:
    """The rollout's calls and answer, with references in place of ids that an earlier reply returned.

    Servers create ids anew for each session. An id is a text or an integer recorded in an earlier output, either under
    the argument's own name, or with at least four characters and unknown to the row. A value that the policy had sent
    before is not an id, because the output echoes it. If an output is prose, a word with a digit in it may be an id
    too; it is found again by the text before it.
    """
    earlier = _Earlier(json.dumps(row.data, ensure_ascii=False))
    calls = []
    for number, (call, output) in enumerate(rollout.played[:_CALLS]):
        calls.append(Call(call.name, earlier.linked(call.arguments)))
        earlier.hear(number, parsed(output))
    return Trajectory(row, tuple(calls), answer=rollout.last_text or PLAIN_ANSWER)


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

    def linked(self, arguments: Any) -> Any:
        """The policy's next arguments, with references in place of ids from earlier replies."""
        new = [value for value, _ in scalars(arguments)]
        sought = (each for each in new if (str, each) not in self.said and (str, each, "") not in self.origin)
        for value in sought:
            if _may_be_id(value, self.known) and (found := _as_word(value, self.texts)):
                self.origin[str, value, ""] = found
        self.said |= {(type(value), value) for value in new}

        def link(value: Any, way: Way) -> Any:
            named = self.origin.get((type(value), value, name_of(way)))
            found = named or self.origin.get((type(value), value, ""))
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


def _may_be_id(value: Any, known: str) -> bool:
    return (
        isinstance(value, str)
        and len(value) >= _LONG_WORD
        and WORD.fullmatch(value) is not None
        and any(map(str.isdigit, value))
        and value not in known
    )


def _as_word(value: str, texts: Sequence[tuple[int, Way, str]]) -> Reference | None:
    """A reference to the value as a word of an earlier text, if it is one."""
    for number, path, text in texts:
        for found in WORD.finditer(text) if value in text else ():
            if found[0] == value:
                near = _LAST_WORD.search(text, max(found.start() - _BEFORE, 0), found.start())
                before = near[0] if near else ""
                earlier = re.findall(f"{re.escape(before)}{WORD.pattern}", text[: found.start()])
                return Reference(number, path, value, word=(before, len(earlier)))
    return None


def parsed(output: Any) -> Any:
    """A recorded output, parsed if it is JSON."""
    try:
        return json.loads(output)
    except (TypeError, ValueError):
        return output
