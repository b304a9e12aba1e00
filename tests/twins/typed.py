"""Twins with typed sessions that are kept badly."""

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from gym_mocks.reference import FunctionTool, ReferenceServer, StoredSession
from gym_mocks.resources import Score, TaskRow, TypedSessions
from gym_mocks.resources.typed_server import ResourcesCloseSessionRequest, ResourcesSeedSessionRequest
from gym_mocks.wire import HttpRefusal, HttpReply, HttpRequest
from gym_mocks.wire.client import ASGIApp
from tests.twins.twin import Json, Twin, dataset, twin, unrecorded


class TypedReference(TypedSessions, ReferenceServer):
    """The reference, with typed sessions beside the others."""


class RepliesNothing(TypedReference):
    async def seed_typed(self, asked: ResourcesSeedSessionRequest) -> Json:
        await super().seed_typed(asked)
        return {}


class SetsNoCookie(TypedReference):
    async def dispatch(self, request: HttpRequest) -> HttpReply:
        reply = await super().dispatch(request)
        if not self._typed(request):
            return reply
        return replace(reply, headers=tuple(header for header in reply.headers if header[0] != "set-cookie"))


class SeedsAnew(TypedReference):
    async def seed_typed(self, asked: ResourcesSeedSessionRequest) -> Json:
        answer = await super().seed_typed(asked)
        self.sessions.put(asked.resources_session_id, StoredSession(self.new_state(asked.task_data)))
        return answer


class LetsOthersIn(TypedReference):
    """The id is all that it looks at."""

    async def seed_typed(self, asked: ResourcesSeedSessionRequest) -> Json:
        self.owners.pop(asked.resources_session_id, None)
        return await super().seed_typed(asked)


class Crashes(TypedReference):
    """Refuses as nemo-gym's example does, with an error that nobody catches."""

    async def seed_typed(self, asked: ResourcesSeedSessionRequest) -> Json:
        try:
            return await super().seed_typed(asked)
        except HttpRefusal as refused:
            raise ValueError(refused.detail) from None


class ClosesOnce(TypedReference):
    async def close_typed(self, asked: ResourcesCloseSessionRequest) -> Json:
        if asked.resources_session_id in self.closed:
            raise HttpRefusal(404, "no such session")
        return await super().close_typed(asked)


class ClosesWhatItKnows(TypedReference):
    async def close_typed(self, asked: ResourcesCloseSessionRequest) -> Json:
        if asked.resources_session_id not in self.owners:
            raise KeyError(asked.resources_session_id)
        return await super().close_typed(asked)


class ForgetsClosing(TypedReference):
    async def close_typed(self, asked: ResourcesCloseSessionRequest) -> Json:
        answer = await super().close_typed(asked)
        self.closed.clear()
        del self.owners[asked.resources_session_id]
        return answer


class ReleasesNothing(TypedReference):
    """Keeps the state, which a later seed finds again; whose it is, it never looked at."""

    async def seed_typed(self, asked: ResourcesSeedSessionRequest) -> Json:
        self.owners.clear()
        return await super().seed_typed(asked)

    async def close_typed(self, asked: ResourcesCloseSessionRequest) -> Json:
        return {"resources_session_id": asked.resources_session_id}


class MakesAnew(ForgetsClosing):
    """Finds a session by its id, whose ever it is, and makes it again after its close."""

    async def seed_typed(self, asked: ResourcesSeedSessionRequest) -> Json:
        self.owners.pop(asked.resources_session_id, None)
        return await super().seed_typed(asked)


class ClosesForOthers(TypedReference):
    """Whose a session is matters to nobody who closes it."""

    async def close_typed(self, asked: ResourcesCloseSessionRequest) -> Json:
        self.owners.pop(asked.resources_session_id, None)
        return await super().close_typed(asked)


class ClosesByCookie(TypedReference):
    """An open session is closed only by whoever has its cookie."""

    async def _close_session(self, request: HttpRequest) -> HttpReply:
        name = json.loads(request.body)["resources_session_id"]
        if name in self.owners and not request.headers.get("cookie"):
            return HttpReply.json({"resources_session_id": name})
        return await super()._close_session(request)


