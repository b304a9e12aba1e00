"""Redacts secrets in texts and JSON values, in all likely spellings.

Known secrets are the values of the user's headers, the values that an environment or an env's settings name as secret,
the user information in URLs anywhere, and session tokens. Secrets that are reversed, encrypted, encoded twice or
cut in the middle are not found.
"""

import base64
import json
import re
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cached_property
from html import escape
from typing import Any, Final
from urllib.parse import quote, quote_plus, unquote

from gym_conformance.grouping import grouped
from gym_conformance.printable import Shown, printable

#: Replaces a secret.
REDACTED: Final = "[redacted]"

#: Shorter header values are not treated as secrets: they occur by chance in ports, statuses and ids.
_LEAST = 4

#: The same limit for values that are only secret by their name.
_LEAST_NAMED = 6

#: How much of a secret must be left at the end of a cut text for it to be recognised.
_BEGINNING = 8

#: Characters that a cut may leave after a secret: quotes, dots and spaces.
_ENDING: Final = 8

#: How many characters at the end of a text to search for it.
_TAIL = 400

#: How much of a text to search for secrets, as a multiple of what is shown.
_WINDOW = 10

#: Values that requests contain anyway; a header of the user may have them too.
_PUBLIC = frozenset({"application/json", "*/*", "gym-conformance"})

#: Placeholders that occur where a secret would be.
_PLACEHOLDERS = frozenset({"default", "disabled", "enabled", "example", "nothing", "optional", "required"})

#: Names of secrets: the first ones anywhere in a name, the others only as one of its words.
_ANYWHERE = re.compile(r"KEY|TOKEN|SECRET|PASSW|PASSPHRASE|CREDENTIAL|AUTHORIZATION|CONNECTION_?STRING", re.IGNORECASE)
_WORDS = frozenset({"auth", "bearer", "cookie", "creds", "dsn", "jwt", "pass", "pat", "pin", "private", "pwd", "sig"})

#: Names of addresses, whose opaque parts may be the only protection of what they lead to.
_ADDRESSES = frozenset({"uri", "url", "webhook", "hook", "endpoint"})

