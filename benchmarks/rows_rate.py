"""How fast `--gym-rows` asks rows, beside a bare client that sends the same requests, 64 in flight, and its memory.

    python benchmarks/rows_rate.py [ROWS] [LINES]

ROWS are asked, of a file of LINES. The server is a quiz of `gym_mocks` in a process of its own. The bare client posts the
same bodies over the same transport, and reads the replies as JSON; it makes the bodies beforehand.
"""

import asyncio
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import httpx

from gym_conformance.checks.every_row import AT_ONCE, calibration_every_row
from gym_conformance.contract.policy_output import message, response
from gym_conformance.dataset import load
from gym_conformance.options import Options
from gym_conformance.plugin.target_run import Run
from gym_conformance.session.transport import Transport

SERVER = """
import sys
from gym_mocks.resources import ResourcesServer, TaskRow, last_text
from gym_mocks.serving import serve

class QuizRow(TaskRow):
    expected_answer: str

def verify(row: QuizRow, response: dict) -> float:
    output = response["output"]
    return float(bool(output) and last_text(output) == f"Answer: {row.expected_answer}")

with serve(ResourcesServer("quiz", verify=verify)) as url:
    print(url, flush=True)
    sys.stdin.read()
"""


def row_of(at: int) -> dict[str, Any]:
    asked = f"What is the code of town number {at}? End with `Answer: CODE`."
    return {"responses_create_params": {"input": [{"role": "user", "content": asked}]}, "expected_answer": f"T{at:07}x"}


def write(folder: Path, lines: int) -> Path:
    file = folder / "rows.jsonl"
    with file.open("w") as rows:
        rows.writelines(json.dumps(row_of(at)) + "\n" for at in range(lines))
    with (folder / "rows_rollouts.jsonl").open("w") as recorded:
        for at in range(6):
            said = response([message(f"Answer: {row_of(at)['expected_answer']}")])
            recorded.write(json.dumps({**row_of(at), "response": said, "reward": 1.0}) + "\n")
    return file


async def bare(url: str, bodies: Sequence[tuple[str, bytes]]) -> float:
    """Requests a second."""
    transport = Transport(httpx.URL(url), deadline=30.0)
    left = iter(bodies)

    async def work() -> None:
        for path, body in left:
            headers = {"content-type": "application/json"}
            reply = await transport.handle_async_request(
                httpx.Request("POST", url + path, headers=headers, content=body)
            )
            json.loads(reply.content)

    started = time.perf_counter()
    await asyncio.gather(*(work() for _ in range(AT_ONCE)))
    await transport.aclose()
    return len(bodies) / (time.perf_counter() - started)


def main() -> None:
    asked, lines = (int(given) for given in (*sys.argv[1:], "2000", "20000")[:2])
    with (
        tempfile.TemporaryDirectory() as folder,
        subprocess.Popen(
            [sys.executable, "-c", SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as server,
    ):
        if server.stdout is None or server.stdin is None:
            raise RuntimeError("the server has no pipes")
        url = server.stdout.readline().strip()
        file = write(Path(folder), lines)
        started = time.perf_counter()
        dataset = load([file])
        print(f"{lines} lines read in {time.perf_counter() - started:.1f} s")
        run = Run(url, Options(url=url, rows=asked, reports=(Path(folder) / "report.jsonl",)), dataset)
        started = time.perf_counter()
        (finding,) = run.judge(calibration_every_row)
        seconds, sent = time.perf_counter() - started, run.effort().requests
        run.close()
        print(finding.verdict.value, finding.reason[:120])
        print(f"--gym-rows {asked}: {asked / seconds:.0f} rows and {sent / seconds:.0f} requests a second")
        print(f"memory at its peak: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")
        wrong = response([message("Answer: another")])
        pairs = (
            pair
            for at in range(sent // 2)
            for pair in (
                ("/seed_session", json.dumps(row_of(at)).encode()),
                ("/verify", json.dumps({**row_of(at), "response": wrong}).encode()),
            )
        )
        rate = asyncio.run(bare(url, list(pairs)))
        print(f"bare client: {rate:.0f} requests a second; ratio {sent / seconds / rate:.2f}")
        server.stdin.close()


if __name__ == "__main__":
    main()
