"""What the zoo's servers share: which fault is switched on, how rows are written, and how a server is told what to do.

A server's module calls `main(rows, serve)`: `python -m tests.zoo.servers.NAME rows FILE` writes its dataset, and
`python -m tests.zoo.servers.NAME serve PORT` serves until it is killed, with the fault that ZOO_FAULT names.
Its PLANS are what is recorded: for the number of a row its calls, or how each is made of the replies so far. A row
without a plan has no recorded rollout. PREFIX stands before its paths, and SAYS is what the policy says at the end.
"""

import json
import os
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

_FAULT = os.environ.get("ZOO_FAULT", "")


def planted(name: str) -> bool:
    """Whether this process serves with that fault."""
    return name == _FAULT


def tool(
    name: str, description: str, required: dict[str, Any], optional: dict[str, Any] | None = None
) -> dict[str, Any]:
    """A function tool as rows declare it."""
    schema = {
        "type": "object",
        "properties": required | (optional or {}),
        "required": list(required),
        "additionalProperties": False,
    }
    return {"type": "function", "name": name, "description": description, "parameters": schema, "strict": False}


def row(prompt: str, tools: list[dict[str, Any]], **fields: Any) -> dict[str, Any]:
    """A dataset row: what the policy is asked, its tools, and the env's own fields."""
    params = {"input": [{"role": "user", "content": prompt}], "tools": tools, "parallel_tool_calls": False}
    return {"responses_create_params": params, **fields}


def last_text(response: Any) -> str:
    """What the policy said last, '' where it said nothing."""
    output = response.get("output") if isinstance(response, dict) else None
    for item in reversed(output if isinstance(output, list) else []):
        if isinstance(item, dict) and item.get("type") == "message":
            content = item.get("content")
            if isinstance(content, str):
                return content
            parts = content if isinstance(content, list) else []
            return "".join(str(part.get("text", "")) for part in parts if isinstance(part, dict))
    return ""


def main(rows: Callable[[], Iterable[dict[str, Any]]], serve: Callable[[int], None]) -> None:
    """Do what the command line says."""
    if sys.argv[1] == "rows":
        Path(sys.argv[2]).write_text("".join(json.dumps(each) + "\n" for each in rows()), encoding="utf-8")
    else:
        serve(int(sys.argv[2]))
