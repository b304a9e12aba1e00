"""`--gym-workers`: one server in several processes, each with state and keys of its own, as uvicorn's workers have them."""

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import httpx
import psutil
import pytest

from gym_conformance.launch.launched_server import LaunchedServer
from gym_conformance.launch.not_launched import NotLaunched
from tests.launch.drills import FINE, application, gone

pytest_plugins = ["pytester"]

#: Says which process it is, and blocks it, so that another one must take the next request.
_WHO = """
    import os, time
    from secrets import token_hex
    who = token_hex(16).encode()
    async def app(scope, receive, send):
        if scope["type"] == "lifespan":
            for step in ("startup", "shutdown"):
                await receive()
                await send({"type": f"lifespan.{step}.complete"})
            return
        time.sleep(0.1)
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"32")]})
        await send({"type": "http.response.body", "body": who})
"""


def _workers(folder: Path, source: str, count: int) -> LaunchedServer:
    server = application(folder, "")
    (folder / "drill.py").write_text("\n".join(line[4:] for line in source.splitlines()))
    return LaunchedServer(replace(server.launch, workers=count))


def test_each_worker_has_what_it_makes_itself(tmp_path: Path) -> None:
    seen: set[str] = set()
    with _workers(tmp_path, _WHO, 3) as server, ThreadPoolExecutor(8) as threads:
        others = psutil.Process(server.pid).children()
        assert len(others) == 2
        deadline = time.monotonic() + 60
        while len(seen) < 3 and time.monotonic() < deadline:
            seen |= {reply.text for reply in threads.map(lambda _: httpx.get(server.url), range(8))}
    assert len(seen) == 3
    assert all(gone(each.pid) for each in others)


def test_one_that_does_not_start_is_said(tmp_path: Path) -> None:
    """As where each wants the same port, or the same file."""
    alone = f"    import os\n    os.open({str(tmp_path / 'only-one')!r}, os.O_CREAT | os.O_EXCL)\n"
    with pytest.raises(NotLaunched, match="FileExistsError"), _workers(tmp_path, alone + _WHO, 2):
        pass


def test_state_of_one_process_is_found_and_said_to_be_it(pytester: pytest.Pytester) -> None:
    from gym_mocks.reference import DATA  # noqa: PLC0415

    pytester.makepyfile(fine=FINE)
    given = ["--gym-env=fine:app", f"--gym-data={DATA}", "-k", "isolation-two-clients", "--gym-profile=smoke"]
    run = pytester.runpytest_subprocess(*given, "--gym-workers", "2", timeout=300)
    assert run.ret == pytest.ExitCode.TESTS_FAILED
    run.stdout.fnmatch_lines(["*in the memory of one process*"])
