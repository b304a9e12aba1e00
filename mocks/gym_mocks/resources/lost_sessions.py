from typing import Any

from gym_mocks.resources.resources_server import ResourcesServer
from gym_mocks.resources.rows import TaskRow
from gym_mocks.resources.scores import Score
from gym_mocks.wire import HttpRefusal


class LostSessions(ResourcesServer):
    """A resources server that says of a session which it does not hold that it is lost, and makes none in its place.

    To be mixed in before another server: `class Mine(LostSessions, ReferenceServer)`. A tool is answered 404, and the sample
    of a verify is masked (`mask_sample`, `failure_reason`), with a reward of 0.

    Reference: nemo_gym.server_runtime.base_resources_server, `ResourcesSessionLostError` and `LostSessionVerification`, in the
    documentation of NeMo Gym's main; not released.
    """

    async def call(self, session_id: str, *rest: Any) -> Any:
        """Run a tool in a session.

        Raises:
            HttpRefusal: 404 if the session is not held.
        """
        if self.sessions.get(session_id) is None:
            raise HttpRefusal(404, "the resources session is lost: this server does not hold it")
        return await super().call(session_id, *rest)

    async def score(self, session_id: str, row: TaskRow, response: dict[str, Any]) -> Score:
        """Score a rollout; one whose session is not held is a masked sample."""
        if self.sessions.get(session_id) is None:
            return Score(0.0, fields={"mask_sample": True, "failure_reason": "the resources session is lost"})
        return await super().score(session_id, row, response)
