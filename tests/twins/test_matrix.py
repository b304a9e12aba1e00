"""Each twin fails the checks that it says, and none that it tempts (`tox -e twins`: all twins, and no others); the reference fails none; no check lacks a twin."""

from collections import Counter

import pytest

from gym_conformance.checks.registry import CHECKS
from gym_conformance.checks.sessions import readiness
from gym_conformance.dataset import Dataset, load
from gym_conformance.findings import Verdict
from gym_mocks.reference import DATA, reference_app
from tests.twins.all import TWINS
from tests.twins.drift import REFERENCE_LOCK
from tests.twins.judging import ended, failures, judge, telling
from tests.twins.seed import AFTER_VERIFY
from tests.twins.twin import Twin, further

#: Those have twins of their own.
OVER_MCP = {check.id for check in CHECKS if check.section == "mcp"}

#: The checks that are no properties: those have, too.
FIXED = {check.id for check in CHECKS if not check.attempt} - OVER_MCP

#: What a server keeps is seen from outside, in its process.
KEPT = {
    *("resources-kept", "resources-closed", "resources-seeds", "resources-session-kept", "resources-reward-kept"),
    *("resources-program-ends", "resources-program-stopped", "reward-any-text"),
}

#: The reference is of nemo-gym 0.4.0, neither a gymnasium-style server nor an environment server; it scores no groups, and has
#: neither pages nor defaults, nor a number that a read is given, and runs no programs.
OTHERS = {check for check in FIXED if check.startswith(("typed-", "web-", "step-", "run-"))} | {
    *("resources-closed", "verify-in-groups", "verify-group-again", "isolation-sandbox", "verify-failure-kind"),
    *("drift-default", "drift-argument-unread", "repeat-pages", "resources-program-ends", "resources-program-stopped"),
    "reward-any-text",
}

#: They look at the data and send nothing.
ABOUT_ROWS = {
    *("tool-name-legal", "tool-served-declared", "drift-rows-disagree", "drift-definition-unsound"),
    *("drift-server-takes-more", "drift-description", "drift-lock"),
}


#: What opens many sessions, after which a session may take longer.
BEFORE = {"resources-latency": "resources-seeds"}

#: What a pause tells.
LATE = {"seed-complete", "calls-complete"}


#: Each session takes seconds, once there are many: all checks open so many that they would take more than an hour.
ENDLESS = {"searches all sessions"}

#: What tempts a check is judged in every run, whatever else is told of it.
FURTHER = further(twin for twin in TWINS if not twin.tempts)

CASES = [
    pytest.param(twin, by, id=f"{twin.name.replace(' ', '-')}-{by}", marks=[pytest.mark.twins] if late else [])
    for by, those in (("its checks", FURTHER), ("all checks", {twin.name for twin in TWINS}))
    for twin in TWINS
    for late in [twin.name in those]
    if by == "its checks" or twin.name not in ENDLESS
]


@pytest.mark.parametrize(("twin", "by"), CASES)
def test_a_twin_fails_exactly_what_it_says(twin: Twin, by: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Judged by the checks that it is said to fail, or that might mistake a habit for a fault; or by all, which takes ten times as long."""
    if not twin.fails & LATE:  # all others are as ready at once
        monkeypatch.setattr(readiness, "PAUSES", (0.02, *readiness.PAUSES[1:]))
    its = twin.fails | twin.untestable | {check for check in FIXED if check.partition("-")[0] in twin.tempts}
    checks = its | {BEFORE[check] for check in its if check in BEFORE} if by == "its checks" else ()
    findings = judge(twin.make(), twin.data, twin.timeout, checks, twin.lock, sockets=twin.blocks)
    failed, untestable = telling(findings), ended(findings, Verdict.UNTESTABLE)
    told = [f"{finding.check} [{finding.subject}] {finding.actual}" for finding in failures(findings)]
    assert (sorted(failed), sorted(untestable)) == (sorted(twin.fails), sorted(twin.untestable)), told
    for finding in failures(findings):
        assert (finding.verdict is Verdict.NOTE) == (finding.level == "NOTE"), finding
        assert finding.expected, finding
        assert finding.actual, finding
        assert finding.hint, finding
        assert finding.reproduce or finding.check in ABOUT_ROWS, finding


def test_the_reference_passes_every_check() -> None:
    findings = judge(reference_app(), load([DATA]), lock=REFERENCE_LOCK)
    not_said = {"resources-kept", "repeat-declares-stateless", "calibration-gold", "calls-reach-session"}
    assert ended(findings, Verdict.PASS) == FIXED - OTHERS - not_said
    assert "--gym-pid" in findings["resources-kept"][0].reason
    assert "stateful: " in findings["repeat-declares-stateless"][0].reason
    assert "needs no argument" in findings["calls-reach-session"][0].reason
    assert "its own recorded rollout" in findings["calibration-gold"][0].reason


def test_without_rows_what_needs_them_says_so() -> None:
    """The reference's rows have required fields: it rightly refuses to score a row that we made up."""
    findings = judge(reference_app(), Dataset())
    assert not telling(findings)
    needing = ended(findings, Verdict.UNTESTABLE)
    assert needing == {"verify-scores-rows", *AFTER_VERIFY.split()} - {
        *(
            "verify-floor",
            "verify-malformed-calls",
            "reward-form",
            "reward-extra-read",
            "repeat-recorded",
            "repeat-declares-stateless",
            "seed-reads-row",
        )
    }
    assert all("--gym-data" in findings[check][0].reason for check in needing)


def test_no_check_lacks_a_twin() -> None:
    seen = frozenset().union(*(twin.fails for twin in TWINS))
    assert seen == FIXED - KEPT, (
        "those have their twins in test_resources, test_endless_programs and test_asked_answers"
    )


def test_names_of_twins_are_unique() -> None:
    assert [name for name, count in Counter(twin.name for twin in TWINS).items() if count > 1] == []
