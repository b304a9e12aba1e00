"""nemo-gym 0.7.0's own environment servers, launched beside our mocks and judged: docs/bundled-servers.md has the same."""

from contextlib import ExitStack
from pathlib import Path

import pytest

from gym_conformance.checks.registry import CHECKS, JUDGE_MODELS
from gym_conformance.dataset import Dataset
from gym_conformance.findings import Verdict
from gym_conformance.launch.env import find_envs
from gym_conformance.launch.launched_server import LaunchedServer
from gym_conformance.launch.specification import Launch
from gym_conformance.options import Options
from gym_conformance.plugin.mocks import MockPeers
from gym_conformance.plugin.target_run import Run
from gym_conformance.trials.launched import JudgeModels, Launched
from tests.twins.judging import ended, failures

pytestmark = [pytest.mark.nemo_gym, pytest.mark.filterwarnings("ignore")]

#: Seconds that an episode may take, and a client waits: the first is the server's own limit, where it keeps one.
_EPISODE, _CLIENT = 3, 30.0


@pytest.mark.parametrize(
    ("name", "found", "untold"),
    [
        ("single_agent_turn", set(), set()),
        (
            "single_agent_turn_legacy",
            {
                ("run-malformed", what)
                for what in ("an empty object", "an episode of the wrong types", "a row without its task")
            },
            set(),
        ),
        ("legacy_agent", set(), {"model-fails"}),  # it waits for a silent model as long as that is silent
    ],
)
def test_what_is_found(
    name: str, found: set[tuple[str, str]], untold: set[str], gym_bundle: Path, gym_python: str
) -> None:
    judged = [
        check for check in CHECKS + JUDGE_MODELS if check.section in ("live", "run", "model") and check.id not in untold
    ]
    limit = () if untold else (f"{name}.environment_servers.{name}.default_episode_timeout_seconds={_EPISODE}",)
    with ExitStack() as started:
        mocks = MockPeers(started)
        [env] = find_envs([str(gym_bundle / "environment_servers" / name)], gym_bundle)
        launch = Launch(env, mocks.addresses, gym_python, limit)
        server = started.enter_context(LaunchedServer(launch))
        options = Options(url=server.url, timeout=_CLIENT)
        launched = Launched(judge_models=JudgeModels(launch.models, mocks))
        run = started.enter_context(Run(server.url, options, Dataset(), launched=launched))
        findings = {check.id: run.judge(check) for check in judged}
    assert run.target()["kind"] == "environment server"
    assert {(finding.check, finding.subject) for finding in failures(findings)} == found
    assert ended(findings, Verdict.UNTESTABLE) == set()
    assert ended(findings, Verdict.NOT_APPLICABLE) == {"live-endpoints"}
