"""One process's share of a run: its event loop, its endpoint, and the judge."""

import asyncio
import os
import ssl
import time
from collections.abc import Coroutine, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Self, TypeVar

import httpx

from gym_conformance.agents import executing_agents
from gym_conformance.contract.openapi import ServerKind
from gym_conformance.dataset import Dataset
from gym_conformance.drift.lock import Lock
from gym_conformance.findings import Finding
from gym_conformance.gym_under_test import recognise
from gym_conformance.judge import Judge
from gym_conformance.options import Options
from gym_conformance.plugin.progress import Progress
from gym_conformance.printable import Refusal, counted
from gym_conformance.redaction import NO_SECRETS, Secrets
from gym_conformance.session.backoff import Backoff
from gym_conformance.session.channel import Channel, Endpoint, Sender
from gym_conformance.session.exchange import Request
from gym_conformance.session.latencies import Latencies
from gym_conformance.session.process import census
from gym_conformance.session.server_fault import Fault, NotSent, ServerFault
from gym_conformance.session.transport import Transport
from gym_conformance.trajectories.in_flight import HERE, Drivers
from gym_conformance.trajectories.trajectory import Schedule
from gym_conformance.trials.bench import Bench, Settings
from gym_conformance.trials.check import Check
from gym_conformance.trials.launched import NOT_LAUNCHED, Launched

T = TypeVar("T")

#: Characters to show of each line of statistics.
_ACCOUNT = 1_000

#: Seconds within which a running server accepts a connection.
_CONNECT = 5.0


class Unreachable(Refusal):
    """No server that can be judged answers at the URL; the message says what is wrong, where, and how to fix it."""


@dataclass(frozen=True)
class Effort:
    """The cost of the run in this process: requests sent, and seconds spent in them."""

    requests: int
    seconds: float


