"""Checks of another package: judged, selected, accepted and reported like our own; a bad one is one clear line."""

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from gym_mocks.reference import DATA, ReferenceServer
from gym_mocks.resources import Score, TaskRow
from gym_mocks.serving import serve

pytest_plugins = ["pytester"]

_EXAMPLE = Path(__file__).parents[1] / "example_plugin" / "house_rules.py"
_NODE = "gym/house::house-reward-steps"
_DOCS = "https://example.com/house-rules#house-reward-steps"

Install = Callable[[str], None]


class Thirds(ReferenceServer):
    """Scores by thirds, which the house forbids."""

    async def score(self, session_id: str, row: TaskRow, response: dict[str, Any]) -> Score:
        await super().score(session_id, row, response)
        return Score(1 / 3)


@pytest.fixture
def thirds() -> Iterator[str]:
    with ExitStack() as started:
        yield started.enter_context(serve(Thirds()))


@pytest.fixture
def install(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Install `house_rules` as a package that consists of this text."""

    def installed(source: str) -> None:
        folder = pytester.mkdir("site")
        monkeypatch.setenv("PYTHONPATH", str(folder))
        metadata = folder / "house_rules-1.0.dist-info"
        metadata.mkdir()
        metadata.joinpath("METADATA").write_text("Metadata-Version: 2.1\nName: house-rules\nVersion: 1.0\n")
        metadata.joinpath("entry_points.txt").write_text("[gym_conformance.checks]\nhouse = house_rules\n")
        folder.joinpath("house_rules.py").write_text(source)

    return installed


def _ended(run: pytest.RunResult) -> dict[str, int]:
    return {name: count for name, count in run.parseoutcomes().items() if name != "deselected"}


@pytest.mark.parametrize("chosen", [["-k", "house"], [_NODE], ["gym/house"], ["-k", "house", "-n", "1"]])
def test_it_is_chosen_like_our_own(
    pytester: pytest.Pytester, install: Install, thirds: str, gym: str, chosen: list[str]
) -> None:
    install(_EXAMPLE.read_text())
    good = pytester.runpytest_subprocess(f"--gym-url={gym}", f"--gym-data={DATA}", *chosen)
    assert (good.ret, _ended(good)) == (pytest.ExitCode.OK, {"passed": 1})
    bad = pytester.runpytest_subprocess(f"--gym-url={thirds}", f"--gym-data={DATA}", *chosen)
    assert (bad.ret, _ended(bad)) == (pytest.ExitCode.TESTS_FAILED, {"failed": 1})
    bad.stdout.fnmatch_lines(["*house-reward-steps*", "*a multiple of 0.25*", "*reward 0.333*"])


def test_every_report_has_it_like_our_own(pytester: pytest.Pytester, install: Install, thirds: str) -> None:
    install(_EXAMPLE.read_text())
    names = ("r.json", "r.html", "r.md", "r.sarif", "r.xml")
    accepted = "b.toml"
    common = [f"--gym-url={thirds}", f"--gym-data={DATA}", "-m", "must", "-k", "house or seed-accepts-rows"]
    run = pytester.runpytest_subprocess(*common, *(f"--gym-report={name}" for name in names))
    assert _ended(run) == {"passed": 1, "failed": 1}
    texts = {name: pytester.path.joinpath(name).read_text() for name in names}
    assert all("house-reward-steps" in text and _DOCS in text for text in texts.values())
    [rule] = [
        rule
        for rule in json.loads(texts["r.sarif"])["runs"][0]["tool"]["driver"]["rules"]
        if rule["id"] == "house-reward-steps"
    ]
    assert rule["helpUri"] == _DOCS
    assert rule["defaultConfiguration"]["level"] == "error"
    found = {one["check"]: one for one in json.loads(texts["r.json"])["findings"]}
    assert (found["house-reward-steps"]["level"], found["house-reward-steps"]["docs"]) == ("MUST", _DOCS)
    assert found["seed-accepts-rows"]["docs"].endswith("/docs/checks.md#seed-accepts-rows")
    wrote = pytester.runpytest_subprocess(*common, f"--gym-baseline-write={accepted}")
    file = pytester.path / accepted
    assert "house-reward-steps" in file.read_text(), wrote.stdout.str()
    file.write_text(file.read_text().replace('reason = ""', 'reason = "known"'))
    green = pytester.runpytest_subprocess(*common, f"--gym-baseline={accepted}")
    assert green.ret == pytest.ExitCode.OK


def test_a_fault_of_its_own_is_its_own(pytester: pytest.Pytester, install: Install, gym: str) -> None:
    install(_EXAMPLE.read_text().replace('verdict["reward"]', 'verdict["no_such"]'))
    run = pytester.runpytest_subprocess(f"--gym-url={gym}", f"--gym-data={DATA}", _NODE)
    assert run.ret == pytest.ExitCode.INTERNAL_ERROR
    run.stdout.fnmatch_lines(
        [
            f"house-reward-steps itself failed; this is not a finding about the server. Please report it to its authors ({_DOCS})."
        ]
    )


_BAD = {
    "an import error": ("import no_such_module", "*it cannot be imported (ModuleNotFoundError: No module named*"),
    "an exit": ("raise SystemExit(3)", "*it cannot be imported (SystemExit: 3); fix it, or uninstall the package*"),
    "our id": (
        _EXAMPLE.read_text().replace('"house-reward-steps"', '"verify-scores-rows"'),
        "*'verify-scores-rows' has the id of a check of gym-conformance; choose another*",
    ),
    "an odd id": (_EXAMPLE.read_text().replace('"house-reward-steps"', '"house"'), "*'house' has no usable id*"),
    "no docstring": (
        _EXAMPLE.read_text().replace('    """Verifies', '    f"""Verifies'),
        "*'house-reward-steps' has no docstring; say what is sent*",
    ),
    "no url": (_EXAMPLE.read_text().replace('url="https', 'url="ftp'), "*has no documentation URL; give one*"),
    "no title": (_EXAMPLE.read_text().replace('"A reward MUST be a multiple of 0.25"', '""'), "*has no title*"),
    "an odd need": (_EXAMPLE.read_text().replace("needs=[SCORE]", "needs=['score']"), "*needs something that is no*"),
    "no check": ("CHECKS = []", "*there is no check; name a module that has some*"),
}


@pytest.mark.parametrize("wrong", _BAD)
def test_a_bad_one_is_one_clear_line(pytester: pytest.Pytester, install: Install, gym: str, wrong: str) -> None:
    source, line = _BAD[wrong]
    install(source)
    run = pytester.runpytest_subprocess(f"--gym-url={gym}")
    assert run.ret == pytest.ExitCode.USAGE_ERROR
    said = [one for one in run.errlines if one.strip()]
    assert len(said) == 1
    run.stderr.fnmatch_lines([f"ERROR: checks of house-rules 1.0 (house = house_rules): {line}"])


def test_two_packages_may_not_share_an_id(pytester: pytest.Pytester, install: Install, gym: str) -> None:
    install(_EXAMPLE.read_text())
    site = pytester.path / "site"
    site.joinpath("other_rules.py").write_text(_EXAMPLE.read_text())
    entries = site / "house_rules-1.0.dist-info" / "entry_points.txt"
    entries.write_text("[gym_conformance.checks]\nhouse = house_rules\nother = other_rules\nsame = house_rules\n")
    run = pytester.runpytest_subprocess(f"--gym-url={gym}")
    assert run.ret == pytest.ExitCode.USAGE_ERROR
    run.stderr.fnmatch_lines(["*(other = other_rules): the check 'house-reward-steps' has the id of a check of house*"])


def test_without_a_gym_nothing_of_it_is_loaded(pytester: pytest.Pytester, install: Install) -> None:
    """Whatever is installed, a user's own tests run as if it were not."""
    install("raise SystemExit(3)")
    pytester.makepyfile(
        "import sys\n\n\ndef test_own():\n    assert 'importlib.metadata' and 'house_rules' not in sys.modules\n"
    )
    pytester.runpytest_subprocess().assert_outcomes(passed=1)
