"""A catch-all server says nothing of its tools: how it answers what it does not know is learned from it.

Its answer to a tool or an argument that does not exist is compared with its answers to those that rows declare:
the same words, but for the name, mean that it does not know these either.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

from gym_conformance.contract.dataset_rows import Call
from gym_conformance.contract.statuses import is_crash
from gym_conformance.drift.compare import UNNAMED, offered
from gym_conformance.drift.definitions import Definition
from gym_conformance.drift.soundness import not_json_schema
from gym_conformance.gym_under_test import Gym
from gym_conformance.probes.asking import ask, opened
from gym_conformance.session.channel import Channel
from gym_conformance.session.contracts import CookieHabit
from gym_conformance.session.exchange import Reply, reply_of
from gym_conformance.session.unserved import NO_SUCH_TOOL
from gym_schemas import Document, boundary_values, properties_of

#: An answer without such a word is no refusal: a server may acknowledge whatever it is sent.
_REFUSAL: Final = re.compile(
    r"error|unknown|invalid|no such|not (?:found|a |known|supported|recogni)|unexpected|no tool", re.IGNORECASE
)

#: What can be said of a tool alone, where its name is not said.
_NO_TOOL: Final = re.compile(
    r"(?:unknown|invalid|no such) (?:tool|function)|(?:tool|function) (?:is )?(?:not |un)(?:found|known)", re.IGNORECASE
)

#: Calls of one tool that must all be answered like an unknown tool's.
_CALLS: Final = 4

#: Stands for the name in what is compared.
_NAME: Final = "\0"


@dataclass(frozen=True)
class Unknown:
    """An argument that the server does not know: two calls, and what it answered to the one that has it."""

    name: str
    call: Any
    reply: Reply


async def knows_tool(gym: Gym, channel: Channel, definition: Definition) -> bool:
    """Whether some call of the tool is answered differently from a call of a tool that does not exist.

    Raises:
        NoSession: the server does not take the seed.
        ServerFault: the server does not answer.
    """
    row = gym.row_for(definition)
    calls = list(islice(_calls(gym, definition), _CALLS))
    for arguments in calls:
        stranger = await ask(gym, channel, row, NO_SUCH_TOOL, arguments)
        reply = await ask(gym, channel, row, definition.name, arguments)
        if not _alike(reply, definition.name, stranger, NO_SUCH_TOOL):
            return True
    return not calls


async def unknown_argument(gym: Gym, channel: Channel, definition: Definition) -> Unknown | None:
    """An argument that the definition offers and the server does not know, if one shows.

    Raises:
        NoSession: the server does not take the seed.
        ServerFault: the server does not answer.
    """
    session = await opened(gym, channel, gym.row_for(definition), CookieHabit.COLLECTING)

    async def call(arguments: Any) -> Reply:
        return reply_of(await session.call(Call(definition.name, arguments)))

    calls = list(_calls(gym, definition))
    offered_names = list(properties_of(Document(definition.schema).root))
    values = {name: each[name] for each in reversed(calls) for name in offered_names if name in each}
    for base in ({}, *calls[:1]) if values else ():
        stranger = await call({**base, UNNAMED: "a"})
        if not _refuses(stranger, UNNAMED):
            continue
        for name, value in values.items():
            reply = await call({**base, name: value})
            if _alike(reply, name, stranger, UNNAMED):
                return Unknown(name, {**base, name: value}, reply)
    return None


def _calls(gym: Gym, definition: Definition) -> Iterator[Any]:
    """Recorded calls of the tool, then calls that its definition offers, the smallest first."""
    yield from (
        dict(call.arguments) for _, calls in gym.recorded_calls for call in calls if call.name == definition.name
    )
    if not not_json_schema(definition):
        yield from (value for value in boundary_values(offered(definition)) if isinstance(value, dict))


def _refuses(stranger: Reply, strange: str) -> bool:
    """Whether the answer to what nobody serves is a refusal that names it, or that can be of nothing else."""
    words = _REFUSAL if strange in stranger.text else _NO_TOOL
    return not is_crash(stranger.status) and bool(words.search(stranger.text.replace(strange, _NAME)))


def _alike(reply: Reply, name: str, stranger: Reply, strange: str) -> bool:
    """Whether both are refused in the same words, but for the name."""
    if reply.status != stranger.status or not _refuses(stranger, strange):
        return False
    return stranger.text.replace(strange, _NAME) == reply.text.replace(name, _NAME)
