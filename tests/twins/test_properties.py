"""Each fault that needs a trajectory is found, and shrunk to a few calls; the reference has none."""

import json
import re
from pathlib import Path

import pytest

from gym_conformance.checks.isolation import read_backs
from gym_conformance.checks.registry import CHECKS
from gym_conformance.checks.sessions import readiness
from gym_conformance.dataset import Dataset
from gym_conformance.findings import Finding, Verdict
from gym_conformance.trajectories.profiles import QUICK, Profile
from gym_conformance.trajectories.trajectory import parse
from gym_conformance.trials import attempts
from gym_mocks.reference import ReferenceServer, reference_app
from gym_mocks.wire.client import ASGIApp
from tests.twins.judging import needs_first_look, running
from tests.twins.properties import TWINS, PropertyTwin
from tests.twins.twin import Json, further
from tests.twins.typed import TypedReference

PROPERTIES = [check for check in CHECKS if check.attempt]


@pytest.fixture(autouse=True)
def _time_to_shorten(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine leaves no more calls in an example than an idle one."""
    monkeypatch.setattr(attempts, "_REDUCING", 60.0)


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readiness, "PAUSES", (0.3, 0.4, 0.6, 0.8))
    monkeypatch.setattr(read_backs, "COPIED", 0.1)


def search(server: ASGIApp, seed: int, profile: Profile, checks: frozenset[str]) -> dict[str, list[Finding]]:
    chosen = [check for check in PROPERTIES if not checks or check.id in checks]
    with running(server, timeout=5.0, profile=profile, seed=seed, first_look=needs_first_look(chosen)) as run:
        return {check.id: run.judge(check) for check in chosen}


#: Seeds that are tried until one tells: what only few drawn examples reach is a matter of luck in one short search.
SEEDS = range(1, 6)


def found_by_one(twin: PropertyTwin, check: str) -> tuple[Finding, ASGIApp]:
    """What a search tells of the twin, or the last one where none does, and the server that it searched."""
    for seed in SEEDS:
        profile = Profile("tests", 1000, 8.0, quiet=QUICK.quiet)
        (finding,) = search(server := twin.make(), seed, profile, frozenset({check}))[check]
        if finding.verdict in (Verdict.FAIL, Verdict.NOTE):
            break
    return finding, server


def replayed(server: ASGIApp, replay: str) -> Finding:
    """What a replay tells of the same server, as its command is printed: without any data."""
    name, schedule = parse(replay, Path("replay.json"))
    (check,) = (each for each in PROPERTIES if each.id == name)
    with running(server, Dataset(), timeout=5.0) as run:
        (finding,) = run.judge(check, schedule)
    return finding


FURTHER = further(TWINS)
CASES = [
    pytest.param(twin, id=twin.name.replace(" ", "-"), marks=[pytest.mark.twins] if twin.name in FURTHER else [])
    for twin in TWINS
]


@pytest.mark.parametrize("twin", CASES)
def test_a_fault_is_found_and_its_example_is_short(twin: PropertyTwin) -> None:
    for check in twin.fails:
        finding, server = found_by_one(twin, check)
        assert finding.verdict in (Verdict.FAIL, Verdict.NOTE), f"{check}: {finding.verdict} {finding.reason}"
        schedule = json.loads(finding.replay)
        assert sum(len(each["calls"]) for each in schedule["trajectories"]) <= twin.calls, finding.trajectory
        assert len(schedule["trajectories"]) <= twin.sessions, finding.trajectory
        assert finding.expected
        assert finding.actual
        assert finding.hint
        assert finding.reproduce
        assert replayed(server, finding.replay).verdict is finding.verdict, finding.trajectory


def test_what_goes_wrong_only_at_once_is_laid_to_what_is_done_at_once() -> None:
    [twin] = (each for each in TWINS if each.name == "the current session across an await")
    checks = frozenset({"isolation-interleaved", "isolation-concurrent"})
    found = search(twin.make(), 1, Profile("tests", 50, 4.0), checks)
    assert found["isolation-interleaved"][0].verdict is Verdict.PASS
    assert "across an await" in found["isolation-concurrent"][0].hint


def test_a_search_ends_where_nothing_new_comes() -> None:
    """Long before its time is over, and later where faults lie deep."""
    checks = frozenset({"repeat-verify", "isolation-interleaved"})
    findings = search(reference_app(), 1, Profile("tests", 60, 60.0, quiet=6), checks)
    quiet = {check: re.search(r"the last (\d+) with nothing new", found.reason) for check, (found,) in findings.items()}
    assert all(quiet.values()), findings
    assert {check: int(match[1]) >= 12 for check, match in quiet.items() if match}["isolation-interleaved"]


class SeedsNoMore(ReferenceServer):
    """Has opened sessions for the first look, and opens none since."""

    left = 120

    async def seed(self, session_id: str, row: Json) -> Json:
        self.left -= 1
        if self.left < 0:
            raise RuntimeError("no more sessions")
        return await super().seed(session_id, row)


def test_a_search_without_sessions_is_no_pass() -> None:
    with running(SeedsNoMore(), profile=Profile("tests", 8, 0.2), seed=1) as run:
        checks = {check.id: check for check in CHECKS}
        run.judge(checks["seed-replies-object"])
        for _again in range(2):
            (finding,) = run.judge(checks["isolation-interleaved"])
    assert finding.verdict is Verdict.UNTESTABLE
    assert "/seed_session refused every one" in finding.reason


def test_typed_sessions_are_judged_by_the_same_properties() -> None:
    """A server of typed sessions alone: the cookie's own checks do not apply, and all others do."""
    with running(TypedReference(), contract="typed", profile=Profile("tests", 8, 0.2), seed=1) as run:
        findings = [finding for check in CHECKS for finding in run.judge(check)]
        assert run.target()["contract"] == "typed"
    assert [f for f in findings if f.told] == []
    passed = {f.check for f in findings if f.verdict is Verdict.PASS}
    assert {"typed-isolation", "isolation-interleaved", "repeat-verify", "calls-valid", "verify-scores-rows"} <= passed
    assert {"cookie-sent-again", "seed-sets-cookie"}.isdisjoint(passed)


def test_every_property_has_a_twin() -> None:
    assert frozenset().union(*(twin.fails for twin in TWINS)) == {check.id for check in PROPERTIES}


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.twins) for seed in range(1, 4))])
def test_the_reference_has_no_fault_whatever_the_seed(seed: int) -> None:
    findings = search(reference_app(), seed, Profile("tests", 48, 0.45, quiet=QUICK.quiet), frozenset())
    assert [f for found in findings.values() for f in found if f.told] == []
