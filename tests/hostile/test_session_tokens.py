"""Seeds whose replies give tokens by the thousand, each of which is to be redacted in all its spellings."""

import json

import pytest

from gym_conformance.checks.server.load import load_episode
from gym_conformance.contract.endpoints import SEED_SESSION
from gym_conformance.redaction import REDACTED
from gym_conformance.session.channel import Endpoint
from gym_conformance.session.exchange import Reply, Request
from gym_conformance.trajectories.profiles import PROFILES
from gym_mocks.reference import reference_app
from tests.session.test_channel import Counting
from tests.twins.judging import running

MANY_HEADERS = {f"X-{at}": "v" * 1_000 for at in range(2_000)}
MANY_PARTS = {"X": " ".join(f"a{at:06}" for at in range(500))}


@pytest.mark.parametrize(("headers", "seeds"), [(MANY_HEADERS, 6), (MANY_PARTS, 12)], ids=["headers", "parts"])
def test_tokens_are_redacted_as_far_as_they_may_be_tokens(headers: dict[str, str], seeds: int) -> None:
    endpoint = Endpoint("http://127.0.0.1:1", Counting(0), 5.0)
    for given in [*({**headers, "X-Last": f"token-{number:06}"} for number in range(seeds)), {"X": "t0k3n-1"}]:
        block = {"mcp": {"headers": given}}
        endpoint.heard(Request("POST", SEED_SESSION), Reply(200, (), json.dumps(block).encode(), 0.0))
    assert len(endpoint.secrets) < 250_000
    assert endpoint.secrets.redact("t0k3n-1") == REDACTED


def test_paths_are_shown_without_secrets() -> None:
    """Reports list the time that each path took, and the server, its MCP block or a row says which there are."""
    secret = {"X-Key": "add_stock"}
    with running(reference_app(), headers=secret, load=(1,), profile=PROFILES["smoke"], sockets=True) as run:
        [finding] = run.judge(load_episode)
        shown = json.dumps([finding.as_json()["load"], run.latencies()])
    assert f"POST /{REDACTED}" in shown
    assert "add_stock" not in shown
