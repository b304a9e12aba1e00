"""`--gym-before`: what a run says beside an earlier one."""

import json
from pathlib import Path

from tests.gate.conftest import Run

_FEW = ["--gym-data", "data", "-k", "verify-scores-rows or live-root"]


def test_a_pull_request_shows_its_own_effect(run: Run, good_url: str, grumpy_url: str) -> None:
    spoilt = run("--gym-url", grumpy_url, *_FEW, "--gym-report", "spoilt.json")
    assert "Since" not in spoilt.stdout
    written = ["--gym-report", "out.json", "--gym-report", "out.xml"]
    mended = run("--gym-url", good_url, *_FEW, "--gym-before", "spoilt.json", *written)
    assert mended.returncode == 0, mended.stdout
    assert "\nSince spoilt.json: " in mended.stdout
    assert "\n  mended: verify-scores-rows: " in mended.stdout
    assert json.loads(Path("out.json").read_text())["since"]["mended"]
    assert '<property name="gym_since" value="mended"' in Path("out.xml").read_text()

    same = run("--gym-url", good_url, *_FEW, "--gym-before", "out.json")
    assert "\nSince out.json: no difference\n" in same.stdout
    spoilt = run("--gym-url", grumpy_url, *_FEW, "--gym-before", "out.json")
    assert "\n  new: verify-scores-rows: " in spoilt.stdout


def test_what_is_no_report_is_one_line(run: Run, good_url: str) -> None:
    Path("none.json").write_text("{}")
    refused = run("--gym-url", good_url, "--gym-before", "none.json")
    assert refused.returncode == 4
    assert refused.stderr.startswith("ERROR: --gym-before 'none.json': its schema is not gym-conformance/2")
    refused = run("--gym-url", good_url, "--gym-before", "missing.json")
    assert refused.stderr.startswith("ERROR: --gym-before 'missing.json': No such file or directory; give a .json")
