"""Environment servers: one that keeps every rule, and twins of it with one fault each."""

import asyncio
import json
import random
from collections.abc import Callable
from secrets import token_hex
from typing import Any

from pydantic import BaseModel, ConfigDict

from gym_mocks.resources.models import validated
from gym_mocks.resources.reward_profile import aggregate
from gym_mocks.resources.typed_server import EpisodeId, TaskId
from gym_mocks.wire import App, HttpReply, HttpRequest, json_body
from gym_mocks.wire.client import ASGIApp
from tests.twins.twin import Json, Twin, twin, unrecorded


class Task(BaseModel):
    """What is played: the row's fields."""

    model_config = ConfigDict(extra="forbid")

    task_id: TaskId
    task_input: dict[str, Any]


class EpisodeRequest(BaseModel):
    """As an environment server takes it."""

    model_config = ConfigDict(extra="forbid")

    episode_id: EpisodeId
    task: Task


class Playing(App):
    """Plays an episode by itself: its policy says the same each time, and earns what the row's lines are worth."""

    def __init__(self) -> None:
        super().__init__(
            {
                ("GET", "/openapi.json"): self._openapi,
                ("GET", "/"): self._live,
                ("POST", "/run"): self._run,
                ("POST", "/aggregate_metrics"): self._aggregate,
            }
        )

    async def play(self, task: Json) -> Json:
        """The result of one episode."""
        await asyncio.sleep(0)
        return {"reward": len(task["stock"]) / 8, "responses_create_params": task["responses_create_params"]}

    async def run(self, request: EpisodeRequest) -> Json:
        """The answer to one request."""
        try:
            result = await self.play(request.task.task_input)
        except Exception as error:  # noqa: BLE001 - as nemo-gym's base does
            return self.answer_with(request, failure={"failure_reason": repr(error), "terminal": True})
        return self.answer_with(request, result=result)

    def answer_with(self, request: EpisodeRequest, **ended: Any) -> Json:
        """The answer, with the request's identity."""
        episode_id, task_id = request.episode_id.model_dump(), request.task.task_id.model_dump()
        return {"episode_id": episode_id, "task_id": task_id, "result": None, "failure": None} | ended

    def aggregate(self, responses: list[Json]) -> Json:
        """The metrics of results."""
        return aggregate(responses)

    async def _run(self, request: HttpRequest) -> HttpReply:
        return HttpReply.json(await self.run(validated(EpisodeRequest, json_body(request))))

    async def _aggregate(self, request: HttpRequest) -> HttpReply:
        return HttpReply.json(self.aggregate(json.loads(request.body)["verify_responses"]))

    async def _live(self, _: HttpRequest) -> HttpReply:
        return HttpReply.json({"status": "ok"})

    async def _openapi(self, _: HttpRequest) -> HttpReply:
        body = {"content": {"application/json": {"schema": EpisodeRequest.model_json_schema()}}}
        return HttpReply.json({"paths": {"/run": {"post": {"requestBody": body}}, "/aggregate_metrics": {"post": {}}}})


class Relaying(Playing):
    """Takes rows, as an agent's `/run` does, and answers with the result itself."""

    async def _run(self, request: HttpRequest) -> HttpReply:
        row = json_body(request)
        if not isinstance(row, dict) or not isinstance(row.get("stock"), list):
            return HttpReply.json({"detail": "stock: a list is needed"}, 422)
        return HttpReply.json(await self.play(row))

    async def _openapi(self, _: HttpRequest) -> HttpReply:
        return HttpReply.json({"paths": {"/run": {"post": {}}, "/aggregate_metrics": {"post": {}}}})


class Undocumented(Relaying):
    def __init__(self) -> None:
        super().__init__()
        del self.handlers["GET", "/openapi.json"]


class FailsInForm(Relaying):
    """As single_agent_turn_legacy does: a failure is a row of status 200."""

    async def play(self, task: Json) -> Json:
        return {"_ng_failure_class": "environment_server_failed", "_ng_failure_message": f"no model for {len(task)}"}


class Raises(Playing):
    async def run(self, request: EpisodeRequest) -> Json:
        assert len(request.task.task_input["stock"]) == 3
        return await super().run(request)


class AnswersNull(Playing):
    async def _run(self, request: HttpRequest) -> HttpReply:
        await super()._run(request)
        return HttpReply.json(None)


class ForgetsWho(Playing):
    def answer_with(self, request: EpisodeRequest, **ended: Any) -> Json:
        return super().answer_with(request, **ended) | {"task_id": {"taskset": "all", "task_id": "1"}}


class SaysBoth(Playing):
    def answer_with(self, request: EpisodeRequest, **ended: Any) -> Json:
        failure = {"failure_reason": "well", "terminal": False}
        return super().answer_with(request, **ended) | {"failure": failure}


class FailsInWords(Playing):
    """The failure is a text, where an object is read."""

    async def play(self, task: Json) -> Json:
        raise RuntimeError(f"no model for {len(task)}")

    def answer_with(self, request: EpisodeRequest, **ended: Any) -> Json:
        return super().answer_with(request, failure=ended["failure"]["failure_reason"])


class AllFails(Playing):
    """In form: nothing is wrong with it, and nothing can be learnt of it."""

    async def play(self, task: Json) -> Json:
        raise RuntimeError(f"no model for {len(task)}")


class ReturnsAList(Playing):
    async def play(self, task: Json) -> Any:
        return [await super().play(task)]


class WritesTheCollectorsKeys(Playing):
    async def play(self, task: Json) -> Json:
        return await super().play(task) | {"ng_perf": {"seconds": 1}}


class NoReward(Playing):
    async def play(self, task: Json) -> Json:
        return await super().play(task) | {"reward": None}


