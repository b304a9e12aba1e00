"""The lock file on the command line: written, held to, and one clear line for anything else."""

import base64
import json
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

import pytest

from gym_conformance.checks.registry import CHECKS
from gym_mocks.reference import DATA, ReferenceServer
from gym_mocks.wire import App, HttpReply, HttpRequest
from gym_mocks.wire.client import ASGIApp
from tests.plugin.apps import no_trace, read_report

pytest_plugins = ["pytester"]

SECRET = "hunter2/with+odd=signs"  # noqa: S105 - nobody's
SPELT = [SECRET, SECRET.upper(), quote(SECRET, safe=""), base64.b64encode(SECRET.encode()).decode()]


class _Grown(ReferenceServer):
    """Serves one tool more."""

    def __init__(self) -> None:
        super().__init__()
        self.handlers["POST", "/count_all"] = self._count
        self.openapi["paths"]["/count_all"] = {"post": {"responses": {}}}

    async def _count(self, _: HttpRequest) -> HttpReply:
        return HttpReply.json({"pieces": 0})


def _run(pytester: pytest.Pytester, url: str, *arguments: str) -> pytest.RunResult:
    data = [f"--gym-data={pytester.path / 'rows.jsonl'}"]
    if not pytester.path.joinpath("rows.jsonl").exists():
        pytester.path.joinpath("rows.jsonl").write_bytes(DATA.read_bytes())
    return pytester.runpytest_subprocess("--gym-url", url, *data, "--gym-lock", "gym.lock", *arguments, timeout=60)


@pytest.mark.parametrize("workers", [[], ["-n", "2"]], ids=["alone", "xdist"])
def test_it_is_written_once_and_held_to(
    pytester: pytest.Pytester, serving: Callable[[ASGIApp], str], gym: str, workers: list[str]
) -> None:
    lock = pytester.path / "gym.lock"
    run = _run(pytester, gym, "--gym-lock-update", "-k", "drift-lock", *workers)
    assert run.ret == pytest.ExitCode.OK
    run.stdout.fnmatch_lines(["gym.lock was written: 4 tools of the rows, 4 of the server."])
    written = lock.read_bytes()
    assert list(json.loads(written)) == ["rows", "server", "version"]

    assert _run(pytester, gym, "-k", "drift", *workers).ret == pytest.ExitCode.OK
    assert lock.read_bytes() == written

    run = _run(pytester, serving(_Grown()), "-k", "drift-lock", "--gym-report", "r.json", *workers)
    assert run.ret == pytest.ExitCode.TESTS_FAILED
    finding = read_report(pytester.path / "r.json")["drift-lock"]
    assert finding["subject"] == "count_all"
    assert "the server's schema is new since the lock was written" in finding["actual"]

    assert _run(pytester, serving(_Grown()), "--gym-lock-update", "-k", "live", *workers).ret == pytest.ExitCode.OK
    assert "count_all" in json.loads(lock.read_text())["server"]


def test_rows_that_changed_are_said_to_be_rows(pytester: pytest.Pytester, gym: str) -> None:
    _run(pytester, gym, "--gym-lock-update", "-k", "live")
    rows = pytester.path / "rows.jsonl"
    rows.write_text(rows.read_text().replace('"maximum": 999', '"maximum": 99'))
    run = _run(pytester, gym, "-k", "drift-lock")
    run.stdout.fnmatch_lines(["*the rows' definition has changed since the lock was written*"])


def test_without_a_lock_the_check_does_not_apply(pytester: pytest.Pytester, gym: str) -> None:
    run = pytester.runpytest_inprocess("--gym-url", gym, f"--gym-data={DATA}", "-k", "drift-lock")
    run.assert_outcomes(skipped=1, deselected=len(CHECKS) - 1)


def test_a_lock_is_not_overwritten_with_half_of_it(
    pytester: pytest.Pytester, serving: Callable[[ASGIApp], str]
) -> None:
    pytester.path.joinpath("gym.lock").write_text("before")
    run = _run(pytester, serving(App({})), "--gym-lock-update", "-k", "live-root")
    assert run.ret == pytest.ExitCode.USAGE_ERROR
    run.stdout.fnmatch_lines(["--gym-lock 'gym.lock': no resources server: *; it was not written"])
    assert pytester.path.joinpath("gym.lock").read_text() == "before"


