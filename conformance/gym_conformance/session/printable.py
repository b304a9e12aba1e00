"""Text from an untrusted server, made safe to show: escaped, cut, and without the user's secrets."""

import re
import unicodedata
from collections.abc import Iterable

#: Shown in place of a secret.
REDACTED = "[redacted]"

#: Control, format (bidirectional overrides among them), surrogate and private-use characters, and line separators.
_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})


def printable(text: str, limit: int = 400) -> str:
    """One line that a terminal shows as it stands; what it cannot show is escaped, the rest cut at `limit` characters."""
    cut = f"... ({len(text):,} characters)" if len(text) > limit else ""
    return "".join(_escape(character) for character in text[:limit]) + cut


def redact(text: str, secrets: Iterable[str]) -> str:
    """The text without any of the secrets."""
    pattern = "|".join(re.escape(secret) for secret in sorted(secrets, key=len, reverse=True) if secret)
    return re.sub(pattern, REDACTED, text) if pattern else text


def _escape(character: str) -> str:
    if unicodedata.category(character) in _HIDDEN:
        return character.encode("unicode_escape", "surrogatepass").decode("ascii")
    return character
