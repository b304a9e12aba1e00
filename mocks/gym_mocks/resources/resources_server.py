import asyncio
import hashlib
import inspect
import json
import re
from collections.abc import Callable, Sequence
from functools import cached_property, lru_cache, partial
from secrets import token_hex
from typing import Any, Literal, get_type_hints

from pydantic import BaseModel, ConfigDict, create_model

from gym_mocks.resources.function_tool import FunctionTool
from gym_mocks.resources.models import Objects, validated
from gym_mocks.resources.operations import Operation, document
from gym_mocks.resources.reward_profile import aggregate
from gym_mocks.resources.rows import PolicyResponse, TaskRow
from gym_mocks.resources.scores import Score
from gym_mocks.resources.sessions import SessionStore, StoredSession
from gym_mocks.resources.signed_cookie import SignedCookie
from gym_mocks.resources.tools_over_mcp import PATH, Claims, ToolsOverMCP
from gym_mocks.wire import App, HttpReply, HttpRequest, json_body, live

ReverifyMode = Literal["stateless", "unsupported", "unknown"]
RESERVED = frozenset({"seed_session", "verify", "aggregate_metrics", "mcp", "openapi.json", ""})


class SeedRequest(BaseModel):
    """A seed takes any row, and nothing of it is required."""

    model_config = ConfigDict(extra="allow", defer_build=True)


#: What a verify function may ask for, by the names of its parameters.
GIVEN = ("state", "row", "response")


class AggregateMetricsRequest(BaseModel):
    """Reference: nemo_gym/config_types.py, 0.4.0."""

    model_config = ConfigDict(defer_build=True)

    verify_responses: Objects


