"""What a server is, where its OpenAPI document does not say it."""

import pytest

from gym_conformance.contract.openapi import ServerKind
from gym_conformance.gym_under_test import Gym
from gym_mocks.reference import ReferenceServer
from gym_mocks.wire import HttpRefusal, HttpReply, HttpRequest, json_body
from tests.twins.innocent import DescribesToolsAlone
from tests.twins.judging import on_gym
from tests.twins.step import Counting
from tests.twins.typed import TypedReference


class DescribesAnother(ReferenceServer):
    """Its OpenAPI document is that of an application in which the gym is mounted."""

    def __init__(self) -> None:
        super().__init__()
        self.openapi["paths"] = {"/healthz": {"get": {}}, "/reload": {"post": {}}}


class Another(DescribesAnother):
    """The application alone."""

    def __init__(self) -> None:
        super().__init__()
        del self.handlers["POST", "/seed_session"]


class NoEpisode(Counting):
    """It has no OpenAPI document, and a step is answered 404 if no episode was begun."""

    def __init__(self) -> None:
        super().__init__()
        del self.handlers["GET", "/openapi.json"]

    async def _step(self, request: HttpRequest) -> HttpReply:
        if self.key(request.session_id) not in self.steps:
            raise HttpRefusal(404, "no episode")
        return await super()._step(request)


class ListsNoBodies(TypedReference):
    """Its OpenAPI document has no more than its routes."""

    def __init__(self) -> None:
        super().__init__()
        self.openapi["paths"] = {path: {"post": {}} for path in self.openapi["paths"]}


class WithoutDocument(TypedReference):
    def __init__(self) -> None:
        super().__init__()
        del self.handlers["GET", "/openapi.json"]


class SaysWhatItWasSent(ReferenceServer):
    """It closes sessions in a way of its own, and returns each seed."""

    def __init__(self) -> None:
        super().__init__()
        del self.handlers["GET", "/openapi.json"]
        self.handlers["POST", "/close_session"] = self._return
        self.handlers["POST", "/seed_session"] = self._return

    async def _return(self, request: HttpRequest) -> HttpReply:
        await self._seed_session(request)
        return HttpReply.json(json_body(request))


async def itself(gym: Gym) -> Gym:
    return gym


def test_a_404_that_a_step_means_is_no_missing_route() -> None:
    assert on_gym(NoEpisode(), itself).kind is ServerKind.GYMNASIUM


@pytest.mark.parametrize(
    ("server", "typed"), [(ListsNoBodies, True), (WithoutDocument, True), (SaysWhatItWasSent, False)]
)
def test_typed_sessions_are_found_by_a_seed_where_no_document_says_so(
    server: type[ReferenceServer], typed: bool
) -> None:
    assert (on_gym(server(), itself).typed is not None) == typed


@pytest.mark.parametrize(
    ("server", "kind", "described"),
    [
        (DescribesToolsAlone, ServerKind.TOOLS, True),
        (DescribesAnother, ServerKind.TOOLS, False),
        (Another, ServerKind.OTHER, True),
    ],
)
def test_sessions_that_no_document_lists_are_found(
    server: type[ReferenceServer], kind: ServerKind, described: bool
) -> None:
    gym = on_gym(server(), itself)
    assert (gym.kind, gym.api.known) == (kind, described)
