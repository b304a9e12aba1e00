"""Twins whose tools over MCP are not what they say, or not in the session that they should be in."""

import random
from collections.abc import Callable
from typing import Any, Literal

from gym_mocks.reference import ReferenceServer
from gym_mocks.resources import FunctionTool
from gym_mocks.resources.tools_over_mcp import Claims, ToolsOverMCP, tool_error
from gym_mocks.wire import HttpReply, HttpRequest
from tests.twins.tools import declare
from tests.twins.twin import Json, Twin, dataset, twin, unrecorded


class OverMCP(ReferenceServer):
    """The reference with its tools over MCP too, as nemo-gym's `expose_tools_over_mcp` has it."""

    serves: type[ToolsOverMCP] = ToolsOverMCP

    def __init__(self) -> None:
        super().__init__(expose_tools_over_mcp=True)

    def make_over_mcp(self) -> ToolsOverMCP:
        return self.serves(self.name, self.tools, self.call, self.cookie.key)


class OnlyOverMCP(OverMCP):
    """Without routes, as nemo-gym 0.4.0's class-based form is."""

    def __init__(self) -> None:
        super().__init__()
        for tool in self.tools:
            del self.openapi["paths"][f"/{tool}"]
            del self.handlers["POST", f"/{tool}"]


def serving(serves: type[ToolsOverMCP], server: type[OverMCP] = OverMCP) -> Callable[[], ReferenceServer]:
    """Makes servers that serve MCP in a way of their own."""
    return type(serves.__name__, (server,), {"serves": serves})


def block(**changed: Any) -> Callable[[], ReferenceServer]:
    """Makes servers that say something else in the block."""

    class Block(ToolsOverMCP):
        def block(self, claims: Claims) -> Json:
            return super().block(claims) | changed

    return serving(Block)


def listing(change: Callable[[list[Json]], list[Json]]) -> type[ToolsOverMCP]:
    """Lists other tools than it has."""

    class Listing(ToolsOverMCP):
        async def listed(self, claims: Claims | None) -> list[Json]:
            return change(await super().listed(claims))

    return Listing


VERIFY = {"name": "verify", "description": "Verify.", "inputSchema": {"type": "object", "properties": {}}}


class BlockIsText(OverMCP):
    async def seed(self, session_id: str, row: Json) -> Json:
        return {**await super().seed(session_id, row), "mcp": "/mcp"}


class NoHandshake(ToolsOverMCP):
    async def __call__(self, request: HttpRequest) -> HttpReply:
        del request
        return HttpReply(307, b"", (("location", "/mcp/"),))


class ChecksNoToken(ToolsOverMCP):
    """A call without a token is in the session of all who have none."""

    def claims(self, token: str) -> Claims | None:
        return super().claims(token) if token else Claims("everybody's")


class ChecksNoSignature(ToolsOverMCP):
    def claims(self, token: str) -> Claims | None:
        content = token.partition(".")[0]
        unsigned = self.signer.sign(content.encode()).decode() if "." in token else token
        return super().claims(unsigned)


class TakesPlainIds(ToolsOverMCP):
    def claims(self, token: str) -> Claims | None:
        known = super().claims(token)
        return known or (Claims(token) if len(token) == 64 and token.isalnum() else None)


class ItRains(OverMCP):
    """What a tool answers says, too, whether it rains, as it does now and then."""

    async def call(self, session_id: str, tool: FunctionTool, arguments: Json) -> Any:
        answer = await super().call(session_id, tool, arguments)
        return {"answer": answer, "rains": random.random() < 0.5}


class LastTokenWins(ToolsOverMCP):
    """The session is that of the latest seed."""

    latest: Claims | None = None

    def block(self, claims: Claims) -> Json:
        self.latest = claims
        return super().block(claims)

    def claims(self, token: str) -> Claims | None:
        return super().claims(token) and self.latest


class SessionOfItsOwn(ToolsOverMCP):
    """The state that the calls change is not the one that is scored."""

    def claims(self, token: str) -> Claims | None:
        known = super().claims(token)
        return known and Claims(f"mcp {known.session_id}", known.tools)