class ResourcesServer(App):
    """A resources server on the cookie contract, as an ASGI application.

    ::

        def add(state: list[int], number: int) -> int:
            state.append(number)
            return len(state)


        def verify(state: list[int]) -> float:
            return float(sum(state) == 3)


        app = ResourcesServer("adder", tools=[add], verify=verify, state=list)

    On the wire it is a nemo-gym 0.4.0 SimpleResourcesServer behind `run_webserver()`, without its known
    faults (docs/mocks.md lists them). Each step is a method that a test may override to break one thing:
    `seed`, `call`, `score`; `cookie` and `sessions` are values to replace.

    Args:
        name: the server's name in a gym's configuration, and part of its cookie's.
        tools: plain typed functions; see `FunctionTool`.
        verify: sync or async, returns a `Score` or the bare reward. It is given those of `state`, `row` and
            `response` (the policy's, a dict) that its parameters name; the type of `row`, a `TaskRow`, says which
            fields a row must have.
        state: makes the state of a session, from the row where it takes a parameter. A parameter typed as a
            pydantic model says what the seed must look like (422 otherwise).
        cookie: how the session id travels.
        sessions: where states are kept.
        expose_tools_over_mcp: serve the tools over MCP too, and say so in the seed's reply, as nemo-gym 0.7.0
            does for the configuration key of this name.
        reverify_mode: what `/reverify_mode` answers, which nemo-gym 0.5.0 and later ask before they verify rollouts
            again; None: there is no such path.

    Raises:
        ValueError: two tools of one name, or a tool named like an endpoint of the contract.
        TypeError: `verify` needs something else.
    """

    def __init__(
        self,
        name: str,
        *,
        tools: Sequence[Callable[..., Any]] = (),
        verify: Callable[..., Any],
        state: Callable[..., Any] = dict,
        cookie: SignedCookie | None = None,
        sessions: SessionStore | None = None,
        expose_tools_over_mcp: bool = False,
        reverify_mode: ReverifyMode | None = None,
    ) -> None:
        self.name = name
        self.tools = {tool.name: tool for tool in map(FunctionTool.of, tools)}
        if len(self.tools) < len(tools) or RESERVED & self.tools.keys():
            raise ValueError(f"tool names must be unique and none of {sorted(RESERVED)}")
        words = re.split(r"[^0-9A-Za-z]+", name)
        class_name = "".join(word[:1].upper() + word[1:] for word in words)
        self.cookie = cookie or SignedCookie(f"{class_name}ResourcesServer___{name}")
        self.sessions = SessionStore() if sessions is None else sessions  # an empty store is false
        self._make_state = state
        self._verify = verify
        self._verify_takes = _taken_by(verify)
        self._seed_model = _seed_model(state)
        self._verify_model = _verify_model(get_type_hints(verify).get("row", TaskRow))
        super().__init__(
            {
                ("GET", "/"): live,
                ("GET", "/openapi.json"): self._openapi,
                ("POST", "/seed_session"): self._seed_session,
                ("POST", "/verify"): self._verify_rollout,
                ("POST", "/aggregate_metrics"): self._aggregate_metrics,
                **{("POST", f"/{tool}"): self._call_tool for tool in self.tools},
            }
        )
        if reverify_mode is not None:
            self.handlers["GET", "/reverify_mode"] = partial(_told, reverify_mode)
        self.over_mcp = self.make_over_mcp() if expose_tools_over_mcp else None
        if self.over_mcp is not None:
            self.handlers["POST", PATH] = self.over_mcp

    @property
    def declarations(self) -> list[dict[str, Any]]:
        """The tools as a row declares them in `responses_create_params.tools`."""
        return [tool.declaration for tool in self.tools.values()]

    async def seed(self, session_id: str, row: dict[str, Any]) -> dict[str, Any]:
        """Open a session; the reply's object.

        A seed that is repeated before verify changes nothing, so a client may retry it. After verify, or with
        another row, the session starts anew, as a client that keeps one cookie for all its rows expects.
        """
        digest = hashlib.blake2b(json.dumps(row, sort_keys=True).encode(), digest_size=16).digest()
        kept = self.sessions.get(session_id)
        if kept is None or kept.scored or kept.seed != digest:
            self.sessions.put(session_id, StoredSession(self.new_state(row), digest))
        return {}

    async def call(self, session_id: str, tool: FunctionTool, arguments: dict[str, Any]) -> Any:
        """Run a tool in a session; its result as plain JSON values. A session never seeded starts empty."""
        session = self.sessions.get(session_id) or self.sessions.put(session_id, StoredSession(self.new_state({})))
        return await tool.call(session.state, arguments)

    async def score(self, session_id: str, row: TaskRow, response: dict[str, Any]) -> Score:
        """Score a rollout. One whose session is unknown is scored as if nothing had been done in it."""
        session = self.sessions.get(session_id) or StoredSession(self.new_state(row.model_dump()))
        session.scored = True
        given = {"state": session.state, "row": row, "response": response}
        found = self._verify(**{name: given[name] for name in self._verify_takes})
        return Score.of(await found if inspect.isawaitable(found) else found)

    def new_state(self, row: dict[str, Any]) -> Any:
        """A fresh state for a row.

        Raises:
            HttpRefusal: 422 if the state factory does not accept the row.
        """
        if self._seed_model is None:
            return self._make_state()
        return self._make_state(validated(self._seed_model, row))

    def make_over_mcp(self) -> ToolsOverMCP:
        """What serves the tools over MCP."""
        return ToolsOverMCP(self.name, self.tools, self.call, self.cookie.key)

    def allowed_tools(self, row: dict[str, Any]) -> Sequence[str] | None:
        """The tools that a session of the row may call over MCP; None for all."""
        del row
        return None

    async def dispatch(self, request: HttpRequest) -> HttpReply:
        """Answer within the request's session; the cookie goes out with every reply, refusals included."""
        session_id = self.cookie.read(request.headers.get("cookie", "")) or token_hex()
        reply = await super().dispatch(request.within(session_id))
        return reply.plus(("vary", "Cookie"), ("set-cookie", self.cookie.write(session_id)))

    @cached_property
    def openapi(self) -> dict[str, Any]:
        """The OpenAPI document."""
        return document(self.name, self._operations())

    def _operations(self) -> list[Operation]:
        """The POST routes, the seed first."""
        tools = (Operation(t.name, t.description, t.arguments, t.result) for t in self.tools.values())
        return [
            Operation("seed_session", "Open a session for a row.", self._seed_model or SeedRequest),
            Operation("verify", "Score a rollout.", self._verify_model),
            Operation("aggregate_metrics", "Sum up verify responses.", AggregateMetricsRequest),
            *tools,
        ]

    async def _openapi(self, _: HttpRequest) -> HttpReply:
        made = await asyncio.to_thread(lambda: self.openapi)  # the first one takes a while, and other requests go on
        return HttpReply.json(made)

    async def _seed_session(self, request: HttpRequest) -> HttpReply:
        row = json_body(request)
        validated(self._seed_model or SeedRequest, row)
        reply = await self.seed(request.session_id, row)
        if self.over_mcp is None:
            return HttpReply.json(reply)
        return HttpReply.json(
            {"mcp": self.over_mcp.block(Claims(request.session_id, self.allowed_tools(row))), **reply}
        )

    async def _call_tool(self, request: HttpRequest) -> HttpReply:
        tool = self.tools[request.path.removeprefix("/")]
        arguments = tool.bind(json_body(request))
        return HttpReply.json(await self.call(request.session_id, tool, arguments))

    async def _verify_rollout(self, request: HttpRequest) -> HttpReply:
        body = json_body(request)
        row = validated(self._verify_model, body)
        score = await self.score(request.session_id, row, body["response"])
        return HttpReply.json(body | score.reply)

    async def _aggregate_metrics(self, request: HttpRequest) -> HttpReply:
        return HttpReply.json(aggregate(validated(AggregateMetricsRequest, json_body(request)).verify_responses))


async def _told(value: str, _: HttpRequest) -> HttpReply:
    return HttpReply.json(value)


@lru_cache(maxsize=64)
def _verify_model(row: type[TaskRow]) -> type[TaskRow]:
    """The model of what is verified: a row, and the policy's response."""
    return create_model("VerifyRequest", __base__=row, response=(PolicyResponse, ...))


def _taken_by(verify: Callable[..., Any]) -> tuple[str, ...]:
    """Which of `GIVEN` a verify function names.

    Raises:
        TypeError: it needs something else, so that none of its calls could succeed.
    """
    parameters = inspect.signature(verify).parameters.values()
    needed = (
        one for one in parameters if one.default is one.empty and one.kind not in {one.VAR_POSITIONAL, one.VAR_KEYWORD}
    )
    if other := next((one.name for one in needed if one.name not in GIVEN), None):
        raise TypeError(f"verify is given those of {', '.join(GIVEN)} that its parameters name: not {other!r}")
    return tuple(one.name for one in parameters if one.name in GIVEN)


def _seed_model(state: Callable[..., Any]) -> type[BaseModel] | None:
    """The model of the state factory's parameter; None where it takes none.

    Raises:
        TypeError: it takes a parameter that no pydantic model types.
    """
    if isinstance(state, type):
        return None
    parameters = list(inspect.signature(state).parameters)
    if not parameters:
        return None
    model = get_type_hints(state).get(parameters[0])
    if not (isinstance(model, type) and issubclass(model, BaseModel)):
        raise TypeError(f"the state factory's parameter {parameters[0]} must be typed as a pydantic model")
    return model
