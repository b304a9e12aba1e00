"""With xdist: the same findings, one report, one demo server, whatever the distribution."""

import re
from collections.abc import Callable
from typing import Any

import execnet
import pytest

from gym_conformance.checks.registry import CHECKS
from gym_conformance.findings import Cause, Finding, Verdict
from gym_mocks.reference import DATA, FunctionTool, ReferenceServer
from gym_mocks.wire.client import ASGIApp
from tests.plugin.apps import read_report

pytest_plugins = ["pytester"]


#: What no two runs say alike.
_MEASURED = re.compile(r"\d[\d,]* (?=s\b|requests\b)")


class _Forgetful(ReferenceServer):
    """Breaks two rules, one of them on some rows only."""

    async def seed(self, session_id: str, row: dict[str, Any]) -> Any:
        if "7" in str(row):
            raise ValueError("I do not like 7")
        return await super().seed(session_id, row)

    async def call(self, session_id: str, tool: FunctionTool, arguments: Any) -> Any:
        if tool.name == "count_stock":
            raise ValueError("uncountable")
        return await super().call(session_id, tool, arguments)


def _found(pytester: pytest.Pytester, url: str, *arguments: str) -> dict[str, Any]:
    report = ["--gym-report", "r.json"]
    searching = {check.section for check in CHECKS if check.attempt}  # a property's pass says how long it took
    sections = {f"gym/{check.section}": None for check in CHECKS if check.section not in searching}
    pytester.runpytest_subprocess(*sections, "--gym-url", url, f"--gym-data={DATA}", *report, *arguments, timeout=120)
    found = read_report(pytester.path / "r.json")
    fixed = [check.id for check in CHECKS if f"gym/{check.section}" in sections]
    said = {check: [found[check][key] for key in ("verdict", "expected", "reason")] for check in fixed}
    return {check: tuple(_MEASURED.sub("some ", each) for each in texts) for check, texts in said.items()}


def test_the_same_findings(pytester: pytest.Pytester, serving: Callable[[ASGIApp], str]) -> None:
    url = serving(_Forgetful())
    alone = _found(pytester, url)
    assert {verdict for verdict, _, _ in alone.values()} > {"pass", "fail"}
    assert _found(pytester, url, "-n", "2") == alone
    assert _found(pytester, url, "-n", "2", "--dist", "loadfile") == alone


@pytest.mark.parametrize("cause", [None, *Cause])
def test_a_finding_can_travel(cause: Cause | None) -> None:
    """What xdist cannot send ends the whole run."""
    finding = Finding("seed-isolates", "MUST", "a rule", Verdict.FAIL, "server", cause=cause)
    assert Finding.from_json(execnet.loads(execnet.dumps(finding.as_json()))) == finding


@pytest.mark.parametrize("arguments", [["--dist", "loadfile"], ["--dist", "worksteal"], ["-p", "no:cacheprovider"]])
def test_one_demo_server(pytester: pytest.Pytester, arguments: list[str]) -> None:
    """Its conftest counts, in every process, how often one is started."""
    pytester.makeconftest(
        """
        import os
        from pathlib import Path
        from gym_conformance.plugin.demo import Demo
        class Counted(Demo):
            def __init__(self):
                Path(f"served-{os.getpid()}").touch(exist_ok=False)
                super().__init__()
        import gym_conformance.plugin.demo as demo
        demo.Demo = Counted
        """
    )
    sections = ("gym/live", "gym/seed", "gym/cookie", "gym/tool")
    run = pytester.runpytest_subprocess(*sections, "--gym-demo", "-n", "2", *arguments, timeout=120)
    run.assert_outcomes(passed=sum(f"gym/{check.section}" in sections for check in CHECKS))
    assert len(list(pytester.path.glob("served-*"))) == 1


def test_node_ids_and_paths(pytester: pytest.Pytester, gym: str) -> None:
    pytester.makepyfile(test_mine="def test_own(): pass", test_other="def test_other(): pass")
    chosen = ["gym/seed::seed-accepts-rows", "gym/live"]
    run = pytester.runpytest_subprocess(*chosen, "--gym-url", gym, "-n", "2", timeout=60)
    run.assert_outcomes(passed=3)
    run = pytester.runpytest_subprocess(*chosen, "test_mine.py", "--gym-url", gym, "-n", "2", timeout=60)
    run.assert_outcomes(passed=4)


def test_a_worker_that_dies_leaves_a_report(pytester: pytest.Pytester, gym: str) -> None:
    pytester.makeconftest(
        """
        import os
        def pytest_runtest_setup(item):
            if item.name == "seed-repeat-harmless":
                os._exit(1)
        """
    )
    arguments = ["--gym-report", "r.json", "-n", "2", "--max-worker-restart", "0"]
    pytester.runpytest_subprocess("--gym-url", gym, *arguments, timeout=60)
    findings = read_report(pytester.path / "r.json")
    assert set(findings) == {check.id for check in CHECKS}
    assert findings["seed-repeat-harmless"]["verdict"] == "untestable"
