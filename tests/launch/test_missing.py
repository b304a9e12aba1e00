"""What is missing only where the server scores is named as missing, and is no violation."""

import asyncio
from typing import Any

import pytest

from gym_conformance.findings import Verdict
from gym_conformance.lacking import Lack, lack
from gym_conformance.session.exchange import Exchange, Reply, Request
from gym_mocks.reference import ReferenceServer
from gym_mocks.resources import Score, TaskRow
from gym_mocks.serving import serve
from gym_mocks.wire import HttpRefusal
from tests.twins.judging import judge
from tests.twins.twin import dataset


class LaunchError(Exception):
    """As the launched process raises it."""


@pytest.mark.parametrize(
    ("error", "needs"),
    [
        (ModuleNotFoundError("No module named 'jiwer'"), "the module jiwer, which is not installed"),
        (LaunchError("Ray, which is not started here"), "Ray, which is not started here"),
        (
            RuntimeError("Japanese needs more.\n\n    pip install sacrebleu[ja]\n"),
            "what `pip install sacrebleu[ja]` brings",
        ),
        (
            ValueError("Sandbox provider reference 'sandbox' is not defined in the merged config. Define a block."),
            "sandbox in the config that it is started with",
        ),
        (ConnectionError("HTTPSConnectionPool: NameResolutionError: no such host"), "the network: /verify answers "),
    ],
)
def test_it_is_named(error: Exception, needs: str) -> None:
    class Lacks(ReferenceServer):
        async def score(self, session_id: str, row: TaskRow, response: dict[str, Any]) -> Score:  # noqa: ARG002 - it fails
            raise error

    with serve(Lacks()) as url:
        found = judge(url, dataset(), checks=["verify-scores-rows"])["verify-scores-rows"]
    assert {finding.verdict for finding in found} == {Verdict.UNTESTABLE}
    assert all(finding.reason.startswith(needs) for finding in found)


@pytest.mark.parametrize(
    ("path", "body", "needs"),
    [
        (
            "/seed_session",
            "\"FileNotFoundError('/envs/a/db.json not found. Fetch it')\"",
            "the file /envs/a/db.json not ",
        ),
        ("/read_file", "\"FileNotFoundError('notes.txt')\"", ""),
        ("/verify", '{"detail":"_ng_rollout_index is required"}', "_ng_rollout_index, which nemo-gym's own "),
        ("/run", "\"KeyError('_ng_task_index')\"", ""),  # its one client sends it
    ],
)
def test_only_what_opens_a_session_may_want_a_file(path: str, body: str, needs: str) -> None:
    """And a key that the request has is not missing."""
    for sent in (b"{}", b'{"_ng_rollout_index": 0}'):
        found = lack([Exchange(1, Request("POST", path, sent), Reply(500, (), body.encode(), 0.1))], list)
        if needs and not (path == "/verify" and sent != b"{}"):
            assert found
            assert found.needs.startswith(needs)
        else:
            assert found is None


def test_what_ray_is_asked_for_once_is_missing_for_good() -> None:
    """The first verify fails, and all later ones score without it: they are not compared with the first."""

    class StartsOnce(ReferenceServer):
        started = False

        async def score(self, session_id: str, row: TaskRow, response: dict[str, Any]) -> Score:
            if not self.started:
                self.started = True
                raise LaunchError("Ray, which is not started here")
            await super().score(session_id, row, response)
            return Score(2.0 if response["output"] else 3.0)

    with serve(StartsOnce()) as url:
        found = judge(url, dataset(), checks=["seed-accepts-rollout-keys", "repeat-recorded"])
    red = [finding for findings in found.values() for finding in findings if finding.red]
    assert {finding.verdict for finding in red} == {Verdict.UNTESTABLE}
    assert {finding.reason for finding in red} == {"Ray, which is not started here"}


class _Group(ReferenceServer):
    """Scores four rollouts of a prompt together."""

    async def score(self, session_id: str, row: TaskRow, response: dict[str, Any]) -> Score:
        waiting: list[asyncio.Future[None]] = vars(self).setdefault("waiting", [])
        waiting.append(asyncio.get_running_loop().create_future())
        mine = waiting[-1]
        if len(waiting) == 4:
            for one in waiting:
                one.set_result(None)
            waiting.clear()
        await mine
        return await super().score(session_id, row, response)


