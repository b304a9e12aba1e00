"""Drift of a catch-all server, which publishes nothing about its tools, learned from how it answers the unknown.

Its answers to a nonexistent tool or argument are compared with its answers to declared ones: the same words, except for
the name, mean that it does not know those either.
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
from gym_conformance.session.exchange import Reply, reply_of
from gym_conformance.session.unserved import NO_SUCH_TOOL
from gym_schemas import Document, boundary_values, properties_of

#: A reply without such a word is not a refusal: a server may acknowledge whatever it is sent.
_REFUSAL: Final = re.compile(
    r"error|unknown|invalid|no such|not (?:found|a |known|supported|recogni)|unexpected|no tool", re.IGNORECASE
)

#: Wording that can only refer to a tool, even if the name is missing.
_NO_TOOL: Final = re.compile(
    r"(?:unknown|invalid|no such) (?:tool|function)|(?:tool|function) (?:is )?(?:not |un)(?:found|known)", re.IGNORECASE
)

#: Calls of one tool that must all be answered like an unknown tool's.
_CALLS: Final = 4

#: Replaces the name in texts that are compared.
_NAME: Final = "\0"


@dataclass(frozen=True)
class Unknown:
    """An argument that the server does not know: two calls, and the reply to the one that contains it."""

    name: str
    call: Any
    reply: Reply


async def knows_tool(gym: Gym, channel: Channel, definition: Definition) -> bool:
    """Whether any call of the tool is answered differently from a call of a nonexistent tool.

    Raises:
        NoSession: the server refuses the seed.
        ServerFault: the server does not answer.
    """
    row = gym.row_for(definition)
    calls = list(islice(_calls(gym, definition), _CALLS))
    for arguments in calls:
        unknown = await ask(gym, channel, row, NO_SUCH_TOOL, arguments)
        reply = await ask(gym, channel, row, definition.name, arguments)
        if not _alike(reply, definition.name, unknown, NO_SUCH_TOOL):
            return True
    return not calls


async def unknown_argument(gym: Gym, channel: Channel, definition: Definition) -> Unknown | None:
    """An argument that the schema offers but the server does not know, if one can be shown.

    Raises:
        NoSession: the server refuses the seed.
        ServerFault: the server does not answer.
    """
    session = await opened(gym, channel, gym.row_for(definition))

    async def call(arguments: Any) -> Reply:
        return reply_of(await session.call(Call(definition.name, arguments)))

    calls = list(_calls(gym, definition))
    offered_names = list(properties_of(Document(definition.schema).root))
    values = {name: each[name] for each in reversed(calls) for name in offered_names if name in each}
    for base in ({}, *calls[:1]) if values else ():
        unknown = await call({**base, UNNAMED: "a"})
        if UNNAMED not in unknown.text or not _refuses(unknown, UNNAMED):
            continue  # the tool itself may be unknown, whatever it is sent
        for name, value in values.items():
            reply = await call({**base, name: value})
            if _alike(reply, name, unknown, UNNAMED):
                return Unknown(name, {**base, name: value}, reply)
    return None


def _calls(gym: Gym, definition: Definition) -> Iterator[Any]:
    """Recorded calls of the tool, then calls that its schema allows, the smallest first."""
    yield from map(dict, gym.recorded_arguments(definition.name))
    if not not_json_schema(definition):
        yield from (value for value in boundary_values(offered(definition)) if isinstance(value, dict))


def _refuses(unknown: Reply, unknown_name: str) -> bool:
    """Whether the reply to something nonexistent is a refusal that names it, or can refer to nothing else."""
    words = _REFUSAL if unknown_name in unknown.text else _NO_TOOL
    return not is_crash(unknown.status) and bool(words.search(unknown.text.replace(unknown_name, _NAME)))


def _alike(reply: Reply, name: str, unknown: Reply, unknown_name: str) -> bool:
    """Whether both are refused in the same words, except for the name."""
    if reply.status != unknown.status or not _refuses(unknown, unknown_name):
        return False
    return unknown.text.replace(unknown_name, _NAME) == reply.text.replace(name, _NAME)
