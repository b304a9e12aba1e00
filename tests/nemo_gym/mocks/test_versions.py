"""The version of nemo-gym that is installed answers as `versions.json` says; GYM_RECORD=1 writes it anew."""

import json
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from typing import Any

import httpx
import pytest

from gym_conformance.checks.registry import CHECKS
from gym_conformance.dataset import load
from gym_conformance.findings import Verdict
from gym_conformance.options import Options
from gym_conformance.plugin.target_run import Run
from gym_conformance.trials.check import Check
from gym_mocks.serving import serve
from tests.nemo_gym.conftest import RealServer
from tests.nemo_gym.mocks.conftest import notes_env
from tests.nemo_gym.mocks.probes import AGGREGATES, JSON, PROBES, approximately, ask, seen
from tests.nemo_gym.mocks.versions import known
from tests.nemo_gym.test_bundled_servers import KINDS, listed

#: What nemo-gym warns of is its own affair: as errors its warnings would be replies of status 500.
pytestmark = [pytest.mark.nemo_gym, pytest.mark.filterwarnings("ignore")]

SERVERS = ("example_single_tool_call", "example_session_state_mgmt", "example_multi_step")
LEVELS = ("MUST", "SHOULD")

#: test_bundled_servers.py judges these servers of this version, too, and holds docs/bundled-servers.md to what it finds.
JUDGED = "0.4.0"

#: An aggregate is asked for as any other probe.
ALL = PROBES | {
    f"aggregate {name}": ("POST", "/aggregate_metrics", json.dumps({"verify_responses": responses}).encode(), JSON)
    for name, responses in AGGREGATES.items()
}


@pytest.fixture(scope="module")
def real() -> Iterator[httpx.Client]:
    """The sample environment on the class of this version."""
    with serve(notes_env()) as url, httpx.Client(base_url=url, timeout=30) as client:
        yield client


@pytest.mark.parametrize("probe", ALL)
def test_it_answers_as_is_known(real: httpx.Client, ours: httpx.Client, probe: str) -> None:
    mine, theirs = (seen(ask(client, ALL[probe])) for client in (ours, real))
    difference = None if approximately(mine) == theirs else _told(theirs)
    assert difference == known("probes", probe, difference)


@pytest.mark.parametrize("name", SERVERS)
def test_bundled_servers_are_found_to_be_as_is_known(name: str, request: pytest.FixtureRequest) -> None:
    checks = [check for check in CHECKS if check.level in LEVELS and not check.attempt]
    if version("nemo-gym") == JUDGED:
        told = {check for check, _ in listed(name, KINDS[name])}
        failed = {check.id for check in checks if check.id in told}
    else:
        failed = _failed(request.getfixturevalue("real_server")(name), checks)
    assert sorted(failed) == known("findings", name, sorted(failed))


def _failed(server: RealServer, checks: Sequence[Check]) -> set[str]:
    with Run(server.url, Options(timeout=20), load([server.rows])) as run:
        return {f.check for check in checks for f in run.judge(check) if f.verdict in (Verdict.FAIL, Verdict.NOTE)}


def _told(reply: dict[str, Any]) -> str:
    body = reply["body"]
    if isinstance(body, dict):
        return f"{reply['status']} {{{', '.join(sorted(body))}}}"
    return f"{reply['status']} {json.dumps(body) if isinstance(body, str | int | float | list) else 'no JSON'}"[:60]