class _Hangs(ReferenceServer):
    async def score(self, session_id: str, row: TaskRow, response: dict[str, Any]) -> Score:
        await asyncio.sleep(60)
        return await super().score(session_id, row, response)


class _NumberedGroup(_Group):
    """Counts a rollout once, and refuses one that does not say which it is, as 0.7.0's genrm_compare does."""

    async def score(self, session_id: str, row: TaskRow, response: dict[str, Any]) -> Score:
        number = row.model_dump().get("_ng_rollout_index")
        if number is None:
            raise HttpRefusal(422, "_ng_rollout_index is required for cohort comparison")
        seen: set[int] = vars(self).setdefault("seen", set())
        if number in seen:
            await asyncio.sleep(60)
        seen.add(number)
        return await super().score(session_id, row, response)


@pytest.mark.parametrize(
    ("server", "verdict"),
    [(_Group, Verdict.UNTESTABLE), (_NumberedGroup, Verdict.UNTESTABLE), (_Hangs, Verdict.FAIL)],
)
def test_a_verify_that_waits_for_the_rest_of_its_group_is_no_violation(
    server: type[ReferenceServer], verdict: Verdict
) -> None:
    with serve(server()) as url:
        found = judge(url, dataset(), timeout=1.0, checks=["seed-accepts-rollout-keys", "verify-without-session"])
    assert [one.verdict for one in found["seed-accepts-rollout-keys"]] == [verdict]
    if verdict is Verdict.UNTESTABLE:
        reasons = {finding.reason for findings in found.values() for finding in findings}
        assert len(reasons) == 1
        assert reasons.pop().startswith("all rollouts of a prompt at the same time: /verify answers none alone, and ")


def test_a_row_s_file_is_named_by_the_log() -> None:
    body = b"\"FileNotFoundError(2, 'No such file or directory')\""
    exchanges = [Exchange(1, Request("POST", "/seed_session"), Reply(500, (), body, 0.1))]
    log = ["FileNotFoundError: [Errno 2] No such file or directory: '/envs/a/data/tasks'", "INFO: 500"]
    assert lack(exchanges, lambda: log) == Lack("the file /envs/a/data/tasks")


_CALLER = [
    "Traceback (most recent call last):",
    'File "app.py", line 830, in _pull',
    "proc = await create_subprocess_exec(",
]
_UVLOOP = [*_CALLER, 'File "uvloop/handles/process.pyx", line 112, in uvloop.loop.UVProcess._init']
_CPYTHON = [*_CALLER, 'File "/usr/lib/python3.12/subprocess.py", line 1955, in _execute_child']
_ERROR = "(cvdp) FileNotFoundError: [Errno 2] No such file or directory"


@pytest.mark.parametrize(
    ("log", "needs"),
    [
        ([*_UVLOOP, _ERROR], "the program that app.py:830 starts, which is not installed where the server runs"),
        ([*_CPYTHON, f"{_ERROR}: 'apptainer'"], "the program apptainer, which is not installed where the server runs"),
        ([*_CALLER, f"{_ERROR}: 'rows.json'"], ""),
        ([], ""),
    ],
)
def test_a_program_is_named_by_the_traceback(log: list[str], needs: str) -> None:
    body = b"\"FileNotFoundError(2, 'No such file or directory')\""
    exchanges = [Exchange(1, Request("POST", "/verify"), Reply(500, (), body, 0.1))]
    found = lack(exchanges, lambda: log)
    assert found == (Lack(needs) if needs else None)


def test_a_refusal_may_say_that_a_module_is_missing() -> None:
    """As nemo-gym 0.4.0's tales does, with status 400."""
    body = b'{"detail": "Could not load \'textworld\': ModuleNotFoundError(\\"No module named \'tales\'\\")"}'
    found = lack([Exchange(1, Request("POST", "/reset"), Reply(400, (), body, 0.1))], list)
    assert found == Lack("the module tales, which is not installed where the server runs")


def test_a_hang_that_does_not_come_again_is_the_machine_s() -> None:
    class Busy(ReferenceServer):
        busy = True

        async def score(self, session_id: str, row: TaskRow, response: dict[str, Any]) -> Score:
            if self.busy:
                self.busy = False
                await asyncio.sleep(60)
            return await super().score(session_id, row, response)

    with serve(Busy()) as url:
        found = judge(url, dataset(), timeout=1.0, checks=["verify-scores-rows"])["verify-scores-rows"]
    assert {one.verdict for one in found} == {Verdict.PASS}
