"""Tools for testing checks: judge an application by one check, and try several on broken twins.

Public, and described in docs/api.md and docs/extending.md.
"""

import json
from collections.abc import Collection, Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from gym_conformance.checks.registry import all_checks
from gym_conformance.dataset import Dataset, load
from gym_conformance.findings import Finding, Verdict, worst
from gym_conformance.options import Options
from gym_conformance.plugin.target_run import Run
from gym_conformance.trials.check import Check
from gym_mocks.serving import serve
from gym_mocks.wire.client import ASGIApp

#: Dataset rows as JSON objects, which may be recorded rollouts, with a response and a reward; or a JSONL file of them.
Rows = Iterable[Mapping[str, Any]] | Path

#: Verdicts of a check that finds no fault.
_CONTENT = (Verdict.PASS, Verdict.NOT_APPLICABLE)


def judge(app_or_url: ASGIApp | str, check: Check | str, rows: Rows = (), *, timeout: float = 10.0) -> list[Finding]:
    """Judge an ASGI application, or the server at a URL, by one check: a finding per subject, and at least one.

    An application is served on loopback meanwhile, in a thread of its own. `check` may be the id of any installed
    check; `timeout` is in seconds, for each request.

    Raises:
        ValueError: no check has that id.
        BadData: a row is invalid.
    """
    with ExitStack() as started:
        url = app_or_url if isinstance(app_or_url, str) else started.enter_context(serve(app_or_url))
        run = started.enter_context(Run(url, Options(url=url, timeout=timeout), _dataset(rows)))
        return run.judge(_named(check) if isinstance(check, str) else check)


@dataclass(frozen=True)
class Twin:
    """An application that is sound but for one fault, and the ids of the checks that should find it."""

    name: str
    app: ASGIApp | str
    fails: Collection[str]


def assert_twins(checks: Iterable[Check], sound: ASGIApp | str, twins: Iterable[Twin], rows: Rows = ()) -> None:
    """Check that a sound application passes all checks, and that each broken twin fails exactly its own checks.

    Raises:
        AssertionError: a check is wrong about one of them, or has no twin; the message has a line for each case.
    """
    given, broken = {check.id: check for check in checks}, list(twins)
    wrong = [
        f"{check_id}: no twin is for it" for check_id in given if not any(check_id in twin.fails for twin in broken)
    ]
    for check in given.values():
        wrong += _unexpected("the sound application", check, judge(sound, check, rows), fails=False)
        for twin in broken:
            wrong += _unexpected(twin.name, check, judge(twin.app, check, rows), fails=check.id in twin.fails)
    if wrong:
        raise AssertionError("\n".join(wrong))


def _unexpected(name: str, check: Check, findings: list[Finding], *, fails: bool) -> Iterable[str]:
    """The message about a wrong verdict."""
    verdict = worst(findings)
    if verdict is Verdict.UNTESTABLE or (verdict not in _CONTENT) is not fails:
        against = next((finding for finding in findings if finding.verdict is verdict), findings[0])
        said = (
            against.reason or f"expected {against.expected}, got {against.actual}"
            if verdict is not Verdict.PASS
            else ""
        )
        yield f"{name}: {check.id} ends with {verdict}" + (f" ({said})" if said else "")
    elif not fails and verdict is Verdict.NOT_APPLICABLE and name == "the sound application":
        yield f"{name}: {check.id} does not apply ({findings[0].reason}), so that nothing is tested"


def _named(check_id: str) -> Check:
    for check in all_checks():
        if check.id == check_id:
            return check
    raise ValueError(f"no check has the id {check_id!r}")


def _dataset(rows: Rows) -> Dataset:
    if isinstance(rows, Path):
        return load([rows])
    lines = [json.dumps(row) + "\n" for row in rows]
    if not lines:
        return Dataset()
    with TemporaryDirectory() as folder:
        file = Path(folder, "rows.jsonl")
        file.write_text("".join(lines))
        return load([file])
