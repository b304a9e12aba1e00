"""What a finding says is likely fits what the server answered, and not only the check."""

import json
from dataclasses import replace
from typing import Any
from uuid import uuid4

import pytest

from gym_conformance.findings import Cause, Verdict
from gym_mocks.reference import ReferenceServer, SessionStore
from gym_mocks.resources.function_tool import FunctionTool
from gym_mocks.wire import HttpRefusal, HttpReply, HttpRequest
from tests.twins.cookies import CookieLostOnOneWay, CookieOnce
from tests.twins.judging import found_by, judge
from tests.twins.verify import reward


class TakesLittle(ReferenceServer):
    """Refuses large bodies, as Express does from 100 KB on."""

    async def dispatch(self, request: HttpRequest) -> HttpReply:
        if len(request.body) > 100_000:
            return HttpReply(413, json.dumps({"detail": "request entity too large"}).encode())
        return await super().dispatch(request)


class CutsReplies(ReferenceServer):
    """A buffer of 64 KiB holds the reply."""

    async def dispatch(self, request: HttpRequest) -> HttpReply:
        reply = await super().dispatch(request)
        return replace(reply, body=reply.body[: 1 << 16]) if isinstance(reply.body, bytes) else reply


@pytest.mark.parametrize(("server", "likely"), [(TakesLittle, "limits the size of a body"), (CutsReplies, "cut off")])
def test_a_long_text_is_laid_to_its_length(server: type[ReferenceServer], likely: str) -> None:
    [failed, *_] = [one for one in found_by("verify-degenerate", server()) if one.verdict is Verdict.FAIL]
    assert likely in failed.hint


def test_an_empty_object_for_a_reward_may_be_a_promise() -> None:
    [failed, *_] = [one for one in found_by("verify-reward-finite", reward({})()) if one.verdict is Verdict.FAIL]
    assert "await" in failed.hint


class Crashes(ReferenceServer):
    """A tool that crashes, whatever the session."""

    async def call(self, session_id: str, tool: FunctionTool, arguments: dict[str, Any]) -> Any:
        raise HttpRefusal(500, f"{session_id}: nothing was begun before {tool.name} of {arguments}")


def test_a_call_that_crashes_in_a_session_too_does_not_lack_one() -> None:
    [finding] = found_by("cookie-unknown-session", Crashes())
    assert finding.verdict is Verdict.FAIL
    assert "any session" in finding.hint


class AnswersUnknownPathsItself(ReferenceServer):
    """The framework's own page for unknown paths sets no cookie."""

    without: tuple[int, ...] = (404,)

    async def dispatch(self, request: HttpRequest) -> HttpReply:
        reply = await super().dispatch(request)
        others = tuple(pair for pair in reply.headers if pair[0] != "set-cookie")
        return replace(reply, headers=others) if reply.status in self.without else reply


class LosesItOnErrors(AnswersUnknownPathsItself):
    without = (404, 422)


@pytest.mark.parametrize(
    ("server", "likely", "lost"),
    [
        (AnswersUnknownPathsItself, "before the handler runs", 1),
        (LosesItOnErrors, "before the handler runs", 2),
        (CookieOnce, "SessionMiddleware", 2),
    ],
)
def test_a_lost_cookie_is_laid_to_the_framework_where_only_refusals_lack_it(
    server: type[ReferenceServer], likely: str, lost: int
) -> None:
    [failed] = found_by("cookie-sent-again", server())
    assert likely in failed.hint
    assert failed.actual.count(" -> 4") == lost


class OpensAnotherOnRefusal(ReferenceServer):
    """Its page for errors begins a new session."""

    async def dispatch(self, request: HttpRequest) -> HttpReply:
        reply = await super().dispatch(request)
        if reply.status < 400:
            return reply
        others = tuple(pair for pair in reply.headers if pair[0] != "set-cookie")
        return replace(reply, headers=(*others, ("set-cookie", self.cookie.write(uuid4().hex))))


@pytest.mark.parametrize("check", ["tool-refused-call", "calls-refused-harmless"])
def test_a_refusal_that_opens_another_session_is_not_said_to_change_this_one(check: str) -> None:
    [failed] = found_by(check, OpensAnotherOnRefusal())
    assert failed.cause is Cause.LOST_SESSION, failed


class CrashesInOneTool(ReferenceServer):
    """One tool raises; NeMo Gym's own reply to that sets no cookie."""

    async def dispatch(self, request: HttpRequest) -> HttpReply:
        if request.path == "/move_stock":
            return HttpReply(500, b"Internal Server Error")
        return await super().dispatch(request)


def test_a_session_that_a_crash_loses_is_laid_to_the_crash() -> None:
    [failed] = found_by("cookie-replacing-client", CrashesInOneTool())
    assert failed.verdict is Verdict.FAIL
    assert "/move_stock crashes" in failed.hint


class BreaksOff(ReferenceServer):
    """One of its tools closes the connection before its reply is complete."""

    async def dispatch(self, request: HttpRequest) -> HttpReply:
        reply = await super().dispatch(request)
        if request.path != "/list_stock" or not isinstance(reply.body, bytes):
            return reply
        return replace(reply, headers=(*reply.headers, ("content-length", str(len(reply.body) + 1))))


def test_what_gets_no_whole_answer_has_one_cause() -> None:
    checks = {"tool-reply-text", "calls-valid", "tool-refused-call"}
    found = judge(BreaksOff(), checks=checks, sockets=True)
    failed = [each for several in found.values() for each in several if each.verdict is Verdict.FAIL]
    assert len({each.check for each in failed}) > 1
    assert {each.cause for each in failed} == {Cause.UNANSWERED}, failed


@pytest.mark.twins
@pytest.mark.parametrize("limit", [6, 12])
def test_a_store_that_is_too_small_is_not_laid_to_what_is_done_at_once(limit: int) -> None:
    [failed] = found_by("isolation-concurrent", ReferenceServer(sessions=SessionStore(limit=limit)))
    assert "a store of a fixed size" in failed.hint
    assert failed.cause is None


def test_a_record_that_holds_where_the_cookie_is_kept_is_not_stale() -> None:
    told = [one for one in found_by("repeat-recorded", CookieOnce()) if one.verdict is Verdict.FAIL]
    assert {one.cause for one in told} == {Cause.LOST_SESSION}


def test_a_cookie_that_one_call_loses_is_told() -> None:
    [told] = found_by("calls-invalid", CookieLostOnOneWay())
    assert (told.verdict, told.cause) == (Verdict.FAIL, Cause.LOST_SESSION)
    assert "early return" in told.hint
