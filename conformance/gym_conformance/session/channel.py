"""The endpoint of one target, and the channels to it: one for each trial, each with a record of its own."""

import asyncio
import math
import time
from collections import Counter, deque
from collections.abc import AsyncIterator, Awaitable, Coroutine, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import httpx

from gym_conformance.contract.endpoints import SEED_SESSION
from gym_conformance.contract.mcp_block import block_of, read_endpoint
from gym_conformance.contract.statuses import is_error
from gym_conformance.redaction import NO_SECRETS, Secrets
from gym_conformance.session.backoff import Backoff
from gym_conformance.session.exchange import Exchange, Reply, Request
from gym_conformance.session.groups import Groups
from gym_conformance.session.held import Held
from gym_conformance.session.latencies import Latencies
from gym_conformance.session.request_bytes import NotWritable, RequestBytes
from gym_conformance.session.seeds import Seeds
from gym_conformance.session.server_fault import Fault, NotSent, ServerFault
from gym_conformance.session.transport import BODY_LIMIT, IDLE_LIMIT, Transport

#: A path that hung this often is not asked again: it has been reported, and each further request would cost a deadline.
_HANGS = 2


#: How many sessions' tokens are redacted: those of the last sessions, which a finding may still mention. And how many
#: characters a session's may have, and spellings all of them: more is no token, and would take minutes.
_TOKENS, _TOKEN_LENGTH, _SPELLINGS = 200, 4 << 10, 200_000


#: How many unanswered requests are kept, to be named if the server is gone.
_UNANSWERED = 4

#: The most bytes of concurrent exchanges, if each reply is as large as the largest so far.
_AT_ONCE = 32 << 20

#: Bytes of replies that a channel keeps complete; of older ones it keeps the beginning, since a reproduction needs only
#: the requests.
_REPLIES = 16 << 20

#: Bytes of a request above which a reply may be too long because it echoes the request, as verify does.
_ECHOED = 4 << 20


class NoRoom(NotSent):
    """Large requests and replies in memory leave no room for this one; it may be sent once some are released."""


class PathHangs(NotSent):
    """The request was not sent because its path hung before; `last` is the last hang."""

    def __init__(self, message: str, last: ServerFault | None = None) -> None:
        super().__init__(message)
        self.last = last


def unanswered(ended: object) -> bool:
    """Whether what was sent got no answer in time, or was not sent since others had got none."""
    return isinstance(ended, PathHangs) or (isinstance(ended, ServerFault) and ended.fault is Fault.HANG)


class NoMoreSessions(NotSent):
    """A seed that used to be accepted has been refused repeatedly, each time after seconds."""


class OutOfTime(NotSent):
    """The time limit of the run is reached."""


class Sender(Protocol):
    """What sends an endpoint's requests: a `Transport`."""

    async def send(self, method: str, message: bytes, *, fresh: bool = False) -> Reply:
        """Send one request, as bytes.

        Raises:
            ServerFault: no complete, valid HTTP reply came within the deadline.
        """

    async def aclose(self) -> None:
        """Close every connection."""


