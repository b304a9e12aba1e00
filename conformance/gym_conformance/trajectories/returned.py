"""What a reply returns that a policy may pass on: its values, and ids in its prose, as in `Opened ticket 1042.` Pure."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice, takewhile
from typing import Any, Final

from gym_conformance.trajectories.trajectory import WORD, Reference, is_whole_number, words_after
from gym_schemas import Way, name_of, scalars

#: The most text before an id that locates it, and the words of it that may name it.
_BEFORE, _NAMING = 24, 2

#: Characters of a text that are searched for ids, and ids in one text.
_READ, _IDS = 2_000, 20

#: Fields that identify a thing.
CALLED: Final = ("name", "id", "title", "code", "no")

#: Keys of the way to a field of a list's member: the list's, the member's number, and its own.
_IN_LIST: Final = 2

_LAST_WORD: Final = re.compile(r"\w*\W*\Z")


@dataclass(frozen=True)
class Returned:
    """A value in a reply.

    Attributes:
        value: a scalar; an id of digits occurs as an integer and as a text.
        path: its keys and indices.
        names: what an argument for it may be called.
        word: if it is part of the text at `path`, where; see `Reference`.
    """

    value: Any
    path: Way
    names: tuple[str, ...]
    word: tuple[str, int] | None = None

    def reference(self, call: int) -> Reference:
        """A reference to it as the reply to the call of this index."""
        return Reference(call, self.path, self.value, word=self.word)


def returned(reply: Any, most: int) -> Iterator[Returned]:
    """The first scalars of a reply under their properties' names, and then the ids in its prose that a word before names."""
    found = list(islice(scalars(reply), most))
    yield from (Returned(value, path, _names(path)) for value, path in found)
    for text, path in found:
        for word in islice(words_with_digits(text[:_READ]), _IDS) if isinstance(text, str) else ():
            if names := names_before(word):
                place = located(word)
                values = (int(word[0]), word[0]) if is_whole_number(word[0]) else (word[0],)
                yield from (Returned(value, path, names, place) for value in values)


def _names(path: Way) -> tuple[str, ...]:
    """What an argument for the value there may be called: what identifies a member of `items` is an `item`, too."""
    name, listed = name_of(path), name_of(path[:-2])
    in_list = len(path) > _IN_LIST and type(path[-2]) is int and name in CALLED and listed
    return (name, listed) if in_list else (name,) if name else ()


def words_with_digits(text: str) -> Iterator[re.Match[str]]:
    """The words of a text that may be ids."""
    return (found for found in WORD.finditer(text) if any(map(str.isdigit, found[0])))


def names_before(word: re.Match[str]) -> tuple[str, ...]:
    """What an argument for a word may be called, by the words before it: `ticket` and `ticket_id` for `ticket 1042`."""
    before = WORD.findall(word.string[max(word.start() - _BEFORE, 0) : word.start()])[-_NAMING:]
    naming = [each.lower() for each in takewhile(str.isalpha, reversed(before))]
    return tuple(name for each in naming for name in (each, f"{each}_id"))


def located(word: re.Match[str]) -> tuple[str, int]:
    """Where a word is in its text: the text before it, and how many words after the same text come earlier."""
    near = _LAST_WORD.search(word.string, max(word.start() - _BEFORE, 0), word.start())
    before = near[0] if near else ""
    return before, len(words_after(before, word.string[: word.start()]))
