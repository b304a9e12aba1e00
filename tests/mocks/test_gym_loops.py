"""Gyms in threads and event loops of their own, and routes that come and go while rollouts run."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx

from gym_mocks.examples import sandbox, weather
from gym_mocks.gym import MockGym
from gym_mocks.policy import scripted_rows
from gym_mocks.wire.client import LocalClient
from gym_mocks.wire.messages import to_json

#: Made once: it takes 20 ms.
TLS = httpx.create_ssl_context()


async def collected(gym: MockGym, rows: list[dict[str, Any]]) -> list[bytes]:
    """The replies to all rows at once, asked from the running event loop."""
    client = LocalClient()
    run = f"{gym.url(rows[0]['agent_ref']['name'])}/run"
    asked = (client.request("POST", run, to_json(row), {"content-type": "application/json"}) for row in rows)
    bodies = [reply.body for reply in await asyncio.gather(*asked)]
    await client.close()
    return [body for body in bodies if isinstance(body, bytes)]


def test_two_gyms_in_two_event_loops_share_nothing() -> None:
    """Each is made, used and closed inside a running loop of another thread, at the same time as the other."""
    together = threading.Barrier(2, timeout=10)

    async def live(example: Any) -> tuple[list[bytes], int]:
        with MockGym() as gym:
            rows = gym.add_env(example.server(), example.ROWS) * 4
            gym.policy.default = scripted_rows(example.ROWS, example.SOLUTIONS)
            together.wait()
            replies = await collected(gym, rows)
            together.wait()
            return replies, gym.policy.calls.count

    with ThreadPoolExecutor(2) as pool:
        lives = pool.map(lambda example: asyncio.run(live(example)), (weather, sandbox))
        (sunny, asked), (files, more) = lives
    assert all(b'"reward":1.0' in reply for reply in sunny + files)
    assert (asked, more) == (len(sunny) * 2, len(files) * 3)


def test_routes_are_bound_and_released_while_others_run() -> None:
    with MockGym() as gym:
        rows = gym.add_env(weather.server(), weather.ROWS)
        run = gym.url("weather_simple_agent") + "/run"
        for name in ("one", "another"):  # two, as one alone would take any name
            gym.policy.script(name, ["never asked"])

        def rollout(number: int) -> float:
            row = rows[number % len(rows)]
            params = row["responses_create_params"] | {"model": f"rollout-{number}"}
            with gym.policy.script(f"rollout-{number}", weather.SOLUTIONS[number % len(rows)]):
                reply = httpx.post(run, json=row | {"responses_create_params": params}, timeout=30, verify=TLS)
            unknown = httpx.post(run, json=row | {"responses_create_params": params}, timeout=30, verify=TLS)
            assert unknown.status_code == 500
            assert "no active rollout is named" in unknown.text
            return float(reply.json()["reward"])

        with ThreadPoolExecutor(8) as pool:
            assert list(pool.map(rollout, range(60))) == [1.0] * 60
        assert gym.policy.routes.names == ("one", "another")
        statuses = [call.status for call in gym.policy.calls]
        assert (statuses.count(200), statuses.count(409)) == (120, 60)