@dataclass
class Run:
    """Judges one target in one event loop, from the first check until `close`; also a context manager."""

    url: str
    options: Options
    dataset: Dataset
    lock: Lock | None = None
    launched: Launched = NOT_LAUNCHED
    secrets: Secrets = NO_SECRETS
    first_look: bool = True
    upcoming: Sequence[Check] = ()
    drivers: Drivers = HERE
    progress: Progress | None = None
    sender: Sender | None = None
    _runner: asyncio.Runner = field(default_factory=asyncio.Runner)
    _judge: Judge | None = None

    def judge(self, check: Check, schedule: Schedule | None = None) -> list[Finding]:
        """Run one check, or replay one schedule of it; the first call also recognises the kind of server."""
        return self._within(self._run(check, schedule))

    def target(self) -> dict[str, Any]:
        """The report's `target`, as far as it is known."""
        known: dict[str, Any] = {"url": self.url, "rows": self.dataset.read}
        if self._judge:
            gym = self._judge.gym
            offered = len(self._judge.bench.learned.offer.tools)
            over_mcp = f"; {counted(offered, 'tool')} over MCP" if offered else ""
            known |= {"kind": gym.kind.value, "evidence": gym.endpoint.secrets.show(gym.evidence + over_mcp)}
            known |= {} if gym.kind is ServerKind.ENVIRONMENT else {"contract": gym.contracts}
        return known

    def statistics(self, check: Check) -> str:
        """Hypothesis's statistics of a property's search, '' if there was none; it may quote replies."""
        if self._judge is None:
            return ""
        show = self._judge.gym.endpoint.secrets.show
        account = self._judge.bench.tried.statistics.get(check.id, "")
        return "\n".join(show(line, _ACCOUNT) for line in account.split("\n"))

    def effort(self) -> Effort:
        """What was spent so far."""
        endpoint = self._judge.gym.endpoint if self._judge else None
        return Effort(endpoint.requests, endpoint.seconds) if endpoint else Effort(0, 0.0)

    def latencies(self) -> list[list[Any]]:
        """The latencies of good replies since the last call, as JSON (`session.latencies`); a path may quote a header."""
        if self._judge is None:
            return []
        endpoint = self._judge.gym.endpoint
        taken, endpoint.latencies = endpoint.latencies, Latencies()
        return [[endpoint.secrets.show(path), *samples] for path, *samples in taken.as_json()]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections and the event loop."""
        if self._judge:
            self._within(self._judge.gym.endpoint.transport.aclose())
        if self.progress:
            self.progress.close()
        self._runner.close()

    def tools(self) -> Lock:
        """The current tools of rows and server.

        Raises:
            Unreachable: no resources server answers, so that its tools are unknown.
        """
        gym = self._within(self._ready()).gym
        if gym.kind in (ServerKind.OTHER, ServerKind.ENVIRONMENT):
            raise Unreachable(f"no resources server: {gym.evidence}")
        return gym.tools_now

    async def _run(self, check: Check, schedule: Schedule | None) -> list[Finding]:
        judge = await self._ready(schedule)
        work = judge.replay(check, schedule) if schedule else judge.judge(check)
        if self.progress is None:
            return await work
        return await self.progress.during(
            check.id, lambda: (judge.bench.tried.trials, judge.gym.endpoint.requests), work
        )

    async def _ready(self, schedule: Schedule | None = None) -> Judge:
        """The judge; the first call recognises the kind of server, without any rows by those of the schedule."""
        if self._judge is None:
            endpoint = make_endpoint(self.url, self.options, self.secrets, self.sender)
            data = self.dataset
            replayed = schedule.trajectories if schedule else ()
            rows = data.rows or tuple(dict.fromkeys(each.row for each in replayed))
            known = {"declared": data.definitions, "agents": executing_agents(rows), "lock": self.lock}
            gym = await recognise(endpoint, rows, data.rollouts, self.options.contract, **known)
            given = self.options
            plan = given.row_plan(data.files)
            settings = Settings(given.search, given.pid, self.first_look, given.load, given.oracle, plan, self.drivers)
            self._judge = Judge(Bench(gym, settings, self.launched), self.upcoming)
        return self._judge

    def _within(self, work: Coroutine[Any, Any, T]) -> T:
        return self._runner.run(work)


def make_endpoint(url: str, options: Options, secrets: Secrets = NO_SECRETS, sender: Sender | None = None) -> Endpoint:
    """The target's endpoint, to be made and used within one event loop.

    Args:
        url: where the target answers.
        options: what the user chose.
        secrets: those of a launched server.
        sender: what sends its requests, if not a transport of its own.
    """
    return Endpoint(
        url,
        sender or Transport(httpx.URL(url), deadline=options.timeout),
        options.timeout,
        options.headers,
        options.in_flight,
        until=time.monotonic() + options.bound,
        bound=options.bound,
        known=secrets_of(options) | secrets,
    )


def secrets_of(options: Options) -> Secrets:
    """What is known to be secret before the server says anything: headers, settings, and our own environment."""
    settings = [(key, value) for key, _, value in (setting.partition("=") for setting in options.settings)]
    return Secrets.of_headers(options.headers) | Secrets.of_named([*os.environ.items(), *settings])


def ensure_reachable(url: str, options: Options, deadline: float = _CONNECT) -> None:
    """Request the root once, so that a wrong URL becomes one clear line instead of a finding of every check.

    `deadline` is in seconds; only a server that we launched must also answer by then.

    Raises:
        Unreachable: no server accepts the connection, TLS fails, or the server expects it.
    """
    launched = deadline > _CONNECT
    seconds = deadline if launched else min(options.timeout, _CONNECT)
    try:
        status: int | None = asyncio.run(_ask(url, options, seconds))
    except NotSent as missing:
        raise Unreachable(f"--gym-url {url}: it needs {missing}") from None
    except OSError as error:  # in the making of the transport, which reads the authorities to trust
        what = error.reason if isinstance(error, ssl.SSLError) else error.strerror
        raise Unreachable(f"--gym-url {url}: {what}; fix SSL_CERT_FILE, or SSL_CERT_DIR") from None
    except ServerFault as fault:
        if launched:
            raise Unreachable(f"it is launched, but {fault.fault}: {fault.detail}") from None
        if fault.fault is Fault.UNREACHABLE:
            raise Unreachable(f"--gym-url {url}: {fault.detail}; start the server, or fix the URL") from None
        if fault.fault is Fault.TLS:
            fix = "set SSL_CERT_FILE to the authority that signed its certificate, or give http if it does not use TLS"
            raise Unreachable(f"--gym-url {url}: {fault.detail}; {fix}") from None
        status = 0 if fault.fault in (Fault.BROKEN, Fault.INVALID) else None
    if status in (0, HTTPStatus.BAD_REQUEST) and not launched and _answers_over_tls(url, options, seconds):
        raise Unreachable(f"--gym-url {url}: it answers over TLS only; give {_over_tls(url)}")


def ensure_process(pid: int | None) -> None:
    """Ensure that the process that is to be measured is there, if one is named.

    Raises:
        Unreachable: it is not, or may not be inspected.
    """
    try:
        if pid is not None:
            census(pid)
    except ProcessLookupError as error:
        raise Unreachable(f"--gym-pid {pid}: {error}; give the process id of the server") from None


async def _ask(url: str, options: Options, seconds: float, context: ssl.SSLContext | None = None) -> int:
    """The status of the root."""
    async with Transport(httpx.URL(url), deadline=seconds, ssl_context=context) as transport:
        # A full server is reached, too: nothing waits for room yet.
        endpoint = Endpoint(url, transport, max(seconds, options.timeout), options.headers, backoff=Backoff(0.0))
        reply = (await Channel(endpoint).send(Request("GET", "/"))).reply
        return reply.status if reply else 0


def _over_tls(url: str) -> str:
    parts = httpx.URL(url)
    return str(parts.copy_with(scheme="https", port=parts.port or 80))


def _answers_over_tls(url: str, options: Options, seconds: float) -> bool:
    """Whether a server that gives a plain request no good answer has one for TLS: some close, some say 400."""
    if httpx.URL(url).scheme != "http":
        return False
    anyone = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    anyone.check_hostname, anyone.verify_mode = False, ssl.CERT_NONE
    with suppress(ServerFault, NotSent):
        asyncio.run(_ask(_over_tls(url), options, seconds, anyone))
        return True
    return False
