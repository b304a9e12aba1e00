"""One server judged by every check."""

from collections.abc import Collection, Iterable

import fastapi  # noqa: F401 - a mock's first OpenAPI document imports it, which a busy machine does in two seconds

from gym_conformance.checks.registry import CHECKS
from gym_conformance.dataset import Dataset
from gym_conformance.drift.lock import Lock
from gym_conformance.findings import Finding, Verdict, worst
from gym_conformance.options import Options
from gym_conformance.plugin.target_run import Run


def judge(
    url: str, data: Dataset, timeout: float = 5.0, checks: Collection[str] = (), lock: Lock | None = None
) -> dict[str, list[Finding]]:
    """All findings, by check, of these checks or else of all that are no properties: those have twins of their own.

    An exception is a fault of the suite's own.
    """
    run = Run(url, Options(url=url, timeout=timeout), data, lock)
    try:
        return {check.id: run.judge(check) for check in CHECKS if (check.id in checks if checks else not check.attempt)}
    finally:
        run.close()


def ended(findings: dict[str, list[Finding]], verdict: Verdict) -> frozenset[str]:
    """The checks whose worst verdict is this one."""
    return frozenset(check for check, found in findings.items() if worst(found) is verdict)


def telling(findings: dict[str, list[Finding]]) -> frozenset[str]:
    """The checks whose worst finding is a violation or a note."""
    return ended(findings, Verdict.FAIL) | ended(findings, Verdict.NOTE)


def failures(findings: dict[str, list[Finding]]) -> Iterable[Finding]:
    """The findings that are violations or notes."""
    told = (Verdict.FAIL, Verdict.NOTE)
    return (finding for found in findings.values() for finding in found if finding.verdict in told)
