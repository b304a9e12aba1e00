"""The gym under test as checks see it: its endpoint, what it serves, and the rows that train on it."""

import asyncio
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from http import HTTPStatus
from pathlib import Path
from typing import Any

import httpx

from gym_conformance.agents import Agent
from gym_conformance.contract.dataset_rows import Call, Rollout, Row, Source, Tool
from gym_conformance.contract.endpoints import (
    AUTO,
    CLOSE_SESSION,
    LIVENESS,
    OPENAPI,
    RESET,
    RESPONSES,
    RUN,
    SEED_SESSION,
    STEP,
    VERIFY,
)
from gym_conformance.contract.openapi import Api, ServerKind, read_openapi
from gym_conformance.contract.openapi_documents import DOCUMENTS, below, linked, read_document
from gym_conformance.contract.statuses import UNKNOWN_CLIENT, UNROUTED, is_success
from gym_conformance.drift.definitions import Definition, Definitions
from gym_conformance.drift.lock import Lock, lock_of
from gym_conformance.drift.served import ServedTool, catch_all, served_tools
from gym_conformance.drift.survey import survey
from gym_conformance.drift.tool_drift import Drift, DriftKind
from gym_conformance.grouping import first_of_each
from gym_conformance.printable import counted
from gym_conformance.session.channel import Channel, Endpoint
from gym_conformance.session.contracts import CookieContract, CookieHabit, SessionContract, post
from gym_conformance.session.exchange import Reply, Request, reply_of
from gym_conformance.session.server_fault import Fault, NotSent, ServerFault
from gym_conformance.session.typed_sessions import TypedContract
from gym_conformance.session.unserved import NO_SUCH_TOOL, is_served

#: The row for a session without `--gym-data`: the minimum that the types of every version accept.
BARE_ROW = Row({"responses_create_params": {"input": [{"role": "user", "content": "Hello."}]}}, Source(Path(), 0))

#: How many different definitions to compare with the server; each takes some hundredths of a second.
COMPARED = 500

_MORE = frozenset({DriftKind.ARGUMENT_WIDENED, DriftKind.ARGUMENT_UNOFFERED, DriftKind.UNNAMED_REFUSED})

#: The last one is the answer of a server that does not implement POST at all.
_UNROUTED = UNROUTED | {HTTPStatus.NOT_IMPLEMENTED}

#: Seconds to wait for a server that answers 503, and between attempts.
_STARTING, _POLL = 10.0, 0.25


