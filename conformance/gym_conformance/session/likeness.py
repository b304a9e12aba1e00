"""Whether two replies say the same, but for what one of them was asked about. Pure.

A reply is compared as the words that it consists of: a name or a value that only one of the two requests had counts as
the same word, and so do words that differ already between two replies to requests that mean the same.
"""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Final

from gym_conformance.session.exchange import Reply
from gym_schemas import Json, Way, differences, same

_WORDS: Final = re.compile(r"\w+|[^\w\s]")

#: Stands for what a request was about.
_SUBJECT: Final = "\0"


@dataclass(frozen=True)
class Answer:
    """A reply, and the names and values that its request had and the other requests have not."""

    reply: Reply
    about: tuple[Any, ...] = ()

    @property
    def words(self) -> Json:
        """Status and body, each text as a list of its words, with `about` left out."""
        hidden = sorted({text for value in self.about for text in _spellings(value)}, key=len, reverse=True)
        pattern = re.compile("|".join(rf"(?<!\w){re.escape(text)}(?!\w)" for text in hidden)) if hidden else None
        return {"status": self.reply.status, "body": self._words(self.reply.said, pattern)}

    def _words(self, value: Any, hidden: re.Pattern[str] | None) -> Json:
        if any(same(value, one) for one in self.about):
            return [_SUBJECT]
        if isinstance(value, dict):
            return {_hide(key, hidden): self._words(inner, hidden) for key, inner in value.items()}
        if isinstance(value, list):
            return [self._words(inner, hidden) for inner in value]
        return list(_WORDS.findall(_hide(value, hidden))) if isinstance(value, str) else value


def alike(one: Answer, other: Answer, *more: Answer) -> bool:
    """Whether the two say the same; what differs between `other` and any of `more`, which mean the same, is left out.

    A reply may name what both requests were about: 'gold' is not one of silver, copper. So texts of either request are
    looked for in both replies, if the own ones in each do not do.
    """
    about = one.about + other.about
    return _same_words(one, other, more) or (
        all(isinstance(value, str) for value in about)
        and _same_words(replace(one, about=about), replace(other, about=about), more)
    )


def _same_words(one: Answer, other: Answer, more: Iterable[Answer]) -> bool:
    words = other.words
    loose: set[Way] = {change.way for each in more for change in differences(words, each.words)}
    return all(any(change.way[: len(place)] == place for place in loose) for change in differences(words, one.words))


def _hide(text: str, hidden: re.Pattern[str] | None) -> str:
    return hidden.sub(_SUBJECT, text) if hidden is not None else text


def _spellings(value: Any) -> Iterable[str]:
    """The ways in which a server may write the value back."""
    if isinstance(value, str):
        yield value
        yield json.dumps(value)[1:-1]
    else:
        yield json.dumps(value)
        yield json.dumps(value, separators=(",", ":"))
        yield repr(value)
        if isinstance(value, dict | list):
            yield str(json.dumps(value)).replace('"', "'")