class WrittenTwice(ToolsOverMCP):
    async def called(self, name: str, arguments: Json, token: str) -> Json:
        result = await super().called(name, arguments, token)
        if name == "count_stock" and not result.get("isError"):
            result["structuredContent"] = {"quantity": str(result["structuredContent"]["quantity"])}
        return result


class Crashes(ToolsOverMCP):
    """Looks a tool up, or its arguments, without asking whether they are there."""

    async def called(self, name: str, arguments: Json, token: str) -> Json:
        if name not in self.tools:
            raise KeyError(name)
        return await super().called(name, arguments, token)


class CrashesOnArguments(ToolsOverMCP):
    async def called(self, name: str, arguments: Json, token: str) -> Json:
        if name == "list_stock":
            arguments["category"]
        return await super().called(name, arguments, token)


class SaysDone(ToolsOverMCP):
    """An unknown tool is acknowledged."""

    async def called(self, name: str, arguments: Json, token: str) -> Json:
        if name not in self.tools:
            return {"content": [{"type": "text", "text": "done"}]}
        return await super().called(name, arguments, token)


class Restricts(OverMCP):
    """The row that ends on two apples may not be counted."""

    def allowed_tools(self, row: Json) -> list[str] | None:
        stocked = row.get("expected_answer") == 10
        return ["add_stock", "move_stock", "list_stock"] if stocked else None


class OnlyHides(ToolsOverMCP):
    """What is not listed can be called."""

    def claims(self, token: str) -> Claims | None:
        known = super().claims(token)
        return known and Claims(known.session_id)

    async def _list(self, _params: Json, token: str) -> Json:
        return {"tools": await self.listed(super().claims(token))}


class NeedsNoSession(ToolsOverMCP):
    """A tool that takes no session needs no token, as in nemo-gym 0.4.0; the others do."""

    async def called(self, name: str, arguments: Json, token: str) -> Json:
        whose = token if name != "double" else self.token(Claims("nobody's"))
        return await super().called(name, arguments, whose)


class DoublesToo(OnlyOverMCP):
    """One of its tools takes no session."""

    serves = NeedsNoSession

    def __init__(self) -> None:
        super().__init__()
        assert self.over_mcp is not None
        self.over_mcp.tools = {"double": FunctionTool.of(double), **self.tools}


class OneRobot(OnlyOverMCP):
    """One robot for all sessions, which each seed puts back; the first of its directions leads into a wall."""

    shared = True

    def __init__(self) -> None:
        super().__init__()
        assert self.over_mcp is not None
        self.at: dict[str, int] = {}
        self.over_mcp.tools = {"move": FunctionTool.of(move), **self.tools}

    def whose(self, session_id: str) -> str:
        """Whose robot a session steers."""
        return "everybody" if self.shared else session_id

    async def seed(self, session_id: str, row: Json) -> Json:
        self.at[self.whose(session_id)] = 0
        return await super().seed(session_id, row)

    async def call(self, session_id: str, tool: FunctionTool, arguments: Json) -> Any:
        if tool.name != "move":
            return await super().call(session_id, tool, arguments)
        whose = self.whose(session_id)
        if arguments["direction"] == "north":
            return {"wall": True}
        self.at[whose] += 1
        return {"steps": self.at[whose]}


class RobotEach(OneRobot):
    shared = False


def move(direction: Literal["north", "south"]) -> dict[str, int]:
    """Move the robot."""
    return {direction: 1}


def double(number: int) -> dict[str, int]:
    """Double a number."""
    return {"number": 2 * number}


def offers_food(tools: list[Json]) -> list[Json]:
    """Lists a category that no route takes."""
    for tool in tools:
        if tool["name"] == "add_stock":
            tool["inputSchema"]["properties"]["category"]["enum"] = ["food", "fruit"]
    return tools


def _rows_offer_food(row: Json) -> None:
    for tool in row["responses_create_params"]["tools"]:
        if tool["name"] == "add_stock":
            tool["parameters"]["properties"]["category"]["enum"] = ["food", "fruit"]


