"""Which clients a server works with follows from the checks that each depends on."""

import pytest

from gym_conformance.checks.registry import CHECKS
from gym_conformance.findings import NOT_SELECTED, Finding, Verdict
from gym_conformance.reports.known_clients import CLIENTS, KnownClient, Works, compatibilities

LEVELS = {check.id: check.level for check in CHECKS}
UNSLOTH = next(client for client in CLIENTS if "Unsloth" in client.name)


@pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.name)
def test_what_a_client_needs_is_a_must(client: KnownClient) -> None:
    """What is no MUST breaks nobody."""
    assert {LEVELS[check] for check in client.needs} == {"MUST"}


@pytest.mark.parametrize(
    ("verdict", "reason", "works"),
    [
        (Verdict.PASS, "", Works.YES),
        (Verdict.FAIL, "", Works.NO),
        (Verdict.UNTESTABLE, "a judge", Works.UNKNOWN),
        (Verdict.NOT_APPLICABLE, NOT_SELECTED, Works.UNKNOWN),
        (Verdict.NOT_APPLICABLE, "another version", Works.YES),
    ],
)
def test_one_check_decides(verdict: Verdict, reason: str, works: Works) -> None:
    *others, last = UNSLOTH.needs
    findings = [Finding(check, "MUST", "", Verdict.PASS, "server") for check in others]
    findings += [
        Finding(last, "MUST", "", Verdict.PASS, "a row"),
        Finding(last, "MUST", "", verdict, "another", reason=reason),
    ]
    if verdict is Verdict.NOT_APPLICABLE:
        del findings[-2]
    found = {one.client: one for one in compatibilities(findings)}[UNSLOTH.name]
    assert found.works is works
    assert found.because == ((last,) if works in (Works.NO, Works.UNKNOWN) else ())


def test_who_has_no_session_may_be_refused() -> None:
    verdicts = {**dict.fromkeys(UNSLOTH.needs, Verdict.PASS), "verify-without-session": Verdict.NOT_APPLICABLE}
    findings = [
        Finding(check, "MUST", "", verdict, "server", reason="status 404") for check, verdict in verdicts.items()
    ]
    found = {one.client: one for one in compatibilities(findings)}[UNSLOTH.name]
    assert (found.works, found.because) == (Works.NO, ("verify-without-session",))


@pytest.mark.parametrize("root", [Verdict.NOT_APPLICABLE, Verdict.PASS])
def test_another_kind_of_server_is_not_for_it(root: Verdict) -> None:
    """A gymnasium-style server answers `GET /`, too."""
    asked = {**dict.fromkeys(UNSLOTH.needs, Verdict.NOT_APPLICABLE), "live-root": root}
    findings = [
        Finding(check, "MUST", "", verdict, "server", reason="another kind") for check, verdict in asked.items()
    ]
    found = {one.client: one.works for one in compatibilities(findings)}
    assert found.pop(UNSLOTH.name) is Works.NOT_FOR_IT
    assert found == dict.fromkeys(found, Works.UNKNOWN), "nothing was asked of them"
