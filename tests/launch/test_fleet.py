"""What several servers share: a baseline, a drift report, and a second run of what failed."""

import json
from pathlib import Path

import pytest

from tests.launch.drills import BAD, FINE

pytest_plugins = ["pytester"]

_FEW = ["-k", "live-root or seed-replies-object"]


@pytest.fixture(autouse=True)
def servers(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(fine=FINE, bad=FINE + BAD)


def _run(pytester: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    envs = ["--gym-env", "fine:app", "--gym-env", "bad:app"]
    return pytester.runpytest_subprocess(*envs, *arguments, timeout=120)


def test_a_baseline_names_the_server_of_each_entry(pytester: pytest.Pytester) -> None:
    """It is written, accepted once its reasons are there, also for that server alone, and stale in another's place."""
    run = _run(pytester, *_FEW, "--gym-baseline-write", "b.toml")
    assert run.ret == pytest.ExitCode.TESTS_FAILED
    written = Path("b.toml").read_text()
    assert written.count("[[accepted]]") == written.count('server = "bad.app"\ncheck = "seed-replies-object"\n') == 1

    Path("b.toml").write_text(written.replace('reason = ""', 'reason = "known"'))
    given = [*_FEW, "--gym-baseline", "b.toml", "--gym-report", "r.json"]
    assert _run(pytester, *given, "-n", "2").ret == pytest.ExitCode.OK
    assert pytester.runpytest_subprocess("--gym-env", "bad:app", *given, timeout=60).ret == pytest.ExitCode.OK

    Path("b.toml").write_text(Path("b.toml").read_text().replace("bad.app", "fine.app"))
    run = _run(pytester, *given)
    assert run.ret == pytest.ExitCode.TESTS_FAILED
    run.stdout.fnmatch_lines(
        ["fine.app *stale baseline*", "stale: b.toml:*: fine.app: seed-replies-object, server: it*"]
    )
    stale = {
        one["name"]: one["report"]["baseline"]["stale"] for one in json.loads(Path("r.json").read_text())["servers"]
    }
    assert [entry["server"] for entry in stale["fine.app"]] == ["fine.app"]
    assert stale["bad.app"] == []


def test_an_entry_that_names_no_server_is_one_line(pytester: pytest.Pytester) -> None:
    Path("b.toml").write_text('[[accepted]]\ncheck = "verify-floor"\nreason = "known"\n')
    run = _run(pytester, "--gym-baseline", "b.toml")
    assert run.ret == pytest.ExitCode.USAGE_ERROR
    run.stderr.fnmatch_lines(["ERROR: --gym-baseline: b.toml, line 1: several servers are judged; say which one: *"])


def test_one_drift_report_holds_all(pytester: pytest.Pytester) -> None:
    files = [argument for suffix in ("json", "md", "html") for argument in ("--gym-drift", f"d.{suffix}")]
    _run(pytester, "-k", "drift-routed or live-root", *files)
    found = json.loads(Path("d.json").read_text())
    assert found["schema"] == "gym-conformance-fleet/drift/1"
    assert {server["name"] for server in found["servers"]} == {"fine.app", "bad.app"}
    assert {path.name for path in Path("d-servers").iterdir()} == {"fine.app.html", "bad.app.html"}
    assert "d-servers/fine.app.html" in Path("d.html").read_text()
    assert r"# fine\.app" in Path("d.md").read_text()


def test_only_what_failed_runs_again(pytester: pytest.Pytester) -> None:
    _run(pytester, *_FEW, "-n", "2")
    _run(pytester, "--lf", "-n", "2").assert_outcomes(failed=1)
    assert [len(list(pytester.path.glob(f"{name}-*"))) for name in ("fine", "bad")] == [1, 2]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--gym-lock", "gym.lock"], "--gym-lock: fine:app has no folder for its own lock; judge it alone"),
        (
            ["--gym-lock", "locks/gym.lock"],
            "--gym-lock 'locks/gym.lock': with several servers, give the name of a file *",
        ),
        (["--gym-data", "rows.jsonl"], "--gym-data: this is about one server,*"),
        (["--gym-pid", "1"], "--gym-pid: this is about one server,*"),
        (["--gym-replay", "x.json"], "--gym-replay: this is about one server,*"),
    ],
)
def test_what_is_about_one_server_is_refused(pytester: pytest.Pytester, arguments: list[str], said: str) -> None:
    run = pytester.runpytest_inprocess("--gym-env", "fine:app", "--gym-env", "bad:app", *arguments)
    assert run.ret == pytest.ExitCode.USAGE_ERROR
    run.stderr.fnmatch_lines([f"ERROR: {said}"])


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--gym-demo", "--gym-ray", "auto"], "--gym-ray: give a cluster's address, such as * and envs to launch *"),
        (["--gym-env", "fine:app", "--gym-ray", ""], "--gym-ray: give a cluster's address, such as *"),
        (["--gym-env", "fine:app", "--gym-ray", "auto", "-n", "2"], "--gym-ray and -n: *; leave out -n, or give -n0"),
        (["--gym-env", "fine:app", "--gym-ray", "auto"], "--gym-ray auto: Ray is not installed here; *"),
        (["--gym-demo", "--gym-load", "--gym-ray", "auto"], "--gym-ray auto: Ray is not installed here; *"),
    ],
)
def test_a_cluster_that_cannot_be_used_is_one_line(pytester: pytest.Pytester, arguments: list[str], said: str) -> None:
    pytester.makeconftest("import sys\nsys.modules['ray'] = None")
    run = pytester.runpytest_subprocess(*arguments, timeout=60)
    assert run.ret == pytest.ExitCode.USAGE_ERROR
    run.stderr.fnmatch_lines([f"ERROR: {said}"])


