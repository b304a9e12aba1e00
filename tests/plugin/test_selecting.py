"""What runs: pytest's own ways to choose work on checks, and a user's project does not get in their way."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from gym_conformance.checks.registry import CHECKS
from gym_mocks.reference import DATA, reference_app
from gym_mocks.wire.client import ASGIApp
from tests.plugin.apps import Message, Receive, Send, behind, html, http_only, no_trace

pytest_plugins = ["pytester"]

_IDS = Path(__file__).with_name("node_ids.txt")
_OWN = "def test_own(): pass"
_UNUSED = "http://127.0.0.1:1"


def _chosen(pytester: pytest.Pytester, *arguments: str) -> list[str]:
    """The node ids that a run would take; no server is there, and none is asked."""
    run = pytester.runpytest_inprocess("--collect-only", "-q", "--gym-url", _UNUSED, *arguments)
    assert run.ret in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED), run.stderr.str()
    return [line for line in run.outlines if "::" in line]


def test_node_ids_are_the_committed_ones(pytester: pytest.Pytester) -> None:
    """They stand in people's CI files: a change is a change of the interface."""
    assert _chosen(pytester) == _IDS.read_text().splitlines()


def test_collect_only_contacts_no_server(pytester: pytest.Pytester) -> None:
    run = pytester.runpytest_inprocess("--collect-only", "--gym-url", _UNUSED)
    run.stdout.fnmatch_lines(["<Section gym/live>", "  <CheckItem live-root>", "<Section gym/seed>"])


def test_with_no_path_only_checks_are_collected(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_mine=_OWN, test_broken="import no_such_module")
    assert len(_chosen(pytester)) == len(CHECKS)


