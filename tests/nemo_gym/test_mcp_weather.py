"""nemo-gym's own server with tools over MCP, judged by the checks of section mcp, against docs/bundled-servers.md."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

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
    """No route serves its tool: the witness goes over MCP, and FastMCP's own words confirm it."""
    server = real_server("example_mcp_weather")
    tools = {"get_weather": {"type": ["string", "null"]}, "get_forecast": {"type": "string"}}
    run = Run(server.url, Options(timeout=20), load([_declaring(server.rows, tmp_path / "example.jsonl", **tools)]))
    checks = {check.id: check for check in CHECKS}
    try:
        found = {name: run.judge(checks[name])[0] for name in ("mcp-argument-refused", "mcp-tool-served")}
    finally:
        run.close()
    assert found["mcp-argument-refused"].subject == "get_weather/city"
    assert "validation error" in found["mcp-argument-refused"].actual
    assert found["mcp-tool-served"].subject == "get_forecast"
    assert [row["live"] for finding in found.values() for row in finding.drift] == ["confirmed", "confirmed"]
