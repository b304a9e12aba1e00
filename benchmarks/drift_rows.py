"""How fast a dataset is read for judging: `python benchmarks/drift_rows.py [ROWS]` (200,000 rows are 1 GB).

Writes rows with 30 tools each to a temporary folder, which is removed, and reads the file twice, each time in a process
of its own: as the suite does (every row's shape and every definition), and with a bare loop of `orjson.loads` (of
pydantic-core's parser where orjson is not installed). Once for each number of different tools lists in the data.
"""

import json
import resource
import subprocess
import sys
import tempfile
import time
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

ROWS = 200_000
_MEGABYTE = 1_000_000


def tools(number: int) -> list[dict[str, Any]]:
    """30 definitions of some 160 bytes, as datasets have them."""
    argument = {"type": "string", "description": "What the tool is asked for."}
    schema = {"type": "object", "properties": {"query": argument}, "required": ["query"]}
    return [{"type": "function", "name": f"tool_{number}_{each}", "parameters": schema} for each in range(30)]


def write(path: Path, rows: int, lists: int) -> None:
    """A dataset with so many rows and so many different tools lists."""
    texts = [json.dumps(tools(number)) for number in range(min(lists, 1_000))]
    with path.open("w") as file:
        for number in range(rows):
            text = texts[number % lists] if lists <= len(texts) else json.dumps(tools(number))
            asked = f"Task {number}: " + "say what you know of it. " * 4
            params = f'{{"input": [{{"role": "user", "content": "{asked}"}}], "tools": {text}}}'
            file.write(f'{{"responses_create_params": {params}, "id": {number}, "answer": "{number}"}}\n')


def bare(path: Path) -> int:
    """The loop that reading is compared with."""
    found = find_spec("orjson")
    loads = import_module("orjson").loads if found else import_module("pydantic_core").from_json
    rows = 0
    with path.open("rb") as lines:
        for line in lines:
            loads(line)
            rows += 1
    return rows


def ours(path: Path) -> int:
    """What every run of the suite does before it judges."""
    from gym_conformance.dataset import load  # noqa: PLC0415 - its imports count in its own process only

    return load([path]).read


def measure(how: str, path: Path) -> tuple[float, float]:
    """Seconds of reading, and the peak memory of the whole process in MB."""
    command = [sys.executable, __file__, how, str(path)]
    seconds, peak = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    return float(seconds), float(peak)


def one(how: str, path: Path) -> None:
    """Read once, in this process, and print seconds and peak memory."""
    read = ours if how == "ours" else bare
    if how == "ours":
        import gym_conformance.dataset  # noqa: F401, PLC0415 - not part of the time
    started = time.perf_counter()
    read(path)
    print(time.perf_counter() - started, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / _MEGABYTE)


def main() -> None:
    """Print one line for each number of different lists."""
    if len(sys.argv) > 2:  # noqa: PLR2004 - one of the processes that `measure` starts
        one(sys.argv[1], Path(sys.argv[2]))
        return
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else ROWS
    for lists in (1, 50, 1_000, rows):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "rows.jsonl")
            write(path, rows, lists)
            size = path.stat().st_size / _MEGABYTE
            (plain, _), (seconds, peak) = measure("bare", path), measure("ours", path)
        print(
            f"{lists:>7,} different lists, {size:,.0f} MB: {rows / seconds:,.0f} rows/s, {seconds / plain:.2f} times "
            f"the bare loop ({rows / plain:,.0f} rows/s), peak {peak:,.0f} MB",
            flush=True,
        )


if __name__ == "__main__":
    main()