class ScoresClosed(TypedReference):
    """A verify of a closed session scores a new one."""

    async def dispatch(self, request: HttpRequest) -> HttpReply:
        if request.path == "/verify":
            return await super(TypedSessions, self).dispatch(request)
        return await super().dispatch(request)


class MasksClosed(ScoresClosed):
    """A verify of a closed session has no sample."""

    async def score(self, session_id: str, row: TaskRow, response: Json) -> Score:
        if session_id in self.closed:
            return Score(0.0, fields={"mask_sample": True, "failure_reason": "the session is closed"})
        return await super().score(session_id, row, response)


class TripsOverCalls(TypedReference):
    """A call takes its time, and a close cannot wait."""

    busy = 0

    async def call(self, session_id: str, tool: FunctionTool, arguments: Json) -> Any:
        self.busy += 1
        await asyncio.sleep(0.002)
        self.busy -= 1
        return await super().call(session_id, tool, arguments)

    async def close_typed(self, asked: ResourcesCloseSessionRequest) -> Json:
        if self.busy:
            raise RuntimeError("the session is in use")
        return await super().close_typed(asked)


class LooksThenLeaps(TypedReference):
    """Awaits between the look for the session's owner and the entry of a new one."""

    async def seed_typed(self, asked: ResourcesSeedSessionRequest) -> Json:
        free = asked.resources_session_id not in self.owners
        await asyncio.sleep(0.005)
        if free:
            self.owners.pop(asked.resources_session_id, None)
        return await super().seed_typed(asked)


class TakesUnknownKeys(TypedReference):
    def _typed(self, request: HttpRequest) -> ResourcesSeedSessionRequest | None:
        body = request.body.replace(b',"conformance_unknown":1', b"")
        return super()._typed(replace(request, body=body))


class TrimsIds(TypedReference):
    async def seed_typed(self, asked: ResourcesSeedSessionRequest) -> Json:
        answer: Json = await super().seed_typed(asked)
        return answer | {"resources_session_id": answer["resources_session_id"].strip()}


class KeyedByRollout(TypedReference):
    """One state for all attempts of a rollout."""

    def __init__(self) -> None:
        super().__init__()
        self.rollouts: dict[str, str] = {}

    def session_of(self, name: str) -> str:
        return self.rollouts.get(name, name)

    async def seed_typed(self, asked: ResourcesSeedSessionRequest) -> Json:
        answer = await super().seed_typed(asked)
        shared = f"rollout {asked.episode_id.rollout_id}"
        self.rollouts[asked.resources_session_id] = shared
        if self.sessions.get(shared) is None:
            self.sessions.put(shared, StoredSession(self.new_state(asked.task_data)))
        return answer

    async def call(self, session_id: str, tool: FunctionTool, arguments: Json) -> Any:
        return await super().call(self.session_of(session_id), tool, arguments)

    async def score(self, session_id: str, row: TaskRow, response: Json) -> Score:
        return await super().score(self.session_of(session_id), row, response)


class ReplacedByRollout(KeyedByRollout):
    """The newest attempt's state for all attempts of a rollout."""

    async def seed_typed(self, asked: ResourcesSeedSessionRequest) -> Json:
        self.sessions.drop(f"rollout {asked.episode_id.rollout_id}")
        return await super().seed_typed(asked)


class KeyedByTask(TypedReference):
    """One state for all rollouts of a task, until one of them is closed."""

    def __init__(self) -> None:
        super().__init__()
        self.tasks: dict[str, str] = {}

    def session_of(self, name: str) -> str:
        task = self.owners.get(name, (None, None))[1]
        return f"task {task}" if task else name

    async def seed_typed(self, asked: ResourcesSeedSessionRequest) -> Json:
        answer = await super().seed_typed(asked)
        shared = self.session_of(asked.resources_session_id)
        if self.sessions.get(shared) is None:
            self.sessions.put(shared, StoredSession(self.new_state(asked.task_data)))
        return answer

    async def call(self, session_id: str, tool: FunctionTool, arguments: Json) -> Any:
        return await super().call(self.session_of(session_id), tool, arguments)

    async def close_typed(self, asked: ResourcesCloseSessionRequest) -> Json:
        self.sessions.drop(self.session_of(asked.resources_session_id))
        return await super().close_typed(asked)


