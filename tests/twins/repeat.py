"""Twins that do not do the same again."""

import contextlib
import gzip
import json
from typing import Any

from gym_mocks.reference import ReferenceServer, StoredSession
from gym_mocks.reference.stockroom import verify
from gym_mocks.resources import Score
from gym_mocks.resources.function_tool import FunctionTool
from gym_mocks.wire import HttpRefusal, HttpReply, HttpRequest
from tests.twins.twin import Twin, twin


class StateForEachCall(ReferenceServer):
    """The tools are made anew for each call, so that nothing is ever kept."""

    async def call(self, session_id: str, tool: FunctionTool, arguments: dict[str, Any]) -> Any:
        del session_id
        return await tool.call(self.new_state({}), arguments)


class StateOfTheLastSeed(ReferenceServer):
    """All sessions share what the last seed opened."""

    async def call(self, session_id: str, tool: FunctionTool, arguments: dict[str, Any]) -> Any:
        del session_id
        return await super().call("the last", tool, arguments)

    async def seed(self, session_id: str, row: dict[str, Any]) -> dict[str, Any]:
        self.sessions.put("the last", StoredSession(self.new_state(row)))
        return await super().seed(session_id, row)


class OneForEachTask(ReferenceServer):
    """Rollouts of a task share what the first of them has opened."""

    def __init__(self) -> None:
        super().__init__()
        self.tasks: dict[str, str] = {}

    async def seed(self, session_id: str, row: dict[str, Any]) -> dict[str, Any]:
        task = f"task {row['_ng_task_index']}" if "_ng_task_index" in row else session_id
        self.tasks[session_id] = task
        if self.sessions.get(task) is None:
            self.sessions.put(task, StoredSession(self.new_state(row)))
        return {}

    async def call(self, session_id: str, tool: FunctionTool, arguments: dict[str, Any]) -> Any:
        return await super().call(self.tasks.get(session_id, session_id), tool, arguments)

    async def score(self, session_id: str, row: Any, response: dict[str, Any]) -> Any:
        return await super().score(self.tasks.get(session_id, session_id), row, response)


class NewestForEachTask(OneForEachTask):
    """Rollouts of a task share what the last of them has opened."""

    async def seed(self, session_id: str, row: dict[str, Any]) -> dict[str, Any]:
        if "_ng_task_index" in row:
            self.sessions.drop(f"task {row['_ng_task_index']}")
        return await super().seed(session_id, row)


class NumbersCalls(ReferenceServer):
    """A call's answer says how many calls its session has made."""

    def __init__(self) -> None:
        super().__init__()
        self.made: dict[str, int] = {}

    async def call(self, session_id: str, tool: FunctionTool, arguments: dict[str, Any]) -> Any:
        self.made[session_id] = self.made.get(session_id, 0) + 1
        return await super().call(session_id, tool, arguments) | {"call": self.made[session_id]}


class SaysUnsupported(ReferenceServer):
    """verify reads nothing but the request, and yet the server says that nothing may be scored again."""

    def __init__(self) -> None:
        super().__init__()
        self.handlers["GET", "/reverify_mode"] = self._mode

    async def _mode(self, _: HttpRequest) -> HttpReply:
        return HttpReply.json("unsupported")

    async def score(self, session_id: str, row: Any, response: dict[str, Any]) -> Score:
        """Makes the calls that the request tells of again, in a session of its own."""
        del session_id
        stock = self.new_state(row.model_dump())
        for item in response["output"]:
            if isinstance(item, dict) and item.get("type") == "function_call" and item.get("name") in self.tools:
                tool = self.tools[item["name"]]
                with contextlib.suppress(HttpRefusal, TypeError, ValueError):
                    await tool.call(stock, tool.bind(json.loads(item["arguments"])))
        return verify(stock, row, response)


class CompressesAll(ReferenceServer):
    """Replies are compressed where the client takes that, but for errors, which have the header as well."""

    async def dispatch(self, request: HttpRequest) -> HttpReply:
        reply = await super().dispatch(request)
        if "gzip" not in request.headers.get("accept-encoding", "") or not isinstance(reply.body, bytes):
            return reply
        body = reply.body if reply.status >= 400 else gzip.compress(reply.body)
        headers = tuple(each for each in reply.headers if each[0].lower() != "content-length")
        return HttpReply(reply.status, body, (*headers, ("content-encoding", "gzip")))


class RenamesForSome(ReferenceServer):
    """Clients that take compressed replies are sent others."""

    async def dispatch(self, request: HttpRequest) -> HttpReply:
        reply = await super().dispatch(request)
        if "gzip" not in request.headers.get("accept-encoding", "") or not isinstance(reply.body, bytes):
            return reply
        return HttpReply(reply.status, reply.body.replace(b'"quantity":', b'"amount":'), reply.headers)


TWINS: tuple[Twin, ...] = (
    twin("errors that are said to be compressed", "repeat-compressed", CompressesAll),
    twin("other replies where they are compressed", "repeat-compressed", RenamesForSome),
    twin("state lost after each call", "repeat-recorded", StateForEachCall),
    twin("state shared by all sessions", "repeat-recorded", StateOfTheLastSeed),
    twin("one state for each task", "isolation-same-task", OneForEachTask),
    twin("the newest state for each task", "isolation-same-task", NewestForEachTask),
    twin("calls that count", "repeat-recorded repeat-tool-calls drift-result", NumbersCalls),
    twin("stateless and does not say so", "repeat-declares-stateless", SaysUnsupported),
)
