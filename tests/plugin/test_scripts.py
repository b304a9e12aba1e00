"""Reproductions that do not fit on a screen: a script and its bodies as files, which run as they are."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from gym_mocks.reference import ReferenceServer
from gym_mocks.wire.client import ASGIApp
from tests.plugin.apps import read_report

pytest_plugins = ["pytester"]

_CHECK = "seed-replies-object"
_ROW = {"responses_create_params": {"input": [{"role": "user", "content": "It's a long story. " * 400}]}}


class NoReply(ReferenceServer):
    """Seeds, and says null."""

    async def seed(self, session_id: str, row: dict[str, object]) -> None:  # type: ignore[override]
        await super().seed(session_id, row)


def _bash(*arguments: str, cwd: Path) -> list[str]:
    """The body and the status of its last request, whose headers are shown too: some findings are about them."""
    run = subprocess.run(["bash", *arguments], cwd=cwd, capture_output=True, text=True, check=True, timeout=60)  # noqa: S607
    assert not run.stderr
    assert "\nset-cookie: " in run.stdout
    return run.stdout.split()[-2:]


@pytest.fixture
def inside(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to start pytest in, below that of the ini file."""
    pytester.makeini("[pytest]")
    folder = pytester.mkdir("in side")
    folder.joinpath("rows.jsonl").write_text(json.dumps(_ROW) + "\n")
    monkeypatch.chdir(folder)
    return folder


def _judge(pytester: pytest.Pytester, url: str) -> pytest.RunResult:
    arguments = ("--gym-data=rows.jsonl", "-k", _CHECK, "--gym-report=r.json", "--rootdir", "..")
    return pytester.runpytest_subprocess("--gym-url", url, *arguments, timeout=120)


def test_a_long_body_is_a_file_that_the_command_names(
    pytester: pytest.Pytester, serving: Callable[[ASGIApp], str], inside: Path
) -> None:
    run = _judge(pytester, serving(NoReply()))
    assert run.ret == pytest.ExitCode.TESTS_FAILED
    run.stdout.fnmatch_lines(
        [
            f"  reproduce (bash): bash .gym-conformance/{_CHECK}.sh",
            f'    curl * --data-binary @"$OLDPWD"/.gym-conformance/{_CHECK}.*.body',
        ]
    )
    assert max(map(len, run.outlines)) < 300
    assert not (inside.parent / ".gym-conformance").exists()

    script = Path(".gym-conformance", f"{_CHECK}.sh")
    assert _bash(str(script), cwd=inside) == ["null", "200"]
    assert _bash(str(inside / script), cwd=Path("/")) == ["null", "200"]
    shown = run.outlines[
        : run.outlines.index("=============================== gym conformance ================================")
    ]
    copied = [line.strip() for line in shown if line.startswith("    c")]
    assert _bash("-c", "\n".join(copied), cwd=inside) == ["null", "200"]

    whole = read_report(inside / "r.json")[_CHECK]["reproduce"]
    assert _bash("-c", "\n".join(whole), cwd=Path("/")) == ["null", "200"]


def test_a_planted_link_is_not_followed(
    pytester: pytest.Pytester, serving: Callable[[ASGIApp], str], inside: Path
) -> None:
    """Where nothing can be kept, the commands stand in the output as they are."""
    elsewhere = pytester.mkdir("elsewhere")
    inside.joinpath(".gym-conformance").symlink_to(elsewhere)
    run = _judge(pytester, serving(NoReply()))
    run.stdout.fnmatch_lines(["  reproduce (bash):", "    cd *", "    printf %s *"])
    assert not list(elsewhere.iterdir())
