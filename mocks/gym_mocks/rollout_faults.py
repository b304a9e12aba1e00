"""What goes wrong with rollouts in real training, between an agent and the trainer that asked it."""

import asyncio
import json
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from random import Random
from typing import Any, Literal, get_args

from gym_mocks.fault_values import check_fault
from gym_mocks.wire import HttpReply, HttpRequest
from gym_mocks.wire.app import Receive, Scope, Send, read_request, write_reply
from gym_mocks.wire.client import ASGIApp, call_app, whole
from gym_mocks.wire.messages import JSON

RolloutFaultKind = Literal["lost", "late", "dies", "status", "reward", "mask", "failure_class"]
REMEMBERED = 100_000  # rows whose attempts are counted


@dataclass(frozen=True)
class RolloutFault:
    """Something that goes wrong with a rollout.

    Attributes:
        kind: what goes wrong: of a rollout that is `lost` the connection breaks before any reply, though it was played;
            one that is `late` waits first; the agent `dies` in the middle of one, and whatever else it was asked breaks
            off too; `status` replies with an error instead; `reward` replaces the reward; `mask` sets `mask_sample`, and
            `failure_class` sets `_ng_failure_class` (nemo-gym 0.5.0 and later), to `value`.
        rate: with this probability, drawn for each attempt at each row from the gym's seed, in whatever order they come.
        times: at most so often.
        agent: only with this agent.
        seconds: how late, or how long before it dies.
        status: the HTTP status.
        value: of the reward, any JSON value or NaN, None for null; or of the failure class.

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

    def __post_init__(self) -> None:
        check_fault(self, get_args(RolloutFaultKind))


class RolloutFaults:
    """The faults of a gym's rollouts.

    Args:
        seed: of their choices.
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

    def __bool__(self) -> bool:
        return bool(self._left)

    def strike(self, agent: str, row: bytes) -> list[RolloutFault]:
        """The faults that happen to a rollout; each counts as having happened."""
        if len(self._attempts) > REMEMBERED:
            self._attempts.clear()
        key = blake2b(row, digest_size=8).hexdigest()
        self._attempts[key] += 1
        struck: list[RolloutFault] = []
        for index, (fault, left) in enumerate(self._left):
            if fault.agent not in {None, agent} or left == 0:
                continue
            draw = Random(f"{self.seed} {index} {key} {self._attempts[key]}").random()  # noqa: S311 - no secret
            if draw < fault.rate:
                self._left[index] = (fault, None if left is None else left - 1)
                struck.append(fault)
        return struck


class FaultyAgent:
    """An agent's application with a gym's rollout faults before it.

    Args:
        name: the agent's.
        app: the agent.
        faults: the gym's.
        drop: breaks the connection that a request came by.
        die: ends the agent's server.
    """

    def __init__(
        self,
        name: str,
        app: ASGIApp,
        faults: RolloutFaults,
        drop: Callable[[Scope], None],
        die: Callable[[str], Awaitable[None]],
    ) -> None:
        self.name = name
        self.app = app
        self.faults = faults
        self.drop = drop
        self.die = die

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one ASGI connection."""
        run = scope["type"] == "http" and scope["method"] == "POST" and scope["path"].rstrip("/").endswith("/run")
        if not (run and self.faults):
            await self.app(scope, receive, send)
            return
        request = await read_request(scope, receive)
        struck = [] if request is None else self.faults.strike(self.name, request.body)
        for fault in struck:
            if fault.kind == "dies":
                await self._dies(request, fault.seconds)
                return
        if request is None:
            reply = HttpReply.json({"detail": "Body too large"}, 413)
        else:
            await asyncio.sleep(sum(fault.seconds for fault in struck if fault.kind == "late"))
            reply = changed(await whole(await call_app(self.app, request)), struck)
        if any(fault.kind == "lost" for fault in struck):
            self.drop(scope)
            return
        await write_reply(reply, send)

    async def _dies(self, request: HttpRequest | None, seconds: float) -> None:
        """Die while the rollout is played."""
        played = asyncio.ensure_future(call_app(self.app, request)) if request else None
        await asyncio.sleep(seconds)
        if played is not None:
            played.cancel()
        await self.die(self.name)


def changed(reply: HttpReply, faults: Sequence[RolloutFault]) -> HttpReply:
    """A rollout's reply after what the faults do to it."""
    for fault in faults:
        if fault.kind == "status":
            return HttpReply.json("a fault on purpose", fault.status)
    fields = {"reward": "reward", "mask": "mask_sample", "failure_class": "_ng_failure_class"}
    new = {fields[fault.kind]: fault.value for fault in faults if fault.kind in fields}
    if not new or not isinstance(reply.body, bytes) or reply.status >= 400:  # noqa: PLR2004 - an error has no fields
        return reply
    if "mask_sample" in new:
        new["mask_sample"] = True
    if "_ng_failure_class" in new:
        new["_ng_failure_class"] = new["_ng_failure_class"] or "agent_run_error"
    kept = tuple((name, value) for name, value in reply.headers if name != "content-type")
    body = {**json.loads(reply.body), **new}
    return HttpReply(reply.status, _loose_json(body), (("content-type", JSON), *kept))


def _loose_json(value: Any) -> bytes:
    """JSON that may hold NaN, as Python's own writer and reader have it."""
    return json.dumps(value, separators=(",", ":")).encode()