class KeepsItsTask(KeyedByTask):
    """One state for all rollouts of a task, for good."""

    async def close_typed(self, asked: ResourcesCloseSessionRequest) -> Json:
        return await TypedReference.close_typed(self, asked)


class ClosesItsTask(TypedReference):
    """A close ends all sessions of its task."""

    async def close_typed(self, asked: ResourcesCloseSessionRequest) -> Json:
        task = self.owners.get(asked.resources_session_id, (None, None))[1]
        for name in [name for name, (_, other) in self.owners.items() if other == task]:
            self.sessions.drop(name)
        return await super().close_typed(asked)


class SeedsEmpty(TypedReference):
    """The typed seed does not read the row's data."""

    async def seed_typed(self, asked: ResourcesSeedSessionRequest) -> Json:
        return await super().seed_typed(asked.model_copy(update={"task_data": {"stock": []}}))


class KnowsItsTask(TypedReference):
    """Holds the task's id to what the row says it is, as 0.7.0's swebench_pro does."""

    async def seed_typed(self, asked: ResourcesSeedSessionRequest) -> Json:
        if asked.task_id.task_id != asked.task_data.get("instance_id", asked.task_id.task_id):
            raise ValueError("TaskId does not match the instance_id")
        return await super().seed_typed(asked)


AFTER_SEED = """typed-seed-repeat typed-seed-foreign typed-refusal-status typed-close typed-close-final
    typed-close-foreign typed-close-lost typed-verify-closed typed-close-busy
    typed-seed-race typed-seed-strict typed-odd-ids"""


def typed(name: str, fails: str, make: Callable[[], ASGIApp], **more: Any) -> Twin:
    """A twin with typed sessions."""
    return twin(f"typed: {name}", fails, make, **more)


TWINS = (
    typed("all is well", "", TypedReference, tempts="typed seed"),
    typed(
        "the task is the row's",
        "",
        KnowsItsTask,
        data=dataset(lambda row: row.update(instance_id="stock-7")),
        tempts="typed seed",
    ),
    typed("no id in the reply", "typed-seed", RepliesNothing, untestable=AFTER_SEED),
    typed("no cookie", "typed-seed", SetsNoCookie, untestable=AFTER_SEED),
    typed("a repeated seed starts anew", "typed-seed-repeat", SeedsAnew),
    typed("another episode is let in", "typed-seed-foreign", LetsOthersIn),
    typed("a refusal crashes", "typed-refusal-status", Crashes),
    typed("a second close fails", "typed-close", ClosesOnce),
    typed("a close of what was never seeded fails", "typed-close", ClosesWhatItKnows),
    typed("a closed session comes back", "typed-close-final typed-verify-closed", ForgetsClosing),
    typed(
        "a closed session is made anew for whoever asks",
        "typed-close-final typed-seed-foreign typed-verify-closed",
        MakesAnew,
    ),
    typed("nothing is released", "typed-close-final typed-seed-foreign", ReleasesNothing),
    typed("another episode closes it", "typed-close-foreign", ClosesForOthers),
    typed("another episode closes it, unrecorded", "typed-close-foreign", ClosesForOthers, data=unrecorded()),
    typed("a close without the cookie does nothing", "typed-close-lost", ClosesByCookie),
    typed("a closed session is scored", "typed-verify-closed", ScoresClosed),
    typed("a closed session is masked", "", MasksClosed, tempts="typed verify"),
    typed("a close trips over a call", "typed-close-busy", TripsOverCalls),
    typed("a close trips over a call, unrecorded", "typed-close-busy", TripsOverCalls, data=unrecorded()),
    typed("a race for the session", "typed-seed-race", LooksThenLeaps),
    typed("unknown keys are taken", "typed-seed-strict", TakesUnknownKeys),
    typed("ids are trimmed", "typed-odd-ids", TrimsIds),
)
