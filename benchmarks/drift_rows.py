"""How fast rows with repeated tools are read: `python benchmarks/drift_rows.py [ROWS]`.

Against a bare loop of pydantic-core's parser over the same lines, in memory. One row carries 30 tools.
"""

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

from pydantic_core import from_json

from gym_conformance.contract.rows import Source
from gym_conformance.drift.definitions import Definitions
from gym_conformance.drift.repeats import Repeats


def _line(number: int, lists: int) -> bytes:
    argument = {"type": "string", "description": "What the tool is asked to do, in a few words."}
    schema = {"type": "object", "properties": {"query": argument}, "required": ["query"]}
    tools = [{"type": "function", "name": f"tool_{number % lists}_{each}", "parameters": schema} for each in range(30)]
    return json.dumps({"responses_create_params": {"input": f"Task {number}.", "tools": tools}, "id": number}).encode()


def _seconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def main() -> None:
    """Print one line for each number of different lists in the data."""
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 5_000
    source = Source(Path("rows.jsonl"), 1)
    for lists in (1, 5, 50, rows):
        lines = [_line(number, lists) for number in range(rows)]
        reader = Repeats(Definitions(), from_json)
        bare = _seconds(lambda lines=lines: [from_json(line) and None for line in lines])  # type: ignore[misc]
        ours = _seconds(lambda lines=lines, reader=reader: [reader.read(line, source) and None for line in lines])  # type: ignore[misc]
        print(
            f"{lists:>6} different lists: {rows / ours:>9,.0f} rows/s, {rows / bare:>9,.0f} parsed only,"
            f" {ours / bare:.2f} times as long; {len(lines[0]):,} bytes a row"
        )


if __name__ == "__main__":
    main()
