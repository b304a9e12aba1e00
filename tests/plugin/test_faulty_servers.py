"""Servers that hang, die, speak TLS badly or nothing we know: findings or one line, in bounded time, never a traceback."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import trustme

from gym_conformance.checks.registry import CHECKS
from gym_conformance.options import Options
from gym_conformance.plugin.target_run import ensure_reachable
from gym_mocks.reference import DATA, reference_app
from gym_mocks.serving import serve
from gym_mocks.wire.client import ASGIApp
from tests.plugin.apps import hanging_on, hangs, html, no_trace, read_report, wants_credentials

pytest_plugins = ["pytester"]

#: Serves the reference server until it was asked so often, and dies as by a crash; or serves it over TLS.
_DYING = """
import os, sys
from gym_mocks.reference import reference_app
from gym_mocks.serving import serve
left = int(sys.argv[1])
inner = reference_app()
async def app(scope, receive, send):
    global left
    left -= scope["type"] == "http"
    if left < 0:
        os._exit(1)
    await inner(scope, receive, send)
with serve(app) as url:
    print(url, flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def dying(tmp_path: Path) -> Iterator[str]:
    """A server that dies after 100 requests, in a process of its own."""
    script = tmp_path / "dying.py"
    script.write_text(_DYING)
    command = [sys.executable, str(script), "100"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
        process.kill()


def test_a_server_that_dies_in_the_middle(pytester: pytest.Pytester, dying: str) -> None:
    arguments = ["--gym-url", dying, f"--gym-data={DATA}", "--gym-report", "r.json"]
    run = pytester.runpytest_subprocess(*arguments, timeout=60)
    assert run.ret == pytest.ExitCode.TESTS_FAILED
    no_trace(run)
    findings = list(read_report(pytester.path / "r.json").values())
    died = next(finding for finding in findings if finding["verdict"] == "fail")
    assert died["actual"].startswith(("the connection broke", "no connection could be made"))
    later = findings[findings.index(died) + 1 :]
    assert {finding["verdict"] for finding in later} <= {"untestable", "not_applicable"}
    assert any("it stopped answering in" in finding["reason"] for finding in later)
    assert not any(finding["reason"].startswith("no connection") for finding in later)  # it stands after "needs"
    run.stdout.fnmatch_lines(["Not fit to train on. Fix first: * The server * crashed*"])


@pytest.mark.parametrize("workers", [[], ["-n", "2"]], ids=["alone", "xdist"])
def test_a_server_that_never_answers(
    pytester: pytest.Pytester, serving: Callable[[ASGIApp], str], workers: list[str]
) -> None:
    """No path is asked for more than twice, so that the deadlines do not add up over all checks."""
    arguments = ["--gym-url", serving(hangs), f"--gym-data={DATA}", "--gym-timeout", "0.5", "--gym-report", "r.json"]
    run = pytester.runpytest_subprocess(*arguments, *workers, timeout=60)
    assert run.ret == pytest.ExitCode.TESTS_FAILED
    no_trace(run)
    findings = read_report(pytester.path / "r.json")
    assert findings["live-root"]["verdict"] == "fail"
    assert {finding["verdict"] for finding in findings.values()} <= {"fail", "untestable", "not_applicable"}
    run.stdout.fnmatch_lines(["Not fit to train on. Fix first: live-*"])
    (said,) = (line for line in run.outlines if "requests," in line)
    assert int(said.split()[4]) <= 16, said


def test_a_document_that_hangs_alone(
    pytester: pytest.Pytester, serving: Callable[[ASGIApp], str], tmp_path: Path
) -> None:
    """No client of a rollout asks for it, so the server is judged as one without a document."""
    url = serving(hanging_on("/openapi.json", reference_app(), tmp_path / "asked"))
    run = pytester.runpytest_inprocess(
        "--gym-url", url, f"--gym-data={DATA}", "--gym-timeout", "0.5", "-k", "verify-scores"
    )
    no_trace(run)
    run.assert_outcomes(passed=1)


def test_a_server_that_wants_credentials(pytester: pytest.Pytester, serving: Callable[[ASGIApp], str]) -> None:
    """It may be sound: all that is known is what to give."""
    run = pytester.runpytest_inprocess("--gym-url", serving(wants_credentials), f"--gym-data={DATA}", "-k", "seed")
    no_trace(run)
    run.stdout.fnmatch_lines(
        ["Not testable as it runs. Fix first: * it answers 401 to /seed_session; give credentials,*"]
    )


def test_a_web_site(pytester: pytest.Pytester, serving: Callable[[ASGIApp], str]) -> None:
    """Long bodies are cut."""
    run = pytester.runpytest_inprocess("--gym-url", serving(html), f"--gym-data={DATA}", "--gym-profile=smoke")
    assert run.ret == pytest.ExitCode.TESTS_FAILED
    no_trace(run)
    assert max(len(line) for line in run.outlines if "curl" not in line) < 700


@pytest.mark.parametrize("way", ["ctrl-c", "ctrl-c, xdist", "SIGTERM", "SIGHUP"])
def test_ctrl_c_in_a_hang(pytester: pytest.Pytester, serving: Callable[[ASGIApp], str], way: str) -> None:
    """Ends at once, with the report written, and exit code 2."""
    asked = pytester.path / "asked"
    url = serving(hanging_on("/verify", reference_app(), asked))
    arguments = ["--gym-url", url, f"--gym-data={DATA}", "--gym-report", "r.json"]
    command = [sys.executable, "-m", "pytest", *arguments, *(["-n", "2"] if "xdist" in way else [])]
    process = pytester.popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, start_new_session=True
    )
    until = time.monotonic() + 30
    while not asked.exists() and time.monotonic() < until:
        time.sleep(0.05)
    time.sleep(0.2)
    sent = time.monotonic()
    if way.startswith("ctrl-c"):
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does: the whole group gets it
    else:
        process.send_signal(signal.Signals[way])
    said = process.communicate(timeout=60)[0].decode()
    assert time.monotonic() - sent < 25, (
        said
    )  # alone a second or two, but xdist waits 5 for its workers; the request would hang for 30
    assert process.returncode == pytest.ExitCode.INTERRUPTED, said
    assert "Traceback (most recent call last)" not in said, said
    findings = read_report(pytester.path / "r.json")
    assert set(findings) == {check.id for check in CHECKS}
    assert findings["live-root"]["verdict"] == "pass"
    assert findings[CHECKS[-1].id]["reason"] == "a complete run; this one ended early"


def _serve_tls(folder: Path, authority: trustme.CA) -> subprocess.Popen[str]:
    certificate = authority.issue_cert("127.0.0.1")
    certificate.private_key_and_cert_chain_pem.write_to_path(str(folder / "server.pem"))
    code = (
        "import socket, sys, uvicorn; from gym_mocks.reference import reference_app\n"
        "listener = socket.create_server(('127.0.0.1', 0)); print(listener.getsockname()[1], flush=True)\n"
        "config = uvicorn.Config(reference_app(), log_level='critical', ssl_certfile=sys.argv[1])\n"
        "uvicorn.Server(config).run([listener])"
    )
    command = [sys.executable, "-c", code, str(folder / "server.pem")]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)


