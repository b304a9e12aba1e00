"""Names of a row's fields that say that they hold the right answer."""

import re
from typing import Final

_GOLD: Final = re.compile(
    r"(expected|exp|gold|golden|ground_?truth|correct|gt)(_\w+)?|(final_)?(answer|label|solution|target)s?",
    re.IGNORECASE,
)

#: Words in a name that may mean so; they only decide what is tried first.
_HINTS: Final = re.compile(r"answer|expected|gold|solution|target|label|truth|correct", re.IGNORECASE)


def is_gold(name: str) -> bool:
    """Whether a name says so."""
    return _GOLD.fullmatch(name) is not None


def may_be_gold(name: str) -> bool:
    """Whether a name suggests it."""
    return _HINTS.search(name) is not None
