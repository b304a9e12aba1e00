"""The suite is imported as it is installed; pytest rewrites the user's own tests alone."""

import subprocess
import sys
from pathlib import Path

CONFTEST = """
import sys

def pytest_sessionfinish():
    rewritten = [name for name, module in sys.modules.items() if "Rewriting" in type(getattr(module, "__loader__", None)).__name__]
    print("rewritten:", *sorted(rewritten))
"""


def test_nothing_of_the_suite_is_rewritten(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_mine.py").write_text(
        "import gym_conformance.api\nimport hypothesis\n\ndef test_own():\n    pass\n"
    )
    command = [sys.executable, "-m", "pytest", "-qs", "--gym-demo", "-k", "own", "test_mine.py"]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    [line] = (line for line in run.stdout.splitlines() if "rewritten:" in line)
    rewritten = set(line.split()[1:])
    assert "test_mine" in rewritten
    assert not rewritten & {
        "gym_conformance.judge",
        "gym_conformance.checks.registry",
        "gym_schemas.making",
        "hypothesis.core",
    }


def test_a_second_run_of_the_same_process_warns_of_nothing(tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    code = "import pytest\nfor _ in range(2):\n    assert pytest.main(['-q', '-W', 'error', '--gym-demo', '-k', 'live-root']) == 0\n"
    run = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )
    assert run.returncode == 0, run.stdout + run.stderr