@dataclass
class Endpoint:
    """What all channels to one target share.

    Attributes:
        url: without a trailing slash.
        timeout: of one request, in seconds.
        in_flight: how many requests may be in flight at once.
        most_hangs: a path that hung so often is not asked again.
        hangs: how often each path hung, as far as it counts.
        given_up: how often each path hung in all.
        requests: how many were sent.
        seconds: how long requests were in flight, however many at once.
        until: the time, as `time.monotonic()` has it, after which nothing is sent.
        bound: how many seconds the run may take until then.
        known: secrets besides those in `headers`.
        tokens: MCP session tokens, which are secret too.
    """

    url: str
    transport: Sender
    timeout: float
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    in_flight: int = 256
    most_hangs: float = _HANGS
    backoff: Backoff = field(default_factory=Backoff, repr=False)
    hangs: Counter[str] = field(default_factory=Counter)
    given_up: Counter[str] = field(default_factory=Counter)
    requests: int = 0
    seeds: Seeds = field(default_factory=Seeds, repr=False)
    seconds: float = 0.0
    latencies: Latencies = field(default_factory=Latencies, repr=False)
    until: float = math.inf
    bound: float = math.inf
    known: Secrets = field(default=NO_SECRETS, repr=False)
    tokens: deque[Secrets] = field(default_factory=lambda: deque(maxlen=_TOKENS), repr=False)

    def __post_init__(self) -> None:
        self._secrets: Secrets | None = None
        self.answered: Exchange | None = None  # the last one that was answered
        self.unanswered: list[Exchange] = []  # the first few since then
        self.hung: dict[str, ServerFault] = {}  # the last hang of each path
        self.held = Held()
        self.groups = Groups()
        self._under_way = 0
        self._largest = 0
        self._bytes = RequestBytes(self.url, self.headers)
        self._done = asyncio.Event()
        self._since = 0.0

    def at(self, url: str, in_flight: int = 0) -> "Endpoint":
        """The same target with new connections and nothing sent yet, for another process of the server or for a load.

        `in_flight`: if positive, the endpoint is for a load, which must see hangs and refusals: so many requests may be
        in flight, a path is asked again however often it hung, and a request that is told to wait is not sent again.
        """
        transport = Transport(httpx.URL(url), deadline=self.timeout, idle=max(in_flight, IDLE_LIMIT))
        return Endpoint(
            url,
            transport,
            self.timeout,
            self.headers,
            in_flight or self.in_flight,
            most_hangs=math.inf if in_flight else self.most_hangs,
            backoff=Backoff(0.0) if in_flight else self.backoff,
            until=self.until,
            bound=self.bound,
            known=self.known,
            tokens=self.tokens,
        )

    @contextmanager
    def forgiving(self, *, when: bool = True) -> Iterator[None]:
        """Count no hang within the block: what hangs there may be answered elsewhere, or later."""
        hangs = self.hangs.copy()
        try:
            yield
        finally:
            if when:
                self.hangs = hangs

    def forgive(self, fault: ServerFault) -> None:
        """Do not count this fault if it is a hang, because its path is answered elsewhere."""
        if fault.fault is Fault.HANG and fault.exchange:
            self.hangs[fault.exchange.request.path] -= 1

    def ensure_time(self) -> None:
        """Ensure that the run has time left.

        Raises:
            OutOfTime: it has reached its time limit.
        """
        if time.monotonic() > self.until:
            raise OutOfTime(f"more time: after {self.bound:g} s the run ends (--gym-max-time)")

    def ensure_room(self) -> None:
        """Ensure that the large requests and replies in memory leave room for more.

        Raises:
            NoRoom: they do not.
        """
        if held := self.held.over():
            raise NoRoom(f"smaller rows and replies: {held} would be held at once")

    def written(self, request: Request) -> bytes:
        """The bytes of a request.

        Raises:
            NotWritable: it contains a line break, or another byte that HTTP does not allow there.
        """
        return self._bytes.written(request)

    async def carry(self, request: Request, *, fresh: bool, over: Sender | None) -> Reply:
        """Send a request as soon as fewer than `in_flight` others are in flight, and count it.

        If requests or replies are large, only as many are sent at once as fit in memory. If the server, being full or
        asked too often, says when to come again, the request is sent again then, within bounds.

        Raises:
            ServerFault: no complete, valid HTTP reply came within the deadline.
            NotWritable: the request cannot be written as HTTP.
            NotSent: memory has no room for the reply, this machine has no connection left, or the run is out of time.
        """
        began = time.monotonic()
        while seconds := self.backoff.grant(reply := await self._carry(request, fresh=fresh, over=over), began):
            await asyncio.sleep(seconds)
            self.ensure_time()
        return reply

    async def _carry(self, request: Request, *, fresh: bool, over: Sender | None) -> Reply:
        while under_way := self._under_way:
            size = max(self._largest, 2 * request.size)  # once as a message, once in the socket's buffer
            if under_way < self.in_flight and (under_way + 1) * size <= _AT_ONCE:
                break
            self._done.clear()
            await self._done.wait()
        self.requests += 1
        self._since = self._since if under_way else time.monotonic()
        self._under_way += 1
        try:
            sending = (over or self.transport).send(request.method, self._bytes.written(request), fresh=fresh)
            early = self.until - time.monotonic() > 2 * self.timeout  # then its own deadline comes first
            reply = await (sending if early else self._in_time(sending))
        except ServerFault as fault:
            self.given_up[request.path] += fault.fault is Fault.HANG
            if fault.fault is Fault.OVERSIZED:
                self._largest = BODY_LIMIT
            raise fault.with_traceback(None) from None  # its frames would keep alive what was read
        finally:
            self._under_way -= 1
            self._done.set()
            if not self._under_way:
                self.seconds += time.monotonic() - self._since
        self._largest = max(self._largest, len(reply.body))
        if not under_way and not self._under_way:
            self.groups.note(request, reply)
        reply = self.held.shared(reply)
        self.ensure_room()  # others may have been sent before any was known to be large
        return reply

    async def _in_time(self, sending: Awaitable[Reply]) -> Reply:
        """The reply, if it comes within the run's time limit: a request sent just before may take `timeout` longer."""
        try:
            async with asyncio.timeout(self.until - time.monotonic()):
                return await sending
        except TimeoutError:  # the limit of the run: the transport's own timeout is a ServerFault
            self.ensure_time()
            raise

    def took(self, request: Request, reply: Reply) -> None:
        """Remember how long a good reply took, and which seeds were accepted."""
        self.unanswered.clear()
        self.seeds.note(request, reply)
        if not is_error(reply.status):
            self.latencies.add(f"{request.method} {request.path}", reply.elapsed)

    @property
    def secrets(self) -> Secrets:
        """What must never be shown: `known` secrets, the user's headers, and MCP session tokens."""
        if self._secrets is None:
            self._secrets = Secrets.joined((self.known, Secrets.of_headers(self.headers), *self.tokens))
        return self._secrets

    def heard(self, request: Request, reply: Reply) -> None:
        """Remember the token in a seed's reply, so that it is redacted."""
        if request.path == SEED_SESSION and b'"headers"' in reply.body and reply.is_json:
            endpoint = read_endpoint(block_of(reply.json()))
            if endpoint and endpoint.headers and sum(map(len, endpoint.headers.values())) <= _TOKEN_LENGTH:
                self.tokens.append(Secrets.of_headers(endpoint.headers))
                self._secrets = None
                while sum(map(len, self.tokens)) > _SPELLINGS:
                    self.tokens.popleft()


