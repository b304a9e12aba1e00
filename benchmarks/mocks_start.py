"""Time to ready, policy answers, memory and threads of the mocks: `python benchmarks/mocks_start.py [--own]`.

Each figure stands beside what it is compared with, in the same run: bare uvicorn and FastAPI
applications; and, where nemo-gym is installed, one of its servers, alone and without Ray. `--own` also has nemo-gym
start its own stack (`gym env start`: head, agent, model, resources server, Ray), twice: the second time with the
virtual environments of the first. It needs uv and the network.
"""

import asyncio
import os
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import urllib.request
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import httpx

from gym_conformance.session.channel import Channel, Endpoint
from gym_conformance.session.exchange import Request
from gym_conformance.session.transport import Transport
from gym_mocks.examples import weather
from gym_mocks.gym import MockGym
from gym_mocks.policy import FakePolicy
from gym_mocks.reference import reference_app
from gym_mocks.serving import serve
from gym_mocks.wire.messages import to_json

BARE = """
import asyncio, socket, sys, uvicorn
async def app(scope, receive, send):
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b""})
sock = socket.create_server(("127.0.0.1", 0))
print(f"http://127.0.0.1:{sock.getsockname()[1]}", flush=True)
config = uvicorn.Config(app, log_config=None, lifespan="off")
asyncio.run(uvicorn.Server(config).serve(sockets=[sock]))
"""


BARE_FASTAPI = BARE.replace("uvicorn\n", "uvicorn, fastapi\n", 1).replace(
    BARE[BARE.index("async def") : BARE.index("sock =")],
    'app = fastapi.FastAPI()\napp.get("/")(lambda: {})\n',
)
STOCK = """
import socket, sys, uvicorn
sys.path.insert(0, sys.argv[1])
from benchmarks.mocks_stock import bundled
from gym_mocks.nemo import asgi_app
app = asgi_app(bundled("example_single_tool_call")[0])
sock = socket.create_server(("127.0.0.1", 0))
print(f"http://127.0.0.1:{sock.getsockname()[1]}", flush=True)
uvicorn.Server(uvicorn.Config(app, log_config=None)).run(sockets=[sock])
"""
REPOSITORY = Path(__file__).parents[1]
DEADLINE = 600.0  # seconds for one answer
PARALLEL = (1, 16, 64, 256, 1024)


def first_answer(*arguments: str) -> float:
    """Seconds from the start of a process to the first answer of the URL that it prints."""
    start = perf_counter()
    with subprocess.Popen([sys.executable, *arguments], stdout=subprocess.PIPE, text=True) as process:
        url = (process.stdout or sys.stdin).readline().split()[-1]
        urllib.request.urlopen(url).read()  # noqa: S310 - our own server
        taken = perf_counter() - start
        process.kill()
    return taken


def own_start(folder: Path) -> float:
    """Seconds until `gym env start` says that all servers are ready; its whole process group is ended then."""
    bundle = Path(str(find_spec("nemo_gym").origin)).parents[1]  # type: ignore[union-attr]
    configs = (
        "resources_servers/example_single_tool_call/configs/example_single_tool_call.yaml",
        "responses_api_models/openai_model/configs/openai_model.yaml",
    )
    command = [
        str(Path(sys.executable).with_name("gym")),
        *("env", "start", f"+config_paths=[{','.join(str(bundle / config) for config in configs)}]"),
        *(f"+uv_venv_dir={folder}", "+skip_venv_if_present=true", "+policy_model_name=mock"),
        *("+policy_base_url=http://127.0.0.1:1/v1", "+policy_api_key=mock"),
    ]
    start = perf_counter()
    with subprocess.Popen(
        command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    ) as process:
        try:
            said: deque[str] = deque(maxlen=20)
            for line in process.stdout or ():
                said.append(line)
                if "servers ready!" in line:
                    return perf_counter() - start
            raise RuntimeError("".join(said))
        finally:
            os.killpg(process.pid, signal.SIGTERM)
            with suppress(subprocess.TimeoutExpired):
                process.wait(20)
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def starts() -> None:
    """From nothing to ready."""
    print("from the start of the process to the first answer, median of 5:")
    for name, arguments in {
        "bare uvicorn application": ("-c", BARE),
        "bare FastAPI application": ("-c", BARE_FASTAPI),
        "python -m gym_mocks (reference server)": ("-m", "gym_mocks"),
        "gym-mocks serve (whole gym)": ("-m", "gym_mocks", "serve"),
    }.items():
        print(f"  {median(first_answer(*arguments) for _ in range(5)):.3f} s  {name}")
    if find_spec("nemo_gym"):
        seconds = median(first_answer("-c", STOCK, str(REPOSITORY)) for _ in range(3))
        print(f"  {seconds:.3f} s  nemo-gym's example_single_tool_call alone, without Ray, head, agent and model")
    if "--own" in sys.argv:
        with tempfile.TemporaryDirectory() as folder:
            for state in ("its virtual environments made", "its virtual environments kept"):
                print(f"  {own_start(Path(folder)):.3f} s  nemo-gym's own stack, {state}")
    times = []
    for _ in range(20):
        start = perf_counter()
        with MockGym() as gym:
            gym.add_env(weather.server(), weather.ROWS)
            urllib.request.urlopen(gym.head_url).read()  # noqa: S310 - our own server
            times.append(perf_counter() - start)
    print(f"  {median(times):.3f} s  a further gym in a running process")


