"""Judging a server that a test has made: by some checks, by all of them, or by a function."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, TypeVar

import fastapi  # noqa: F401 - a mock's first OpenAPI document imports it, which a busy machine does in two seconds
import httpx

from gym_conformance.checks.registry import CHECKS
from gym_conformance.dataset import Dataset
from gym_conformance.drift.lock import Lock
from gym_conformance.findings import Finding, Verdict, worst
from gym_conformance.gym_under_test import Gym, recognise
from gym_conformance.options import Options
from gym_conformance.plugin.target_run import Run
from gym_conformance.session.channel import Endpoint
from gym_conformance.session.transport import Transport
from gym_conformance.trials.check import Check
from gym_conformance.trials.launched import NOT_LAUNCHED, Launched
from gym_conformance.trials.needs import FIRST_LOOK
from gym_mocks.serving import serve
from gym_mocks.wire.client import ASGIApp
from tests.twins.in_process import in_process
from tests.twins.twin import dataset

T = TypeVar("T")


@contextmanager
def running(
    server: ASGIApp | str,
    data: Dataset | None = None,
    *,
    lock: Lock | None = None,
    launched: Launched = NOT_LAUNCHED,
    first_look: bool = True,
    upcoming: Sequence[Check] = (),
    sockets: bool = False,
    **options: Any,
) -> Iterator[Run]:
    """A run against an application, which is served meanwhile, or a URL; by default with the reference's rows.

    `sockets`: whether its requests take them in any case, as they must where handlers block their thread.
    """
    with ExitStack() as stack:
        url = server if isinstance(server, str) else stack.enter_context(serve(server))
        given, rows = Options(url=url, **options), dataset() if data is None else data
        sender = None if sockets else in_process(server, given.timeout)
        run = Run(url, given, rows, lock, launched, first_look=first_look, upcoming=upcoming, sender=sender)
        yield stack.enter_context(run)


def on_gym(server: ASGIApp, use: Callable[[Gym], Awaitable[T]], data: Dataset | None = None) -> T:
    """What comes of using the gym that is recognised at an application, which is served meanwhile."""
    known = dataset() if data is None else data

    async def used(url: str) -> T:
        async with Transport(httpx.URL(url), deadline=10) as transport:
            return await use(await recognise(Endpoint(url, transport, 10), known.rows, known.rollouts))

    with serve(server) as url:
        return asyncio.run(used(url))


def judge(
    server: ASGIApp | str,
    data: Dataset | None = None,
    timeout: float = 5.0,
    checks: Collection[str] = (),
    lock: Lock | None = None,
    *,
    sockets: bool = False,
) -> dict[str, list[Finding]]:
    """All findings, by check, of these checks or else of all that are no properties: those have twins of their own.

    An exception is a fault of the suite's own.
    """
    chosen = [check for check in CHECKS if (check.id in checks if checks else not check.attempt)]
    first_look = needs_first_look(chosen)
    with running(server, data, lock=lock, first_look=first_look, sockets=sockets, timeout=timeout) as run:
        return {check.id: run.judge(check) for check in chosen}


def needs_first_look(checks: Iterable[Check]) -> bool:
    """Whether one of them wants to know what the untouched server answers, as a run of these alone is asked."""
    return any(FIRST_LOOK in check.needs for check in checks)


def found_by(check: str, server: ASGIApp | str, data: Dataset | None = None, timeout: float = 5.0) -> list[Finding]:
    """What one check finds."""
    return judge(server, data, timeout, {check})[check]


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