@dataclass(frozen=True)
class Gym:
    """One target, recognised, with its data.

    Attributes:
        endpoint: shared by all channels to the target.
        api: the content of its OpenAPI document.
        kind: the kind of server.
        evidence: why it is taken for this kind, in a phrase.
        rows: the rows to judge with.
        rollouts: recorded rollouts.
        contract: how its sessions work.
        typed: how typed sessions work, if it offers them too.
        declared: the tools of all rows that were read; () to take those of `rows`.
        agents: the agents that execute calls, for rows whose agent is known to do so.
        lock: the tools as last reviewed; None if no lock was given.
    """

    endpoint: Endpoint
    api: Api
    kind: ServerKind
    evidence: str
    rows: tuple[Row, ...] = ()
    rollouts: tuple[Rollout, ...] = ()
    contract: SessionContract = field(default_factory=CookieContract)
    typed: TypedContract | None = None
    declared: tuple[Definition, ...] = ()
    agents: Mapping[Row, Agent] = field(default_factory=dict)
    lock: Lock | None = None

    @property
    def contracts(self) -> str:
        """The names of the contracts by which it is judged."""
        return " and ".join(dict.fromkeys([self.contract.name, *([self.typed.name] if self.typed else [])]))

    @property
    def row(self) -> Row:
        """The row for checks that can use any row."""
        return self.rows[0] if self.rows else BARE_ROW

    @cached_property
    def tools(self) -> Mapping[str, Tool]:
        """The tools that rows declare, by name, with the first definition of each."""
        return first_of_each(lambda tool: tool.name, (tool for row in self.rows for tool in row.tools))

    @cached_property
    def definitions(self) -> tuple[Definition, ...]:
        """All different definitions of each tool, by name."""
        if self.declared:
            return self.declared
        found = Definitions()
        for row in self.rows:
            found.add(row.data["responses_create_params"].get("tools"), row.source)
        return tuple(found)

    @property
    def compared(self) -> tuple[Definition, ...]:
        """The definitions to compare with the server: only the first ones if there are very many."""
        return self.definitions[:COMPARED]

    @cached_property
    def served(self) -> Mapping[str, ServedTool] | None:
        """The tools that the server says it serves, by name; None if it does not say."""
        if not self.api.known:
            return None
        served = served_tools(self.api.document)
        if self.api.catch_all:
            every = catch_all(self.api.document)
            if every is None:
                return served or None
            names = {one.name for one in self.definitions} - served.keys()
            served |= {name: replace(every, name=name) for name in names}
        return served

    @cached_property
    def drifts(self) -> tuple[Drift, ...]:
        """All drift that the schemas show or cannot rule out, without requests to the server.

        If all tools share one schema, as a catch-all route has it, it accepts more than any single tool: that is no
        drift.

        Raises:
            OutOfTime: the run's time limit was reached before all were compared.
        """
        served = None if self.kind is ServerKind.SINGLE_TURN else self.served
        found = survey(self.compared, served, executed=not self.api.catch_all, go_on=self.endpoint.ensure_time)
        shared = set() if served is None else {tool for tool in served if tool not in self.api.tools}
        return tuple(one for one in found if one.tool not in shared or one.kind not in _MORE)

    @property
    def tools_now(self) -> Lock:
        """The tools of both sides, for comparison with a lock; a catch-all does not say which tools it serves."""
        known = self.api.known and not self.api.catch_all
        now = lock_of(self.definitions, served_tools(self.api.document) if known else None)
        told = self.endpoint.secrets.redact_json
        return Lock(told(now.rows), told(now.server))

    def definition_of(self, tool: str) -> Definition | None:
        """The first definition of a tool."""
        return next((one for one in self.definitions if one.name == tool), None)

    def agent_of(self, tool: str) -> Agent | None:
        """The agent that executes calls of a tool, if a row's agent is known to do so."""
        return next((who for row, who in self.agents.items() if any(one.name == tool for one in row.tools)), None)

    def row_for(self, definition: Definition | Drift) -> Row:
        """A row that declares the tool, preferably with exactly this schema; else any row."""
        tool = definition.name if isinstance(definition, Definition) else definition.tool
        lines = set(definition.sources)
        showing = [row for row in self.rows if any(one.name == tool for one in row.tools)]
        return next((row for row in showing if row.source in lines), next(iter(showing), self.row))

    @cached_property
    def recorded(self) -> Mapping[Row, tuple[Rollout, ...]]:
        """The recorded rollouts by row, without rows that have none, and rollouts that may belong to several rows."""
        matched: dict[Row, list[Rollout]] = defaultdict(list)
        for rollout in self.rollouts:
            for row in rollout.rows_of(self.rows):
                matched[row].append(rollout)
        return {row: tuple(rollouts) for row, rollouts in matched.items()}

    @cached_property
    def recorded_calls(self) -> tuple[tuple[Row, tuple[Call, ...]], ...]:
        """Rows with the calls of a recorded rollout, longest first: calls that the server is known to accept.

        A rollout of none of our rows is paired with the first row: its calls are still known to be accepted.
        """
        runs = [(row, tuple(rollout.calls)) for row, rollouts in self.recorded.items() for rollout in rollouts]
        runs = [run for run in runs if run[1]] or [(self.row, tuple(rollout.calls)) for rollout in self.rollouts]
        return tuple(sorted((run for run in runs if run[1]), key=lambda run: -len(run[1])))

    def source(self, subject: object) -> Source | None:
        """The place of a check's subject in the dataset: the row itself, or the first row that declares the tool."""
        if isinstance(subject, Drift | Definition):
            return next(iter(subject.sources), None)
        if isinstance(subject, Tool):
            return next((row.source for row in self.rows if subject in row.tools), None)
        source = subject.source if isinstance(subject, Row | Rollout) else None
        return source if source and source.line else None

    def recorded_place(self, tool: str) -> tuple[Row, tuple[Call, ...], Call] | None:
        """The earliest recorded call of the tool, with its row and the calls before it."""
        found = [
            (at, row, calls) for row, calls in self.recorded_calls for at, call in enumerate(calls) if call.name == tool
        ]
        if not found:
            return None
        at, row, calls = min(found, key=lambda each: each[0])
        return row, calls[:at], calls[at]

    def recorded_arguments(self, tool: str) -> Iterator[Any]:
        """The arguments of all recorded calls of the tool."""
        return (call.arguments for _, calls in self.recorded_calls for call in calls if call.name == tool)

    def example_call(self, tool: Tool) -> Call:
        """A call of the tool with recorded arguments, or without arguments if none are recorded."""
        return Call(tool.name, next(self.recorded_arguments(tool.name), {}))


