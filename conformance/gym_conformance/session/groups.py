"""A verify that scores the rollouts of a prompt together: how many it waits for, and how to send one of them.

Such servers compare the rollouts of a group (`genrm_compare` in nemo-gym waits for 16), so that a single one hangs. The
group size is in their config; we learn it from the first verify that hangs, or that is refused because it lacks a
rollout number (0.7.0), unless others were scored alone before: dozens more of what hangs would take the threads that a
server has. From then on each verify is sent as the first rollout of a new group, with its own task number.
The other members are copies of the first response that was scored for this prompt, so that rewards, which are relative
to the group, can be compared with each other.
"""

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any, Final

from gym_conformance.contract.endpoints import ROLLOUT_INDEX, TASK_INDEX, VERIFY
from gym_conformance.contract.statuses import is_refusal, is_success
from gym_conformance.session.exchange import Reply, Request

#: Rollouts of one prompt to try, and seconds between them: usual groups have 4 to 16, and a server may have 40 threads.
_MOST: Final = 32
_GAP: Final = 0.1

#: The most seconds between the replies of one group, for a single rollout's reply, and for a whole group's replies.
_MOMENT: Final = 0.5
_ALONE: Final = 2.0
_WHOLE: Final = 10.0

#: Our first task number, above those in data sets.
_FIRST_TASK: Final = 900_000_000

#: How many prompts' reference responses to keep.
_PROMPTS: Final = 500

#: Rollouts that were scored alone, after which none is taken to have waited for others.
_SCORED_ALONE: Final = 2

#: Sends one request as it is; raises `ServerFault`.
Send = Callable[[Request], Awaitable[Reply]]


@dataclass
class Groups:
    """How many rollouts of a prompt a server scores together; `size` is 1 if it scores each alone."""

    size: int = 1
    _learned: bool = False
    _scored_alone: int = 0
    _tasks: "count[int]" = field(default_factory=lambda: count(_FIRST_TASK))
    _yardsticks: dict[str, Any] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        self._one = asyncio.Lock()  # one group at a time: some servers identify a group by its prompt alone

    def concern(self, request: Request) -> bool:
        """Whether the request asks for a rollout to be scored, and so may have to be part of a group."""
        return request.path == VERIFY and request.method == "POST" and _body(request) is not None

    def asked_for(self, request: Request, reply: Reply) -> bool:
        """Whether a verify was refused because its rollout has no number."""
        return (
            is_refusal(reply.status)
            and ROLLOUT_INDEX in reply.text
            and ROLLOUT_INDEX.encode() not in (request.body or b"")
        )

    def note(self, request: Request, reply: Reply) -> None:
        """Note a reply that came while nothing else was in flight; a first rollout may still have completed a group."""
        self._scored_alone += request.path == VERIFY and is_success(reply.status)
        self._learned = self._learned or self._scored_alone == _SCORED_ALONE

    async def learn(self, request: Request, send: Send, in_flight: int, timeout: float) -> bool:  # noqa: ASYNC109 - of each
        """Learn the group size, once, from a verify that is not scored alone; returns whether it is more than one."""
        async with self._one:
            if not self._learned:
                self._learned = True
                self.size = await _together(
                    lambda task, number: send(_member(request, task, number)), self._tasks, in_flight, timeout
                )
            return self.size > 1

    async def send(self, rollout: Request, others: tuple[Request, ...], send: Send) -> Reply:
        """Send a rollout with the rest of its group; returns the reply to the rollout.

        Raises:
            ServerFault: it was not answered.
        """
        async with self._one:
            under_way = [asyncio.ensure_future(send(member)) for member in (rollout, *others)]
            try:
                reply = await under_way[0]
                await asyncio.wait(under_way[1:], timeout=_MOMENT)
                if is_success(reply.status):
                    self._measured(rollout)
                elif any(not one.done() for one in under_way) and (yardstick := self._yardsticks.get(_prompt(rollout))):
                    # replaces the rollout, which was refused: the server would keep the others for the next group
                    under_way.append(asyncio.ensure_future(send(_with_response(rollout, yardstick))))
                    await asyncio.wait(under_way, timeout=_ALONE)
            finally:
                await _cancelled(under_way)
        return reply

    def members(self, request: Request) -> tuple[Request, ...]:
        """A complete, new group: the rollout, then the others."""
        task = next(self._tasks)
        yardstick = self._yardsticks.get(_prompt(request))
        others = _with_response(request, yardstick) if yardstick else request
        return (_member(request, task, 0), *(_member(others, task, number) for number in range(1, self.size)))

    def _measured(self, request: Request) -> None:
        body = _body(request)
        if body is not None and len(self._yardsticks) < _PROMPTS:
            self._yardsticks.setdefault(_prompt(request), body.get("response"))


