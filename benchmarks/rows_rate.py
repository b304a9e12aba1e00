"""How fast `--gym-rows` asks rows, beside a bare client that sends the same requests, 64 in flight, and its memory.

    python benchmarks/rows_rate.py [ROWS] [LINES]

ROWS are asked, of a file of LINES. The server is a quiz of `gym_mocks` in a process of its own. The bare client
sends the same bodies, made beforehand, over plain sockets, one for each in flight, reads each reply whole and parses the
reward: the least that any client must do. CPU is of the client's process alone, and says more on a busy machine.
"""

import asyncio
import json
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from gym_conformance.checks.reward.calibrated import calibration_gold
from gym_conformance.checks.reward.every_row import AT_ONCE, calibration_every_row
from gym_conformance.contract.policy_output import message, response
from gym_conformance.dataset import load
from gym_conformance.options import Options
from gym_conformance.plugin.target_run import Run

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


async def bare(url: str, bodies: Sequence[tuple[str, bytes]]) -> tuple[float, float]:
    """Requests a second, and CPU seconds for each: a socket for each of those in flight, no pool, no record."""
    parts = urlsplit(url)
    left = iter(bodies)

    async def work() -> None:
        reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
        for path, body in left:
            head = f"POST {path} HTTP/1.1\r\nhost: {parts.netloc}\r\ncontent-type: application/json\r\n"
            writer.write(f"{head}content-length: {len(body)}\r\n\r\n".encode() + body)
            answer = await reader.readuntil(b"\r\n\r\n")
            length = re.search(rb"content-length: (\d+)", answer, re.IGNORECASE)
            if length is None or answer[9:12] != b"200":
                raise SystemExit(f"an answer that is none: {answer!r}")
            reply = json.loads(await reader.readexactly(int(length[1])))
            if path == "/verify":
                float(reply["reward"])
        writer.close()

    started, used = time.perf_counter(), time.process_time()
    await asyncio.gather(*(work() for _ in range(AT_ONCE)))
    return len(bodies) / (time.perf_counter() - started), (time.process_time() - used) / len(bodies)


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
        run.judge(calibration_gold)  # what answers look like is learned first, once
        before = run.effort().requests
        started, used = time.perf_counter(), time.process_time()
        (finding,) = run.judge(calibration_every_row)
        seconds, sent = time.perf_counter() - started, run.effort().requests - before
        used = (time.process_time() - used) / sent
        run.close()
        print(finding.verdict.value, finding.reason[:120])
        print(
            f"--gym-rows {asked}: {asked / seconds:.0f} rows and {sent / seconds:.0f} requests a second, {used * 1e6:.0f} us each"
        )
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
        rate, least = asyncio.run(bare(url, list(pairs)))
        print(f"bare client: {rate:.0f} requests a second, {least * 1e6:.0f} us each")
        print(f"ratio {sent / seconds / rate:.2f}; of CPU {least / used:.2f}")
        server.stdin.close()


if __name__ == "__main__":
    main()
