"""nemo-gym's own server with tools over MCP, judged by the checks of section mcp, against docs/bundled-servers.md."""

from collections.abc import Callable
from pathlib import Path

import pytest

from gym_conformance.checks.registry import CHECKS
from gym_conformance.dataset import load
from gym_conformance.findings import worst
from gym_conformance.options import Options
from gym_conformance.plugin.run import Run
from tests.nemo_gym.conftest import RealServer

pytestmark = pytest.mark.nemo_gym

PAGE = Path(__file__).parents[2] / "docs" / "bundled-servers.md"


def test_verdicts_are_those_that_were_read(real_server: Callable[[str], RealServer]) -> None:
    section = PAGE.read_text().split("\n## Tools over MCP\n", 1)[1].split("\n## ", 1)[0]
    rows = [line.strip("|").split("|") for line in section.splitlines() if line.startswith("| `mcp-")]
    server = real_server("example_mcp_weather")
    run = Run(server.url, Options(timeout=20), load([server.rows]))
    try:
        found = {check.id: run.judge(check) for check in CHECKS if check.section == "mcp"}
    finally:
        run.close()
    told = [f"{one.check} {one.actual} {one.reason}" for findings in found.values() for one in findings]
    verdicts = {check: worst(findings).value for check, findings in found.items()}
    assert verdicts == {row[0].strip(" `"): row[1].strip() for row in rows}, told