@pytest.fixture
def tls(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """The URL of a server with a certificate of an authority that nobody knows, and that authority's certificate."""
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(tmp_path / "authority.pem"))
    with _serve_tls(tmp_path, authority) as process:
        assert process.stdout is not None
        yield f"https://127.0.0.1:{process.stdout.readline().strip()}", tmp_path / "authority.pem"
        process.kill()


def test_a_certificate_that_nobody_signed_is_one_line(pytester: pytest.Pytester, tls: tuple[str, Path]) -> None:
    url, _ = tls
    run = pytester.runpytest_subprocess("--gym-url", url, timeout=60)
    run.stderr.fnmatch_lines([f"ERROR: --gym-url {url}: *unable to get local issuer*; set SSL_CERT_FILE to *"])
    assert len([line for line in run.outlines + run.errlines if line]) == 1
    assert run.ret == pytest.ExitCode.USAGE_ERROR


def test_with_the_authority_named_it_is_judged(
    pytester: pytest.Pytester, tls: tuple[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    url, authority = tls
    monkeypatch.setenv("SSL_CERT_FILE", str(authority))
    run = pytester.runpytest_subprocess("--gym-url", url, "-k", "live or seed-accepts", timeout=60)
    assert run.ret == pytest.ExitCode.OK, run.stdout.str()


@pytest.mark.parametrize(
    ("authorities", "why"),
    [("none.pem", "No such file or directory"), (".", "Is a directory"), (__file__, "NO_CERTIFICATE_OR_CRL_FOUND")],
)
def test_authorities_that_cannot_be_read_are_one_line(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, authorities: str, why: str
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", authorities)
    run = pytester.runpytest_subprocess("--gym-url", "https://127.0.0.1:9", timeout=60)
    run.stderr.fnmatch_lines([f"ERROR: --gym-url https://127.0.0.1:9: {why}; fix SSL_CERT_FILE, or SSL_CERT_DIR"])
    assert run.ret == pytest.ExitCode.USAGE_ERROR


def test_https_where_http_is_spoken_is_one_line(pytester: pytest.Pytester, gym: str) -> None:
    run = pytester.runpytest_inprocess("--gym-url", gym.replace("http:", "https:"))
    run.stderr.fnmatch_lines(
        ["ERROR: --gym-url https://*; set SSL_CERT_FILE to *, or give http if it does not use TLS"]
    )
    assert run.ret == pytest.ExitCode.USAGE_ERROR


def test_http_where_https_is_spoken_is_one_line(pytester: pytest.Pytester, tls: tuple[str, Path]) -> None:
    http = tls[0].replace("https:", "http:")
    run = pytester.runpytest_subprocess("--gym-url", http, timeout=60)
    run.stderr.fnmatch_lines([f"ERROR: --gym-url {http}: it answers over TLS only; give {tls[0]}"])
    assert run.ret == pytest.ExitCode.USAGE_ERROR


def test_a_server_that_is_full_is_reached() -> None:
    """It is asked once: to wait for room is the run's, which ends when its time is over."""
    asked = list[str]()

    async def full(scope: Any, _receive: Any, send: Any) -> None:
        asked.append(scope["path"])
        await send({"type": "http.response.start", "status": 503, "headers": [(b"retry-after", b"1")]})
        await send({"type": "http.response.body", "body": b""})

    with serve(full) as url:
        ensure_reachable(url, Options(url=url))
    assert asked == ["/"]


def test_what_many_checks_lack_is_shown_once(pytester: pytest.Pytester) -> None:
    """What fails is read from the end: a hundred times the same would hide the violation behind it, and the verdict."""
    with serve(hangs) as url:
        run = pytester.runpytest_subprocess("--gym-url", url, f"--gym-data={DATA}", "--gym-timeout=0.5", timeout=60)
    lack = "Untestable: needs a server that answers: it stopped answering in live-root"
    assert sum(lack in line for line in run.outlines if not line.startswith("FAILED")) == 1
    run.stdout.fnmatch_lines(["Untestable: * checks, which need a server that answers*.", "Not fit to train on.*"])
    assert len([line for line in run.outlines if line.startswith("FAILED")]) < 5
    run.stdout.fnmatch_lines(["=* failed, * untestable in *"])