async def _together(
    send: Callable[[int, int], Awaitable[Reply]],
    tasks: "count[int]",
    in_flight: int,
    timeout: float,  # noqa: ASYNC109 - of each
) -> int:
    """The group size; 1 if a single rollout is scored, or if others make no difference."""
    whole = min(_WHOLE, timeout / 2)
    if not await _candidates(send, tasks, in_flight, whole):  # this completes a group that earlier requests began
        return 1
    for size in await _candidates(send, tasks, in_flight, whole):
        task = next(tasks)
        sent = [asyncio.ensure_future(send(task, 0))]
        try:
            await asyncio.wait(sent, timeout=min(_ALONE, timeout / 4))
            if _scored(sent):
                return 1
            sent += [asyncio.ensure_future(send(task, number)) for number in range(1, size)]
            await asyncio.wait(sent, timeout=whole)
            if _scored(sent) == size:
                return size
        finally:
            await _cancelled(sent)
    return 1


async def _candidates(
    send: Callable[[int, int], Awaitable[Reply]], tasks: "count[int]", in_flight: int, whole: float
) -> list[int]:
    """Possible group sizes, likeliest first: how many had been sent, one after another, when some were scored.

    Scoring takes up to `whole` seconds, and rollouts that come too late for a group may spoil it.
    """
    task = next(tasks)
    sent: list[asyncio.Future[Reply]] = []
    try:
        while len(sent) < min(_MOST, in_flight) and not _scored(sent):
            sent.append(asyncio.ensure_future(send(task, len(sent))))
            await _wait_for_one(sent, _GAP)
        end = time.monotonic() + whole
        while not _scored(sent) and (left := end - time.monotonic()) > 0 and not all(one.done() for one in sent):
            await _wait_for_one(sent, left)
        await asyncio.wait(sent, timeout=_MOMENT)
        scored = _scored(sent)
    finally:
        await _cancelled(sent)
    sizes = range(scored, len(sent) + 1) if scored else ()
    return sorted((size for size in sizes if size > 1), key=lambda size: (size.bit_count() > 1, size))


async def _wait_for_one(sent: "Iterable[asyncio.Future[Reply]]", seconds: float) -> None:
    """Wait until one more is done, for at most `seconds`."""
    if open_ones := [one for one in sent if not one.done()]:
        await asyncio.wait(open_ones, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    else:
        await asyncio.sleep(seconds)


def _scored(sent: "Iterable[asyncio.Future[Reply]]") -> int:
    return sum(
        one.done() and not one.cancelled() and one.exception() is None and is_success(one.result().status)
        for one in sent
    )


async def _cancelled(futures: "Iterable[asyncio.Future[Reply]]") -> None:
    """Cancel those that are still running; faults of members whose replies nobody needs are dropped."""
    for one in futures:
        one.cancel()
    await asyncio.gather(*futures, return_exceptions=True)


def _body(request: Request) -> Mapping[str, Any] | None:
    try:
        body = json.loads(request.body or b"null")
    except (ValueError, RecursionError):
        return None
    return body if isinstance(body, dict) and "response" in body else None


def _prompt(request: Request) -> str:
    return json.dumps((_body(request) or {}).get("responses_create_params"), sort_keys=True)


def _member(request: Request, task: int, number: int) -> Request:
    """The rollout with this number, which comes last in the body, where a reproduction increments it."""
    body = {key: value for key, value in (_body(request) or {}).items() if key not in (TASK_INDEX, ROLLOUT_INDEX)}
    return _with_body(request, {**body, TASK_INDEX: task, ROLLOUT_INDEX: number})


def _with_response(request: Request, response: Any) -> Request:
    return _with_body(request, {**(_body(request) or {}), "response": response})


def _with_body(request: Request, body: Mapping[str, Any]) -> Request:
    return replace(request, row=b"", written=json.dumps(body, separators=(",", ":")).encode(), twin=None)
