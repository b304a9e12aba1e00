"""Whoever an environment server asks, behind one address: an agent, a resources server, and the policy."""

import json
from secrets import token_hex
from typing import Any

from pydantic import BaseModel, ConfigDict

from gym_mocks.policy.fake_policy import ROLLOUT_PREFIX
from gym_mocks.resources.models import validated
from gym_mocks.resources.outputs import last_text
from gym_mocks.resources.resources_server import AggregateMetricsRequest
from gym_mocks.resources.reward_profile import aggregate
from gym_mocks.resources.rows import PolicyResponse, TaskRow
from gym_mocks.resources.signed_cookie import SignedCookie
from gym_mocks.wire import App, HttpReply, HttpRequest, json_body
from gym_mocks.wire.app import Receive, Scope, Send
from gym_mocks.wire.client import ASGIApp, call_app, whole
from gym_mocks.wire.messages import JSON


class _Open(BaseModel):
    """The body of a request to open or close a session: any object."""

    model_config = ConfigDict(extra="allow", defer_build=True)


class _Rollout(TaskRow):
    """The body of a verify."""

    response: PolicyResponse


class Participants(App):
    """An agent that asks the policy once and a resources server that takes any row, beside the policy itself.

    The agent has both forms, `/run` and sessions; what it is asked in a session is answered by the policy. Verify gives
    1.0 where the last assistant message has text, else 0.0. Nothing is kept.

    Reference: environment_servers/single_agent_turn/app.py and environment_servers/legacy_agent/app.py, 0.7.0.

    Args:
        policy: answers `/v1/responses`, and all else that is asked here.
    """

    def __init__(self, policy: ASGIApp) -> None:
        self.policy = policy
        self.cookie = SignedCookie("participants")
        super().__init__(
            {
                ("POST", "/seed_session"): self._named("resources_session_id"),
                ("POST", "/close_session"): self._named("resources_session_id"),
                ("POST", "/v1/agent_sessions"): self._named("agent_session_id"),
                ("POST", "/v1/agent_sessions/close"): self._named("agent_session_id"),
                ("POST", "/run"): self._run,
                ("POST", "/verify"): self._verify,
                ("POST", "/aggregate_metrics"): self._aggregate,
            }
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one ASGI connection; what nobody here answers goes to the policy."""
        if scope["type"] == "http":
            scope = {**scope, "path": ROLLOUT_PREFIX.sub("", scope["path"])}
            if (scope["method"], scope["path"]) not in self.handlers:
                await self.policy(scope, receive, send)
                return
        await super().__call__(scope, receive, send)

    def _named(self, key: str) -> Any:
        """A handler that gives back the session's name, and a cookie."""

        async def answer(request: HttpRequest) -> HttpReply:
            body = json_body(request)
            validated(_Open, body)
            cookie = self.cookie.write(token_hex())
            return HttpReply.json({key: body.get(key)}).plus(("set-cookie", cookie))

        return answer

    async def _run(self, request: HttpRequest) -> HttpReply:
        row = json_body(request)
        validated(TaskRow, row)
        params = json.dumps(row["responses_create_params"]).encode()
        asked = HttpRequest("POST", "/v1/responses", {"content-type": JSON}, params)
        said = await whole(await call_app(self.policy, asked))
        assert isinstance(said.body, bytes)  # noqa: S101 - it is whole
        if said.status >= 400:  # noqa: PLR2004 - as nemo-gym's client
            return HttpReply.json(f"Hit an exception in agent calling an inner server: {said.body!r}", 500)
        return HttpReply.json(_scored({**row, "response": json.loads(said.body)}))

    async def _verify(self, request: HttpRequest) -> HttpReply:
        return HttpReply.json(_scored(json_body(request)))

    async def _aggregate(self, request: HttpRequest) -> HttpReply:
        return HttpReply.json(aggregate(validated(AggregateMetricsRequest, json_body(request)).verify_responses))


def _scored(body: dict[str, Any]) -> dict[str, Any]:
    rollout = validated(_Rollout, body)
    return body | {"reward": float(bool(last_text(rollout.response.output)))}
