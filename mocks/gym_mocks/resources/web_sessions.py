"""Sessions that the client names and closes by a capability of its own, as the web sessions of NeMo Gym's main."""

import hmac
import json
from dataclasses import dataclass, replace
from hashlib import sha256
from http import HTTPStatus
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, SecretStr, model_validator

from gym_mocks.resources.models import validated
from gym_mocks.resources.operations import Operation
from gym_mocks.resources.resources_server import ResourcesServer
from gym_mocks.wire import HttpRefusal, HttpReply, HttpRequest, json_body


class WebSessionIdentity(BaseModel):
    """Both fields, or neither: a client that knows nothing of them has its cookie.

    Reference: nemo_gym.web.api_models, NeMo Gym's main.
    """

    model_config = ConfigDict(frozen=True, defer_build=True)

    session_id: Annotated[str | None, Field(alias="_ng_session_id", pattern=r"^[a-zA-Z0-9_-]{16,128}$")] = None
    capability: Annotated[SecretStr | None, Field(alias="_ng_session_close_token", min_length=32, max_length=256)] = (
        None
    )

    @model_validator(mode="after")
    def _is_whole(self) -> "WebSessionIdentity":
        if (self.session_id is None) != (self.capability is None):
            raise ValueError("_ng_session_id and _ng_session_close_token belong together")
        return self

    @property
    def digest(self) -> bytes:
        """What is kept of the capability."""
        return sha256(self.capability.get_secret_value().encode() if self.capability else b"").digest()


@dataclass(frozen=True)
class _Known:
    capability: bytes
    row: bytes = b""
    closed: bool = False


class WebSessions(ResourcesServer):
    """A resources server whose sessions a client may name (`_ng_session_id`), and close (`POST /close`).

    To be mixed in before another server: `class Mine(WebSessions, ReferenceServer)`. The same seed again finds the session;
    another row, and a seed after the close, get 409, another capability 403. A close without the two fields ends the
    cookie's session. `release` gives back what a session holds; where it fails, the close is answered with 503.

    Reference: environment-tutorials/web-session-lifecycle in the documentation of NeMo Gym's main; not released.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.identities: dict[str, _Known] = {}
        self.handlers["POST", "/close"] = self._close

    async def release(self, session_id: str) -> bool:
        """Give back what a session holds; whether that succeeded."""
        self.sessions.drop(session_id)
        return True

    async def dispatch(self, request: HttpRequest) -> HttpReply:
        """As any server; a seed that names its session is answered with that one's cookie."""
        named = self._named(request) if (request.method, request.path) == ("POST", "/seed_session") else None
        if named is None:
            return await super().dispatch(request)
        cookie = self.cookie.write(named).partition(";")[0]
        return await super().dispatch(replace(request, headers={**request.headers, "cookie": cookie}))

    def _named(self, request: HttpRequest) -> str | None:
        try:
            return validated(WebSessionIdentity, json_body(request)).session_id
        except HttpRefusal:
            return None  # the handler refuses it

    async def _seed_session(self, request: HttpRequest) -> HttpReply:
        body = json_body(request)
        identity = validated(WebSessionIdentity, body)
        if identity.session_id is not None:
            row = sha256(json.dumps(body, sort_keys=True).encode()).digest()
            asked = _Known(identity.digest, row)
            if self.identities.setdefault(identity.session_id, asked) != asked:
                raise HttpRefusal(HTTPStatus.CONFLICT, "the session is closed, or was seeded otherwise")
        return await super()._seed_session(request)

    async def _close(self, request: HttpRequest) -> HttpReply:
        identity = validated(WebSessionIdentity, json_body(request))
        session_id = identity.session_id or request.session_id
        known = self.identities.get(session_id, _Known(identity.digest))
        if identity.session_id is not None and not hmac.compare_digest(known.capability, identity.digest):
            raise HttpRefusal(HTTPStatus.FORBIDDEN, "the capability is not this session's")
        self.identities[session_id] = replace(known, closed=True)
        if not await self.release(session_id):
            failed = {"closed": False, "session_id": session_id, "failure_kind": "session_release_failed"}
            return HttpReply.json(failed, HTTPStatus.SERVICE_UNAVAILABLE)
        return HttpReply.json({"closed": True, "session_id": session_id})

    def _operations(self) -> list[Operation]:
        return [*super()._operations(), Operation("close", "Close a session.", WebSessionIdentity)]
