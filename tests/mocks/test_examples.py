"""The examples that env authors copy, judged by the suite: with their rows, and the rollouts of their solutions."""

import json
from pathlib import Path
from types import ModuleType

import httpx
import pytest

from gym_conformance.checks.registry import CHECKS
from gym_conformance.dataset import load
from gym_conformance.findings import Verdict
from gym_mocks.examples import game, robot, sandbox, weather
from gym_mocks.gym import MockGym
from gym_mocks.policy import scripted_rows
from gym_mocks.serving import serve
from tests.twins.judging import ended, failures, judge

#: What says nothing about an example, by design. All else must apply, and pass.
NOT_TOLD = {
    *("drift-lock", "resources-kept", "repeat-declares-stateless"),  # no lock, no process, no /reverify_mode
    *("resources-closed", "verify-in-groups", "verify-group-again", "isolation-sandbox", "verify-failure-kind"),
    *("repeat-pages", "drift-default", "drift-argument-unread"),  # no lists in pages, no defaults, no numbers of reads
    *("resources-program-ends", "resources-program-stopped"),  # no programs
    "reward-any-text",  # all rows have rollouts
    *(check.id for check in CHECKS if check.section in ("typed", "web", "step", "run", "mcp") and not check.attempt),
}
ONE_PART = {"verify-reward-components"}
NO_TOOLS = {
    *("tool-routed", "tool-bad-body", "tool-wrong-arguments", "tool-refused-call"),
    *("tool-reply-text", "tool-name-legal", "tool-served-declared", "verify-malformed-calls", "cookie-unknown-session"),
    *("cookie-unsigned-id", "cookie-sent-again", "calls-reach-session", "isolation-same-task"),
    *(
        "repeat-tool-calls",
        "reward-extra-read",
        "calls-error-harmless",
        "resources-session-kept",
        "resources-reward-kept",
    ),
    *(check.id for check in CHECKS if check.section == "drift"),
}
NO_READS = {"reward-extra-read"}
NO_OPTIONS = {"drift-option-unread"}
ROWS_ALIKE = {"seed-reads-row"}
#: Too few rows, or all of them take as many calls.
AS_MANY = {"reward-farmed"}
#: No row's answer is a field of it alone, or none earns what others do not.
NO_TEMPLATE = {"calibration-gold", "calibration-pressed"}
NO_ANSWERS = NO_TEMPLATE | {f"calibration-{kind}" for kind in ("strict", "deeds", "floor", "swap")}
CASES: dict[ModuleType, set[str]] = {
    weather: ONE_PART | AS_MANY | ROWS_ALIKE | NO_ANSWERS | NO_OPTIONS | {"calls-reach-session"},  # one tool
    game: ONE_PART | AS_MANY | NO_TOOLS | ROWS_ALIKE | {"calibration-deeds"},
    sandbox: ONE_PART | AS_MANY | NO_TEMPLATE | NO_OPTIONS,
    robot: NO_READS | NO_TEMPLATE,
}


@pytest.mark.parametrize("example", CASES, ids=lambda module: module.__name__.rpartition(".")[2])
def test_the_suite_passes_an_example(example: ModuleType, tmp_path: Path) -> None:
    rows = tmp_path / "example.jsonl"
    rows.write_text("".join(json.dumps(row) + "\n" for row in example.ROWS))
    with MockGym() as gym:
        played = gym.add_env(example.server(), example.ROWS)
        gym.policy.default = scripted_rows(example.ROWS, example.SOLUTIONS)
        run = gym.url(played[0]["agent_ref"]["name"]) + "/run"
        rollouts = [httpx.post(run, json=row).json() for row in example.ROWS]
        rows.with_name("example_rollouts.jsonl").write_text("".join(json.dumps(each) + "\n" for each in rollouts))
        findings = judge(gym.url(example.server().name), load([rows]))
    # A robot that is told to move twice moves twice.
    told = [
        f"{one.check} [{one.subject}] {one.actual}" for one in failures(findings) if one.check != "repeat-tool-calls"
    ]
    assert told == []
    assert ended(findings, Verdict.UNTESTABLE) == set()
    assert ended(findings, Verdict.NOT_APPLICABLE) == CASES[example] | NOT_TOLD


def test_the_sandbox_is_made_by_the_first_tool_that_needs_it() -> None:
    server = sandbox.server()
    with serve(server) as url, httpx.Client(base_url=url) as client:
        cookie = client.post("/seed_session", json=sandbox.ROWS[0]).headers["set-cookie"].partition(";")[0]
        session = server.sessions.get(server.cookie.read(cookie) or "")
        assert session is not None
        assert session.state.files is None
        client.post("/list_files", json={}, headers={"cookie": cookie})
        assert session.state.files == {}
