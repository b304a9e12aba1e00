"""What `--gym-rows all` holds after so many rows that were really asked: memory at its peak, for files of several lengths.

    python benchmarks/rows_memory.py [LINES...]

The server answers within this process, without a socket, which a million rows would keep busy for hours: what the suite
keeps of a row does not depend on that. Each length is a process of its own. One row in a thousand is refused its answer.
"""

import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from gym_conformance.checks.reward.every_row import calibration_every_row
from gym_conformance.contract.policy_output import message, response
from gym_conformance.dataset import load
from gym_conformance.options import Options
from gym_conformance.plugin.target_run import Run
from gym_conformance.session.exchange import Reply
from gym_conformance.session.transport import Transport

_JSON = (("content-type", "application/json"),)


def row_of(at: int) -> dict[str, Any]:
    asked = f"What is the code of town number {at}? End with `Answer: CODE`."
    return {"responses_create_params": {"input": [{"role": "user", "content": asked}]}, "expected_answer": f"T{at:07}x"}


async def answered(_: Transport, method: str, sent: bytes, *, fresh: bool = False) -> Reply:
    head, _end, body = sent.partition(b"\r\n\r\n")
    path = head.split(b" ", 2)[1]
    if method == "GET" or fresh:
        return Reply(404, _JSON, b"{}", 0.0)
    if path != b"/verify":
        return Reply(200, _JSON, b"{}", 0.0)
    row = json.loads(body)
    said = json.dumps(row["response"]["output"])
    gold = row["expected_answer"]
    right = f"Answer: {gold}" in said and not gold.endswith("777x")
    return Reply(200, _JSON, json.dumps({**row, "reward": float(right)}).encode(), 0.0)


def one(lines: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "rows.jsonl"
        with file.open("w") as rows:
            rows.writelines(json.dumps(row_of(at)) + "\n" for at in range(lines))
        with (Path(folder) / "rows_rollouts.jsonl").open("w") as recorded:
            for at in range(6):
                said = response([message(f"Answer: {row_of(at)['expected_answer']}")])
                recorded.write(json.dumps({**row_of(at), "response": said, "reward": 1.0}) + "\n")
        Transport.send = answered  # type: ignore[assignment,method-assign]
        url = "http://127.0.0.1:1"
        report = Path(folder) / "report.jsonl"
        run = Run(url, Options(url=url, rows=0, reports=(report,)), load([file]))
        started = time.perf_counter()
        (finding,) = run.judge(calibration_every_row)
        seconds, asked = time.perf_counter() - started, run.effort().requests
        held = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(f"{lines:,} rows, {asked:,} requests, {seconds:.0f} s: {held:.0f} MB at the peak", flush=True)
        print(f"  {finding.verdict.value}: {(finding.actual or finding.reason)[:160]}", flush=True)


def main() -> None:
    lengths = [int(given) for given in sys.argv[1:]] or [20_000, 200_000]
    if len(lengths) == 1:
        one(lengths[0])
        return
    for lines in lengths:
        subprocess.run([sys.executable, __file__, str(lines)], check=True)


if __name__ == "__main__":
    main()
