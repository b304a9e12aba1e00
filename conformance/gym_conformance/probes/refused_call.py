"""A call that is refused though its schema allows it, and what its evidence rests on."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from gym_conformance.drift.lax import leaves_open
from gym_conformance.probes.call_places import Place
from gym_conformance.session.exchange import Reply
from gym_conformance.session.refusals import says_no, says_yes
from gym_conformance.trajectories.trajectory import STRANGE
from gym_schemas import Schema

#: How many values are tried to get a refused call accepted.
FIXES: Final = 3

#: Rows in which a suspicion is repeated.
ROWS: Final = 8

#: For each JSON type, a value that hardly any schema allows.
STRANGE_VALUES: Final[tuple[Any, ...]] = (STRANGE, "no_such_value_conformance", -987654321.5, True, None)


@dataclass(frozen=True)
class RefusedCall:
    """A call that the schema allows and the server refuses for its arguments, and the evidence.

    `beside` has the replies that `because` mentions: to a call that is surely wrong, and to one that is accepted.
    """

    argument: str
    call: Any
    reply: Reply
    because: str
    beside: tuple[Reply, ...]


async def is_no_such_text(place: Place, name: str, node: Schema, value: Any, taken: Iterable[Any]) -> bool:
    """Whether a refused value is no text that is meant, however long it is, and the schema says no more than how long.

    At the length of one that is `taken` it is refused too, or that one at its length is accepted.
    """
    other = next((text for text in taken if isinstance(text, str) and text), "")
    if not other or not value or not isinstance(value, str) or not leaves_open(node):
        return False
    as_long, instead = (f"{one * size:.{size}}" for one, size in ((value, len(other)), (other, len(value))))
    return says_no((await place.ask_with(name, as_long))[1]) or says_yes((await place.ask_with(name, instead))[1])
