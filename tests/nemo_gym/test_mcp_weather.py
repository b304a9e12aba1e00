"""nemo-gym's own server with tools over MCP, judged by the checks of section mcp, against docs/bundled-servers.md.

0.4.0's serves its tool over MCP only, 0.7.0's by a route too (`expose_tools_over_mcp`).
"""

import json
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from gym_conformance.checks.registry import CHECKS
from gym_conformance.dataset import load
from gym_conformance.findings import Verdict, worst
from gym_conformance.options import Options
from gym_conformance.plugin.target_run import Run
from tests.nemo_gym.conftest import RealServer

pytestmark = pytest.mark.nemo_gym

#: Its rows' drift is found by section mcp only where nothing but MCP serves the tool.
ROUTED = version("nemo-gym") != "0.4.0"
FOUND_BY = ("drift-argument-refused", "tool-routed") if ROUTED else ("mcp-argument-refused", "mcp-tool-served")
WORDS = "status 422" if ROUTED else "validation error"

PAGE = Path(__file__).parents[2] / "docs" / "bundled-servers.md"


def test_verdicts_are_those_that_were_read(real_server: Callable[[str], RealServer]) -> None:
    section = PAGE.read_text().split("\n## Tools over MCP\n", 1)[1].split("\n## ", 1)[0]
    head, _, *rows = (
        [cell.strip(" `") for cell in line.strip("|").split("|")] for line in section.splitlines() if "|" in line
    )
    column = head.index(version("nemo-gym"))
    server = real_server("example_mcp_weather")
    with Run(server.url, Options(timeout=20), load([server.rows])) as run:
        found = {check.id: run.judge(check) for check in CHECKS if check.section == "mcp"}
        assert run.target()["evidence"].endswith("; 1 tool over MCP")
    told = [f"{one.check} {one.actual} {one.reason}" for findings in found.values() for one in findings]
    verdicts = {check: worst(findings).value for check, findings in found.items()}
    assert verdicts == {row[0]: row[column] for row in rows}, told


def _declaring(rows: Path, target: Path, **tools: Any) -> Path:
    """The rows with these tools declared, by name: the schema of their one argument, `city`."""
    lines = [json.loads(line) for line in rows.read_text().splitlines()]
    for row in lines:
        row["responses_create_params"]["tools"] = [
            {
                "type": "function",
                "name": name,
                "parameters": {"type": "object", "properties": {"city": city}, "required": ["city"]},
            }
            for name, city in tools.items()
        ]
    target.write_text("\n".join(map(json.dumps, lines)))
    return target


def test_rows_that_drift_from_its_list_are_found(real_server: Callable[[str], RealServer], tmp_path: Path) -> None:
    """Where no route serves its tool the witness goes over MCP, and FastMCP's own words confirm it."""
    server = real_server("example_mcp_weather")
    tools = {"get_weather": {"type": ["string", "null"]}, "get_forecast": {"type": "string"}}
    rows = load([_declaring(server.rows, tmp_path / "example.jsonl", **tools)])
    checks = {check.id: check for check in CHECKS}
    with Run(server.url, Options(timeout=20), rows) as run:
        refused, missing = (
            next(finding for finding in run.judge(checks[name]) if finding.verdict is Verdict.FAIL) for name in FOUND_BY
        )
    assert refused.subject == "get_weather/city"
    assert WORDS in refused.actual
    assert missing.subject == "get_forecast"
    assert {row["live"] for row in refused.drift + missing.drift} == {"confirmed"}
