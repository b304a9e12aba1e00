"""Conforming servers in frameworks and habits of all kinds, and their faults: docs/zoo.md has the figures of many runs."""

import json
import re
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest

from tests.nested.warm_pytest import WarmPytest
from tests.zoo.expected import ACCEPTED, ZOO, Planted
from tests.zoo.keeper import Judged, data, judged

_SERVERS = Path(__file__).parent / "servers"


@pytest.fixture
def judge(request: pytest.FixtureRequest, zoo_data: Path, tmp_path: Path, warm_pytest: WarmPytest) -> Any:
    """Judges the server with that name and fault; `--zoo-figures` says what came of it."""

    def run(name: str, fault: str, checks: str = "") -> Judged:
        option = request.config.option
        rows = data(name, zoo_data)
        came = judged(name, fault, rows, tmp_path, warm_pytest, profile=option.zoo_profile, checks=checks)
        if option.zoo_figures:
            told = {check: each["level"] for check, each in came.findings.items() if each["verdict"] == "fail"}
            line = {
                "server": name,
                "fault": fault,
                "status": came.status,
                "seconds": round(came.seconds, 1),
                "told": told,
            }
            with option.zoo_figures.open("a") as file:
                file.write(json.dumps({**line, "profile": option.zoo_profile, "hog": option.zoo_hog}) + "\n")
        return came

    return run


def failed(came: Judged) -> dict[str, Any]:
    """What a reader has to fix, by check."""
    return {check: each for check, each in came.findings.items() if each["verdict"] == "fail"}


def test_a_conforming_server_has_no_finding(judge: Any, name: str) -> None:
    came = judge(name, "")
    told = {check: (each["subject"], each["actual"]) for check, each in failed(came).items()}
    assert {check: what for check, what in told.items() if check not in ACCEPTED.get(name, ())} == {}
    assert came.findings, came.output
    assert came.status == 0, came.output


def test_a_fault_is_told_at_its_level_with_its_cause(
    judge: Any, name: str, planted: Planted, request: pytest.FixtureRequest
) -> None:
    """By a whole run if all faults are asked for, else by the checks that may tell it."""
    came = judge(name, planted.name, "" if request.config.option.zoo_all else planted.selected)
    told = failed(came)
    telling = {
        check: " ".join(str(each[key]) for key in ("title", "subject", "expected", "actual", "hint"))
        for check, each in told.items()
        if each["level"] == planted.level and any(fnmatch(check, pattern) for pattern in planted.checks)
    }
    assert telling, {check: each["actual"] for check, each in told.items()}
    assert any(re.search(planted.words, words) for words in telling.values()), telling
    assert came.status == (1 if planted.level == "MUST" else 0), came.output


def test_all_animals_are_in_the_table() -> None:
    assert {file.stem for file in _SERVERS.glob("*.py")} == set(ZOO)


@pytest.mark.parametrize("server", ZOO)
def test_each_fault_is_in_its_server_and_none_is_left_out(server: str) -> None:
    written = re.findall(r'planted\("(\w+)"\)', (_SERVERS / f"{server}.py").read_text())
    assert set(written) == {fault.name for fault in ZOO[server]}
