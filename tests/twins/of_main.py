"""Twins that speak as NeMo Gym's main documents it, one thing wrong with each; `innocent` has the sound one."""

from dataclasses import replace
from secrets import token_hex

from gym_mocks.reference import ReferenceServer
from gym_mocks.resources import FailureReports, LentSandboxes, LostSessions, Score, TaskRow, TypedSessions, WebSessions
from gym_mocks.wire import HttpReply, HttpRequest, json_body
from tests.twins.twin import Json, Twin, twin


class OfMain(FailureReports, WebSessions, LentSandboxes, LostSessions, TypedSessions, ReferenceServer):
    """Lost sessions, typed ones with 409, web sessions, lent sandboxes, failure reports, and checkpoints."""

    def __init__(self) -> None:
        super().__init__()
        self.handlers["POST", "/ng-control/v1/checkpoint"] = self._checkpoint
        self.openapi["paths"]["/ng-control/v1/checkpoint"] = {"post": {}}

    async def _checkpoint(self, _: HttpRequest) -> HttpReply:
        return HttpReply.json({})


class WebReference(WebSessions, ReferenceServer):
    """The reference, whose sessions a client may name."""


class SeedsTwice(WebReference):
    """Each seed is a session, whatever it names."""

    def _named(self, request: HttpRequest) -> str | None:
        named = super()._named(request)
        return named and token_hex()


class TakesAnyRow(WebReference):
    """An id is looked up without its row."""

    async def dispatch(self, request: HttpRequest) -> HttpReply:
        body = request.body.replace(b',"conformance_other":1', b"")
        return await super().dispatch(replace(request, body=body))


class ClosesForAnybody(WebReference):
    """The id is all that a close needs."""

    async def _close(self, request: HttpRequest) -> HttpReply:
        session_id = json_body(request).get("_ng_session_id") or request.session_id
        if known := self.identities.get(session_id):
            self.identities[session_id] = replace(known, closed=True)
            return HttpReply.json({"closed": await self.release(session_id)})
        return await super()._close(request)


class ForgetsClosed(WebReference):
    """What is closed is gone, and may be seeded again."""

    async def _close(self, request: HttpRequest) -> HttpReply:
        reply = await super()._close(request)
        if reply.status == 200:
            self.identities.clear()
        return reply


class LendsOne(LentSandboxes, ReferenceServer):
    """One sandbox for all."""

    def lent(self, session_id: str) -> Json:
        del session_id
        return {"sandbox_id": "the one"}


class TellsInTheKind(ReferenceServer):
    """The kind of a failure says which session it was."""

    async def score(self, session_id: str, row: TaskRow, response: Json) -> Score:
        if self.sessions.get(session_id) is not None:
            score = await super().score(session_id, row, response)
            return replace(score, fields={**score.fields, "failure_kind": None})
        return Score(0.0, fields={"mask_sample": True, "failure_kind": f"no session {session_id}"})


TWINS: tuple[Twin, ...] = (
    twin("as NeMo Gym's main", "", OfMain, tempts="seed cookie verify tool"),
    twin("web: a session for each seed", "web-seed", SeedsTwice),
    twin("web: another row is taken", "web-seed", TakesAnyRow),
    twin("web: anybody closes", "web-close", ClosesForAnybody),
    twin("web: a closed session comes back", "web-close", ForgetsClosed),
    twin("one sandbox for all", "isolation-sandbox", LendsOne),
    twin("a kind of failure for each", "verify-failure-kind", TellsInTheKind),
)
