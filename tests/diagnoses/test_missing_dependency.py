"""What is missing only where the server scores is named as missing, and is no violation."""

import asyncio
import json
from collections.abc import Callable
from contextlib import closing
from typing import Any

import httpx
import pytest

from gym_conformance.checks.registry import CHECKS
from gym_conformance.contract.openapi import Api, ServerKind
from gym_conformance.diagnoses.diagnosis import Case, Missing
from gym_conformance.diagnoses.missing_dependency import MissingDependency, missing
from gym_conformance.findings import Verdict
from gym_conformance.gym_under_test import Gym
from gym_conformance.options import Options
from gym_conformance.plugin.target_run import Run
from gym_conformance.session.channel import Endpoint
from gym_conformance.session.exchange import Exchange, Reply, Request
from gym_conformance.session.server_fault import Fault, ServerFault
from gym_conformance.session.transport import Transport
from gym_conformance.trials.bench import Bench
from gym_conformance.trials.launched import Launched, TimesAsked
from gym_mocks.reference import ReferenceServer
from gym_mocks.resources import Score, TaskRow
from gym_mocks.serving import serve
from gym_mocks.wire.bodies import HttpRefusal
from tests.twins.judging import found_by, judge
from tests.twins.twin import dataset


class LaunchError(Exception):
    """As the launched process raises it."""