async def recognise(
    endpoint: Endpoint, rows: tuple[Row, ...], rollouts: tuple[Rollout, ...], contract: str = AUTO, **more: Any
) -> Gym:
    """Recognise the kind of server by its OpenAPI document, else by its replies.

    `contract` is the one to judge by, "cookie" or "typed"; for "auto", the document decides, or else a typed seed.
    `more` are further fields of the gym.
    """
    try:
        api, kind, evidence = await _look_again(endpoint, rows)
        if not api.known and await _was_starting(endpoint):
            api, kind, evidence = await _look_again(endpoint, rows)
    except (ServerFault, NotSent) as fault:
        api, kind, evidence = Api(), ServerKind.OTHER, f"it does not answer: {fault}"
    finds_typed = contract == AUTO and (api.typed or await _takes_typed_seeds(endpoint, rows, api, kind))
    typed = TypedContract() if contract == "typed" or finds_typed else None
    usual = typed if typed and (contract == "typed" or api.typed_only) else CookieContract()
    return Gym(endpoint, api, kind, evidence, rows, rollouts, usual, typed, **more)


async def _takes_typed_seeds(endpoint: Endpoint, rows: tuple[Row, ...], api: Api, kind: ServerKind) -> bool:
    """Whether it closes sessions, and confirms the id of a typed seed, though no document says so."""
    if kind not in (ServerKind.TOOLS, ServerKind.CATCH_ALL, ServerKind.SINGLE_TURN):
        return False
    session = TypedContract().session(Channel(endpoint), rows[0] if rows else BARE_ROW)
    closing = CLOSE_SESSION.removeprefix("/")
    try:
        if not (CLOSE_SESSION in api.posts if api.known else await is_served(session, closing, [{}])):
            return False
        reply = reply_of(await session.seed())
        await session.close()
    except (ServerFault, NotSent):
        return False
    return is_success(reply.status) and session.identity.confirmed_by(reply.fields)


async def _was_starting(endpoint: Endpoint) -> bool:
    """Whether it answered 503 at first, but no longer does: a server that is loading something is waited for."""
    end, waited = time.monotonic() + _STARTING, False
    while (home := await _get(endpoint, LIVENESS)) and home.status == HTTPStatus.SERVICE_UNAVAILABLE:
        if time.monotonic() > end:
            return False
        await asyncio.sleep(_POLL)
        waited = True
    return waited


async def _look(endpoint: Endpoint, rows: tuple[Row, ...]) -> tuple[Api, ServerKind, str]:
    """Its document, the kind of server, and the evidence for that kind."""
    api = await _read_api(endpoint)
    if not api.known:
        return api, *await _probe(endpoint, rows, "it has no OpenAPI document")
    if api.kind is not ServerKind.OTHER or not await _opens_sessions(endpoint, rows):
        return api, api.kind, _describe(api)
    # Some documents are for the policy's tools alone, or for what is served beside a gym.
    declared = {tool.name for row in rows for tool in row.tools}
    if declared and declared <= api.tools:
        api = replace(api, posts=api.posts | {SEED_SESSION, VERIFY})
        return api, api.kind, _describe(api)
    return Api(), *await _probe(endpoint, rows, "its OpenAPI document does not list its sessions")


async def _look_again(endpoint: Endpoint, rows: tuple[Row, ...]) -> tuple[Api, ServerKind, str]:
    """Like `_look`, repeated once if it hangs: a busy machine at that moment must not spoil the whole run.

    If it hangs again, perhaps only the document does, which no client of a rollout requests.
    """
    for _ in range(2):
        try:
            return await _look(endpoint, rows)
        except ServerFault as fault:
            if fault.fault is not Fault.HANG:
                raise
    return Api(), *await _probe(endpoint, rows, "it has no OpenAPI document")


