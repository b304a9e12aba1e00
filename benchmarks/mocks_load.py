"""Runs rows through an agent, so many at a time, and prints what came of it as one JSON line.

Started by the other benchmarks as a process of its own, so that client and gym do not share an interpreter:
`python benchmarks/mocks_load.py RUN_URL ROWS.jsonl PARALLEL`.
"""

import asyncio
import json
import sys
from http import HTTPStatus
from pathlib import Path
from time import perf_counter

import httpx

from gym_conformance.session.channel import Channel, Endpoint
from gym_conformance.session.exchange import Request
from gym_conformance.session.transport import Transport

JSON = {"content-type": "application/json"}
DEADLINE = 600.0  # seconds for one rollout
LIMIT = 64 * 2**20  # bytes of a reply: token ids are many


async def main(url: str, rows: list[bytes], parallel: int) -> None:
    """Run all rows; at most `parallel` at once, each worker on a connection of its own."""
    transport = Transport(httpx.URL(url), deadline=DEADLINE, limit=LIMIT)
    channel = Channel(Endpoint(url, transport, DEADLINE, in_flight=parallel))
    waiting = iter(rows)
    rewards: list[float] = []
    times: list[float] = []

    async def work() -> None:
        for row in waiting:
            start = perf_counter()
            reply = await channel.reply_to(Request("POST", "", row, JSON))
            times.append(perf_counter() - start)
            if reply.status != HTTPStatus.OK:
                raise RuntimeError(f"{reply.status}: {reply.text:.300}")
            rewards.append(reply.json()["reward"])

    start = perf_counter()
    await asyncio.gather(*(work() for _ in range(parallel)))
    seconds = perf_counter() - start
    await transport.aclose()
    times.sort()
    found = {"rollouts": len(rewards), "full_reward": rewards.count(1.0), "seconds": round(seconds, 3)}
    rate = {
        "per_second": round(len(rewards) / seconds, 1),
        "p99_seconds": round(times[len(times) * 99 // 100], 3),
    }
    print(json.dumps(found | rate))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], Path(sys.argv[2]).read_bytes().splitlines(), int(sys.argv[3])))