@pytest.mark.parametrize(
    ("error", "needs"),
    [
        (ModuleNotFoundError("No module named 'jiwer'"), "the module jiwer, which is not installed"),
        (
            LaunchError("Ray, which is started only with --gym-launch real"),
            "Ray, which is started only with --gym-launch real",
        ),
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

    found = found_by("verify-scores-rows", Lacks())
    assert {finding.verdict for finding in found} == {Verdict.UNTESTABLE}
    assert all(finding.reason.startswith(needs) for finding in found)


@pytest.mark.parametrize(
    ("path", "body", "needs"),
    [
        (
            "/seed_session",
            "\"FileNotFoundError('/envs/a/db.json not found. Fetch it')\"",
            "a file that is not there: /envs/a/db.json not found. Fetch it",
        ),
        ("/read_file", "\"FileNotFoundError('notes.txt')\"", ""),
        ("/verify", '{"detail":"_ng_rollout_index is required"}', "_ng_rollout_index, which nemo-gym's "),
        ("/run", "\"KeyError('_ng_task_index')\"", ""),  # its one client sends it
    ],
)
def test_only_what_opens_a_session_may_want_a_file(path: str, body: str, needs: str) -> None:
    """And a key that the request has is not missing."""
    for sent in (b"{}", b'{"_ng_rollout_index": 0}'):
        found = missing([Exchange(1, Request("POST", path, sent), Reply(500, (), body.encode(), 0.1))], list)
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
                raise LaunchError("Ray, which is started only with --gym-launch real")
            await super().score(session_id, row, response)
            return Score(2.0 if response["output"] else 3.0)

    found = judge(StartsOnce(), checks=["seed-accepts-rollout-keys", "repeat-recorded"])
    red = [finding for findings in found.values() for finding in findings if finding.red]
    assert {finding.verdict for finding in red} == {Verdict.UNTESTABLE}
    assert {finding.reason for finding in red} == {"Ray, which is started only with --gym-launch real"}


def test_a_row_s_file_is_named_by_the_log() -> None:
    body = b"\"FileNotFoundError(2, 'No such file or directory')\""
    exchanges = [Exchange(1, Request("POST", "/seed_session"), Reply(500, (), body, 0.1))]
    log = ["FileNotFoundError: [Errno 2] No such file or directory: '/envs/a/data/tasks'", "INFO: 500"]
    assert missing(exchanges, lambda: log) == Missing("the file /envs/a/data/tasks")


def test_a_rollout_s_id_is_added_by_an_agent_of_its_own() -> None:
    body = b'{"detail": [{"type": "missing", "loc": ["body", "rollout_id"], "msg": "Field required"}]}'
    exchanges = [Exchange(1, Request("POST", "/seed_session", b"{}"), Reply(422, (), body, 0.1))]
    found = missing(exchanges, tuple)
    assert found is not None
    assert found.needs.startswith("rollout_id, which nemo-gym's rollout collection or an agent of its own adds")


@pytest.mark.parametrize(
    ("field", "needs"),
    [("env_id", Missing("a response with env_id, which only an agent of its own adds", lasts=True)), ("usage", None)],
)
def test_what_no_response_has_is_added_by_an_agent_of_its_own(field: str, needs: Missing | None) -> None:
    """As nemo-gym 0.7.0's toolsandbox, whose agent plays by env_id."""
    body = json.dumps({"detail": [{"type": "missing", "loc": ["body", "response", field], "msg": "Field required"}]})
    exchanges = [Exchange(1, Request("POST", "/verify"), Reply(422, (), body.encode(), 0.1))]
    assert missing(exchanges, tuple) == needs


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
    found = missing(exchanges, lambda: log)
    assert found == (Missing(needs) if needs else None)


def test_a_refusal_may_say_that_a_module_is_missing() -> None:
    """As nemo-gym 0.4.0's tales does, with status 400."""
    body = b'{"detail": "Could not load \'textworld\': ModuleNotFoundError(\\"No module named \'tales\'\\")"}'
    found = missing([Exchange(1, Request("POST", "/reset"), Reply(400, (), body, 0.1))], list)
    assert found == Missing("the module tales, which is not installed where the server runs")


@pytest.mark.parametrize(
    "written",
    [
        "Just pip install numpy and run it again.",
        "No module named 'numpy'",
        "ModuleNotFoundError(\"No module named 'numpy'\")",
        "reference 'sandbox' is not defined in the merged config",
        "[Errno 111] Connection refused",
    ],
)
@pytest.mark.parametrize("quoting", ["ValueError({!r})", 'RuntimeError("no score for {}")', "KeyError({!r})"])
def test_what_the_policy_wrote_is_no_excuse(written: str, quoting: str) -> None:
    """A scorer that quotes the policy in its exception has crashed, whatever it quotes."""
    sent = Request("POST", "/verify", json.dumps({"response": {"output": [{"text": f"Well. {written}"}]}}).encode())
    body = json.dumps(quoting.format(written)).encode()
    log = ["Traceback (most recent call last):", f"ValueError: {written}"]
    for exchange in (Exchange(1, sent, Reply(500, (), body, 0.1)), Exchange(1, sent, Reply(500, (), b"", 0.1))):
        assert missing([exchange], lambda: log) is None


@pytest.mark.parametrize(
    "prose",
    [
        '{"detail": "Please pip install numpy first."}',
        '{"detail": "Connection refused"}',
        '{"detail": "No module named numpy"}',
        '"pip install numpy"',
        "pip install numpy",
    ],
)
@pytest.mark.parametrize("status", [400, 422, 500, 503])
def test_prose_is_no_excuse(prose: str, status: int) -> None:
    """What a server says in words of its own may be about anything."""
    exchange = Exchange(1, Request("POST", "/verify", b"{}"), Reply(status, (), prose.encode(), 0.1))
    assert missing([exchange], list) is None


def test_a_traceback_in_the_log_names_it_where_the_reply_says_nothing() -> None:
    """As every framework but nemo-gym's own middleware answers."""
    exchange = Exchange(1, Request("POST", "/verify", b"{}"), Reply(500, (), b"Internal Server Error", 0.1))
    log = ["Traceback (most recent call last):", "ModuleNotFoundError: No module named 'jiwer'"]
    assert missing([exchange], lambda: log) == Missing("the module jiwer, which is not installed where the server runs")
    taken = Exchange(1, Request("POST", "/verify", b"{}"), Reply(422, (), b"{}", 0.1))
    assert missing([taken], lambda: log) is None


def test_a_traceback_of_an_earlier_trial_excuses_nothing() -> None:
    """Verify lacks a module for an empty output and prints that, and crashes at a refusal without a word."""
    printed: list[str] = []

    class Silent(ReferenceServer):
        async def score(self, session_id: str, row: TaskRow, response: dict[str, Any]) -> Score:
            if not response["output"]:
                printed.extend(["Traceback (most recent call last):", "ModuleNotFoundError: No module named 'jiwer'"])
            if not response["output"] or '"refusal"' in json.dumps(response):
                raise HttpRefusal(500, "")
            return await super().score(session_id, row, response)

    def listen() -> Callable[[], list[str]]:
        since = len(printed)
        return lambda: printed[since:]

    (check,) = (one for one in CHECKS if one.id == "verify-degenerate")
    with (
        serve(Silent()) as url,
        closing(Run(url, Options(url=url), dataset(), launched=Launched(listen=listen))) as run,
    ):
        told = {finding.subject: finding.verdict for finding in run.judge(check)}
    assert told["empty output"] is Verdict.UNTESTABLE
    assert told["refusal"] is Verdict.FAIL


def test_a_policy_s_words_in_a_crash_stay_a_violation() -> None:
    class Quotes(ReferenceServer):
        async def score(self, session_id: str, row: TaskRow, response: dict[str, Any]) -> Score:
            if not response["output"]:
                raise ValueError("try pip install numpy, and the network: Connection refused")
            if "refusal" in json.dumps(response):
                raise ValueError(json.dumps(response["output"]))
            return await super().score(session_id, row, response)

    found = found_by("verify-degenerate", Quotes())
    ended = {finding.subject: finding.verdict for finding in found}
    assert ended["refusal"] is Verdict.FAIL
    assert ended["empty output"] is Verdict.UNTESTABLE  # the server's own exception, in the framework's form


def test_a_path_that_asked_other_hosts_may_hang_behind_its_own_requests() -> None:
    """The first request downloads something under a lock, and the next one waits for it without asking anybody."""

    async def explained() -> list[bool]:
        endpoint = Endpoint("http://127.0.0.1", Transport(httpx.URL("http://127.0.0.1"), deadline=1.0), 1.0)
        bench = Bench(Gym(endpoint, Api(), ServerKind.OTHER, ""))
        diagnosis = MissingDependency()

        async def is_explained(path: str, outside: int) -> bool:
            hung = Exchange(1, Request("POST", path))
            fault = ServerFault(Fault.HANG, "nothing")
            fault.exchange = hung
            case = Case(bench, [hung], fault, TimesAsked(outside=outside))
            return diagnosis.suspects(case) and await diagnosis.confirm(case) is not None

        asked = [("/seed_session", 0), ("/seed_session", 1), ("/seed_session", 0), ("/verify", 0)]
        return [await is_explained(path, outside) for path, outside in asked]

    assert asyncio.run(explained()) == [False, True, True, False]
