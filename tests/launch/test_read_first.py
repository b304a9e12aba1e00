"""What can be read is read before an interpreter is asked for, which may take minutes to install."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from gym_conformance.launch.env import find_envs
from gym_conformance.launch.not_launched import NotLaunched
from gym_conformance.options import Options
from gym_conformance.plugin.launched_target import launched_target
from tests.launch.drills import NOBODY

_FILES = {
    "app.py": "",
    "requirements.txt": "no-such-package-anywhere\n",
    "configs/sums.yaml": "sums: {resources_servers: {sums: {entrypoint: app.py, domain: math}}}\n",
    "data/example.jsonl": '{"responses_create_params": {"input": "1 + 1"}}\n',
}


@pytest.mark.parametrize(
    ("file", "text", "needs"),
    [
        ("configs/sums.yaml", "sums: [", r"a YAML that can be read; sums\.yaml cannot"),
        ("data/example.jsonl", "[]\n", "readable rows: "),
        ("app.py", "", "an interpreter"),
    ],
)
def test_what_is_read_is_read_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str, text: str, needs: str
) -> None:
    def install(_: object) -> str:
        raise NotLaunched("an interpreter")

    monkeypatch.setattr("gym_conformance.plugin.target.Interpreter._find", install)
    for name, content in (_FILES | {file: text}).items():
        path = tmp_path / "sums" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    options = Options(envs=find_envs(["sums"], tmp_path), install=True)
    mocks: Any = SimpleNamespace(addresses=NOBODY, forget=lambda: None)
    target = launched_target("", options, mocks)  # no more of them is asked for
    with pytest.raises(NotLaunched, match=needs), target.serve():
        pass
