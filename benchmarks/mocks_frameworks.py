"""What the mocks would cost on Starlette or FastAPI: `python benchmarks/mocks_frameworks.py [ROUNDS]`.

A whole gym starts, and the policy answers, as it is and with its endpoint mounted in either framework. The variants
take turns, so that whatever else the machine does falls on all; CPU seconds are the server process's own.
"""

import asyncio
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from statistics import median
from time import perf_counter

import httpx
import psutil

from gym_conformance.contract.statuses import is_error
from gym_conformance.session.channel import Channel, Endpoint
from gym_conformance.session.exchange import Request
from gym_conformance.session.transport import Transport

SERVER = """
import sys, time
from gym_mocks.examples import weather
from gym_mocks.gym import MockGym
from gym_mocks.policy import FakePolicy
from gym_mocks.serving import Host
from gym_mocks.wire import HttpRequest as Asked

policy = FakePolicy()
variant = sys.argv[1]

async def answer(request):
    headers = {name: value for name, value in request.headers.items()}
    asked = Asked(request.method, request.url.path, headers, await request.body())
    reply = await policy.handlers[asked.method, asked.path](asked)
    return Response(reply.body, reply.status, dict(reply.headers))

if variant == "ours":
    app = policy
elif variant == "Starlette":
    from starlette.applications import Starlette
    from starlette.responses import Response
    from starlette.routing import Route
    app = Starlette(routes=[Route(path, answer, methods=[method]) for method, path in policy.handlers])
else:
    from fastapi import FastAPI, Request, Response
    app = FastAPI()
    answer.__annotations__ = {"request": Request}
    for method, path in policy.handlers:
        app.api_route(path, methods=[method])(answer)

with MockGym() as gym:
    gym.add_env(weather.server(), weather.ROWS)
    host = Host()
    print(host.serve(app), flush=True)
    sys.stdin.read()
    host.close()
"""
VARIANTS = ("ours", "Starlette", "FastAPI")
BODY = b'{"model": "m", "input": "hello"}'
COUNT = 1000
RATES = 10  # below: seconds, from here on: answers


@contextmanager
def server(variant: str) -> Iterator[tuple[str, psutil.Process, float]]:
    """A gym and the policy in a process of their own; URL, process, and seconds to the first answer."""
    start = perf_counter()
    command = [sys.executable, "-c", SERVER, variant]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        url = (process.stdout or sys.stdin).readline().strip()
        urllib.request.urlopen(f"{url}/health").read()  # noqa: S310 - our own server
        yield url, psutil.Process(process.pid), perf_counter() - start
        if process.stdin:
            process.stdin.close()


async def answers(url: str, parallel: int) -> None:
    """So many answers of the policy."""
    transport = Transport(httpx.URL(url), deadline=60)
    channel = Channel(Endpoint(url, transport, 60, in_flight=parallel))
    left = iter(range(COUNT))

    async def work() -> None:
        for _ in left:
            reply = await channel.reply_to(Request("POST", "", BODY, {"content-type": "application/json"}))
            if is_error(reply.status):
                raise RuntimeError(reply.text)

    await asyncio.gather(*(work() for _ in range(parallel)))
    await transport.aclose()


def cpu(process: psutil.Process) -> float:
    """Seconds of CPU that it has used."""
    used = process.cpu_times()
    return float(used.user + used.system)


def main() -> None:
    """Print the table."""
    found: dict[str, list[tuple[float, ...]]] = {variant: [] for variant in VARIANTS}
    for _ in range(int(sys.argv[1]) if len(sys.argv) > 1 else 7):
        for variant in VARIANTS:
            with server(variant) as (url, process, seconds):
                row = [seconds, cpu(process)]
                asyncio.run(answers(f"{url}/v1/responses", 16))  # warm
                for parallel in (1, 16):
                    before, start = cpu(process), perf_counter()
                    asyncio.run(answers(f"{url}/v1/responses", parallel))
                    row += [COUNT / (perf_counter() - start), COUNT / (cpu(process) - before)]
                found[variant].append(tuple(row))
    print("median of each: seconds to the first answer, CPU of it; answers a second, and for a CPU second, at 1; at 16")
    for variant, rows in found.items():
        columns = [median(column) for column in zip(*rows, strict=True)]
        print("".join(f"{each:9.2f}" if each < RATES else f"{each:9.0f}" for each in columns), f"  {variant}")


if __name__ == "__main__":
    main()
