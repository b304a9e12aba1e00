"""What goes wrong with rollouts in real training, between a server of a gym and whoever asked it."""

import asyncio
import json
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from random import Random
from typing import Any, Literal, get_args

from gym_mocks.fault_values import check_fault
from gym_mocks.wire import HttpReply, HttpRequest
from gym_mocks.wire.app import Receive, Scope, Send, read_request, write_reply
from gym_mocks.wire.client import ASGIApp, call_app, whole
from gym_mocks.wire.messages import JSON

RolloutFaultKind = Literal["lost", "late", "dies", "status", "reward", "mask", "failure_class", "session"]
RUN = "/run"
# The fields of a reply that a fault replaces.
FIELDS = {"reward": "reward", "mask": "mask_sample", "failure_class": "_ng_failure_class"}
REMEMBERED = 100_000  # rows whose attempts are counted


@dataclass(frozen=True)
class RolloutFault:
    """Something that goes wrong with a rollout, or with a request to a resources server.

    Attributes:
        kind: what goes wrong. `lost`: the rollout is played, but the connection breaks before any reply. `late`: it waits
            first. `dies`: the agent dies in the middle of a rollout, and all its other requests break off too. `status`:
            an error is the reply. `reward`: the reward is replaced by `value`. `mask`: `mask_sample` is set.
            `failure_class`: `_ng_failure_class` is set to `value` (nemo-gym 0.5.0 and later). `session`: a resources
            server does not get the cookies that it was sent, as if it had forgotten the session.
        path: the request that it happens to: `/run` of an agent, or `/seed_session`, `/verify` or `/<tool>` of a resources
            server, whether a client or one of the gym's agents sends it.
        rate: its probability, drawn from the gym's seed for each attempt at each row, in whatever order they come.
        times: how often it happens at most; None for no limit.
        agent: the name of the agent, or resources server, that it happens to; None for any.
        seconds: how late the reply is, or how long before the agent dies.
        status: the HTTP status of an error.
        value: the reward, any JSON value or NaN, None for null; or the failure class.

    Raises:
        ValueError: a value with which it could never happen.
    """

    kind: RolloutFaultKind
    rate: float = 1.0
    times: int | None = None
    agent: str | None = None
    seconds: float = 0.0
    status: int = 500
    value: Any = None
    path: str = RUN

    def __post_init__(self) -> None:
        check_fault(self, get_args(RolloutFaultKind))
        where = {"session": self.path != RUN, **dict.fromkeys(FIELDS, self.path in {RUN, "/verify"})}
        if not (self.path.startswith("/") and where.get(self.kind, True)):
            raise ValueError(f"RolloutFault: nothing of kind {self.kind!r} can happen at path={self.path!r}")


class RolloutFaults:
    """The faults of a gym's rollouts.

    Args:
        seed: for their random choices.
    """

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed
        self._left: list[tuple[RolloutFault, int | None]] = []
        self._attempts: Counter[str] = Counter()

    def add(self, fault: RolloutFault) -> None:
        """Let a fault happen from now on."""
        self._left.append((fault, fault.times))

    def clear(self) -> None:
        """Remove all faults."""
        self._left.clear()

    @property
    def of_resources(self) -> bool:
        """Whether any may happen to what a resources server is asked."""
        return any(fault.path != RUN for fault, _ in self._left)

    def at(self, server: str, path: str, *, agents: bool) -> bool:
        """Whether any may happen to what is asked of a server: an agent's rollouts, or a resources server's requests."""
        return any(_met(fault, server, path, agents=agents) for fault, _ in self._left)

    def strike(self, server: str, row: bytes, path: str = RUN, *, agents: bool = True) -> list[RolloutFault]:
        """The faults that happen to a rollout, or to a request; each counts as having happened."""
        if len(self._attempts) > REMEMBERED:
            self._attempts.clear()
        key = blake2b(row, digest_size=8).hexdigest()
        self._attempts[key] += 1
        struck: list[RolloutFault] = []
        for index, (fault, left) in enumerate(self._left):
            if left == 0 or not _met(fault, server, path, agents=agents):
                continue
            draw = Random(f"{self.seed} {index} {key} {self._attempts[key]}").random()
            if draw < fault.rate:
                self._left[index] = (fault, None if left is None else left - 1)
                struck.append(fault)
        return struck


def _met(fault: RolloutFault, server: str, path: str, *, agents: bool) -> bool:
    there = fault.agent in {None, server} and (fault.path == RUN) is agents
    return there and path.rstrip("/").endswith(fault.path)


class FaultyServer:
    """The application of an agent, or of a resources server, with a gym's faults before it.

    Args:
        name: the server's.
        app: the application.
        faults: the gym's.
        drop: breaks the connection that a request came by.
        die: ends the server.
        agents: whether it is an agent.
    """

    def __init__(
        self,
        name: str,
        app: ASGIApp,
        faults: RolloutFaults,
        drop: Callable[[Scope], None],
        die: Callable[[str], Awaitable[None]],
        *,
        agents: bool,
    ) -> None:
        self.name = name
        self.app = app
        self.faults = faults
        self.drop = drop
        self.die = die
        self.agents = agents

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one ASGI connection."""
        asked = scope["type"] == "http" and scope["method"] == "POST"
        if not (asked and self.faults.at(self.name, scope["path"], agents=self.agents)):
            await self.app(scope, receive, send)
            return
        request = await read_request(scope, receive)
        if request is None:
            await write_reply(HttpReply.json({"detail": "Body too large"}, 413), send)
            return
        struck = self.faults.strike(self.name, request.body, scope["path"], agents=self.agents)
        kinds = {fault.kind for fault in struck}
        if "dies" in kinds:
            await self._dies(request, next(fault.seconds for fault in struck if fault.kind == "dies"))
            self.drop(scope)
            return
        await asyncio.sleep(sum(fault.seconds for fault in struck if fault.kind == "late"))
        if "session" in kinds:
            kept = {name: value for name, value in request.headers.items() if name != "cookie"}
            request = replace(request, headers=kept)
        reply = changed(await whole(await call_app(self.app, request)), struck)
        if "lost" in kinds:
            self.drop(scope)
            return
        await write_reply(reply, send)

    async def _dies(self, request: HttpRequest, seconds: float) -> None:
        """Die while the rollout is played."""
        played = asyncio.ensure_future(call_app(self.app, request))
        await asyncio.sleep(seconds)
        played.cancel()
        await self.die(self.name)


def changed(reply: HttpReply, faults: Sequence[RolloutFault]) -> HttpReply:
    """A rollout's reply after what the faults do to it."""
    for fault in faults:
        if fault.kind == "status":
            return HttpReply.json("a fault on purpose", fault.status)
    new = {FIELDS[fault.kind]: fault.value for fault in faults if fault.kind in FIELDS}
    if not new or not isinstance(reply.body, bytes) or reply.status >= 400:  # noqa: PLR2004 - an error has no fields
        return reply
    if "mask_sample" in new:
        new["mask_sample"] = True
    if "_ng_failure_class" in new:
        new["_ng_failure_class"] = new["_ng_failure_class"] or "agent_run_error"
    kept = tuple((name, value) for name, value in reply.headers if name != "content-type")
    body = {**json.loads(reply.body), **new}
    return HttpReply(reply.status, json.dumps(body, separators=(",", ":")).encode(), (("content-type", JSON), *kept))