class Channel:
    """Sends requests and records every exchange.

    Connections are kept and shared by all channels, last in, first out, so that consecutive requests reach the same
    worker of a server that has several.

    Attributes:
        exchanges: the record.
        sent: how many requests were sent.

    Args:
        endpoint: where requests go.
        fresh: whether each request has a connection of its own.
        pause: seconds to wait before each request.
        over: a transport whose connections are used instead of the endpoint's.
        record: a channel whose record is continued.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        *,
        fresh: bool = False,
        pause: float = 0.0,
        over: Sender | None = None,
        record: "Channel | None" = None,
    ) -> None:
        self.endpoint = endpoint
        self._over = over
        self._fresh = fresh
        self._pause = pause
        self.exchanges: list[Exchange] = record.exchanges if record else []
        self.sent: int = record.sent if record else 0
        self._replies = sum(len(one.reply.body) for one in self.exchanges if one.reply)

    async def send(self, request: Request) -> Exchange:
        """Send one request. Redirects are not followed, and an error status raises nothing.

        If verify scores whole groups, it is sent as one rollout of a group.

        Raises:
            ServerFault: no complete, valid HTTP reply came within the deadline; the exchange is recorded all the same.
            NotSent: the path has hung too often to be asked again, the run is out of time, too much is held, or the
                request is too large for HTTP or for its echo to be read.
        """
        if self._pause:
            await asyncio.sleep(self._pause)
        alone = self.endpoint.groups.size == 1
        try:
            exchange = await self._send(request)
        except ServerFault as fault:
            if not alone or fault.fault is not Fault.HANG or not await self._belongs_in_a_group(request):
                raise
            self.exchanges = [one for one in self.exchanges if one is not fault.exchange]
            return await self._send(request)
        numberless = alone and exchange.reply and self.endpoint.groups.asked_for(request, exchange.reply)
        if numberless and await self._belongs_in_a_group(request):
            self.forget(exchange)
            return await self._send(request)
        return exchange

    async def _belongs_in_a_group(self, request: Request) -> bool:
        """Whether it is scored only together with others: then it did not hang."""
        if not self.endpoint.groups.concern(request):
            return False
        hangs = self.endpoint.hangs.pop(request.path, 0)
        endpoint = self.endpoint
        if await endpoint.groups.learn(request, self.reply_to, endpoint.in_flight, endpoint.timeout):
            return True
        self.endpoint.hangs[request.path] += hangs
        return False

    async def _send(self, request: Request) -> Exchange:
        endpoint = self.endpoint
        endpoint.ensure_time()
        request = endpoint.held.shared(request)
        endpoint.ensure_room()
        if (hung := endpoint.hangs.get(request.path, 0)) >= endpoint.most_hangs:
            message = f"an answer of {request.method} {request.path}, which hung {hung} times before in this run"
            raise PathHangs(message, endpoint.hung.get(request.path))
        if refusal := endpoint.seeds.wait(request):
            raise NoMoreSessions(
                f"a session: {SEED_SESSION} has opened {endpoint.seeds.taken}, and answers {refusal.status} after "
                f"{refusal.elapsed:.0f} s to a row that it took before; see resources-seeds"
            )
        self.sent += 1
        number = self.sent
        groups = endpoint.groups
        others: tuple[Request, ...] = ()
        if groups.size > 1 and groups.concern(request):
            request, *rest = groups.members(request)
            others = tuple(rest)
        try:
            reply = await (groups.send(request, others, self.reply_to) if others else self.reply_to(request))
        except NotWritable as error:
            raise NotSent(f"requests that HTTP can carry: {error}") from error
        except ServerFault as fault:
            if fault.fault is Fault.OVERSIZED and (size := request.size) > _ECHOED:
                raise NotSent(f"smaller rows: a request has {size >> 20} MB, and {fault.detail}") from fault
            if fault.fault is Fault.HANG:
                endpoint.hangs[request.path] += 1
                endpoint.hung[request.path] = fault
            fault.exchange = Exchange(number, request, fault=f"{fault.fault}: {fault.detail}", group=others)
            if fault.fault in (Fault.BROKEN, Fault.UNREACHABLE):
                endpoint.unanswered += [fault.exchange][: _UNANSWERED - len(endpoint.unanswered)]
            self.exchanges.append(fault.exchange)
            fault.session = self._since_seed()
            raise
        endpoint.took(request, reply)
        endpoint.heard(request, reply)
        endpoint.answered = self._record(Exchange(number, request, reply, group=others), reply)
        return endpoint.answered

    async def send_again(self, request: Request) -> Exchange | None:
        """Send a request once more, however often its path hung; None if again no answer comes."""
        hangs = self.endpoint.hangs.pop(request.path, 0)
        try:
            return await self.send(request)
        except (ServerFault, NotSent):
            self.endpoint.hangs[request.path] = hangs
            return None

    def record(self, request: Request, reply: Reply) -> Exchange:
        """Record a request that was not sent over this channel, with its reply."""
        self.sent += 1
        reply = self.endpoint.held.shared(reply)
        return self._record(Exchange(self.sent, request, reply), reply)

    def _record(self, exchange: Exchange, reply: Reply) -> Exchange:
        self.exchanges.append(exchange)
        self._replies += len(reply.body)
        if self._replies > _REPLIES:
            self._lighten()
        return exchange

    def _lighten(self) -> None:
        """Cut the oldest replies to their beginning, until half of the bytes are left."""
        self._replies = sum(one.reply_bytes for one in self.exchanges)
        for at, one in enumerate(self.exchanges[:-1]):
            if self._replies <= _REPLIES // 2:
                return
            self.exchanges[at] = one.light()
            self._replies -= one.reply_bytes - self.exchanges[at].reply_bytes

    def _since_seed(self) -> tuple[Exchange, ...]:
        """The last exchanges, from a seed on; the last one alone if there was none."""
        seeds = (at for at, one in enumerate(self.exchanges) if one.request.path == SEED_SESSION)
        return tuple(self.exchanges[max(seeds, default=-1) :])

    def adopt_fault(self, fault: ServerFault) -> None:
        """Record a fault of another channel, with the session that it ended if nothing else is recorded here."""
        if not self.exchanges:
            self.exchanges += fault.session
        elif fault.exchange:
            self.adopt(fault.exchange)

    def adopt(self, exchange: Exchange) -> None:
        """Record an exchange of another channel that belongs to the reproduction, unless it is recorded already."""
        if exchange not in self.exchanges:
            self.sent += 1
            self.exchanges.append(replace(exchange, number=self.sent))

    def forget(self, exchange: Exchange) -> None:
        """Remove an exchange from the record: it proved harmless, and would only lengthen the reproduction."""
        self.exchanges.remove(exchange)

    def reply_to(self, request: Request) -> Coroutine[Any, Any, Reply]:
        """Send one request as it is, without recording it.

        Raises:
            ServerFault: no complete, valid HTTP reply came within the deadline.
        """
        return self.endpoint.carry(request, fresh=self._fresh, over=self._over)


@asynccontextmanager
async def apart(channel: Channel, deadline: float | None = None) -> AsyncIterator[Channel]:
    """A channel that shares this one's record, but has its own connections, and maybe deadline, until the block ends."""
    endpoint = channel.endpoint
    async with Transport(httpx.URL(endpoint.url), deadline=deadline or endpoint.timeout) as transport:
        yield Channel(endpoint, over=transport, record=channel)
