"""Typed sessions beside the cookie's own: sessions that the caller names, and closes (nemo-gym 0.7.0)."""

from http import HTTPStatus
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from gym_mocks.resources.models import validated
from gym_mocks.resources.operations import Operation
from gym_mocks.resources.resources_server import ResourcesServer, SeedRequest
from gym_mocks.resources.sessions import StoredSession
from gym_mocks.wire import App, HttpRefusal, HttpReply, HttpRequest, json_body


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)


class EpisodeId(_Strict):
    """Reference: nemo_gym/episode_types.py, 0.7.0."""

    rollout_id: Annotated[str, Field(min_length=1, pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]
    attempt: Annotated[int, Field(ge=0)] = 0


class TaskId(_Strict):
    """Reference: nemo_gym/episode_types.py, 0.7.0."""

    taskset: Annotated[str, Field(min_length=1)]
    task_id: Annotated[str, Field(min_length=1)]


class ResourcesSeedSessionRequest(_Strict):
    """Reference: nemo_gym/base_resources_server.py, 0.7.0."""

    resources_session_id: Annotated[str, Field(min_length=1)]
    episode_id: EpisodeId
    task_id: TaskId
    task_data: dict[str, Any]


class ResourcesCloseSessionRequest(_Strict):
    """Reference: nemo_gym/base_resources_server.py, 0.7.0."""

    resources_session_id: str
    episode_id: EpisodeId


#: Whose a session is, for as long as the server runs.
Owner = tuple[EpisodeId, TaskId | None]


class TypedSessions(ResourcesServer):
    """A resources server that takes typed seeds too, as nemo-gym 0.7.0's environment servers send them.

    To be mixed in before another server: `class Mine(TypedSessions, ReferenceServer)`. The cookie of a typed session
    names it by its `resources_session_id`. What the contract leaves open is answered with 409: a seed of another
    episode's session, a seed after the close, and whatever is asked of a closed session.

    Reference: nemo_gym/base_resources_server.py and nemo_gym/testing/session_conformance.py, 0.7.0.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.owners: dict[str, Owner] = {}
        self.closed: set[str] = set()
        self.handlers["POST", "/close_session"] = self._close_session

    async def seed_typed(self, asked: ResourcesSeedSessionRequest) -> dict[str, Any]:
        """Open a session under the caller's id, or find it again; the reply's object.

        Raises:
            HttpRefusal: 409 where it is closed, or is another episode's.
        """
        name, owner = asked.resources_session_id, (asked.episode_id, asked.task_id)
        if name in self.closed:
            raise HttpRefusal(HTTPStatus.CONFLICT, "the session is closed")
        if self.owners.setdefault(name, owner) != owner:
            raise HttpRefusal(HTTPStatus.CONFLICT, "the session is another episode's")
        if self.sessions.get(name) is None:
            self.sessions.put(name, StoredSession(self.new_state(asked.task_data)))
        return {"resources_session_id": name, "resources_tools": None, "sandbox_access": None}

    async def close_typed(self, asked: ResourcesCloseSessionRequest) -> dict[str, Any]:
        """Forget a session, also one that is not there yet; the reply's object.

        Raises:
            HttpRefusal: 409 where it is another episode's.
        """
        name = asked.resources_session_id
        if self.owners.get(name, (asked.episode_id, None))[0] != asked.episode_id:
            raise HttpRefusal(HTTPStatus.CONFLICT, "the session is another episode's")
        self.owners[name] = (asked.episode_id, None)
        self.closed.add(name)
        self.sessions.drop(name)
        return {"resources_session_id": name}

    async def dispatch(self, request: HttpRequest) -> HttpReply:
        """As any server; a typed seed that is taken has the cookie name its session."""
        asked = self._typed(request)
        if asked is None:
            if self.cookie.read(request.headers.get("cookie", "")) in self.closed and request.path != "/close_session":
                return HttpReply.json({"detail": "the session is closed"}, HTTPStatus.CONFLICT)
            return await super().dispatch(request)
        reply = await App.dispatch(self, request)
        if reply.status != HTTPStatus.OK:
            return reply
        return reply.plus(("vary", "Cookie"), ("set-cookie", self.cookie.write(asked.resources_session_id)))

    def _typed(self, request: HttpRequest) -> ResourcesSeedSessionRequest | None:
        """The typed seed that this is; None for any other request, and for a seed of the older form."""
        if (request.method, request.path) != ("POST", "/seed_session"):
            return None
        try:
            return validated(ResourcesSeedSessionRequest, json_body(request))
        except HttpRefusal:
            return None

    async def _seed_session(self, request: HttpRequest) -> HttpReply:
        asked = self._typed(request)
        return await super()._seed_session(request) if asked is None else HttpReply.json(await self.seed_typed(asked))

    async def _close_session(self, request: HttpRequest) -> HttpReply:
        return HttpReply.json(await self.close_typed(validated(ResourcesCloseSessionRequest, json_body(request))))

    def _operations(self) -> list[Operation]:
        seed, *others = super()._operations()
        either = ResourcesSeedSessionRequest | (self._seed_model or SeedRequest)
        close = Operation("close_session", "Close a typed session.", ResourcesCloseSessionRequest)
        return [Operation(seed.name, seed.summary, either), *others, close]