async def _read_api(endpoint: Endpoint) -> Api:
    """Its OpenAPI document, wherever that is; a document at an unusual place must be of a server that we recognise."""
    own = await _document(endpoint, OPENAPI)
    if own is not None:
        return read_openapi(own)
    home = await _get(endpoint, LIVENESS)
    url = httpx.URL(endpoint.url)
    host = Endpoint(str(url.copy_with(path="/")).rstrip("/"), endpoint.transport, endpoint.timeout, endpoint.headers)
    places = [(host, path) for path in linked(home.headers if home else ())]
    for there, path in [*places, *((endpoint, path) for path in DOCUMENTS[1:])]:
        document = await _document(there, path)
        api = read_openapi(below(url.path.rstrip("/"), document)) if document is not None else Api()
        if api.known and api.kind is not ServerKind.OTHER:
            return api
    return Api()


async def _document(endpoint: Endpoint, path: str) -> Mapping[str, Any] | None:
    reply = await _get(endpoint, path)
    return read_document(reply.text) if reply is not None and is_success(reply.status) else None


async def _get(endpoint: Endpoint, path: str) -> Reply | None:
    """The reply; None if there is none.

    Raises:
        ServerFault: the server hangs, and would elsewhere, too.
    """
    try:
        return (await Channel(endpoint).send(Request("GET", path))).reply
    except ServerFault as fault:
        if fault.fault is Fault.HANG:
            raise
        return None


def _describe(api: Api) -> str:
    match api.kind:
        case ServerKind.TOOLS:
            return f"its OpenAPI document lists {counted(len(api.tools), 'tool route')}"
        case ServerKind.CATCH_ALL:
            return "its OpenAPI document lists one route for all paths"
        case ServerKind.SINGLE_TURN:
            return "its OpenAPI document lists no tool route"
        case ServerKind.GYMNASIUM:
            return "its OpenAPI document lists /reset and /step, but neither /seed_session nor /verify"
        case ServerKind.ENVIRONMENT:
            taken = "episode requests" if api.episodes else "rows"
            return f"its OpenAPI document lists /run, which takes {taken}, but neither /verify nor /v1/responses"
        case _:
            return "its OpenAPI document lists neither /seed_session nor /verify"


async def _opens_sessions(endpoint: Endpoint, rows: tuple[Row, ...]) -> bool:
    return is_success(await _status(endpoint, SEED_SESSION, (rows[0] if rows else BARE_ROW).data))


async def _probe(endpoint: Endpoint, rows: tuple[Row, ...], undescribed: str) -> tuple[ServerKind, str]:
    """Recognise the server by its replies alone, whose routes are `undescribed`."""
    row = rows[0] if rows else BARE_ROW
    # The very first session must be one that a client would open: some servers keep for good what it is seeded with.
    seeded = await _status(endpoint, SEED_SESSION, row.data)
    if seeded in _UNROUTED | UNKNOWN_CLIENT:
        return await _probe_others(endpoint, row, seeded)
    session = CookieContract().session(Channel(endpoint), row, CookieHabit.COLLECTING)
    await session.seed()
    if reply_of(await session.call(Call(NO_SUCH_TOOL, {}))).status not in _UNROUTED:
        return ServerKind.CATCH_ALL, f"{undescribed} and answers calls to a tool that does not exist"
    for tool in row.tools:
        if await is_served(session, tool.name, [{}]):
            return ServerKind.TOOLS, f"{undescribed} and answers /{tool.name}"
    return ServerKind.SINGLE_TURN, f"{undescribed} and answers none of its rows' tools"


async def _probe_others(endpoint: Endpoint, row: Row, seeded: int) -> tuple[ServerKind, str]:
    """Recognise a server that opens no session, by the status of a seed and by other replies."""
    session = CookieContract().session(Channel(endpoint), row)

    async def routed(path: str) -> bool:  # a step may mean its 404, if no episode was begun
        return await is_served(session, path.removeprefix("/"), [{}])

    if seeded in UNKNOWN_CLIENT:
        return ServerKind.OTHER, f"it answers {seeded} to {SEED_SESSION}; give credentials, --gym-header 'NAME: VALUE'"
    if await routed(RESET) and await routed(STEP):
        return (
            ServerKind.GYMNASIUM,
            "it has no OpenAPI document and answers /reset and /step, but not /seed_session",
        )
    if await routed(RUN) and not await routed(RESPONSES):
        return ServerKind.ENVIRONMENT, "it has no OpenAPI document and answers /run, but not /v1/responses"
    return ServerKind.OTHER, "it has no OpenAPI document and does not serve /seed_session"


async def _status(endpoint: Endpoint, path: str, body: Mapping[str, Any]) -> int:
    return reply_of(await Channel(endpoint).send(post(path, dict(body)))).status