async def rate(url: str, body: bytes, count: int, parallel: int) -> float:
    """Answers per second."""
    transport = Transport(httpx.URL(url), deadline=DEADLINE)
    channel = Channel(Endpoint(url, transport, DEADLINE))
    left = iter(range(count))

    async def work() -> None:
        for _ in left:
            await channel.reply_to(Request("POST", "", body, {"content-type": "application/json"}))

    start = perf_counter()
    await asyncio.gather(*(work() for _ in range(parallel)))
    await transport.aclose()
    return count / (perf_counter() - start)


def policy_answers() -> None:
    """The policy against a bare FastAPI route that returns the same object."""
    body = to_json({"model": "m", "input": "hello", "tools": weather.server().declarations})
    print(f"answers per second, {PARALLEL} in parallel, client in the same process:")
    applications: dict[str, Any] = {"policy, /v1/responses": FakePolicy()}
    if find_spec("fastapi"):
        applications["bare FastAPI route"] = bare_fastapi()
    for name, app in applications.items():
        with serve(app) as url:
            rates = [asyncio.run(rate(f"{url}/v1/responses", body, max(500, n), n)) for n in PARALLEL]
        print(*(f"{each:7.0f}" for each in rates), f"  {name}")


def bare_fastapi() -> Callable[..., Awaitable[None]]:
    """One route with a typed body, and a reply of the policy's size."""
    from fastapi import FastAPI  # noqa: PLC0415 - only where it is installed
    from pydantic import BaseModel  # noqa: PLC0415

    class Body(BaseModel):
        model: str
        input: str
        tools: list[dict[str, Any]]

    app = FastAPI()
    reply = {"id": "r", "output": [{"type": "message", "content": [{"text": "hello"}]}] * 4}

    @app.post("/v1/responses")
    async def answer(body: Body) -> dict[str, Any]:
        return reply | {"model": body.model}

    return app


def sessions() -> None:
    """Memory, threads and open files with 1,000 sessions open, each on its own connection."""

    async def open_all(url: str) -> tuple[int, int, int]:
        parts = url.rpartition(":")
        connections = [await asyncio.open_connection("127.0.0.1", int(parts[2])) for _ in range(1000)]
        body = to_json(weather.ROWS[0])
        lines = ["POST /seed_session HTTP/1.1", "host: localhost", "content-type: application/json"]
        head = "\r\n".join([*lines, f"content-length: {len(body)}"])
        for reader, writer in connections:
            writer.write(head.encode() + b"\r\n\r\n" + body)
            await reader.readuntil(b"\r\n\r\n")
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
        files = len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - nothing waits here
        for _, writer in connections:
            writer.close()
        return memory, threading.active_count(), files

    with serve(reference_app()) as url:
        memory, threads, files = asyncio.run(open_all(url))
    print("1,000 sessions open, client and server in one process:")
    print(f"  {memory} MB peak, {threads} threads, {files} files (both ends)")


if __name__ == "__main__":
    sys.path.insert(0, str(REPOSITORY))  # for what is beside this script
    from benchmarks.open_files import raised

    load = f"load {os.getloadavg()[0]:.1f}"
    print(f"python {sys.version.split()[0]}, {os.cpu_count()} CPUs, {load}, {raised()}")
    starts()
    policy_answers()
    sessions()
