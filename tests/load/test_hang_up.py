"""Requests whose client is gone: a handler that is cancelled with half of its work done is told, and one that is not passes."""

import asyncio
from typing import Any

import pytest

from gym_conformance.checks.hang_up import wire_hang_up
from gym_conformance.findings import Finding, Verdict
from gym_conformance.options import Options
from gym_conformance.plugin.target_run import Run
from gym_conformance.trajectories.profiles import PROFILES
from gym_mocks.reference import ReferenceServer
from gym_mocks.serving import serve
from gym_mocks.wire.app import read_request, write_reply
from tests.twins.twin import dataset


class Cancels(ReferenceServer):
    """Cancels the handler of a request whose client is gone, as the middleware of nemo-gym 0.7.0 does."""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http" or (request := await read_request(scope, receive)) is None:
            await super().__call__(scope, receive, send)
            return
        answering = asyncio.ensure_future(self.answer(request))
        gone = asyncio.ensure_future(receive())
        await asyncio.wait({answering, gone}, return_when=asyncio.FIRST_COMPLETED)
        gone.cancel()
        if answering.done():
            await write_reply(answering.result(), send)
        else:
            answering.cancel()


class HalfApplied(Cancels):
    """A move takes what it moves, waits for something, and then has it arrive."""

    async def call(self, session_id: str, tool: Any, arguments: Any) -> Any:
        session = self.sessions.get(session_id)
        if session is not None:
            held = dict(session.state.pieces)
            session.state.pieces.clear()
            await asyncio.sleep(0.03)
            session.state.pieces.update(held)
        return await super().call(session_id, tool, arguments)


class KeepsTheLock(Cancels):
    """What is cancelled while it waits never gives the lock back."""

    def __init__(self) -> None:
        super().__init__()
        self.lock = asyncio.Lock()

    async def call(self, *rest: Any) -> Any:
        await self.lock.acquire()
        await asyncio.sleep(0.03)
        said = await super().call(*rest)
        self.lock.release()
        return said


class Careful(Cancels):
    """Waits first, and then acts in one go."""

    def __init__(self) -> None:
        super().__init__()
        self.lock = asyncio.Lock()

    async def call(self, *rest: Any) -> Any:
        async with self.lock:
            await asyncio.sleep(0.01)
            return await super().call(*rest)


def _judge(server: ReferenceServer) -> Finding:
    with serve(server) as url:
        run = Run(url, Options(url=url, timeout=3.0, profile=PROFILES["smoke"]), dataset())
        try:
            [finding] = run.judge(wire_hang_up)
        finally:
            run.close()
    return finding


@pytest.mark.parametrize(
    ("server", "actual"),
    [
        (HalfApplied, "where the client hung up on it"),
        pytest.param(KeepsTheLock, "no complete answer", marks=pytest.mark.load),
    ],
)
def test_what_a_cancelled_handler_leaves_is_told(server: type[ReferenceServer], actual: str) -> None:
    finding = _judge(server())
    assert finding.verdict is Verdict.FAIL, finding
    assert actual in finding.actual


@pytest.mark.parametrize("server", [ReferenceServer, pytest.param(Careful, marks=pytest.mark.load)])
def test_who_acts_wholly_or_not_at_all_passes(server: type[ReferenceServer]) -> None:
    finding = _judge(server())
    assert finding.verdict is Verdict.PASS, finding
    assert "hung up" in finding.reason
