"""A recorded rollout as a trajectory that works again: what the server returned then is what it returns now. Pure."""

import json
import re
from collections.abc import Sequence
from typing import Any, Final

from gym_conformance.contract.dataset_rows import Call, Rollout, Row
from gym_conformance.trajectories.trajectory import PLAIN_ANSWER, SHORT, WORD, Reference, Trajectory
from gym_schemas import Way, mapped, name_of, scalars

#: Where a value was returned first, by its type, itself, and its name there, '' for whatever name.
_Origin = dict[tuple[type, Any, str], Reference]

#: A word of a text that has a digit, and is as long at least, may be an id; what stands before it is no longer than that.
_LONG_WORD, _BEFORE = 6, 24

_LAST_WORD: Final = re.compile(r"\w*\W*\Z")

#: A rollout of this many calls reaches most states; more only cost time.
_CALLS = 24


def followed(row: Row, rollout: Rollout) -> Trajectory:
    """The rollout's calls and last words; an id that an earlier reply gave is taken from that reply again.

    An id is a text or a whole number that was recorded in an earlier output: under the argument's own name, or of four
    characters or more and unknown to the row. Servers make it anew for each session. What the policy had said before that
    is no id: the output echoes it. Where an output is in words, one of them that has a digit may be an id, too: it is
    found again by what stands before it.
    """
    known = json.dumps(row.data, ensure_ascii=False)
    origin: _Origin = {}
    calls = []
    said = set[tuple[type, Any]]()
    texts: list[tuple[int, Way, str]] = []
    for number, (call, output) in enumerate(rollout.played[:_CALLS]):
        for value in (value for value, _ in scalars(call.arguments) if (str, value) not in said):
            if (str, value, "") not in origin and _may_be_id(value, known) and (found := _as_word(value, texts)):
                origin[str, value, ""] = found
        calls.append(Call(call.name, _linked(call.arguments, origin)))
        said |= {(type(value), value) for value, _ in scalars(call.arguments)}
        for value, path in scalars(parsed(output)):
            if (type(value), value) in said:
                continue
            if isinstance(value, str):
                texts.append((number, path, value))
            reference = Reference(number, path, value)
            if type(value) in (str, int) and path and isinstance(path[-1], str):
                origin.setdefault((type(value), value, path[-1]), reference)
            if type(value) in (str, int) and len(str(value)) >= SHORT and str(value) not in known:
                origin.setdefault((type(value), value, ""), reference)
    return Trajectory(row, tuple(calls), answer=rollout.last_text or PLAIN_ANSWER)


def _linked(arguments: Any, origin: _Origin) -> Any:
    def linked(value: Any, way: Way) -> Any:
        found = origin.get((type(value), value, name_of(way))) or origin.get((type(value), value, ""))
        return value if found is None else found.as_json()

    return mapped(arguments, linked)


def _may_be_id(value: Any, known: str) -> bool:
    return (
        isinstance(value, str)
        and len(value) >= _LONG_WORD
        and WORD.fullmatch(value) is not None
        and any(map(str.isdigit, value))
        and value not in known
    )


def _as_word(value: str, texts: Sequence[tuple[int, Way, str]]) -> Reference | None:
    """Where the value is a word of an earlier text."""
    for number, path, text in texts:
        for found in WORD.finditer(text) if value in text else ():
            if found[0] == value:
                near = _LAST_WORD.search(text, max(found.start() - _BEFORE, 0), found.start())
                before = near[0] if near else ""
                earlier = re.findall(f"{re.escape(before)}{WORD.pattern}", text[: found.start()])
                return Reference(number, path, value, word=(before, len(earlier)))
    return None


def parsed(output: Any) -> Any:
    """A recorded output, parsed where it is JSON."""
    try:
        return json.loads(output)
    except (TypeError, ValueError):
        return output