class Unreliable(ToolsOverMCP):
    """Refuses whatever comes, and blames no argument."""

    async def called(self, name: str, arguments: Json, token: str) -> Json:
        del arguments, token
        return tool_error(f"{name} is closed")


class Undocumented(OverMCP):
    """It publishes no OpenAPI document."""

    def __init__(self) -> None:
        super().__init__()
        del self.handlers["GET", "/openapi.json"]


NEED_LIST = """mcp-tool-names mcp-argument-refused mcp-tool-served mcp-routes-listed mcp-same-as-route mcp-recorded
    mcp-unknown-tool mcp-bad-arguments mcp-token-missing mcp-token-forged mcp-sessions-apart mcp-restricted"""
NEED_CALL = "mcp-token-missing mcp-token-forged mcp-sessions-apart"

TWINS: tuple[Twin, ...] = (
    twin("tools over MCP too", "", OverMCP),
    twin("tools over MCP only", "", OnlyOverMCP),
    twin("a row that is shown fewer tools", "", Restricts),
    twin("a tool over MCP that needs no session", "", DoublesToo, data=unrecorded()),
    twin("a block that is text", "mcp-block", BlockIsText, untestable=f"mcp-lists-tools {NEED_LIST}"),
    twin("a block without headers", "mcp-block", block(headers={}), untestable=f"mcp-lists-tools {NEED_LIST}"),
    twin(
        "a block that points elsewhere",
        "mcp-block",
        block(url_path="http://gym.example/mcp"),
        untestable=f"mcp-lists-tools {NEED_LIST}",
    ),
    twin("an endpoint that redirects", "mcp-lists-tools", serving(NoHandshake), untestable=NEED_LIST),
    twin("a tool that is listed twice", "mcp-lists-tools", serving(listing(lambda tools: [*tools, tools[0]]))),
    twin("a tool with a reserved name", "mcp-tool-names", serving(listing(lambda tools: [*tools, VERIFY]))),
    twin("a list of another version", "mcp-argument-refused", serving(listing(offers_food))),
    twin("rows of another version", "mcp-argument-refused", OnlyOverMCP, data=dataset(_rows_offer_food)),
    twin(
        "tools over MCP that are all closed",
        "mcp-same-as-route mcp-recorded",
        serving(Unreliable),
        data=dataset(_rows_offer_food),
        untestable=NEED_CALL,
    ),
    twin("a declared tool that MCP does not know", "mcp-tool-served", OnlyOverMCP, data=declare("get_weather")),
    twin("a route that is not listed", "mcp-routes-listed", serving(listing(lambda tools: tools[1:]))),
    twin("a tool that is written twice", "mcp-same-as-route", serving(WrittenTwice)),
    twin("a session of its own over MCP", "mcp-same-as-route mcp-recorded", serving(SessionOfItsOwn)),
    twin("an unknown tool that crashes the endpoint", "mcp-unknown-tool", serving(Crashes)),
    twin("an unknown tool that is done", "mcp-unknown-tool", serving(SaysDone)),
    twin("arguments that crash the endpoint", "mcp-bad-arguments", serving(CrashesOnArguments)),
    twin("a token that is not asked for", "mcp-token-missing", serving(ChecksNoToken)),
    twin("a token whose signature is not checked", "mcp-token-forged", serving(ChecksNoSignature)),
    twin("a token that may be a plain id", "mcp-token-forged", serving(TakesPlainIds)),
    twin("it rains now and then", "", ItRains),
    twin("the latest token for all", "mcp-sessions-apart", serving(LastTokenWins)),
    twin(
        "a tool that is written twice, nothing recorded",
        "mcp-same-as-route",
        serving(WrittenTwice, Undocumented),
        data=unrecorded(),
    ),
    twin("one robot for all", "mcp-sessions-apart", OneRobot, data=unrecorded()),
    twin("a robot for each", "", RobotEach, data=unrecorded()),
    twin("a tool that is only hidden", "mcp-restricted", serving(OnlyHides, Restricts)),
)
