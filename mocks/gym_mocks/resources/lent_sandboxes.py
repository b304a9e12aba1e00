from http import HTTPStatus
from typing import Any

from gym_mocks.resources.operations import Operation
from gym_mocks.resources.resources_server import ResourcesServer, SeedRequest
from gym_mocks.wire import HttpRefusal, HttpReply, HttpRequest


class LentSandboxes(ResourcesServer):
    """A resources server that says which sandbox a session may use (`POST /sandbox_access`); there is none behind it.

    To be mixed in before another server. Without a session the answer is 404.

    Reference: nemo_gym.server_runtime.sandbox_lending in the documentation of NeMo Gym's main, not released; `SandboxAccess`
    in nemo_gym/sandbox/access.py, 0.7.0.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.handlers["POST", "/sandbox_access"] = self._sandbox_access

    def lent(self, session_id: str) -> dict[str, Any]:
        """What names the session's sandbox to its provider."""
        return {"sandbox_id": f"sandbox-{session_id}"}

    async def _sandbox_access(self, request: HttpRequest) -> HttpReply:
        if self.sessions.get(request.session_id) is None:
            raise HttpRefusal(HTTPStatus.NOT_FOUND, "there is no sandbox without a session")
        connection = {"kind": "direct", "provider_config_ref": "sandbox", "descriptor": self.lent(request.session_id)}
        return HttpReply.json({"connection": connection, "workdir": "/workspace"})

    def _operations(self) -> list[Operation]:
        return [*super()._operations(), Operation("sandbox_access", "Access to the session's sandbox.", SeedRequest)]
