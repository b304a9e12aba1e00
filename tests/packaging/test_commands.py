"""README's two commands stay what CI runs."""

from pathlib import Path

_ROOT = Path(__file__).parents[2]
_SET_UP = "python3 -m venv --without-pip .venv && python3 -m pip --python .venv install -q tox tox-uv"
_DEMO = f"{_SET_UP} && .venv/bin/tox -q -e demo"
_TESTS = f"{_SET_UP} && .venv/bin/tox -p 2"


def _lines(name: str) -> list[str]:
    return [line.strip() for line in (_ROOT / name).read_text().splitlines()]


def test_readme_gives_both_commands() -> None:
    assert {_DEMO, _TESTS} <= set(_lines("README.md"))


def test_ci_runs_the_test_command() -> None:
    assert _TESTS in _lines(".ci/run")