def test_an_interrupted_run_is_resumed(pytester: pytest.Pytester) -> None:
    """What is finished is not launched again, and stands in exit status, table and report as if it had been."""
    checks = ["-k", "live or seed-replies-object"]
    pytester.makeconftest(
        """
        import os
        def pytest_runtest_logstart(nodeid):
            if "fine.app/live::live-endpoints" in nodeid and "CRASH" in os.environ:
                os._exit(1)
        """
    )
    envs = ["--gym-env", "bad:app", "--gym-env", "fine:app", *checks]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CRASH", "1")
        pytester.runpytest_subprocess(*envs, timeout=60)
    run = pytester.runpytest_subprocess(*envs, "--gym-resume", "--gym-report", "r.json", "-n", "2", timeout=60)
    assert run.ret == pytest.ExitCode.TESTS_FAILED
    run.stdout.fnmatch_lines(["*seed_session MUST reply with a JSON object*", "1 of them as an earlier run found*"])
    assert [len(list(pytester.path.glob(f"{name}-*"))) for name in ("bad", "fine")] == [1, 2]
    resumed = json.loads(Path("r.json").read_text())

    run = pytester.runpytest_subprocess(*envs, "--gym-report", "r.json", "-n", "1", timeout=60)
    run.stdout.fnmatch_lines(["bad.app: not fit; 1 MUST; * (1 of 2 done; running: fine.app)"])
    assert [len(list(pytester.path.glob(f"{name}-*"))) for name in ("bad", "fine")] == [2, 3]
    anew = json.loads(Path("r.json").read_text())
    for report in (resumed, anew):
        for server in report["servers"]:
            server["report"].pop("latency")
            server["report"]["findings"] = [
                (one["check"], one["subject"], one["verdict"], one["reason"]) for one in server["report"]["findings"]
            ]
    assert resumed == anew
    assert pytester.runpytest_inprocess("--gym-demo", "--gym-resume").ret == pytest.ExitCode.USAGE_ERROR


def test_a_fault_of_the_suite_costs_one_server_its_verdict(pytester: pytest.Pytester) -> None:
    """The other is judged, the reports are written, and the run ends with pytest's status for an internal error."""
    pytester.makeconftest(
        """
        from gym_conformance.plugin.target import Target

        judge = Target.judge

        def broken(target, check, schedule=None):
            if (target.name, check.id) == ("fine.app", "live-endpoints"):
                raise RuntimeError("a bug of ours")
            return judge(target, check, schedule)

        Target.judge = broken
        """
    )
    run = _run(pytester, "-k", "live or seed-replies-object", "--gym-report", "r.json", "-n", "2")
    assert run.ret == pytest.ExitCode.INTERNAL_ERROR
    run.stdout.fnmatch_lines(
        [
            "gym-conformance itself failed; this is not a finding about the server. Please report it.",
            "bad.app * not fit *",
            "fine.app * no verdict *",
            "1 not fit, 1 no verdict.",
            "gym-conformance itself failed on fine.app: no verdict there. Please report it.",
        ],
        consecutive=False,
    )
    assert {server["name"] for server in json.loads(Path("r.json").read_text())["servers"]} == {"fine.app", "bad.app"}


def test_what_is_new_is_said_of_each(pytester: pytest.Pytester) -> None:
    _run(pytester, *_FEW, "--gym-report", "before.json")
    before = json.loads(Path("before.json").read_text())
    for server in before["servers"]:
        findings = server["report"]["findings"]
        server["report"]["findings"] = [one for one in findings if one["verdict"] != "fail"]
    Path("before.json").write_text(json.dumps(before))
    run = _run(pytester, *_FEW, "--gym-before", "before.json")
    run.stdout.fnmatch_lines(
        ["Since before.json:", "bad.app: 1 new", "  new: seed-replies-object: *"], consecutive=True
    )
    assert "fine.app: no difference" not in run.stdout.str()
