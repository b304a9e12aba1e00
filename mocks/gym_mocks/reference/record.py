"""Writes the reference's data: `python -m gym_mocks.reference.record`. A test holds the files to it."""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gym_mocks.reference import DATA, ROLLOUTS, reference_app
from gym_mocks.resources import ResourcesServer
from gym_mocks.wire import HttpReply, HttpRequest
from gym_mocks.wire.messages import to_json

RecordedCall = tuple[str, dict[str, Any]]
Lines = Sequence[tuple[str, str, str, int]]


@dataclass(frozen=True)
class Task:
    """A row, and the calls that earn its reward."""

    prompt: str
    stock: Lines
    expected: Lines
    answer: int
    calls: Sequence[RecordedCall]


def amount(item: str, quantity: int) -> dict[str, Any]:
    """The nested argument of `add_stock` and `move_stock`."""
    return {"item": item, "quantity": quantity}


TASKS = (
    Task(
        "Put 12 more apples on the shelf. How many pieces of fruit are there then, everywhere?",
        [("apple", "fruit", "shelf", 3), ("pear", "fruit", "van", 4)],
        [("apple", "fruit", "shelf", 15), ("pear", "fruit", "van", 4)],
        19,
        [
            ("add_stock", {"amount": amount("apple", 12), "category": "fruit", "place": "shelf"}),
            ("list_stock", {"category": "fruit"}),
        ],
    ),
    Task(
        "Load 5 hammers from the shelf into the van. How many hammers are left on the shelf?",
        [("hammer", "tool", "shelf", 9), ("hammer", "tool", "van", 1)],
        [("hammer", "tool", "shelf", 4), ("hammer", "tool", "van", 6)],
        4,
        [
            ("move_stock", {"amount": amount("hammer", 5), "origin": "shelf", "destination": "van"}),
            ("count_stock", {"item": "hammer", "place": "shelf"}),
        ],
    ),
    Task(
        "Unload the van: all of it belongs on the shelf. How many books are on the shelf in the end?",
        [("atlas", "book", "van", 2), ("atlas", "book", "shelf", 5), ("novel", "book", "van", 7)],
        [("atlas", "book", "shelf", 7), ("novel", "book", "shelf", 7)],
        14,
        [
            ("list_stock", {"category": None}),
            ("move_stock", {"amount": amount("atlas", 2), "origin": "van", "destination": "shelf"}),
            ("move_stock", {"amount": amount("novel", 7), "origin": "van", "destination": "shelf"}),
            ("count_stock", {"item": "atlas", "place": "shelf"}),
            ("count_stock", {"item": "novel", "place": "shelf"}),
        ],
    ),
    Task(
        "The stockroom is empty. Put 8 saws and 2 drills into the van. How many tools is that?",
        [],
        [("drill", "tool", "van", 2), ("saw", "tool", "van", 8)],
        10,
        [
            ("add_stock", {"amount": amount("saw", 8), "category": "tool", "place": "van"}),
            ("add_stock", {"amount": amount("drill", 2), "category": "tool", "place": "van"}),
            ("list_stock", {"category": "tool"}),
        ],
    ),
    Task(
        "Bring as many plums from the van to the shelf as there are pears on the shelf. "
        "How many plums stay in the van?",
        [("pear", "fruit", "shelf", 6), ("plum", "fruit", "van", 10)],
        [("pear", "fruit", "shelf", 6), ("plum", "fruit", "shelf", 6), ("plum", "fruit", "van", 4)],
        4,
        [
            ("count_stock", {"item": "pear", "place": "shelf"}),
            ("move_stock", {"amount": amount("plum", 6), "origin": "van", "destination": "shelf"}),
            ("count_stock", {"item": "plum", "place": "van"}),
        ],
    ),
    Task(
        "Twice as many novels as now should be on the shelf: add what is missing. How many novels are there "
        "then in both places together?",
        [("novel", "book", "shelf", 11), ("novel", "book", "van", 3), ("wrench", "tool", "van", 1)],
        [("novel", "book", "shelf", 22), ("novel", "book", "van", 3), ("wrench", "tool", "van", 1)],
        25,
        [
            ("count_stock", {"item": "novel", "place": "shelf"}),
            ("add_stock", {"amount": amount("novel", 11), "category": "book", "place": "shelf"}),
            ("count_stock", {"item": "novel", "place": None}),
        ],
    ),
)


def row_of(task: Task, server: ResourcesServer) -> dict[str, Any]:
    """A task as a dataset row."""
    system = "You keep a stockroom. Use the tools. End with one sentence whose last number is the answer."
    return {
        "responses_create_params": {
            "input": [
                {"type": "message", "role": "system", "content": system},
                {"type": "message", "role": "user", "content": task.prompt},
            ],
            "tools": server.declarations,
            "parallel_tool_calls": True,
        },
        "stock": [_line(*line) for line in task.stock],
        "expected_stock": [_line(*line) for line in task.expected],
        "expected_answer": task.answer,
    }


async def rollout_of(index: int, task: Task, server: ResourcesServer) -> dict[str, Any]:
    """Play a task's calls on the server and record verify's reply, as nemo-gym's collector writes it."""
    row = row_of(task, server)
    cookie = {
        "cookie": server.cookie.write(f"record-{index}").partition(";")[0],
        "content-type": "application/json",
    }

    async def post(path: str, body: Any) -> HttpReply:
        return await server.answer(HttpRequest("POST", path, cookie, to_json(body)))

    await post("/seed_session", row)
    output: list[dict[str, Any]] = []
    for step, (name, arguments) in enumerate(task.calls):
        call_id = f"call_{index}_{step}"
        call = {"type": "function_call", "name": name, "arguments": json.dumps(arguments), "call_id": call_id}
        reply = await post(f"/{name}", arguments)
        if not isinstance(reply.body, bytes):
            raise TypeError("a tool's reply is no stream")
        result = {"type": "function_call_output", "call_id": call_id, "output": reply.body.decode()}
        output += [call | {"id": f"fc_{index}_{step}", "status": "completed"}, result]
    text = {"type": "output_text", "text": f"The answer is {task.answer}.", "annotations": []}
    message = {
        "id": f"msg_{index}",
        "type": "message",
        "role": "assistant",
        "status": "completed",
        "content": [text],
    }
    response = {
        "id": f"resp_{index}",
        "object": "response",
        "created_at": 1.7e9,
        "model": "recorded",
        "output": [*output, message],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": row["responses_create_params"]["tools"],
        "incomplete_details": None,
        "error": None,
        "usage": None,
    }
    reply = await post("/verify", row | {"response": response})
    if not isinstance(reply.body, bytes):
        raise TypeError("verify's reply is no stream")
    return {**json.loads(reply.body), "_ng_task_index": index, "_ng_rollout_index": 0}


async def recorded() -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The rows and their rollouts."""
    server = reference_app()
    rows = [row_of(task, server) for task in TASKS]
    return rows, [await rollout_of(index, task, server) for index, task in enumerate(TASKS)]


def _line(item: str, category: str, place: str, quantity: int) -> dict[str, Any]:
    return {"item": item, "category": category, "place": place, "quantity": quantity}


def _write(path: Path, lines: list[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")


if __name__ == "__main__":
    made, played = asyncio.run(recorded())
    _write(DATA, made)
    _write(ROLLOUTS, played)