def test_with_testpaths_too(pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\ntestpaths = .")
    pytester.makepyfile(_OWN)
    assert len(_chosen(pytester)) == len(CHECKS)


def test_with_a_path_both(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_mine=_OWN)
    assert _chosen(pytester, "test_mine.py")[len(CHECKS) :] == ["test_mine.py::test_own"]


def test_checks_are_chosen_by_node_id(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_mine=_OWN)
    assert _chosen(pytester, "gym/seed::seed-accepts-rows") == ["gym/seed::seed-accepts-rows"]
    assert _chosen(pytester, "gym/live", "test_mine.py") == [
        "gym/live::live-root",
        "gym/live::live-endpoints",
        "test_mine.py::test_own",
    ]


def test_a_node_id_that_is_not_there_is_one_line(pytester: pytest.Pytester) -> None:
    run = pytester.runpytest_inprocess("gym/seed::seed-accepts-anything", "--gym-url", _UNUSED, "--collect-only")
    run.stderr.fnmatch_lines(["ERROR: file or directory not found: gym/seed::seed-accepts-anything"])
    assert run.ret == pytest.ExitCode.USAGE_ERROR


def test_a_folder_of_the_users_named_gym_stays_theirs(pytester: pytest.Pytester) -> None:
    pytester.mkdir("gym").joinpath("test_mine.py").write_text(_OWN)
    assert _chosen(pytester, "gym/test_mine.py")[len(CHECKS) :] == ["gym/test_mine.py::test_own"]


@pytest.mark.parametrize("level", ["must", "should", "note"])
def test_levels_are_markers(pytester: pytest.Pytester, level: str) -> None:
    expected = [f"gym/{check.section}::{check.id}" for check in CHECKS if check.level.lower() == level]
    assert _chosen(pytester, "-m", level, "--strict-markers") == expected


def test_k_takes_a_part_of_the_id(pytester: pytest.Pytester) -> None:
    assert _chosen(pytester, "-k", "root or accepts-rows") == ["gym/live::live-root", "gym/seed::seed-accepts-rows"]


def test_below_the_root_ids_as_shown_can_be_given(pytester: pytest.Pytester, gym: str) -> None:
    """Pytest shows node ids relative to where it was started, and takes them so."""
    pytester.makeini("[pytest]")
    inside = pytester.mkdir("inside")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(inside)
        for given in ("gym/live::live-root", "../gym/live::live-root"):
            run = pytester.runpytest_inprocess(given, "--gym-url", gym, "-v")
            run.stdout.fnmatch_lines(["../gym/live::live-root PASSED*"])


def test_x_lf_and_ff(pytester: pytest.Pytester, serving: Callable[[ASGIApp], str]) -> None:
    url = serving(html)
    run = pytester.runpytest_inprocess("--gym-url", url, "-x")
    run.stdout.fnmatch_lines(["*stopping after 1 failures*"])
    first = run.parseoutcomes()
    assert first["failed"] == 1
    again = pytester.runpytest_inprocess("--gym-url", url, "--lf", "-v")
    assert again.parseoutcomes() == {"failed": 1, "deselected": len(CHECKS) - 1}
    without = pytester.runpytest_inprocess("--gym-url", url, "-x", "-p", "no:cacheprovider")
    assert without.parseoutcomes() == first


def test_quiet_and_verbose(pytester: pytest.Pytester, gym: str) -> None:
    verbose = pytester.runpytest_inprocess("--gym-url", gym, "-v", "-k", "live")
    verbose.stdout.fnmatch_lines(["gym/live::live-root PASSED*", "gym/live::live-endpoints PASSED*"])
    quiet = pytester.runpytest_inprocess("--gym-url", gym, "-q", "-k", "live")
    quiet.stdout.fnmatch_lines([".. *", "No MUST broken, judging by the 2 checks that ran."])


_PROJECT = """
import asyncio, logging, pytest

@pytest.fixture(autouse=True)
def everywhere(request):
    yield

def pytest_collection_modifyitems(config, items):
    for item in items:
        item.add_marker("theirs")
        assert item.path and item.location and item.keywords and item.listchain()
    items.sort(key=lambda item: item.name)

def pytest_runtest_setup(item):
    logging.warning("setting up %s", item.nodeid)

@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    report.extra = []
    return report
"""


def test_a_check_alone_sends_little(pytester: pytest.Pytester, gym: str) -> None:
    """What an untouched server answers is found out only for those who ask."""
    run = pytester.runpytest_inprocess("gym/seed::seed-replies-object", "--gym-url", gym, f"--gym-data={DATA}")
    (requests,) = re.findall(r"1 of \d+ checks, (\d+) requests", run.stdout.str())
    assert int(requests) < 20


def test_a_project_of_strict_habits_does_not_get_in_the_way(pytester: pytest.Pytester, gym: str) -> None:
    pytester.makeini(
        "[pytest]\naddopts = -ra --strict-markers --strict-config -W error --showlocals\n"
        "xfail_strict = true\nanyio_mode = auto\nmarkers = theirs: all of them\ntestpaths = tests\nfilterwarnings = error"
    )
    pytester.makeconftest(_PROJECT)
    pytester.mkdir("tests")
    of_each_kind = ["-k", "live or seed or tool or repeat-replies", "--gym-profile=smoke"]
    run = pytester.runpytest_subprocess("--gym-url", gym, f"--gym-data={DATA}", *of_each_kind, timeout=120)
    assert run.ret == pytest.ExitCode.OK, run.stdout.str()
    no_trace(run)


def test_a_time_limit_of_the_users_is_no_fault_of_ours(pytester: pytest.Pytester, gym: str) -> None:
    """As pytest-timeout does it: it fails the item from a signal handler."""
    pytester.makeconftest(
        """
        import pytest
        @pytest.hookimpl(wrapper=True)
        def pytest_pyfunc_call(pyfuncitem):
            return (yield)
        @pytest.hookimpl(wrapper=True)
        def pytest_runtest_call(item):
            if item.name == "live-root":
                pytest.fail("Timeout >1.0s")
            return (yield)
        """
    )
    run = pytester.runpytest_inprocess("--gym-url", gym, "-k", "live", "--gym-report", "r.json")
    run.assert_outcomes(failed=1, passed=1, deselected=len(CHECKS) - 2)
    assert run.ret == pytest.ExitCode.TESTS_FAILED
    assert "it was stopped: Failed: Timeout >1.0s" in pytester.path.joinpath("r.json").read_text()
    run.stdout.no_fnmatch_line("*pytest_runtest_call*")  # with hundreds of lines of where it was, Python 3.11 may fail


@pytest.mark.parametrize("prefix", ["/env/one", "/env/one/"])
def test_a_path_in_the_url_is_a_prefix(
    pytester: pytest.Pytester, serving: Callable[[ASGIApp], str], prefix: str
) -> None:
    url = serving(behind("/env/one", reference_app())) + prefix
    run = pytester.runpytest_inprocess("--gym-url", url, f"--gym-data={DATA}", "-k", "not calls and not isolation")
    assert run.ret == pytest.ExitCode.OK, run.stdout.str()
    run.stdout.fnmatch_lines(["http://*/env/one is a tool server (*"])


def test_without_a_gym_option_nothing_is_sent(pytester: pytest.Pytester, serving: Callable[[ASGIApp], str]) -> None:
    asked: list[str] = []

    @http_only
    async def listens(scope: Message, receive: Receive, send: Send) -> None:
        asked.append(scope["path"])
        await html(scope, receive, send)

    pytester.makepyfile(_OWN)
    url = serving(listens)
    pytester.runpytest_inprocess().assert_outcomes(passed=1)
    pytester.runpytest_inprocess("--gym-url", url, "--collect-only")
    assert asked == []
