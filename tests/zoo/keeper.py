"""Runs a server of the zoo in a process group of its own, records rollouts on it, and has the suite judge it."""

import fcntl
import importlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import httpx

from tests.nested.warm_pytest import WarmPytest

_ROOT = Path(__file__).parents[2]
#: Seconds: for a server to answer, for one run of the suite in the profile.
_STARTS = 60
_RUNS = {"smoke": 120, "quick": 480, "ci": 900}

#: A call of a plan, or how it is made of the replies so far.
Step = tuple[str, dict[str, Any]] | Callable[[list[Any]], tuple[str, dict[str, Any]]]


@dataclass(frozen=True)
class Judged:
    """What one run of the suite came to. `findings` has one for each check, by its id: a failed one if there is any."""

    status: int
    seconds: float
    findings: Mapping[str, Any]
    output: str


def _module(name: str) -> ModuleType:
    return importlib.import_module(f"tests.zoo.servers.{name}")


def _free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port: int = taken.getsockname()[1]
        return port


@contextmanager
def _ended(process: subprocess.Popen[bytes]) -> Iterator[None]:
    """Nothing of its process group outlives the block."""
    try:
        yield
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait(10)


@contextmanager
def served(name: str, fault: str = "") -> Iterator[str]:
    """Where it answers, with that fault or none.

    Raises:
        RuntimeError: it does not start; with what it said.
    """
    port = _free_port()
    command = [sys.executable, "-m", f"tests.zoo.servers.{name}", "serve", str(port)]
    env = {**os.environ, "ZOO_FAULT": fault}
    said = None if "ZOO_SAYS" in os.environ else subprocess.DEVNULL
    process = subprocess.Popen(command, cwd=_ROOT, env=env, stdout=said, stderr=said, start_new_session=True)
    url = f"http://127.0.0.1:{port}{getattr(_module(name), 'PREFIX', '')}"
    with _ended(process):
        deadline = time.monotonic() + _STARTS
        while time.monotonic() < deadline and process.poll() is None:
            try:
                httpx.get(url + "/", timeout=2)
            except httpx.TransportError:
                time.sleep(0.05)
            else:
                yield url
                return
        raise RuntimeError(f"{' '.join(command)} does not answer")


def _item(number: int, name: str, arguments: Any, output: str) -> list[dict[str, Any]]:
    call_id = f"call_{number}"
    call = {"type": "function_call", "id": f"fc_{number}", "call_id": call_id, "name": name, "status": "completed"}
    return [
        {**call, "arguments": json.dumps(arguments)},
        {"type": "function_call_output", "call_id": call_id, "output": output},
    ]


def _played(url: str, row: Mapping[str, Any], plan: Sequence[Step], says: str) -> dict[str, Any]:
    """The rollout that comes of making the plan's calls; each must be answered."""
    with httpx.Client(base_url=url, timeout=30) as client:
        client.post("/seed_session", json=row).raise_for_status()
        output: list[dict[str, Any]] = []
        seen: list[Any] = []
        for number, step in enumerate(plan):
            tool, arguments = step(seen) if callable(step) else step
            reply = client.post(f"/{tool}", json=arguments)
            output += _item(number, tool, arguments, reply.text)
            seen.append(reply.json() if "json" in reply.headers.get("content-type", "") else reply.text)
        text = {"type": "output_text", "text": says, "annotations": []}
        output.append({"type": "message", "id": "msg", "role": "assistant", "status": "completed", "content": [text]})
        more = {"tools": row["responses_create_params"]["tools"], "tool_choice": "auto", "parallel_tool_calls": False}
        response = {
            "id": "resp",
            "object": "response",
            "created_at": 1.0,
            "model": "recorded",
            "output": output,
            **more,
        }
        verified = client.post("/verify", json={**row, "response": response}).raise_for_status().json()
    return {**row, "response": response, "reward": verified["reward"]}


def data(name: str, folder: Path) -> Path:
    """Its rows, and the rollouts that were recorded on it without a fault, beside each other; made once for all workers."""
    folder.mkdir(exist_ok=True)
    rows = folder / f"{name}.jsonl"
    with (folder / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not rows.exists():
            made = folder / f"{name}.made"
            command = [sys.executable, "-m", f"tests.zoo.servers.{name}", "rows", str(made)]
            subprocess.run(command, cwd=_ROOT, check=True, timeout=_STARTS)
            if plans := getattr(_module(name), "PLANS", None):
                written = [json.loads(line) for line in made.read_text().splitlines()]
                with served(name) as url:
                    rollouts = [
                        _played(url, written[each], plan, getattr(_module(name), "SAYS", "Done."))
                        for each, plan in plans.items()
                    ]
                text = "".join(json.dumps(each) + "\n" for each in rollouts)
                (folder / f"{name}_rollouts.jsonl").write_text(text)
            made.rename(rows)
    return rows


def judged(
    name: str, fault: str, rows: Path, folder: Path, pytest: WarmPytest, *, profile: str, checks: str = ""
) -> Judged:
    """One run of the suite on it, in `folder`, with no settings of anybody's; of these checks alone, if any, as `-k` has them."""
    (folder / "pytest.ini").write_text("[pytest]\n")
    report = folder / "report.json"
    options = [f"--gym-data={rows}", f"--gym-profile={profile}", f"--gym-report={report}", "-p", "no:cacheprovider"]
    options += ["-k", checks] if checks else []
    with served(name, fault) as url:
        env = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST_")}
        began = time.monotonic()
        run = pytest.completed([f"--gym-url={url}", *options], folder, env, _RUNS[profile])
        seconds = time.monotonic() - began
    findings = json.loads(report.read_text())["findings"] if report.exists() else []
    by_check = {each["check"]: each for each in sorted(findings, key=lambda each: each["verdict"] == "fail")}
    return Judged(run.returncode, seconds, by_check, run.stdout + run.stderr)
