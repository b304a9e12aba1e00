"""Drift goes through the gate as any finding does: its place, the baseline, and SARIF."""

import json
from pathlib import Path

from tests.gate.conftest import Run

ACCEPTED = """
[[accepted]]
check = "drift-argument-refused"
subject = "add_stock/category"
reason = "the rows are made anew next week"
"""


def drifted(repo: Path) -> None:
    """Rows of which the last two offer a category that the server does not know."""
    path = repo / "data" / "example.jsonl"
    lines = path.read_text().splitlines()
    lines[-2:] = [line.replace('"enum": ["fruit", ', '"enum": ["food", "fruit", ', 1) for line in lines[-2:]]
    path.write_text("\n".join(lines) + "\n")


def test_it_is_red_where_the_row_stands_until_it_is_accepted(run: Run, repo: Path, good_url: str) -> None:
    drifted(repo)
    number = len((repo / "data" / "example.jsonl").read_text().splitlines()) - 1
    judged = ("--gym-url", good_url, "--gym-data", "data", "-k", "drift-argument-refused")
    found = run(*judged, "--gym-report", "r.sarif", "--gym-report", "r.json")
    assert found.returncode == 1, found.stdout
    (result,) = json.loads((repo / "r.sarif").read_text())["runs"][0]["results"]
    assert result["ruleId"] == "drift-argument-refused"
    place = result["locations"][0]["physicalLocation"]
    assert (place["artifactLocation"]["uri"], place["region"]["startLine"]) == ("data/example.jsonl", number)
    (row,) = json.loads((repo / "r.json").read_text())["drift"]
    assert (row["live"], row["sources"][0]) == ("confirmed", f"data/example.jsonl:{number}")

    (repo / "gym-baseline.toml").write_text(ACCEPTED)
    assert run(*judged, "--gym-baseline", "gym-baseline.toml").returncode == 0
    assert run(*judged, "--gym-baseline", "gym-baseline.toml", "-n", "2").returncode == 0
