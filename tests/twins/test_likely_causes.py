"""What a finding says is likely fits what the server answered, and not only the check."""

import json
from dataclasses import replace

import pytest

from gym_conformance.findings import Verdict
from gym_mocks.reference import ReferenceServer
from gym_mocks.wire import HttpReply, HttpRequest
from tests.twins.judging import found_by


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
