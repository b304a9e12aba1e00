"""How much of a bare socket client's rate the episodes of `--gym-load` keep, on the same requests, and what they hold.

    python benchmarks/load.py            # 1, 64 and 1,024 at once
    python benchmarks/load.py 8 256

The reference server runs in a process of its own. Both clients take turns at each level; the bare one sends a recorded
episode's bytes, with its own cookie in them, finds content-length, and looks at nothing else.
"""

import asyncio
import os
import re
import resource
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import psutil

from gym_conformance.dataset import load
from gym_conformance.gym_under_test import Gym, recognise
from gym_conformance.options import Options
from gym_conformance.plugin.target_run import make_endpoint
from gym_conformance.session.channel import Channel
from gym_conformance.session.process import allow_open_files
from gym_conformance.trajectories.execute import run
from gym_conformance.trajectories.first import known
from gym_conformance.trajectories.in_flight import Driver, Known, known_alone
from gym_conformance.trajectories.learn import learn
from gym_mocks.reference import DATA

_SECONDS, _TURNS = 4.0, 3

_SERVER = """
import socket, sys, threading, os, uvicorn
from gym_mocks.reference import reference_app
threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
config = uvicorn.Config(reference_app(), log_level="warning", access_log=False)
uvicorn.Server(config).run(sockets=[socket.socket(fileno=int(sys.argv[1]))])
"""


async def bare(address: tuple[str, int], requests: Sequence[bytes], in_flight: int) -> float:
    """Episodes a second of the bare client."""
    end, done = time.monotonic() + _SECONDS, 0

    async def one_after_the_other() -> None:
        nonlocal done
        reader, writer = await asyncio.open_connection(*address)
        while time.monotonic() < end:
            cookie = b""
            for request in requests:
                writer.write(request.replace(b"@COOKIE@", cookie))
                head = await reader.readuntil(b"\r\n\r\n")
                length = re.search(rb"content-length: (\d+)", head, re.IGNORECASE)
                if length is None:
                    raise SystemExit(f"an answer without content-length: {head!r}")
                await reader.readexactly(int(length[1]))
                found = re.search(rb"set-cookie: ([^;]+)", head, re.IGNORECASE)
                cookie = found[1] if found else cookie
            done += 1
        writer.close()

    began = time.monotonic()
    await asyncio.gather(*(one_after_the_other() for _ in range(in_flight)))
    return done / (time.monotonic() - began)


async def recorded(gym: Gym, episode: Known) -> list[bytes]:
    """An episode's requests as bytes, with a place for the cookie."""
    channel = Channel(gym.endpoint)
    await run(gym, channel, episode.trajectory)
    made = list[bytes]()
    for one in channel.exchanges:
        body = one.request.body or b""
        head = [f"POST {one.request.path} HTTP/1.1", "host: here", "content-type: application/json"]
        head += ["cookie: @COOKIE@"] if made else []
        made.append("\r\n".join([*head, f"content-length: {len(body)}", "", ""]).encode() + body)
    return made


async def compare(url: str, port: int, pid: int, levels: Sequence[int]) -> None:
    """Print a line for each level."""
    data = load([DATA])
    gym = await recognise(make_endpoint(url, Options(url=url)), data.rows, data.rollouts, "auto")
    knowledge = await learn(gym)
    episode = await known_alone(gym, known(knowledge)[0])
    if episode is None:
        raise SystemExit("the episode is not the same twice")
    requests = await recorded(gym, episode)
    print(f"{len(requests)} requests an episode\n{'at once':>8} {'ours':>9} {'bare':>9} {'ratio':>6}  our memory")
    for in_flight in levels:
        allow_open_files(in_flight)
        ours, theirs = list[float](), list[float]()
        for _turn in range(_TURNS):
            endpoint = gym.endpoint.at(url, in_flight)
            driver = Driver(Gym(endpoint, gym.api, gym.kind, gym.evidence), [episode], in_flight, pid)
            ours.append((await driver.drive(_SECONDS)).rate)
            await endpoint.transport.aclose()
            theirs.append(await bare(("127.0.0.1", port), requests, in_flight))
        mine, its = sorted(ours)[_TURNS // 2], sorted(theirs)[_TURNS // 2]
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(f"{in_flight:>8,} {mine:>9.1f} {its:>9.1f} {mine / its:>6.2f}  {peak:.0f} MiB at most")


def main(levels: Sequence[int]) -> None:
    """Start the server, compare, end it."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=2048)
    port = listener.getsockname()[1]
    allow_open_files(max(levels))
    command = [sys.executable, "-c", _SERVER, str(listener.fileno())]
    with subprocess.Popen(command, stdin=subprocess.PIPE, pass_fds=(listener.fileno(),), cwd=Path.cwd()) as server:
        try:
            print(f"{os.cpu_count()} cores, load {psutil.getloadavg()[0]:.1f}")
            asyncio.run(compare(f"http://127.0.0.1:{port}", port, server.pid, levels))
        finally:
            server.kill()


if __name__ == "__main__":
    main([int(each) for each in sys.argv[1:]] or [1, 64, 1024])
