"""A cookie that one path calls by another name: the session is lost there, where its record shows nothing of it."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from gym_conformance.contract.dataset_rows import Row, Source
from gym_conformance.dataset import Dataset
from gym_mocks.resources import ResourcesServer
from gym_mocks.resources.signed_cookie import SignedCookie
from gym_mocks.wire import HttpReply, HttpRequest
from tests.twins.judging import judge, telling
from tests.twins.twin import rollout_of


class OpaqueCookie(SignedCookie):
    """Names a session in a way that no client can read."""

    def read(self, header: str) -> str | None:
        found = re.search(r"notebook=(\w+)", header)
        return found and found[1]

    def write(self, session_id: str) -> str:
        return f"notebook={session_id}; Path=/"


class Notebook(ResourcesServer):
    """Its looks set a cookie of another name, in place of the session's or beside it."""

    def __init__(self, *, renamed: bool) -> None:
        def look() -> dict[str, str]:
            return {"room": "hall"}

        def take_note(state: list[int]) -> dict[str, int]:
            state.append(1)
            return {"notes": len(state)}

        self.renamed = renamed
        cookie = OpaqueCookie("notebook")
        super().__init__("notebook", tools=[look, take_note], verify=lambda: 0.0, state=list, cookie=cookie)

    async def dispatch(self, request: HttpRequest) -> HttpReply:
        reply = await super().dispatch(request)
        if request.path != "/look":
            return reply
        kept = [(name, value) for name, value in reply.headers if name != "set-cookie" or not self.renamed]
        return replace(reply, headers=(*kept, ("set-cookie", "colours=dark; Path=/")))


@pytest.mark.parametrize("renamed", [False, True])
def test_a_path_that_renames_the_cookie_is_told(renamed: bool) -> None:
    server = Notebook(renamed=renamed)
    asked = {"input": [{"role": "user", "content": "Take a note."}], "tools": server.declarations}
    row = Row({"responses_create_params": asked}, Source(Path("notes.jsonl"), 1))
    rollout = rollout_of(row, ("look", {}, {"room": "hall"}), ("take_note", {}, {"notes": 1}))
    findings = judge(server, Dataset((row,), (rollout,), 1), checks={"cookie-replacing-client"})
    assert telling(findings) == ({"cookie-replacing-client"} if renamed else set())
