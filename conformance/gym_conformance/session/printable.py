"""Text from an untrusted server, made safe to show: escaped, cut, and without the user's secrets."""

import json
import re
import unicodedata
from collections.abc import Iterable
from html import escape
from urllib.parse import quote, quote_plus

#: Shown in place of a secret.
REDACTED = "[redacted]"

#: Shorter values are no secrets, and would be found by chance in ports, statuses and ids.
_LEAST = 4

#: What requests say anyway; a header of the user's may hold it too.
_PUBLIC = frozenset({"application/json", "*/*", "gym-conformance"})

#: Control, format (bidirectional overrides among them), surrogate and private-use characters, and line separators.
_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})


def printable(text: str, limit: int = 400) -> str:
    """One line that a terminal shows as it stands; what it cannot show is escaped, the rest cut at `limit` characters."""
    cut = f"... ({len(text):,} characters)" if len(text) > limit else ""
    return "".join(_escape(character) for character in text[:limit]) + cut


def credentials(values: Iterable[str]) -> frozenset[str]:
    """What must not be shown where these are values of the user's headers.

    The values and their parts (`Bearer TOKEN`, `key=TOKEN; ...`), each as it stands, as JSON, HTML and URLs spell it.
    """
    found: set[str] = set()
    for value in values:
        parts = {part for part in re.split(r"[\s;,=]+", value) if len(part) > len("Bearer")}
        found |= {value, value.rpartition(" ")[2], value.rpartition("=")[2], *parts}
    spellings = (
        lambda text: text,
        lambda text: json.dumps(text)[1:-1],
        lambda text: repr(text)[1:-1],
        lambda text: escape(text, quote=True),
        lambda text: quote(text, safe=""),
        quote,
        quote_plus,
    )
    return frozenset(
        spelt
        for secret in found
        if len(secret) >= _LEAST and secret not in _PUBLIC
        for spelling in spellings
        for spelt in {spelling(secret), spelling(secret).lower()}
    )


def redact(text: str, secrets: Iterable[str]) -> str:
    """The text without any of the secrets."""
    present = [secret for secret in secrets if secret and secret in text]
    pattern = "|".join(re.escape(secret) for secret in sorted(present, key=len, reverse=True))
    return re.sub(pattern, REDACTED, text) if pattern else text


def _escape(character: str) -> str:
    if unicodedata.category(character) in _HIDDEN:
        return character.encode("unicode_escape", "surrogatepass").decode("ascii")
    return character
