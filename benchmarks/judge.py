"""What a full set of checks costs, and how much of it is not HTTP.

    python benchmarks/judge.py                      # the embedded reference server
    python benchmarks/judge.py --url URL --data F   # any other

Prints, from one run: wall time of all checks, requests sent, seconds inside HTTP, and the time for the very same
requests sent bare, one after the other, by the same transport.
"""

import argparse
import asyncio
import time
from pathlib import Path
from statistics import median

import httpx

from gym_conformance.checks.registry import CHECKS
from gym_conformance.dataset import Dataset, load
from gym_conformance.gym_under_test import recognise
from gym_conformance.judge import Judge
from gym_conformance.session.channel import Endpoint
from gym_conformance.session.exchange import Reply
from gym_conformance.session.transport import Transport
from gym_conformance.trials.bench import Bench
from gym_mocks.reference import DATA, reference_app
from gym_mocks.serving import serve

TIMEOUT = 30.0


class Recorder:
    """Passes requests on and keeps them, to be sent again."""

    def __init__(self, inner: Transport) -> None:
        self.inner = inner
        self.sent: list[tuple[str, bytes]] = []

    async def send(self, method: str, message: bytes, *, fresh: bool = False) -> Reply:
        self.sent.append((method, message))
        return await self.inner.send(method, message, fresh=fresh)

    async def aclose(self) -> None:
        await self.inner.aclose()


async def measure(url: str, dataset: Dataset) -> tuple[float, float, float, int]:
    """Seconds for all checks, of which in HTTP, for the bare requests; and the number of requests."""
    transport = Transport(httpx.URL(url), deadline=TIMEOUT)
    recorder = Recorder(transport)
    endpoint = Endpoint(url, recorder, TIMEOUT)
    started = time.perf_counter()
    judge = Judge(Bench(await recognise(endpoint, dataset.rows, dataset.rollouts)))
    for check in CHECKS:
        await judge.judge(check)
    wall = time.perf_counter() - started
    started = time.perf_counter()
    for method, message in recorder.sent:
        await transport.send(method, message)
    bare = time.perf_counter() - started
    await transport.aclose()
    return wall, endpoint.seconds, bare, len(recorder.sent)


def main() -> None:
    """Measure a few times and print medians."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url")
    parser.add_argument("--data", type=Path, action="append")
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    if given.url:
        report(given.url, load(given.data or []), given.rounds)
    else:
        with serve(reference_app()) as url:
            report(url, load([DATA]), given.rounds)


def report(url: str, dataset: Dataset, rounds: int) -> None:
    """Print one line for each figure."""
    runs = [asyncio.run(measure(url, dataset)) for _ in range(rounds)]
    wall, inside, bare = (median(run[at] for run in runs) for at in range(3))
    requests = runs[0][3]
    print(f"{len(CHECKS)} checks, {requests} requests, {rounds} rounds, medians")
    print(f"wall                       {wall:7.3f} s   {wall / requests * 1e3:6.2f} ms a request")
    print(f"inside HTTP                {inside:7.3f} s   {inside / requests * 1e3:6.2f} ms a request")
    print(f"same requests, bare        {bare:7.3f} s   {bare / requests * 1e3:6.2f} ms a request")
    print(f"outside HTTP / inside      {(wall - inside) / inside:7.2f}")
    print(f"wall / bare                {wall / bare:7.2f}")


if __name__ == "__main__":
    main()
