"""ARCHITECTURE.md's picture is the one that import-linter holds the code to."""

import re
import tomllib
from pathlib import Path

_ROOT = Path(__file__).parents[2]


def test_the_picture_names_every_room() -> None:
    contracts = tomllib.loads((_ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    rooms = {name.strip() for layer in contracts[0]["layers"] for name in layer.split("|")}
    picture = (_ROOT / "ARCHITECTURE.md").read_text().split("```")[1]
    assert rooms <= set(re.findall(r"\w+", picture))
