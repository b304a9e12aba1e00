"""What a server says of an exception, in a form that no prose has. Pure.

nemo-gym's middleware answers an exception that nobody handled with 500 and, as a JSON string, its `repr`, or with that
of an inner server's reply (`setup_exception_middleware` in nemo_gym/server_utils.py, 0.2.0 to 0.7.0). Others answer
nothing of use, and print a traceback.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from gym_conformance.contract.statuses import is_crash
from gym_conformance.launch.reasons import raised
from gym_conformance.session.exchange import Exchange, Reply
from gym_schemas.json_values import texts_in

#: The `repr` of an exception, or what stands before an inner server's.
_FORM: Final = re.compile(
    r"[A-Za-z_][\w.]*\(.*\)$|<\w+Error .*>$|Hit an exception in .{1,200} calling an inner server: ", re.DOTALL
)

#: Lines of a log in which the exception of a reply that has just come is printed.
_LATELY: Final = 40

#: What `repr`, JSON and a traceback write differently.
_SPELLING: Final = re.compile(r"\\[nrt]|[\s\\'\"]+")


def exception_of(exchange: Exchange, log: Callable[[], Sequence[str]]) -> str:
    """The `repr` of the exception that a reply of 500 and above reports, else of the last one in the log; '' for none."""
    reply = exchange.reply
    if reply is None or not is_crash(reply.status):
        return ""
    body = reply.said
    if isinstance(body, str) and _FORM.match(body):
        return body
    printed = raised(log()[-_LATELY:])
    return f"{printed['type']}({printed['message']!r})" if printed else ""


def texts(reply: Reply) -> str:
    """All strings of a reply's JSON, a line each; its text where it is none."""
    return "\n".join(texts_in(reply.said))


class Sent:
    """All text that was sent so far: where a reply repeats it, the server says nothing of itself."""

    def __init__(self, exchanges: Iterable[Exchange]) -> None:
        bodies = (exchange.request.body for exchange in exchanges)
        self._text = "\n".join(_plain(text) for body in bodies if body for text in _of(body))

    def __contains__(self, phrase: str) -> bool:
        """Whether the phrase was sent, however it was quoted."""
        return _plain(phrase) in self._text


def _of(body: bytes) -> Iterator[str]:
    try:
        yield from texts_in(json.loads(body))
    except (ValueError, RecursionError):
        yield body.decode(errors="replace")


def _plain(text: str) -> str:
    return _SPELLING.sub(" ", text).strip()
