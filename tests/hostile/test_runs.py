"""Whole runs against a server that attacks: an end, within ceilings, and nothing obeyed, leaked or left behind."""

import json
import os
import re
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

ATTACKER = Path(__file__).with_name("attacker.py")
SECRET = "s3cr3t-of-the-header"  # noqa: S105 - nobody's
OBEYED = re.compile(r"^\s*::(?!error title=|warning title=|notice title=)\w|##\w*\[", re.MULTILINE)

#: Bytes that a run may hold, seconds that it may compute, and seconds that it may take on a machine that others use, too.
#: Who is sent 20 MB each time computes for as long as the run may take, which is a minute after its start.
MEMORY, COMPUTING, SECONDS = 400 << 20, 70.0, 300.0

ROW = {
    "responses_create_params": {
        "input": [{"role": "user", "content": "\x1b[31m::error::x"}],
        "tools": [
            {"type": "function", "name": "book", "parameters": {"type": "object", "properties": {"to": {}}}},
            {"type": "function", "name": "::error::x", "parameters": {"type": "object", "properties": {}}},
        ],
    },
    "extra": "##[error]x\n::error::x",
}

#: Modes, and what to give to a run against each.
MODES: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(
        (
            *(
                "bomb",
                "stacked",
                "large",
                "objects",
                "heavy",
                "heavy text",
                "deep",
                "digits",
                "beyond doubles",
                "NaN",
                "surrogates",
                "no UTF-8",
            ),
            *("no bodies", "null", "echo", "anew", "interim", "headers", "garbage", "two replies", "paths"),
            *("names", "cookies", "episodes", "trailers"),
            *(
                "paths without slash",
                "schema in a circle",
                "schema elsewhere",
                "pattern",
                "mcp",
                "endless",
                "endless verify",
            ),
        ),
        (),
    ),
    "drip": ("--gym-timeout", "1", "--gym-max-time", "20"),
    "slow": ("--gym-timeout", "2", "--gym-max-time", "15"),
}

#: The quick ones, of which each shows another mechanism.
QUICK = frozenset({"echo", "stacked"})


@pytest.fixture(autouse=True)
def ceilings() -> None:
    """A run has ceilings of its own."""


#: Runs Python as a child of a small process (small_process.py), and writes down what it used.
MEASURED = """
import json, resource, subprocess, sys
status = subprocess.call([sys.executable, *sys.argv[1:]])
usage = resource.getrusage(resource.RUSAGE_CHILDREN)
with open("usage", "w") as file:
    json.dump([usage.ru_maxrss, usage.ru_utime + usage.ru_stime], file)
sys.exit(status)
"""


@dataclass(frozen=True)
class Run:
    """What became of a run: its status, what it printed, its peak of memory in bytes, and its time in seconds."""

    status: int
    printed: str
    memory: int
    computing: float
    seconds: float


@contextmanager
def attacking(mode: str) -> Iterator[str]:
    with subprocess.Popen([sys.executable, str(ATTACKER), mode], stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout
        try:
            yield f"http://127.0.0.1:{int(server.stdout.readline())}"
        finally:
            server.kill()


def judge(folder: Path, *arguments: str) -> Run:
    """A run of its own in a folder, under GitHub Actions."""
    rows = folder / "rows.jsonl"
    rows.write_text(json.dumps(ROW) + "\n")
    given = [f"--gym-data={rows}", "--gym-profile=smoke", "--gym-max-time=60", *arguments]
    given += [f"--gym-report={folder / 'report'}{form}" for form in (".json", ".html", ".md", ".sarif", ".xml")]
    header = ["--gym-header", f"Authorization: Bearer {SECRET}"]
    environment = {**os.environ, "GITHUB_ACTIONS": "true", "GITHUB_STEP_SUMMARY": str(folder / "summary.md")}
    environment.pop("PYTEST_ADDOPTS", None)
    started = time.monotonic()
    with (folder / "printed").open("wb") as printed:
        run = subprocess.run(
            [sys.executable, "-c", MEASURED, "-m", "pytest", "-p", "no:cacheprovider", "-q", *given, *header],
            cwd=folder,
            env=environment,
            stdout=printed,
            stderr=subprocess.STDOUT,
            check=False,
        )
    text = (folder / "printed").read_text("utf-8", "replace")
    memory, computing = json.loads((folder / "usage").read_text())
    return Run(run.returncode, text, memory << 10, computing, time.monotonic() - started)


@pytest.mark.parametrize(
    "mode", [pytest.param(mode, marks=[] if mode in QUICK else [pytest.mark.hostile]) for mode in MODES]
)
def test_a_run_against_an_attacker_ends_well(mode: str, tmp_path: Path) -> None:
    with attacking(mode) as url:
        run = judge(tmp_path, "--gym-url", url, *MODES[mode])
    assert run.status == pytest.ExitCode.TESTS_FAILED, run.printed
    assert "Traceback" not in run.printed
    assert "itself failed" not in run.printed
    assert not OBEYED.search(run.printed)
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", run.printed.replace("\r", ""))
    for written in tmp_path.rglob("*"):
        assert not written.is_file() or SECRET not in written.read_text("utf-8", "replace")
    assert json.loads((tmp_path / "report.json").read_text())["findings"]
    assert json.loads((tmp_path / "report.sarif").read_text())["runs"]
    assert ET.parse(tmp_path / "report.xml").getroot().tag == "testsuites"  # noqa: S314 - pytest's own
    assert not re.search("<script>alert|<img src=x", (tmp_path / "report.html").read_text())
    assert not list(tmp_path.rglob("*pwned*"))
    assert run.memory < MEMORY
    assert run.computing < COMPUTING
    assert run.seconds < SECONDS


LOGGING = f"""
import json, logging

def pytest_runtest_call(item):
    logging.warning("Unknown event: \\x1b]0;pwned\\x07\\n::error::x {SECRET}")
    for _ in range(3):
        try:
            json.loads("no JSON")
        except ValueError:
            logging.exception("Cannot read this")
"""


def test_what_a_library_logs_of_a_server_is_safe_to_show(tmp_path: Path) -> None:
    """As the official MCP client does of notifications that it does not know."""
    (tmp_path / "conftest.py").write_text(LOGGING)
    with attacking("null") as url:
        run = judge(tmp_path, "--gym-url", url, "-k", "seed-replies-object")
    assert "Unknown event: \\x1b]0;pwned" in run.printed
    assert "Traceback" not in run.printed
    assert run.printed.count("Cannot read this\njson.decoder.JSONDecodeError: Expecting value") == 1
    assert "Captured std" not in run.printed  # where nothing was printed, there is no heading for it
    assert "\x1b" not in run.printed
    assert not OBEYED.search(run.printed)
    assert SECRET not in run.printed + (tmp_path / "report.xml").read_text()


def test_reports_go_where_they_seem(tmp_path: Path) -> None:
    """A link that somebody put where a report is to be written is replaced, and what it leads to stays as it is."""
    (precious := tmp_path / "precious").write_text("precious")
    for name in ("report.json", "report.md", "report.html.part", ".gym-conformance"):
        (tmp_path / name).symlink_to(precious)
    with attacking("null") as url:
        run = judge(tmp_path, "--gym-url", url, "-k", "seed-replies-object")
    assert run.status == pytest.ExitCode.TESTS_FAILED, run.printed
    assert precious.read_text() == "precious"
    assert json.loads((tmp_path / "report.json").read_text())["findings"]
    assert not list(tmp_path.glob("*.part*"))[1:]
