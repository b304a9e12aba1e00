"""docs/extending.md shows the example package as it is built and run, and no older one; docs/api.md what is public."""

import re
from pathlib import Path

from gym_conformance import api, testing

_ROOT = Path(__file__).parents[2]
_PAGE = (_ROOT / "docs" / "extending.md").read_text()
_EXAMPLE = _ROOT / "tests" / "example_plugin"


def _blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", _PAGE, re.DOTALL | re.MULTILINE)


def test_the_example_is_shown_whole() -> None:
    source = (_EXAMPLE / "house_rules.py").read_text()
    assert _blocks("python")[0] == source
    assert len(source.splitlines()) < 40
    [metadata] = _blocks("toml")
    assert metadata == (_EXAMPLE / "pyproject.toml").read_text()


def test_all_that_is_named_is_there() -> None:
    assert all(hasattr(api, name) for name in api.__all__)
    public = re.findall(r"`gym_conformance\.testing`: (.*?) \|", (_ROOT / "docs" / "api.md").read_text())
    assert all(hasattr(testing, name) for name in re.findall(r"`(\w+)`", public[0]))
