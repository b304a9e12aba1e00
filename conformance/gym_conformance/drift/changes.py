"""What differs between two JSON values, place by place."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from gym_conformance.drift.schema import pointer


@dataclass(frozen=True)
class Change:
    """One place: what stood there, and what stands there now; `gone` and `new` tell None from nothing."""

    path: str
    before: Any = None
    after: Any = None
    gone: bool = False
    new: bool = False

    def __str__(self) -> str:
        where = self.path or "the whole"
        return f"{where} is gone" if self.gone else f"{where} is new" if self.new else f"{where} differs"


def changes(before: Any, after: Any, way: tuple[str, ...] = ()) -> Iterator[Change]:
    """The places that differ, outermost first; lists that differ in length differ as a whole."""
    if isinstance(before, dict) and isinstance(after, dict):
        for key in dict.fromkeys((*before, *after)):
            here = (*way, key)
            if key not in after:
                yield Change(pointer(here), before=before[key], gone=True)
            elif key not in before:
                yield Change(pointer(here), after=after[key], new=True)
            else:
                yield from changes(before[key], after[key], here)
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for index, (left, right) in enumerate(zip(before, after, strict=True)):
            yield from changes(left, right, (*way, str(index)))
    elif type(before) is not type(after) or before != after:
        yield Change(pointer(way), before=before, after=after)
