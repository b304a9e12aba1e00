from base64 import b64encode
from secrets import token_hex

from gym_mocks.resources.resources_server import ResourcesServer
from gym_mocks.wire import HttpReply, HttpRequest
from gym_mocks.wire.messages import to_json

#: Kinds of failures: `FAILURE_KINDS` in nemo_gym/failure_kinds.py, 0.7.0.
_LOST, _FAILED = "session_lost", "verifier_error"


class FailureReports(ResourcesServer):
    """A resources server that reports each failure in a header of its reply, too (`X-NG-Failure-Report`).

    To be mixed in before another server. The documentation names the header and what it holds (`failure_id`, `events`), but
    not how it is written; here it is JSON in base64.

    Reference: observability/rollout-failures and nemo_gym.core.failure_transport in the documentation of NeMo Gym's main; not
    released.
    """

    async def dispatch(self, request: HttpRequest) -> HttpReply:
        """As any server; a reply that tells of an error has a report."""
        reply = await super().dispatch(request)
        if reply.status < 400:  # noqa: PLR2004 - errors
            return reply
        failure = token_hex(8)
        event = {
            "event_id": failure,
            "boundary": "resources_server",
            "kind": _LOST if reply.status == 404 else _FAILED,  # noqa: PLR2004 - not found
            "http_status": reply.status,
        }
        report = to_json({"failure_id": failure, "events": {failure: event}})
        return reply.plus(("x-ng-failure-report", b64encode(report).decode()))
