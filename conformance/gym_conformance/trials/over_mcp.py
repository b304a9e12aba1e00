"""What checks of tools over MCP need, and how they reach them: a session, and a connection with its token."""

from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

from gym_conformance.contract.dataset_rows import Call, Row
from gym_conformance.contract.mcp_block import McpEndpoint, block_of, faults, read_endpoint
from gym_conformance.contract.statuses import is_success
from gym_conformance.drift.compare import first_call
from gym_conformance.drift.definitions import Definition
from gym_conformance.drift.soundness import not_json_schema
from gym_conformance.grouping import round_robin
from gym_conformance.mcp.carrier import Carrier, NotSpoken
from gym_conformance.mcp.connection import McpConnection, NotSendable, connected, missing
from gym_conformance.mcp.offer import Offer
from gym_conformance.session.contracts import CookieHabit, Session
from gym_conformance.session.exchange import reply_of
from gym_conformance.session.server_fault import NotSent, ServerFault
from gym_conformance.trajectories.made_up import some
from gym_conformance.trajectories.trajectory import resolve
from gym_conformance.trials.check import Need
from gym_conformance.trials.ending import NotApplicable, Untestable, Violation
from gym_conformance.trials.needs import RESOURCES_SERVER
from gym_conformance.trials.replay import known_trajectory
from gym_conformance.trials.trial import Trial
from gym_schemas import Schema, admits, mapped, properties_of

#: Calls of one rollout, and made-up ones where none is recorded.
_CALLS, _MADE_UP = 8, 16

#: What a text says that must not be empty.
_TEXT = "text"

#: So many recorded rollouts are looked at for one whose tools its session is shown.
_RECORDED = 4

_HINT = (
    "An unhandled exception, a redirect, or a content type or a form of answer that MCP's streamable HTTP does not have: "
    "the client gives up, and the rollout has no tools."
)

#: So many rows' sessions are asked for their tools.
_ROWS = 12

#: Makes the headers that a client sends of those that it was given.
Headers = Callable[[Mapping[str, str]], Mapping[str, str]]


async def _block(trial: Trial) -> None:
    try:
        reply = reply_of(await trial.session().seed())
    except (ServerFault, NotSent) as fault:
        raise NotApplicable(f"no session opens, so nothing is said of MCP: {fault}") from None
    if not is_success(reply.status) or not reply.is_json:
        raise NotApplicable(f"/seed_session answers {reply.status}, which says nothing of MCP")
    trial.learned.offer = Offer(block_of(reply.json()))
    if trial.learned.offer.block is None:
        raise NotApplicable("the seed's reply has no mcp block: it serves no tools over MCP")


async def _client(trial: Trial) -> None:
    for expected, _ in faults(trial.learned.offer.block):
        raise Untestable(f"an mcp block with {expected}; see mcp-block")
    if what := missing():
        raise Untestable(what)


async def _listed(trial: Trial) -> None:
    try:
        for row in trial.gym.rows[:_ROWS] or (trial.gym.row,):
            await _list(trial, row)
    except Violation as violation:
        raise Untestable(f"a list of tools: {violation}; see mcp-lists-tools") from None
    if not trial.learned.offer.served:
        raise NotApplicable("it lists no tools over MCP")


#: A server with tools over MCP.
MCP_BLOCK: Final = (RESOURCES_SERVER, Need("mcp block", _block))

#: And a client for them.
MCP_CLIENT: Final = (*MCP_BLOCK, Need("mcp client", _client))

#: And a list of them.
MCP_TOOLS: Final = (*MCP_CLIENT, Need("mcp tools", _listed))


@dataclass(frozen=True)
class Opened:
    """A seeded session with its endpoint; `seeded` is the number of the exchange that gave it."""

    session: Session
    endpoint: McpEndpoint
    seeded: int


