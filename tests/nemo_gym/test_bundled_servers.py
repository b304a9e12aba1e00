"""nemo-gym's own servers, unmodified, judged with the data bundled with them.

docs/bundled-servers.md lists every finding, each read by hand. A finding that is not listed there fails the test: a
false alarm is fixed in the check, never written into the table. So does one that is listed and no longer found, but
for those of properties, which a handful of trajectories may miss.
"""

import re
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import pytest

from gym_conformance.checks.registry import CHECKS
from gym_conformance.dataset import load
from gym_conformance.options import Options
from gym_conformance.plugin.target_run import Run
from gym_conformance.trajectories.profiles import Profile
from tests.nemo_gym.conftest import RealServer

pytestmark = pytest.mark.nemo_gym

#: A few trajectories of each property: enough to see a false alarm.
SOME = Profile("bundled", 8, 0.2, derandomize=True)

#: Servers of a kind that others show as well, or with so many tools that all checks take minutes: with `-m corpus` alone.
SOMETIMES = {"workplace_assistant", "mcqa", "structured_outputs", "math_advanced_calculations"}

#: Isolation takes half of a run, and is judged here where sessions keep something: the sweep has the others.
STATEFUL, OTHERWISE = {"example_session_state_mgmt"}, re.compile("(?!isolation-)")

PAGE = Path(__file__).parents[2] / "docs" / "bundled-servers.md"


def _table(heading: str) -> list[list[str]]:
    """The cells of the table below a heading, without its two head lines."""
    section = PAGE.read_text().split(f"\n## {heading}\n", 1)[1].split("\n## ", 1)[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip().strip("`") for cell in line.strip("|").split("|")] for line in lines[2:]]


PROPERTIES = {check.id for check in CHECKS if check.attempt}
KINDS = {row[0]: row[1] for row in _table("Servers")}
FINDINGS = [(row[0], row[1], row[2]) for row in _table("Findings")]


def listed(name: str, kind: str) -> set[tuple[str, str]]:
    """The checks that may fail on this server: its own, and those of every server that the contract is asked of."""
    everywhere = set() if kind == "gymnasium-style server" else {"every server"}
    return {(check, verdict) for server, check, verdict in FINDINGS if server in {name, *everywhere}}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.corpus] if name in SOMETIMES else []) for name in KINDS]
)
def test_findings_are_those_that_were_read(name: str, real_server: Callable[[str], RealServer]) -> None:
    assert version("nemo-gym") == "0.4.0", "the table is for this version"
    server = real_server(name)
    with Run(server.url, Options(timeout=20, profile=SOME), load([server.rows])) as run:
        checks = [check for check in CHECKS if name in STATEFUL or OTHERWISE.match(check.id)]
        findings = [finding for check in checks for finding in run.judge(check)]
        kind = run.target()["kind"]
    found = {(f.check, f.verdict.value) for f in findings if f.told}
    assert kind == KINDS[name]
    assert found <= listed(name, kind)
    missed = {check for check, _ in listed(name, kind) - found} & {check.id for check in checks}
    assert missed <= PROPERTIES, "a handful of trajectories may miss what a property found; all else is found each time"
