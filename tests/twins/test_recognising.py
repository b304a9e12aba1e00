"""What a server is, where its OpenAPI document does not say it."""

import pytest

from gym_conformance.contract.openapi import ServerKind
from gym_conformance.gym_under_test import Gym
from gym_mocks.reference import ReferenceServer
from tests.twins.innocent import DescribesToolsAlone
from tests.twins.judging import on_gym


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


async def itself(gym: Gym) -> Gym:
    return gym


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