async def open_session(trial: Trial, row: Row | None) -> Opened:
    """A seeded session that has an endpoint.

    Raises:
        Untestable: the server does not take the seed, or says nothing of MCP this time.
    """
    session = trial.session(row, CookieHabit.KEEPING)
    exchange = await session.seed()
    reply = reply_of(exchange)
    if not is_success(reply.status) or not reply.is_json:
        raise Untestable(f"a session: /seed_session answered {reply.status}; see seed-accepts-rows")
    block = block_of(reply.json())
    endpoint = read_endpoint(block)
    if endpoint is None or any(faults(block)):
        raise Untestable("an mcp block that an agent can use; see mcp-block")
    return Opened(session, endpoint, exchange.number)


@asynccontextmanager
async def connection_of(trial: Trial, opened: Opened, headers: Headers | None = None) -> AsyncIterator[McpConnection]:
    """A connection with the session's token, or with other headers.

    Raises:
        ServerFault: no whole reply came.
        NotSpoken: what came is no MCP.
    """
    given, endpoint = opened.endpoint.headers, opened.endpoint
    sent, seeded = (given, opened.seeded) if headers is None else (headers(given), None)
    async with connected(Carrier(trial.channel, endpoint.path, sent, seeded)) as connection:
        yield connection


@asynccontextmanager
async def over_mcp(trial: Trial, row: Row | None = None) -> AsyncIterator[tuple[Session, McpConnection]]:
    """A seeded session, and a connection with its token.

    Raises:
        Violation: what comes over the connection is no MCP.
        ServerFault: no whole reply came.
        Untestable: there is no session.
        NotApplicable: the client cannot send a call.
    """
    opened = await open_session(trial, row)
    try:
        async with connection_of(trial, opened) as connection:
            yield opened.session, connection
    except NotSendable as unsent:
        raise NotApplicable(str(unsent)) from None
    except NotSpoken as not_spoken:
        raise Violation(not_spoken.expected, not_spoken.actual, _HINT) from None


async def shown_to(trial: Trial, row: Row) -> frozenset[str]:
    """The names of the tools that a session of the row is shown; a server may narrow the list for each."""
    if row not in trial.learned.offer.shown:
        await _list(trial, row)
    return trial.learned.offer.shown[row]


async def _list(trial: Trial, row: Row) -> None:
    async with over_mcp(trial, row) as (_, connection):
        listed = await connection.tools()
    trial.learned.offer = trial.learned.offer.with_list(row, listed)


async def known_calls(trial: Trial) -> tuple[Row, tuple[Call, ...]]:
    """Calls of listed tools, and the row that they belong to: recorded ones, else what routes accept, and small ones of others.

    Raises:
        Untestable: there are none.
    """
    gym = trial.gym
    for row, recorded in gym.recorded_calls[:_RECORDED]:
        calls = tuple(trial.learned.offer.own(call) for call in recorded)
        if {call.name for call in calls} <= await shown_to(trial, row):
            return row, calls[:_CALLS]
    accepted = await known_trajectory(trial)
    row, shown = accepted.row, await shown_to(trial, accepted.row)
    made = (Call(call.name, resolve(call.arguments, [])) for call in accepted.calls)
    calls = tuple(call for call in map(trial.learned.offer.own, made) if call.name in shown)
    others = [one for one in trial.learned.offer.definitions if one.name in shown - {call.name for call in calls}]
    small = round_robin(_small(one) for one in others if not not_json_schema(one))
    calls += tuple(islice(small, _MADE_UP))
    if not calls:
        raise Untestable("a call that a listed tool takes: no rollout is recorded, and none can be made up")
    return row, calls


def _small(definition: Definition) -> Iterator[Call]:
    """The smallest call, and others, for nothing may come of the smallest.

    They are one with amounts of something and texts that are not empty, and one with each other member of an enum.
    """
    if (witness := first_call(definition)) is None:
        return
    yield Call(definition.name, witness.value)
    more = mapped(some(witness.value), lambda each, _: _TEXT if each == "" else each)
    options = ((key, member) for key, inner in properties_of(definition.schema).items() for member in _members(inner))
    for other in (more, *({**more, key: member} for key, member in options)):
        if other != witness.value and admits(definition.schema, other):
            yield Call(definition.name, other)


def _members(schema: Schema) -> Sequence[Any]:
    members = schema.get("enum") if isinstance(schema, Mapping) else None
    return members if isinstance(members, list) else ()
