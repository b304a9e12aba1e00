"""Long runs of one character: what searches a text reads them once, and not from each place to their end."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gym_conformance.launch.env import find_envs, written
from gym_conformance.launch.reasons import missing_credentials
from gym_conformance.redaction import Secrets
from gym_conformance.trajectories.damage import cut_within, made_odd
from gym_mocks.policy.shown_forms import shown_object

#: Seconds of CPU time: each takes some milliseconds, or else minutes.
SECONDS = 2.0

LONG = 200_000
SECRETS = Secrets(["s3cr3t-of-the-header"])


def missing_in(message: str) -> None:
    """What a start that failed so lacks."""
    missing_credentials({"type": "ValidationError", "message": message})


@pytest.mark.parametrize(
    ("read", "text"),
    [
        pytest.param(SECRETS.redact, "\\" * LONG, id="secrets: backslashes"),
        pytest.param(made_odd, "a" * LONG + " b", id="last word: letters"),
        pytest.param(cut_within, "a" + " " * LONG + "b", id="ending: spaces"),
        pytest.param(cut_within, "a" + "*" * LONG + "b", id="ending: signs"),
        pytest.param(missing_in, "a" * LONG, id="credentials: letters"),
        pytest.param(shown_object, 'JSON: {"a": <' + ("\t" * 1_900 + '>, "a": <') * 100 + "1>}", id="verdict: tabs"),
    ],
)
def test_a_long_run_is_read_once(read: Callable[[str], Any], text: str) -> None:
    began = time.process_time()
    read(text)
    assert time.process_time() - began < SECONDS


def test_blank_lines_among_settings_are_read_once(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text("app = None")
    (tmp_path / ".env").write_text("A_KEY=\n" + "\n" * LONG + "B_KEY=b")
    [env] = find_envs(["app:app"], tmp_path)
    began = time.process_time()
    assert list(written(env)) == [("A_KEY", ""), ("B_KEY", "b")]
    assert time.process_time() - began < SECONDS
