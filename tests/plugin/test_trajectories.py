"""Properties as a user meets them: profiles, seeds, Hypothesis's own options, and a schedule that is tried again."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from gym_mocks.reference import DATA
from gym_mocks.wire.client import ASGIApp
from tests.plugin.apps import read_report
from tests.twins.innocent import WithoutDocument
from tests.twins.properties import CurrentSession, OneCountForAll, OneStore, RefusesNull

pytest_plugins = ["pytester"]

Serving = Callable[[ASGIApp], str]


def _failing(pytester: pytest.Pytester, url: str, *arguments: str) -> tuple[pytest.RunResult, Path]:
    """Run one property that fails; returns the run, and the file that its finding names."""
    run = pytester.runpytest_subprocess("--gym-url", url, f"--gym-data={DATA}", *arguments, timeout=120)
    assert run.ret == pytest.ExitCode.TESTS_FAILED, run.stdout.str()
    (named,) = set(re.findall(r"--gym-replay (\S+\.json)", run.stdout.str()))
    return run, pytester.path / named


def test_what_failed_is_tried_again_and_alone(pytester: pytest.Pytester, serving: Serving) -> None:
    url = serving(RefusesNull())
    run, file = _failing(pytester, url, "gym/calls::calls-valid", "--gym-profile=ci")
    run.stdout.fnmatch_lines(['*list_stock({"category": null})'])
    again = pytester.runpytest_subprocess("--gym-url", url, "--gym-replay", str(file), timeout=60)
    again.assert_outcomes(failed=1)
    again.stdout.fnmatch_lines(["*expected*list_stock takes what its definition*", '*list_stock({"category": null})'])


class OneStoreWithoutDocument(OneStore, WithoutDocument):
    """Nothing but its rows' tools tells what kind of server it is."""


def test_a_server_that_publishes_nothing_is_known_by_the_rows_of_the_schedule(
    pytester: pytest.Pytester, serving: Serving
) -> None:
    url = serving(OneStoreWithoutDocument())
    _, file = _failing(pytester, url, "gym/isolation::isolation-interleaved", "--gym-profile=ci")
    again = pytester.runpytest_subprocess("--gym-url", url, "--gym-replay", str(file), timeout=60)
    again.assert_outcomes(failed=1)


def test_a_mended_server_passes_the_replay(pytester: pytest.Pytester, serving: Serving, gym: str) -> None:
    _, file = _failing(pytester, serving(RefusesNull()), "gym/calls::calls-valid", "--gym-profile=ci")
    pytester.runpytest_subprocess("--gym-url", gym, "--gym-replay", str(file), timeout=60).assert_outcomes(passed=1)


def test_a_race_is_replayed_until_it_comes_again(pytester: pytest.Pytester, serving: Serving) -> None:
    url = serving(CurrentSession())
    _, file = _failing(pytester, url, "gym/isolation::isolation-concurrent", "--gym-profile=ci")
    assert json.loads(file.read_text())["concurrent"]
    pytester.runpytest_subprocess("--gym-url", url, "--gym-replay", str(file), timeout=60).assert_outcomes(failed=1)


def test_a_replay_leaves_the_schedule_and_its_commands_as_they_are(pytester: pytest.Pytester, serving: Serving) -> None:
    url = serving(OneStore())
    _, file = _failing(pytester, url, "gym/isolation::isolation-earlier", "--gym-profile=ci", "--gym-seed=1")
    kept = {path: path.read_bytes() for path in file.parent.iterdir()}
    for schedule in (file, file.parent / "replayed" / file.name):  # a replay of the replay is no longer than it
        pytester.runpytest_subprocess("--gym-url", url, "--gym-replay", str(schedule), timeout=60)
        assert {path: path.read_bytes() for path in file.parent.iterdir() if path.is_file()} == kept
        again = json.loads((file.parent / "replayed" / file.name).read_text())
        assert len(again["trajectories"]) == len(json.loads(file.read_text())["trajectories"])


def test_a_report_holds_the_shortest_trajectory(pytester: pytest.Pytester, serving: Serving) -> None:
    url = serving(OneCountForAll())
    arguments = ("gym/isolation::isolation-interleaved", "--gym-profile=ci", "--gym-seed=1", "--gym-report=r.json")
    _failing(pytester, url, *arguments)
    steps = read_report(pytester.path / "r.json")["isolation-interleaved"]["trajectory"]
    assert [line.partition(" | ")[2].partition("(")[0] for line in steps].count("add_stock") <= 4, steps


@pytest.mark.parametrize(
    "option", ["--gym-profile=ci --gym-seed=7", "--gym-profile=ci --hypothesis-seed=7", "--gym-profile=ci"]
)
def test_the_same_trajectories_each_time(pytester: pytest.Pytester, serving: Serving, option: str) -> None:
    files = []
    for _ in range(2):
        _, file = _failing(pytester, serving(RefusesNull()), "gym/calls::calls-valid", *option.split())
        files.append(json.loads(file.read_text()))
    assert files[0] == files[1]


def test_hypothesis_tells_its_statistics(pytester: pytest.Pytester, gym: str) -> None:
    run = pytester.runpytest_subprocess(
        "--gym-url", gym, f"--gym-data={DATA}", "gym/repeat", "--hypothesis-show-statistics", timeout=60
    )
    run.stdout.fnmatch_lines(["repeat-deterministic:*", "*Stopped because*"])


@pytest.mark.parametrize(
    ("file", "wrong"),
    [
        ("no.json", "No such file"),
        ("text.json", "no schedule"),
        ("list.json", "its schema is not"),
        ("check.json", "there is no property 'live-root'"),
    ],
)
def test_a_file_that_is_no_schedule_is_one_line(pytester: pytest.Pytester, gym: str, file: str, wrong: str) -> None:
    contents = {
        "text.json": "\x1b[31mnothing",
        "list.json": "[]",
        "check.json": json.dumps(
            {
                "schema": "gym-conformance/schedule/1",
                "check": "live-root",
                "order": [],
                "concurrent": False,
                "trajectories": [
                    {"row": {"responses_create_params": {}}, "calls": [], "noise": [], "answer": "Done."},
                ],
            }
        ),
    }
    if file in contents:
        pytester.path.joinpath(file).write_text(contents[file])
    run = pytester.runpytest_subprocess("--gym-url", gym, "--gym-replay", file, timeout=60)
    assert run.ret == pytest.ExitCode.USAGE_ERROR
    assert wrong in run.stderr.str()
    assert len(run.stderr.str().strip().splitlines()) == 1