@pytest.mark.parametrize(
    ("content", "arguments", "said"),
    [
        (None, [], "--gym-lock 'gym.lock': there is no such file; write it with --gym-lock-update"),
        ("", [], "--gym-lock 'gym.lock': not JSON*; fix the merge, or rewrite it with --gym-lock-update"),
        ('{"version": 9}', [], "--gym-lock 'gym.lock': its version is 9, and this gym-conformance reads 1; *"),
        (b"\xff", [], "--gym-lock 'gym.lock': not UTF-8; rewrite it with --gym-lock-update"),
        (
            None,
            ["--gym-lock", "no/gym.lock", "--gym-lock-update"],
            "--gym-lock 'no/gym.lock': its folder does not exist; *",
        ),
        (None, ["--gym-lock", "", "--gym-lock-update"], "--gym-lock '': give a path"),
    ],
)
def test_what_is_no_lock_is_one_line(
    pytester: pytest.Pytester, gym: str, content: Any, arguments: list[str], said: str
) -> None:
    if content is not None:
        pytester.path.joinpath("gym.lock").write_bytes(content if isinstance(content, bytes) else content.encode())
    run = _run(pytester, gym, *arguments)
    assert run.ret == pytest.ExitCode.USAGE_ERROR
    no_trace(run)
    (line,) = [line for line in run.errlines + run.outlines if line.startswith("ERROR: ")]
    pytest.LineMatcher([line.removeprefix("ERROR: ")]).fnmatch_lines([said])


@pytest.mark.parametrize("workers", [[], ["-n", "2"]], ids=["alone", "xdist"])
def test_the_drift_report_alone(
    pytester: pytest.Pytester, serving: Callable[[ASGIApp], str], workers: list[str]
) -> None:
    url = serving(_Grown())
    forms = [word for form in ("json", "md", "html") for word in ("--gym-drift", f"d.{form}")]
    data = f"--gym-data={DATA}"
    run = pytester.runpytest_subprocess(
        "--gym-url", url, data, *forms, "--gym-report", "r.json", *workers, "-k", "tool- or drift", timeout=60
    )
    assert run.ret == pytest.ExitCode.OK, run.stdout.str()
    drift = json.loads(pytester.path.joinpath("d.json").read_text())["drift"]
    assert [(row["kind"], row["tool"], row["weight"]) for row in drift] == [("route-unused", "count_all", "note")]
    assert "route\\-unused" in pytester.path.joinpath("d.md").read_text()
    assert "route-unused" in pytester.path.joinpath("d.html").read_text()
    report = json.loads(pytester.path.joinpath("r.json").read_text())
    assert report["drift"] == drift
    latency = {each["endpoint"]: each for each in report["latency"]}
    assert latency["POST /seed_session"]["count"] > 10
    assert 0 < latency["POST /seed_session"]["median_ms"] <= latency["POST /seed_session"]["max_ms"]
    assert not list(pytester.path.glob("*.part"))


@pytest.mark.parametrize("spelt", SPELT, ids=["plain", "upper case", "percent-encoded", "base64"])
def test_it_holds_no_secret_however_it_is_spelt(
    pytester: pytest.Pytester, serving: Callable[[ASGIApp], str], spelt: str
) -> None:
    """In names, descriptions and values of the rows' schemas and of the server's."""
    schema = {
        "type": "object",
        "properties": {spelt: {"type": "string", "default": spelt, "description": f"<{spelt}>"}},
    }

    class Telling(ReferenceServer):
        def __init__(self) -> None:
            super().__init__()
            body = {"content": {"application/json": {"schema": schema}}}
            self.openapi["paths"]["/tell"] = {"post": {"requestBody": body, "responses": {}}}

    row = json.loads(DATA.read_text("utf-8").splitlines()[0])
    row["responses_create_params"]["tools"].append({"type": "function", "name": "tell", "parameters": schema})
    pytester.path.joinpath("rows.jsonl").write_text(json.dumps(row))
    header = f"Authorization: Bearer {SECRET}"
    run = _run(pytester, serving(Telling()), "--gym-lock-update", "-k", "drift-lock", "--gym-header", header)
    assert run.ret == pytest.ExitCode.OK
    lock = pytester.path.joinpath("gym.lock").read_text()
    assert "tell" in json.loads(lock)["rows"]
    assert "tell" in json.loads(lock)["server"]
    assert spelt.lower() not in lock.lower()
    assert SECRET.lower() not in lock.lower()
