"""The file that a run of several servers is resumed from."""

import json
from pathlib import Path
from typing import Any

import pytest

from gym_conformance.findings import Finding, Verdict
from gym_conformance.fleet.resuming import Ledger
from gym_conformance.launch.env import Env
from gym_conformance.options import Options

_FOUND = {"name": "a", "target": {"url": "a"}, "effort": ["gw0", 3, 1.5], "latency": [["GET /", 1, 0.1, [0.1]]]}


def _finding(check: str) -> Finding:
    return Finding(check, "MUST", "a rule", Verdict.FAIL, "server", actual="b", accepted="known")


def _ledger(folder: Path, options: Options | None = None) -> Ledger:
    return Ledger(folder, options or Options(envs=(Env("a", folder),)))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where a run has found something of two checks, and was cut off in the third."""
    (tmp_path / "app.py").touch()
    ledger = _ledger(tmp_path)
    ledger.begin(resume=False)
    for check, own_fault in (("live-root", False), ("live-endpoints", False), ("verify-floor", True)):
        ledger.write({**_FOUND, "findings": [_finding(check).as_json()], "own_fault": own_fault})
    ledger.path.write_text(ledger.path.read_text() + '{"name": "a", "ma')
    return tmp_path


def test_what_is_whole_is_found_again(folder: Path) -> None:
    earlier = _ledger(folder).earlier("a", {"live-root", "live-endpoints"})
    assert earlier is not None
    assert [finding.accepted for finding in earlier.findings["live-root"]] == [""]
    assert (earlier.target, earlier.requests, earlier.seconds) == ({"url": "a"}, 3, 1.5)
    assert (folder / ".gym-conformance" / ".gitignore").read_text() == "*\n"


def test_what_is_not_whole_is_not(folder: Path) -> None:
    """A check is missing, two runs have half of it each, its files or the options have changed, or a run begins anew."""
    assert _ledger(folder).earlier("a", {"live-root", "verify-floor"}) is None
    again = _ledger(folder)
    again.begin(resume=True)
    again.write({**_FOUND, "findings": [_finding("verify-floor").as_json()], "own_fault": False})
    assert _ledger(folder).earlier("a", {"live-root", "verify-floor"}) is None
    assert _ledger(folder).earlier("a", {"live-root"}) is not None
    assert _ledger(folder).earlier("a", {"verify-floor"}) is not None
    assert _ledger(folder, Options(envs=(Env("a", folder),), timeout=3)).earlier("a", {"live-root"}) is None
    (folder / "app.py").write_text("x = 1")
    assert _ledger(folder).earlier("a", {"live-root"}) is None
    _ledger(folder).begin(resume=False)
    assert not again.path.exists()


@pytest.mark.parametrize(
    "change",
    [
        {"findings": 1},
        {"findings": []},
        {"findings": [1]},
        {"findings": [{}]},
        {"effort": None},
        {"effort": ["gw0", "3", 1.5]},
        {"effort": [{}, 3, 1.5]},
        {"latency": [1]},
        {"latency": [["GET /", "1", 0.1, [0.1]]]},
        {"target": 1},
        {"run": []},
        {"mark": 1},
    ],
    ids=repr,
)
def test_a_line_that_was_changed_is_judged_again(folder: Path, change: dict[str, Any]) -> None:
    path = _ledger(folder).path
    first, *others = path.read_text().splitlines()
    path.write_text("\n".join([json.dumps(json.loads(first) | change), *others]))
    assert _ledger(folder).earlier("a", {"live-root"}) is None
    assert _ledger(folder).earlier("a", {"live-endpoints"}) is not None
