import asyncio
import math
from secrets import token_hex
from typing import Any

from pydantic import ValidationError

from gym_mocks.agent.loop import InnerError, checked, play, succeeded, told
from gym_mocks.agent.model_replies import ModelReply
from gym_mocks.agent.peers import CookieValues, Peers, cookies_of
from gym_mocks.agent.run_rows import RunParams, RunRow
from gym_mocks.resources.models import validated
from gym_mocks.resources.rows import CreateParams, TaskRow
from gym_mocks.resources.signed_cookie import SignedCookie
from gym_mocks.wire import App, HttpReply, HttpRequest, json_body, live

DEADLINE = 3600.0  # seconds for one rollout: a model may take its time at every turn

DEFAULTS = {
    name: [] if name == "tools" else field.default
    for name, field in CreateParams.model_fields.items()
    if not field.is_required()
}


class Verified(TaskRow):
    """What the agent takes for verify's reply (`SimpleAgentVerifyResponse`): "0.5" is a reward, too, and "nan" leaves as null."""

    response: ModelReply
    reward: float


class MockAgent(App):
    """An agent with the default agent's semantics (simple_agent of nemo-gym 0.4.0).

    What that means for a resources server: the seed and verify get the row with every absent
    `responses_create_params` field filled in; cookies are replaced by those of each reply, so that one
    without Set-Cookie loses the session; a tool's error reply is fed to the policy; the policy is asked until
    it sends an assistant message and no call, or says that it was cut.

    Args:
        name: the agent's name in the gym.
        peers: the servers that it talks to.
        max_steps: stop after so many turns; None: never.
    """

    def __init__(self, name: str, peers: Peers, *, max_steps: int | None = None) -> None:
        self.name = name
        self.peers = peers
        self.max_steps = max_steps
        key = f"SimpleAgent___{name}"
        self.cookie = SignedCookie(key, key)
        probes = {("GET", path): live for path in ("/", "/livez", "/readyz", "/healthz", "/health")}
        super().__init__(
            {
                **probes,
                ("POST", "/run"): self._run,
                ("POST", "/v1/responses"): self._responses,
                ("POST", "/aggregate_metrics"): self._aggregate_metrics,
            }
        )

    async def run(self, row: dict[str, Any], cookies: CookieValues) -> dict[str, Any]:
        """Play one row: seed, the loop, verify; verify's reply."""
        filled = row | {"responses_create_params": _filled(row["responses_create_params"])}
        seeded = succeeded(await self.peers.post(f"{self.peers.resources}/seed_session", filled, cookies))
        response, cookies = await play(self.peers, row["responses_create_params"], cookies_of(seeded), self.max_steps)
        own = cookies_of(HttpReply(200).plus(("set-cookie", self.cookie.write(token_hex()))))
        verify = filled | {"response": response}
        url = f"{self.peers.resources}/verify"
        scored = checked(await self.peers.post(url, verify, cookies | own))
        try:
            reward = Verified.model_validate(scored).reward
        except ValidationError as error:
            raise RuntimeError(f"{url} replied with what is no rollout's score: {told(error)}") from None
        return scored | {"reward": reward if math.isfinite(reward) else None}

    async def dispatch(self, request: HttpRequest) -> HttpReply:
        """Answer; an inner server's error is this one's 500, as nemo-gym's exception middleware words it."""
        session_id = self.cookie.read(request.headers.get("cookie", "")) or token_hex()
        try:
            async with asyncio.timeout(DEADLINE):
                reply = await super().dispatch(request.within(session_id))
        except InnerError as error:
            return HttpReply.json(
                f"Hit an exception in {self.cookie.name} calling an inner server: {error.content!r}", 500
            )
        return reply.plus(("vary", "Cookie"), ("set-cookie", self.cookie.write(session_id)))

    async def _run(self, request: HttpRequest) -> HttpReply:
        row = json_body(request)
        validated(RunRow, row)
        return HttpReply.json(await self.run(row, _cookies(request)))

    async def _responses(self, request: HttpRequest) -> HttpReply:
        params = json_body(request)
        validated(RunParams, params)
        response, cookies = await play(self.peers, params, _cookies(request), self.max_steps)
        set_cookies = (("set-cookie", f"{k}={v}; Path=/; SameSite=lax") for k, v in cookies.items())
        return HttpReply.json(response).plus(*set_cookies)

    async def _aggregate_metrics(self, request: HttpRequest) -> HttpReply:
        url = f"{self.peers.resources}/aggregate_metrics"
        return HttpReply.json(checked(await self.peers.post(url, json_body(request), {})))


def _filled(params: dict[str, Any]) -> dict[str, Any]:
    """A row's parameters as the agent's model dumps them: defaults filled in, messages typed."""
    given = params["input"]
    if isinstance(given, list):
        given = [{"type": "message"} | item if "role" in item else item for item in given]
    return DEFAULTS | params | {"input": given}


def _cookies(request: HttpRequest) -> CookieValues:
    pairs = (part.partition("=") for part in request.headers.get("cookie", "").split(";") if part.strip())
    return {name.strip(): value.strip() for name, _, value in pairs}
