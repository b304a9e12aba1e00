"""What a server keeps for each session is seen from outside, in its process."""

import asyncio
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest

from gym_conformance.checks.server import wearing_out
from gym_conformance.checks.server.resources import resources_closed, resources_kept, resources_loop_free
from gym_conformance.findings import Finding, Verdict
from gym_conformance.trials.launched import Launched
from gym_mocks.reference import ReferenceServer
from gym_mocks.resources import Score, TaskRow
from gym_mocks.serving import serve
from gym_mocks.wire import HttpReply, HttpRequest
from tests.twins.judging import judge as judged
from tests.twins.judging import running
from tests.twins.keeps import KEPT
from tests.twins.twin import dataset


@contextmanager
def keeping(what: str, when: str = "seed") -> Iterator[tuple[str, int]]:
    """A server in a process of its own that keeps this; its URL and its process id."""
    command = [sys.executable, "-m", "tests.twins.keeps", what, when]
    root = Path(__file__).parents[2]
    with subprocess.Popen(command, cwd=root, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin
        assert process.stdout
        try:
            yield process.stdout.readline().strip(), process.pid
            process.stdin.close()
            assert process.wait(10) == 0
        finally:
            process.kill()


def judge(what: str, when: str = "seed") -> Finding:
    with keeping(what, when) as (url, pid), running(url, pid=pid) as run:
        (finding,) = run.judge({"seed": resources_kept, "close": resources_closed}[when])
    return finding


@pytest.mark.parametrize("what", sorted(KEPT.keys() - {"nothing"}))
def test_what_is_kept_for_each_session_is_found(what: str) -> None:
    finding = judge(what)
    assert finding.verdict is Verdict.FAIL, finding
    assert [reading["sessions"] for reading in finding.readings] == list(range(0, 361, 60))
    assert {"memory": "KiB", "files": "open file", "children": "child process", "threads": "thread"}[
        what
    ] in finding.expected + finding.actual


@pytest.mark.parametrize(("what", "verdict"), [("memory", Verdict.FAIL), ("nothing", Verdict.PASS)])
def test_what_is_kept_of_closed_sessions_is_found(what: str, verdict: Verdict) -> None:
    assert judge(what, "close").verdict is verdict


def test_a_server_that_keeps_nothing_passes() -> None:
    assert judge("nothing").verdict is Verdict.PASS


def test_a_process_that_is_not_there_is_untestable() -> None:
    with keeping("nothing") as (url, _), running(url, pid=2**22 - 1) as run:
        (finding,) = run.judge(resources_kept)
    assert finding.verdict is Verdict.UNTESTABLE
    assert "--gym-pid" in finding.reason


class HangsOnASurrogate(ReferenceServer):
    async def score(self, session_id: str, row: TaskRow, response: dict[str, Any]) -> Score:
        if r"\ud800" in ascii(response["output"]):
            await asyncio.sleep(3600)
        return await super().score(session_id, row, response)


def test_a_verify_that_hangs_on_another_text_is_looked_at_all_the_same() -> None:
    """What hangs is the finding of another check, and tells nothing of the event loop."""
    with serve(HangsOnASurrogate()) as url:
        found = judged(url, dataset(), timeout=2.0, checks=["verify-raw-surrogate", "resources-loop-free"])
    assert [one.verdict for one in found["verify-raw-surrogate"]] == [Verdict.FAIL]
    assert [one.verdict for one in found["resources-loop-free"]] == [Verdict.PASS]


class TenthOfASecond(ReferenceServer):
    """A tool takes a tenth of a second, which five at once turn into half a second where they wait on the event loop."""

    def __init__(self, blocking: bool) -> None:
        super().__init__()
        self.blocking = blocking

    async def dispatch(self, request: HttpRequest) -> HttpReply:
        if request.path == "/move_stock":
            if self.blocking:
                time.sleep(0.1)  # noqa: ASYNC251 - the fault
            else:
                await asyncio.sleep(0.1)
        return await super().dispatch(request)


@pytest.mark.parametrize(("blocking", "verdict"), [(True, Verdict.FAIL), (False, Verdict.PASS)])
def test_calls_that_only_together_hold_all_others_up_are_found(blocking: bool, verdict: Verdict) -> None:
    with serve(TenthOfASecond(blocking)) as url:
        (finding,) = judged(url, dataset(), checks=["resources-loop-free"])["resources-loop-free"]
    assert finding.verdict is verdict
    assert not blocking or "a call of move_stock in each of" in finding.actual


class SlowerFromNowOn(ReferenceServer):
    """Once `slow` is set, a verify takes a while."""

    slow = False

    async def score(self, session_id: str, row: TaskRow, response: dict[str, Any]) -> Score:
        await asyncio.sleep(0.15 if self.slow else 0.0)
        return await super().score(session_id, row, response)


class Another:
    """Serves this one as the server's second process."""

    seconds = 0.1

    def __init__(self, server: SlowerFromNowOn) -> None:
        self.server = server

    def restart(self) -> None:
        raise AssertionError

    def another(self) -> AbstractContextManager[str]:
        return serve(self.server)


def _latency(monkeypatch: pytest.MonkeyPatch, launched: Launched | None = None, slowdown: float = 1.0) -> Finding:
    """What is told of a server that becomes slow once it was looked at."""
    monkeypatch.setattr(wearing_out, "_REST", 0.0)
    monkeypatch.setattr(wearing_out, "slowdown", lambda _: slowdown)
    with running(server := SlowerFromNowOn(), launched=launched or Launched()) as run:
        run.judge(resources_loop_free)
        server.slow = True
        (finding,) = run.judge(wearing_out.resources_latency)
    return finding


def test_a_session_that_takes_longer_than_at_first_is_told_where_the_machine_is_idle(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert _latency(monkeypatch).verdict is Verdict.FAIL
    finding = _latency(monkeypatch, slowdown=10.0)
    assert finding.verdict is Verdict.PASS
    assert "the machine may be busy" in finding.caution


def test_another_machine_may_be_busy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wearing_out, "is_here", lambda _: False)
    finding = _latency(monkeypatch)
    assert finding.verdict is Verdict.PASS
    assert "the machine may be busy" in finding.caution


@pytest.mark.parametrize(("slow", "verdict"), [(True, Verdict.FAIL), (False, Verdict.PASS)])
def test_a_fresh_process_tells_whether_it_is_the_server(
    slow: bool, verdict: Verdict, monkeypatch: pytest.MonkeyPatch
) -> None:
    fresh = SlowerFromNowOn()
    fresh.slow = not slow
    assert _latency(monkeypatch, Launched(relaunch=Another(fresh))).verdict is verdict


class FailsInForm(ReferenceServer):
    """The scorer itself is broken, and each verify says so as NeMo Gym has it."""

    async def score(self, session_id: str, row: TaskRow, response: dict[str, Any]) -> Score:
        del session_id, row, response
        return Score(0.0, fields={"_ng_failure_class": "scorer_failed", "mask_sample": True})


@pytest.mark.parametrize("server", [ReferenceServer, FailsInForm])
def test_a_pass_where_every_sample_is_masked_is_a_caution(server: type[ReferenceServer]) -> None:
    found = judged(server(), checks={"verify-scores-rows"})["verify-scores-rows"]
    assert {finding.verdict for finding in found} == {Verdict.PASS}
    assert all(("no score was seen" in finding.caution) == (server is FailsInForm) for finding in found)
