"""What mocks show of a configuration or write down of a conversation: with no secret in it."""

import re
from base64 import b64decode, b64encode
from collections.abc import Iterable, Mapping
from functools import cache
from math import ceil
from typing import Any

REDACTED = "[redacted]"
SHORTEST = 5  # characters of a key: what is shorter occurs anywhere
#: What stands in a key's place where none is needed.
PLACEHOLDERS = frozenset({"", "dummy", "dummy_key", "empty", "mock", "none", "null"})
SECRET_NAME = re.compile(
    r"(?:^|_)(?:(?:api|access|private|signing)_?keys?|secrets?(?:_?keys?)?|tokens?|pass(?:word|wd|phrase)|pat|credentials?"
    r"|auth|authorization|dsn|cookies?)$"
)
COUNTED = re.compile(
    r"(?:^|_)(?:max|min|num|n|total|input|output|prompt|completion|reasoning|stop|special)_[a-z_]*tokens?$"
)
WORDS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|[-. ]")
INTERPOLATION = re.compile(r"\$\{[^{}]*\}")
SHORT_ESCAPES = {"\b": "b", "\t": "t", "\n": "n", "\f": "f", "\r": "r"}
USERINFO = re.compile(r"(?<=://)[^/@\s]+(?=@)")


def is_secret_name(name: str) -> bool:
    """Whether what is called so is a secret."""
    plain = WORDS.sub("_", name).lower()
    return SECRET_NAME.search(plain) is not None and COUNTED.search(plain) is None


def without_secrets(value: Any, *, secret: bool = False) -> Any:
    """A configuration with every value of a secret's name redacted, and the user of every URL.

    Interpolations, and what stands where no key is needed, are no secrets.
    """
    if isinstance(value, Mapping):
        return {key: without_secrets(each, secret=secret or is_secret_name(str(key))) for key, each in value.items()}
    if isinstance(value, list):
        return [without_secrets(each, secret=secret) for each in value]
    if not isinstance(value, str):
        return value
    if secret and INTERPOLATION.fullmatch(value) is None and value.lower() not in PLACEHOLDERS:
        return REDACTED
    return USERINFO.sub(REDACTED, value)


def keys_in(headers: Mapping[str, str]) -> frozenset[str]:
    """The secrets that headers carry: whole, without their scheme, and a password out of Basic's."""
    found: set[str] = set()
    for name, value in headers.items():
        if is_secret_name(name):
            bare = value.partition(" ")[2].strip() if re.match(r"[A-Za-z-]+ ", value) else value.strip()
            found |= {bare, *_basic(bare)}
    return frozenset(key for key in found if len(key) >= SHORTEST and key.lower() not in PLACEHOLDERS)


def redacted(text: str, keys: Iterable[str]) -> str:
    """A text without keys: as they are, escaped as in JSON or a URL, or in base64, in either case."""
    for key in sorted(keys, key=len, reverse=True):
        text = _pattern(key).sub(REDACTED, text)
    return text


def _basic(token: str) -> list[str]:
    try:
        user, colon, password = b64decode(token, validate=True).decode().partition(":")
    except ValueError:
        return []
    return [f"{user}:{password}", password] if colon else []


@cache
def _pattern(key: str) -> re.Pattern[str]:
    letters = "".join(_letter(character) for character in key)
    return re.compile("|".join([letters, *map(re.escape, _in_base64(key))]), re.IGNORECASE)


def _letter(character: str) -> str:
    """A character, however often it is escaped."""
    encoded = "".join(f"%(?:25)*{byte:02x}" for byte in character.encode(errors="surrogatepass"))
    units = character.encode("utf-16-be", "surrogatepass").hex()
    escaped = "".join(rf"\\+u{units[i : i + 4]}" for i in range(0, len(units), 4))
    short = rf"|\\+{SHORT_ESCAPES[character]}" if character in SHORT_ESCAPES else ""
    return rf"(?:\\*{re.escape(character)}|{escaped}|{encoded}{short})"


def _in_base64(key: str) -> set[str]:
    """What is sure of a key in base64, wherever it begins among other bytes."""
    found: set[str] = set()
    raw = key.encode(errors="surrogatepass")
    for before in range(3):
        whole = b64encode(b"\0" * before + raw).decode()
        sure = whole[ceil(before * 8 / 6) : (before + len(raw)) * 8 // 6]
        found |= {sure, sure.replace("+", "-").replace("/", "_")}
    return {each for each in found if len(each) >= SHORTEST}
