"""Requests on lines that are not sound: what a server makes of them that no client meant is told, all else passes."""

import asyncio
from typing import Any

import pytest

from gym_conformance.checks.server.wire import wire_disturbed, wire_hang_up
from gym_conformance.findings import Finding, Verdict
from gym_conformance.trajectories.profiles import PROFILES
from gym_conformance.trials.check import Check
from gym_mocks.reference import ReferenceServer
from gym_mocks.resources import ResourcesServer, Score, TaskRow
from gym_mocks.wire.app import read_request, write_reply
from tests.twins.judging import running
from tests.twins.twin import Json


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


class RepairsWhenAsked(Cancels):
    """What was cancelled is mended by the same call, and by nothing else."""

    def __init__(self) -> None:
        super().__init__()
        self.taken: dict[str, dict[Any, Any]] = {}

    async def call(self, session_id: str, tool: Any, arguments: Any) -> Any:
        session = self.sessions.get(session_id)
        if session is not None:
            pieces, key = session.state.pieces, f"{session_id} {arguments}"
            pieces.update(self.taken.pop(key, {}))
            self.taken[key] = dict(pieces)
            pieces.clear()
            await asyncio.sleep(0.03)
            pieces.update(self.taken.pop(key))
        return await super().call(session_id, tool, arguments)


class ScoresHalf(Cancels):
    """A verify takes what it scores out of the session, and puts it back."""

    async def score(self, session_id: str, row: TaskRow, response: Json) -> Score:
        session = self.sessions.get(session_id)
        held = dict(session.state.pieces) if session else {}
        score = await super().score(session_id, row, response)
        if session is not None:
            session.state.pieces.clear()
            await asyncio.sleep(0.03)
            session.state.pieces.update(held)
        return score


class ForgetsWhenScored(ReferenceServer):
    """A verify whose reply was lost is sent again, and there is nothing any more to score."""

    async def score(self, session_id: str, row: TaskRow, response: Json) -> Score:
        score = await super().score(session_id, row, response)
        self.sessions.drop(session_id)
        return score


class LeavesItToOthers(Cancels):
    """What was cancelled is done in whichever session comes next, and in all after that."""

    left = 0

    async def call(self, session_id: str, tool: Any, arguments: Any) -> Any:
        try:
            await asyncio.sleep(0.02)
        except asyncio.CancelledError:
            self.left = 7
            raise
        said = await super().call(session_id, tool, arguments)
        return {**said, "quantity": said["quantity"] + self.left} if "quantity" in said else said


class ScoresOnce(ReferenceServer):
    """Whoever verifies while the same session is being scored earns nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.scoring: set[str] = set()

    async def score(self, session_id: str, row: TaskRow, response: Json) -> Score:
        if session_id in self.scoring:
            return Score(0.0)
        self.scoring.add(session_id)
        await asyncio.sleep(0.03)
        self.scoring.discard(session_id)
        return await super().score(session_id, row, response)


class ReadsTheFirstPart(ReferenceServer):
    """What has not come yet of a body when its first part is read is made up."""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        async def whole() -> Any:
            message = await receive()
            if message.get("more_body"):
                message = {"type": "http.request", "body": b'{"item": "saw", "quantity": 1, "place": "van"}'}
            return message

        await super().__call__(scope, receive if scope["type"] != "http" else whole, send)


class RemembersErrors(ReferenceServer):
    """Whoever made an error has a new session on the same connection."""

    def __init__(self) -> None:
        super().__init__()
        self.erred: set[tuple[str, int]] = set()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        async def noted(message: Any) -> None:
            if message.get("status", 200) == 404:
                self.erred.add(scope["client"])
            await send(message)

        if scope.get("client") in self.erred:
            scope["headers"] = [(name, value) for name, value in scope["headers"] if name != b"cookie"]
        await super().__call__(scope, receive, noted)


def _judge(server: ResourcesServer, check: Check = wire_hang_up) -> list[Finding]:
    with running(server, timeout=3.0, profile=PROFILES["smoke"], sockets=True) as run:
        return list(run.judge(check))


@pytest.mark.parametrize(
    ("server", "actual"),
    [
        (HalfApplied, "of the session: the client hung up on it"),  # in a call; which one hangs on the moment
        pytest.param(KeepsTheLock, "no complete answer", marks=pytest.mark.load),
        pytest.param(RepairsWhenAsked, "hung up on it and went on", marks=pytest.mark.load),
        pytest.param(ScoresHalf, "hung up on it and sent it again", marks=pytest.mark.load),
        pytest.param(ForgetsWhenScored, "hung up on it and sent it again", marks=pytest.mark.load),
        pytest.param(LeavesItToOthers, "in each new session", marks=pytest.mark.load),
    ],
)
def test_what_a_cancelled_handler_leaves_is_told(server: type[ReferenceServer], actual: str) -> None:
    [finding] = _judge(server())
    assert finding.verdict is Verdict.FAIL, finding
    assert actual in finding.actual


@pytest.mark.load
@pytest.mark.parametrize("server", [ReferenceServer, Careful])
def test_who_acts_wholly_or_not_at_all_passes(server: type[ReferenceServer]) -> None:
    [finding] = _judge(server())
    assert finding.verdict is Verdict.PASS, finding
    assert "hung up" in finding.reason


@pytest.mark.load
def test_calls_that_are_only_graded_are_not_taken_for_requests() -> None:
    def scored(row: TaskRow, response: Json) -> float:  # noqa: ARG001 - the same for all
        return 0.5

    [finding] = _judge(ResourcesServer("quiz", verify=scored))
    assert finding.verdict is Verdict.PASS, finding


@pytest.mark.parametrize(
    ("server", "subject"),
    [
        (ReferenceServer, ""),
        pytest.param(RemembersErrors, "a connection that met an error before", marks=pytest.mark.load),
        pytest.param(ScoresOnce, "duplicates that arrive together", marks=pytest.mark.load),
        pytest.param(ReadsTheFirstPart, "a slow line", marks=pytest.mark.load),
        pytest.param(Careful, "", marks=pytest.mark.load),
    ],
)
def test_what_a_line_that_is_not_sound_changes_is_told(server: type[ReferenceServer], subject: str) -> None:
    findings = _judge(server(), wire_disturbed)
    assert [one.subject for one in findings if one.verdict is Verdict.FAIL] == [subject] * bool(subject), findings
    assert {one.verdict for one in findings if one.subject != subject} == {Verdict.PASS}, findings
