"""Whether two replies say the same, apart from what their requests were about. Pure.

Replies are compared word by word. A name or a value that occurs in only one of the two requests counts as the same
word as that of the other; so do words that already differ between two replies to equivalent requests.
"""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Final

from gym_conformance.session.exchange import Reply
from gym_schemas import Json, Way, differences, same

_WORDS: Final = re.compile(r"\w+|[^\w\s]")

#: Characters of a text that are compared word by word; the rest, as of a web page, counts as one word.
_WORD_BY_WORD: Final = 10_000

#: Replaces what a request was about.
_SUBJECT: Final = "\0"

#: What a server draws anew for each reply, such as a request's id and the time of an error, and what replaces it.
_DRAWN: Final = re.compile(
    r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b|\b(?=[a-f]*\d)[0-9a-f]{16,}\b"
    r"|\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?",
    re.IGNORECASE | re.ASCII,
)
_ANEW: Final = "\1"


@dataclass(frozen=True)
class Answer:
    """A reply, with the names and values that only its own request contained; ids and times that are drawn anew are none of its words."""

    reply: Reply
    about: tuple[Any, ...] = ()

    @property
    def words(self) -> Json:
        """Status and body, each text as a list of words, with `about` replaced."""
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
        if not isinstance(value, str):
            return value
        text = _DRAWN.sub(_ANEW, _hide(value, hidden))
        return [*_WORDS.findall(text[:_WORD_BY_WORD]), *filter(None, [text[_WORD_BY_WORD:]])]


def alike(one: Answer, other: Answer, *more: Answer) -> bool:
    """Whether the two say the same, ignoring what differs between `other` and any of `more`, which are equivalent.

    A reply may mention what both requests were about: 'gold' is not one of silver, copper. So if it is not enough to
    replace each request's own texts in its reply, those of both are replaced in both, or none: 'true' or 'false', please.
    """
    if one.reply.status == other.reply.status and same(one.reply.said, other.reply.said):
        return True
    about = one.about + other.about
    pairs = [(one, other), (replace(one, about=()), replace(other, about=()))]
    if all(isinstance(value, str) for value in about):
        pairs.append((replace(one, about=about), replace(other, about=about)))
    return any(_same_words(*pair, more) for pair in pairs)


def _same_words(one: Answer, other: Answer, more: Iterable[Answer]) -> bool:
    words = other.words
    loose: set[Way] = {change.way for each in more for change in differences(words, each.words)}
    return all(any(change.way[: len(place)] == place for place in loose) for change in differences(words, one.words))


def _hide(text: str, hidden: re.Pattern[str] | None) -> str:
    return hidden.sub(_SUBJECT, text) if hidden is not None else text


def _spellings(value: Any) -> Iterable[str]:
    """The ways in which a server may quote the value."""
    if isinstance(value, str):
        yield value
        yield json.dumps(value)[1:-1]
    else:
        yield json.dumps(value)
        yield json.dumps(value, separators=(",", ":"))
        yield repr(value)
        if isinstance(value, dict | list):
            yield str(json.dumps(value)).replace('"', "'")