#: Settings that name the variable of the environment that holds a secret, such as `api_key_env: OPENAI_API_KEY`.
_FOR_A_VARIABLE = re.compile(r"env(ironment)?_?(var(iable)?)?(_?name)?$|_var(iable)?(_?name)?$", re.IGNORECASE)
_VARIABLE = re.compile(r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+")

_NAME_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_USER_INFORMATION = re.compile(r"(?<![a-z0-9+.-])[a-z][a-z0-9+.-]*://([^\s/?#'\"]*)@", re.IGNORECASE)
_IN_QUERY = re.compile(r"(?<=[?&])([A-Za-z_][\w.-]*)=([^\s&#'\"<>]+)")
_ASSIGNED = re.compile(r"(?<![\w.-])([A-Za-z_][\w.-]*)=([^;&,\s]+)")
_OPAQUE = re.compile(r"(?<=[/=])(?=[^/?&=#]*\d)(?=[^/?&=#]*[A-Za-z])[^/?&=#\s]{16,}")


#: Characters that a reader does not see, or not as characters: line breaks (base64 is wrapped), other control
#: characters, and those that Unicode says to ignore, such as every other one of a text in UTF-16 that is read as UTF-8.
_UNSEEN = (
    r"[\0-\x08\n-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e"
    r"\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8\U000e0000-\U000e0fff]"
)

#: Backslashes, from the first of them on: a text of nothing else would be searched from each of them to its end.
_ESCAPE = r"(?<!\\)\\+"

#: Characters written as numbers, of bytes in URLs and in Python, and of code points in HTML and JSON; and what JSON has
#: for characters that nobody sees: letters for some, two numbers for those above U+FFFF. JSON in JSON doubles backslashes.
_ENCODED = re.compile(
    rf"(?P<bytes>(?:(?:%|{_ESCAPE}x)[0-9a-f]{{2}})+)|&#0*(?P<decimal>[0-9]{{1,7}});?|&#x0*(?P<hex>[0-9a-f]{{1,6}});?"
    rf"|{_ESCAPE}udb4[0-3]{_ESCAPE}ud[c-f][0-9a-f]{{2}}|{_ESCAPE}u(?P<unit>[0-9a-f]{{4}})|{_ESCAPE}[bfnr]|{_UNSEEN}",
    re.IGNORECASE,
)

#: What stands between bytes that are written as numbers, in hex (`68:75`, `0x68, 0x75`) or decimal (`[104, 117]`).
_BETWEEN_NUMBERS = re.compile(r"(?<=[0-9a-f])(?:[\s:;,|._'\"-]|\\[nrt])+(?:0x)?(?=[0-9a-f])", re.IGNORECASE)


class Secrets:
    """Known secrets, each in all its spellings; immutable."""

    def __init__(self, values: Iterable[str] = ()) -> None:
        """Secrets given as plain values."""
        self._spelt = frozenset(
            _lowered(spelling) for value in values if value not in _PUBLIC for spelling in _spellings(value)
        )

    @classmethod
    def of_headers(cls, headers: Mapping[str, str]) -> "Secrets":
        """Secrets in the user's headers: the values and their parts (`Bearer TOKEN`, `key=TOKEN; ...`)."""
        return cls(part for value in headers.values() for part in _parts(value) if len(part) >= _LEAST)

    @classmethod
    def of_named(cls, pairs: Iterable[tuple[str, str]]) -> "Secrets":
        """Secrets in an environment or in settings: values with a secret name, and user information in URLs."""
        return cls(
            part
            for name, value in pairs
            for secret in _named(name, value)
            for part in _parts(secret)
            if len(part) >= _LEAST_NAMED and not part.isdigit() and part.lower() not in _PLACEHOLDERS
        )

    @cached_property
    def _by_head(self) -> dict[str, list[str]]:
        """The spellings by their first characters, so that a text is searched once, and not for each of thousands."""
        length = min(map(len, self._spelt), default=1)
        return grouped(lambda one: one[:length], self._spelt)

    @cached_property
    def _by_beginning(self) -> dict[str, list[str]]:
        """The spellings that are recognised by their first part, by that much of it."""
        long = (one for one in self._spelt if len(one) > _BEGINNING)
        return grouped(lambda one: one[:_BEGINNING], long)

    @classmethod
    def joined(cls, several: "Iterable[Secrets]") -> "Secrets":
        """All of these secrets."""
        every = cls()
        every._spelt = frozenset().union(*(one._spelt for one in several))  # noqa: SLF001 - of the same class
        return every

    def __or__(self, other: "Secrets") -> "Secrets":
        return Secrets.joined((self, other))

    def __len__(self) -> int:
        """The number of spellings."""
        return len(self._spelt)

    def redact(self, text: str) -> str:
        """The text with all secrets replaced."""
        if not self._spelt:
            return text
        for start, end in reversed(self._found(text)):
            text = text[:start] + REDACTED + text[end:]
        for encoded, least in ((_ENCODED, 1), (_BETWEEN_NUMBERS, _BEGINNING)):
            if (plain := encoded.sub(_meant, text)) != text and (found := self._found(plain, least)):
                places = _places(text, encoded)
                for start, end in reversed(found):
                    text = text[: places[start]] + REDACTED + text[places[end] :]
        return self._without_beginning(text)

    def told(self, text: str) -> str:
        """Like `redact`, for text of others, whose secrets are unknown: user information in URLs is removed, too."""
        without = _USER_INFORMATION.sub(_without_group, self.redact(text))
        return _IN_QUERY.sub(lambda one: _without_group(one, 2) if is_secret_name(one[1]) else one[0], without)

    def _found(self, text: str, least: int = 1) -> list[tuple[int, int]]:
        """Where the secrets in a text are, in order, in spellings of so many characters at least (others: chance)."""
        lowered = _lowered(text)
        beginning = (
            one for head in {head for _, head in _heads(lowered, self._by_head)} for one in self._by_head[head]
        )
        present = sorted((one for one in beginning if len(one) >= least and one in lowered), key=len, reverse=True)
        either = re.compile("|".join(map(re.escape, present)))
        return [found.span() for found in either.finditer(lowered)] if present else []

    def redact_json(self, value: Any) -> Any:
        """The JSON value, redacted in its texts and keys, and not in its JSON text, whose syntax might be damaged."""
        if not self._spelt:
            return value
        match value:
            case str():
                return self.redact(value)
            case dict():
                return {self.redact(str(key)): self.redact_json(inner) for key, inner in value.items()}
            case list() | tuple():
                return [self.redact_json(inner) for inner in value]
            case int() | float() if not isinstance(value, bool):
                text = json.dumps(value)
                return value if self.redact(text) == text else REDACTED
        return value

    def show(self, text: str, limit: int | None = 400) -> Shown:
        """The text for a reader: redacted, escaped, and cut; of a long text only the beginning is searched."""
        if limit is None or len(text) <= (window := _WINDOW * limit):
            return printable(self.told(text), limit)
        return printable(self.told(text[:window]), limit, len(text))

    def _without_beginning(self, text: str) -> str:
        """The text without the first part of a secret, left at its end by a cut."""
        least = len(text.rstrip(".\"' "))  # these may belong to the cut, or to the secret
        for end in dict.fromkeys((*range(len(text), max(least, len(text) - _ENDING) - 1, -1), least)):
            lowered = _lowered(text[:end][-_TAIL:])
            for at, head in _heads(lowered, self._by_beginning):
                if any(spelling.startswith(lowered[at:]) for spelling in self._by_beginning[head]):
                    return text[: end + at - len(lowered)] + REDACTED + text[end:]
        return text


#: No secrets: for text of the user's own.
NO_SECRETS: Final = Secrets()


def _heads(text: str, heads: Collection[str]) -> Iterator[tuple[int, str]]:
    """The heads, all of one length, that are in the text, and where."""
    length = len(next(iter(heads), ""))
    for at in range(len(text) - length + 1 if heads else 0):
        if (head := text[at : at + length]) in heads:
            yield at, head


def _lowered(text: str) -> str:
    """The text in lower case, character by character: `lower` may change offsets, and looks at neighbours."""
    # the capital I with a dot, and the final sigma
    return text.replace("\u0130", "i").lower().replace("\u03c2", "\u03c3")


def named_values(config: Any, name: str = "") -> Iterator[tuple[str, str]]:
    """The texts in a nested config with their keys, for `Secrets.of_named`."""
    match config:
        case Mapping():
            for key, value in config.items():
                yield from named_values(value, str(key))
        case list() | tuple():
            for value in config:
                yield from named_values(value, name)
        case str():
            yield name, config


def is_secret_name(name: str) -> bool:
    """Whether a setting of this name is a secret."""
    words = {word.lower() for word in _NAME_WORD.findall(name)}
    return bool(_ANYWHERE.search(name) or words & _WORDS) and name not in {"PWD", "OLDPWD"}


def _named(name: str, value: str) -> Iterator[str]:
    """The secrets in the value of a setting of this name."""
    if is_secret_name(name) and not (_FOR_A_VARIABLE.search(name) and _VARIABLE.fullmatch(value)):
        yield value
    for information in _USER_INFORMATION.findall(value):
        user, _, password = information.partition(":")
        yield from (information, user, password, unquote(user), unquote(password))
    yield from (assigned for key, assigned in _ASSIGNED.findall(value) if is_secret_name(key))
    if _ADDRESSES & {word.lower() for word in _NAME_WORD.findall(name)}:
        yield from _OPAQUE.findall(value)


def _without_group(found: re.Match[str], group: int = 1) -> str:
    """The match without one of its groups."""
    start, end = (at - found.start() for at in found.span(group))
    return found[0][:start] + REDACTED + found[0][end:]


def _meant(one: re.Match[str]) -> str:
    """The characters that are encoded there, without those that nobody sees."""
    return re.sub(_UNSEEN, "", _decoded(one))


def _decoded(one: re.Match[str]) -> str:
    """The characters that are encoded there; none where something is left out."""
    if not one.lastgroup:
        return ""
    if coded := one["bytes"]:
        return bytes.fromhex(re.sub(r"%|\\+x", "", coded, flags=re.IGNORECASE)).decode("utf-8", "surrogateescape")
    number = int(one[one.lastgroup], 10 if one.lastgroup == "decimal" else 16)
    return chr(number) if number <= sys.maxunicode else "\ufffd"


def _places(text: str, encoded: re.Pattern[str]) -> list[int]:
    """For each character of the text once it is decoded, and for its end, where it was."""
    places: list[int] = []
    at = 0
    for one in encoded.finditer(text):
        places += range(at, one.start())
        at = one.start()
        characters = _decoded(one)
        sizes = (
            [len(each.encode("utf-8", "surrogateescape")) for each in characters] if one.lastgroup == "bytes" else [1]
        )
        for character, size in zip(characters, sizes, strict=False):
            places += [] if re.match(_UNSEEN, character) else [at]
            at += size * (one.end() - one.start()) // sum(sizes)
        at = one.end()
    return [*places, *range(at, len(text) + 1)]


def _parts(value: str) -> Iterator[str]:
    """The value, and those of its parts that may be the secret itself."""
    yield value.strip()
    yield value.rpartition(" ")[2]
    yield value.rpartition("=")[2]
    yield from (part for part in re.split(r"[\s;,=\"]+", value) if len(part) > len("Bearer"))
    if value.lower().startswith("basic "):
        try:
            user, _, password = base64.b64decode(value[len("basic ") :]).decode().partition(":")
        except ValueError:
            return
        yield from (user, password)


def _spellings(secret: str) -> Iterator[str]:
    """The spellings of the secret in text, code, patterns, JSON, JSON pointers, HTML, URLs, hex and base64."""
    in_json = json.dumps(secret)[1:-1]
    pointer = secret.replace("~", "~0").replace("/", "~1")
    yield secret
    yield from (in_json, in_json.replace("/", "\\/"), json.dumps(secret, ensure_ascii=False)[1:-1])
    yield json.dumps(in_json)[1:-1]
    for numbered in ("\\u{:04x}", "\\U{:08x}", "\\u{{{:x}}}", "&#{}"):
        yield "".join(numbered.format(ord(character)) for character in secret)
    yield from (re.escape(secret), re.sub(r"(?=[^\w\s]|_)", r"\\", secret))  # as in patterns, and in Markdown
    yield from (repr(secret)[1:-1], secret.replace("'", "''"), secret.replace("'", "'\\''"))
    yield from (escape(secret), escape(secret, quote=False), escape(secret).replace("&#x27;", "&#39;"))
    for text in (secret, pointer):
        raw = text.encode("utf-8", "surrogatepass")
        yield raw.decode("latin-1")  # as HTTP headers are read
        yield from (text, quote(raw, safe=""), quote(quote(raw, safe=""), safe=""), quote(raw), quote_plus(raw))
    raw = secret.encode("utf-8", "surrogatepass")
    yield from (raw.hex(), "".join(map(str, raw)))  # what stands between numbers is left out
    for before in range(3):  # offsets in a longer text: base64 encodes three bytes at a time
        coded = base64.b64encode(bytes(before) + raw).decode()
        sure = coded[-(-before * 8 // 6) : (before + len(raw)) * 8 // 6]  # without bits of its neighbours
        if len(sure) >= _BEGINNING:
            yield from (sure, sure.replace("+", "-").replace("/", "_"))