class EarnsTooMuch(Playing):
    async def play(self, task: Json) -> Json:
        return await super().play(task) | {"reward": 10**400}


class OneAtATime(Playing):
    """What is played is kept on the server: fine, until two play at once."""

    task: Json

    async def play(self, task: Json) -> Json:
        self.task = task
        await asyncio.sleep(0.01)
        return await super().play(self.task)


class AnswersTheLast(Playing):
    """The identity is kept on the server, too."""

    request: EpisodeRequest

    async def run(self, request: EpisodeRequest) -> Json:
        self.request = request
        await asyncio.sleep(0.01)
        return await super().run(request) | {"episode_id": self.request.episode_id.model_dump()}


class Shows(Playing):
    """Its result shows what the policy said, whose call has a new id each time."""

    tools = "2 apples"

    async def play(self, task: Json) -> Json:
        call_id = token_hex()
        call = {
            "type": "function_call",
            "name": "count",
            "arguments": json.dumps({"all": task["stock"]}),
            "call_id": call_id,
        }
        answer = {"type": "function_call_output", "call_id": call_id, "output": self.tools}
        message = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Done."}]}
        return await super().play(task) | {"response": {"output": [call, answer, message]}}


class ShowsAPolicyThatSamples(Shows):
    """What it says decides what it earns: one of two words, by chance."""

    async def play(self, task: Json) -> Json:
        result = await super().play(task)
        result["reward"] = float(random.random() < 0.5)
        result["response"]["output"][-1]["content"][0]["text"] = "Yes." if result["reward"] else "No."
        return result


class EarnsWhatTheLastDoes(Shows):
    """Which row is scored is kept on the server."""

    stock: list[Any]

    async def play(self, task: Json) -> Json:
        self.stock = task["stock"]
        await asyncio.sleep(0.01)
        return await super().play(task) | {"reward": len(self.stock) / 8}


class SoldOut(Shows):
    """One shop for all episodes: whoever comes later gets nothing; the policy orders, and confirms the order that it is told."""

    def __init__(self) -> None:
        super().__init__()
        self.orders: list[str] = []

    async def play(self, task: Json) -> Json:
        wanted = json.dumps(task["stock"])
        result = await super().play(task) | ({"reward": 0.0} if wanted in self.orders else {})
        self.orders.append(wanted)
        told = json.dumps({"order": f"order-{len(self.orders)}"})
        result["response"]["output"][1]["output"] = told
        result["response"]["output"][2:2] = [
            {"type": "function_call", "name": "confirm", "arguments": told, "call_id": "confirming"},
            {"type": "function_call_output", "call_id": "confirming", "output": "Confirmed."},
        ]
        return result


class NeverForgets(Shows):
    """The response is a list of all episodes."""

    def __init__(self) -> None:
        super().__init__()
        self.items: list[Json] = []

    async def play(self, task: Json) -> Json:
        result = await super().play(task)
        self.items += result["response"]["output"]
        return result | {"response": {"output": list(self.items)}}


class OnlyOnce(Playing):
    def __init__(self) -> None:
        super().__init__()
        self.seen: set[str] = set()

    async def run(self, request: EpisodeRequest) -> Json:
        if request.episode_id.rollout_id in self.seen:
            return self.answer_with(request, failure={"failure_reason": "seen before", "terminal": True})
        self.seen.add(request.episode_id.rollout_id)
        return await super().run(request)


class ReadsTheRawBody(Playing):
    async def _run(self, request: HttpRequest) -> HttpReply:
        json.loads(request.body)["task"]["task_input"].items()
        return await super()._run(request)


class AggregatesTheHeavy(Playing):
    def aggregate(self, responses: list[Json]) -> Json:
        assert all(response["responses_create_params"] for response in responses)
        return super().aggregate(responses)


def running(name: str, fails: str, make: Callable[[], ASGIApp], **more: Any) -> Twin:
    """A twin of an environment server."""
    return twin(f"running: {name}", fails, make, data=unrecorded(), **more)


#: Those that want an episode that ends.
ENDED = "run-rewards run-isolation run-earlier run-repeats run-again run-aggregates"

TWINS = (
    running("all is well", "", Playing),
    running("rows are well, too", "", Relaying),
    running("no document says what it is", "", Undocumented),
    running("every episode fails", "", AllFails, untestable=ENDED),
    running("every row fails", "", FailsInForm, untestable=ENDED),
    running("a row raises", "run-answers", Raises, untestable="run-rewards"),
    running("null", "run-answers", AnswersNull, untestable=ENDED),
    running("another's task", "run-answers", ForgetsWho),
    running("result and failure", "run-answers", SaysBoth, untestable=ENDED),
    running("a failure in words", "run-answers", FailsInWords, untestable=ENDED),
    running("the result is a list", "run-answers", ReturnsAList, untestable="run-rewards run-aggregates"),
    running("the collector's keys", "run-answers", WritesTheCollectorsKeys),
    running("no reward", "run-rewards", NoReward),
    running("a reward of 400 digits", "run-rewards run-aggregates", EarnsTooMuch),
    running("one at a time", "run-isolation", OneAtATime),
    running("answers the last", "run-isolation", AnswersTheLast),
    running("what it shows is well", "", Shows),
    running("a policy that samples", "", ShowsAPolicyThatSamples),
    running("earns what the last does", "run-isolation", EarnsWhatTheLastDoes),
    running("sold out", "run-repeats", SoldOut),
    running("never forgets", "run-earlier", NeverForgets),
    running("only once", "run-again", OnlyOnce),
    running("reads the raw body", "run-malformed", ReadsTheRawBody),
    running("aggregates what is left out", "run-aggregates", AggregatesTheHeavy),
)
