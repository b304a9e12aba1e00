"""A run's time holds also while nothing is sent: what is only computed ends with it."""

import asyncio
import json
import time
from typing import Any

from gym_conformance.checks.registry import all_checks
from gym_conformance.dataset import load
from gym_conformance.findings import Verdict
from tests.drift.pairs import INTEGER, STRING, of
from tests.drift.test_large import document
from tests.twins.judging import running

#: Each takes seconds to compare, and all of them minutes.
NAMES = [f"tool{number}" for number in range(20)]
ARGUMENTS = [f"x{number}" for number in range(300)]
DECLARED, SERVED = (of(**dict.fromkeys(ARGUMENTS, kind)) for kind in (STRING, INTEGER))
DOCUMENT = document({**dict.fromkeys(NAMES, SERVED), "seed_session": {}, "verify": {}})


async def application(scope: Any, receive: Any, send: Any) -> None:
    """Say what is served, and take whatever comes."""
    del receive
    head = [(b"content-type", b"application/json"), (b"set-cookie", b"session=1; path=/")]
    await send({"type": "http.response.start", "status": 200, "headers": head})
    said = DOCUMENT if scope["path"] == "/openapi.json" else {}
    await send({"type": "http.response.body", "body": json.dumps(said).encode()})


def test_comparing_definitions_ends_with_the_run(tmp_path: Any) -> None:
    tools = [{"type": "function", "name": name, "parameters": DECLARED} for name in NAMES]
    (rows := tmp_path / "rows.jsonl").write_text(
        json.dumps({"responses_create_params": {"input": [{"role": "user", "content": "Go."}], "tools": tools}})
    )
    with running(application, load([rows]), sockets=True, max_time=3) as run:
        started = time.process_time()
        for check in all_checks():
            if check.id in {"drift-argument-refused", "drift-argument-ignored", "tool-served-declared"}:
                (finding,) = run.judge(check)
                assert finding.verdict is Verdict.UNTESTABLE
                assert finding.reason == "more time: after 3 s the run ends (--gym-max-time)"
        assert time.process_time() - started < 8


async def silent(scope: Any, receive: Any, send: Any) -> None:
    """Answer at once, but for a verify, which never comes."""
    del receive
    if scope["path"] == "/verify":
        await asyncio.sleep(60)
    await application(scope, None, send)


def test_a_request_that_is_under_way_ends_with_the_run(tmp_path: Any) -> None:
    (rows := tmp_path / "rows.jsonl").write_text(
        json.dumps({"responses_create_params": {"input": [{"role": "user", "content": "Go."}]}})
    )
    with running(silent, load([rows]), sockets=True, max_time=2, timeout=30) as run:
        started = time.monotonic()
        [check] = (each for each in all_checks() if each.id == "verify-scores-rows")
        findings = run.judge(check)
        assert [finding.reason for finding in findings if finding.verdict is Verdict.UNTESTABLE]
        assert all(finding.verdict is not Verdict.FAIL for finding in findings)
        assert time.monotonic() - started < 10
