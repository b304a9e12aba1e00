"""`--gym-env` as its users meet it, with ASGI applications, which need no nemo-gym."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from tests.launch.drills import gone, written

pytest_plugins = ["pytester"]

_FINE = "from gym_mocks.reference import reference_app\napp = reference_app()\n"


def _run(pytester: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    return pytester.runpytest_subprocess("-p", "no:cacheprovider", *arguments, timeout=120)


def _outcomes(path: Path) -> dict[str, Any]:
    found = json.loads(path.read_text())
    assert found["schema"] == "gym-conformance-fleet/2"
    return {server["name"]: server["outcome"] for server in found["servers"]}


def test_one_is_judged_as_a_url_is(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(fine=_FINE)
    run = _run(pytester, "--gym-env", "fine:app", "-k", "live or metrics-accepts", "-v")
    assert run.ret == pytest.ExitCode.OK
    run.stdout.fnmatch_lines(["gym/live::live-root PASSED*", "fine:app is a tool server*", "No MUST broken*"])


def test_commands_for_a_server_that_has_ended_say_so(pytester: pytest.Pytester) -> None:
    silent = (
        "class Silent(ReferenceServer):\n    async def seed(self, *_):\n        return 'seeded'\n\n\napp = Silent()\n"
    )
    pytester.makepyfile(silent=f"from gym_mocks.reference import ReferenceServer\n\n\n{silent}")
    run = _run(pytester, "--gym-env", "silent:app", "-k", "seed-replies-object")
    assert run.ret == pytest.ExitCode.TESTS_FAILED
    again = "    # its server ended with the run: *, or run again with -k seed-replies-object"
    run.stdout.fnmatch_lines(["  reproduce (bash):", again, "    curl *"])


def test_not_launched_is_red_once(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(bad="print('half way')\nimport no_such_module_here")
    run = _run(pytester, "--gym-env", "bad:app", "--gym-report", "r.json")
    assert run.ret == pytest.ExitCode.TESTS_FAILED
    run.assert_outcomes(failed=1, skipped=run.parseoutcomes()["skipped"])
    run.stdout.fnmatch_lines(["Untestable: needs the module no_such_module_here: *", "    half way", "Not testable*"])
    [red] = [f for f in json.loads(Path("r.json").read_text())["findings"] if f["verdict"] == "untestable"]
    assert "half way" in red["log"]


def test_a_missing_folder_is_one_line(pytester: pytest.Pytester) -> None:
    run = _run(pytester, "--gym-env", "nowhere")
    assert run.ret == pytest.ExitCode.USAGE_ERROR
    run.stderr.fnmatch_lines(["ERROR: --gym-env 'nowhere': no folder with an app.py or a server's config.yaml there;*"])


@pytest.mark.parametrize("workers", [[], ["-n", "2"]])
def test_many(pytester: pytest.Pytester, workers: list[str]) -> None:
    """One that is fine, one that needs something, one that dies at a check: each is started once, and stopped."""
    count = "import os\nopen(f'started-{os.getpid()}', 'w').write(str(os.getpid()))\n"
    dies = dedent(
        """
        import os
        inner = app
        async def app(scope, receive, send):
            if scope.get("path") == "/seed_session":
                os._exit(3)
            await inner(scope, receive, send)
        """
    )
    pytester.makepyfile(fine=count + _FINE, bad=count + "import no_such_module_here", dies=count + _FINE + dies)
    names = [argument for name in ("fine", "bad", "dies") for argument in ("--gym-env", f"{name}:app")]
    reports = [
        argument for suffix in ("json", "md", "html", "sarif", "svg") for argument in ("--gym-report", f"r.{suffix}")
    ]
    run = _run(pytester, *names, *reports, "-k", "live or seed-answers or seed-reply", *workers)
    assert run.ret == pytest.ExitCode.TESTS_FAILED
    outcomes = _outcomes(Path("r.json"))
    assert outcomes["bad.app"] == "Not testable as it runs"
    assert outcomes["dies.app"] in ("Not fit to train on", "Not testable as it runs")
    assert outcomes["fine.app"] not in (outcomes["bad.app"], outcomes["dies.app"])
    run.stdout.fnmatch_lines(["dies.app *", "bad.app *", "fine.app *", "3 of 3 servers, *"])
    assert len(list(pytester.path.glob("started-*"))) == 3
    assert all(gone(int(path.read_text())) for path in pytester.path.glob("started-*"))
    assert {path.name for path in Path("r-servers").iterdir()} == {
        f"{name}.{suffix}" for name in outcomes for suffix in ("html", "svg")
    }
    assert "0 of 3 fit" in Path("r.svg").read_text()
    assert len(json.loads(Path("r.sarif").read_text())["runs"]) == 3
    assert r"bad\.app" in Path("r.md").read_text()


def test_node_ids_choose_among_many(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(one=_FINE, two=_FINE)
    many = ["--gym-env", "one:app", "--gym-env", "two:app", "-v"]
    run = _run(pytester, *many, "gym/two.app/live::live-root")
    run.assert_outcomes(passed=1)
    run.stdout.fnmatch_lines(["gym/two.app/live::live-root PASSED*"])
    assert "gym/one.app/live" not in _run(pytester, *many, "gym/two.app", "-k", "live").stdout.str()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_interrupted(pytester: pytest.Pytester, number: signal.Signals) -> None:
    """It is stopped while the server hangs in a check; nothing is left of either, nor of the log."""
    hangs = dedent(
        """
        import asyncio, os
        open("guard", "w").write(str(os.getppid()))
        open("pid", "w").write(str(os.getpid()))
        inner = app
        async def app(scope, receive, send):
            if scope.get("path") == "/seed_session":
                open("hanging", "w").write("1")
                await asyncio.sleep(600)
            await inner(scope, receive, send)
        """
    )
    pytester.makepyfile(hangs=_FINE + hangs)
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--gym-env", "hangs:app"]
    environment = os.environ | {"TMPDIR": str(temporary := pytester.mkdir("temporary"))}
    run = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment)
    try:
        server = written(pytester.path / "pid")
        written(pytester.path / "hanging")
        assert [*temporary.glob("gym-conformance-*")]
        run.send_signal(number)
        run.wait(30)
        assert gone(server)
        assert gone(written(pytester.path / "guard"))
        assert not [*temporary.glob("gym-conformance-*")]
    finally:
        run.kill()
        run.wait()


def test_a_check_that_kills_its_worker_costs_its_own_target_alone(pytester: pytest.Pytester) -> None:
    """Its server ends with it, what is left is done by another; a target that kills again is left."""
    started = """
        import os
        open(f"started-{os.getpid()}", "w").write(str(os.getpid()))
        """
    pytester.makepyfile(**dict.fromkeys(("once", "always", "fine"), _FINE + dedent(started)))
    pytester.makeconftest(
        """
        import os
        def pytest_runtest_logstart(nodeid):
            if nodeid.endswith("once.app/live::live-endpoints") or "always.app/live" in nodeid:
                if "PYTEST_XDIST_WORKER" in os.environ:
                    os._exit(1)
        """
    )
    envs = [argument for name in ("once", "always", "fine") for argument in ("--gym-env", f"{name}:app")]
    run = _run(pytester, *envs, "-n", "2", "-k", "live or seed-replies", "--gym-report", "r.json")
    assert run.ret == pytest.ExitCode.TESTS_FAILED
    assert run.stdout.str().count("replacing crashed worker") == 3
    run.stdout.fnmatch_lines(["always.app  not testable *", "fine.app  *", "3 of 3 servers, *"])
    assert _outcomes(Path("r.json"))["fine.app"] == "No MUST broken, judging by the checks that ran"
    servers = {server["name"]: server["report"] for server in json.loads(Path("r.json").read_text())["servers"]}
    found = {name: {f["check"]: f for f in report["findings"]} for name, report in servers.items()}
    assert found["once.app"]["seed-replies-object"]["verdict"] == "pass"
    assert found["once.app"]["live-endpoints"]["reason"].startswith("a worker that survives it: ")
    assert "live-root, live-endpoints killed theirs" in found["always.app"]["seed-replies-object"]["reason"]
    pids = [int(path.read_text()) for path in pytester.path.glob("started-*")]
    assert len(pids) >= 3
    assert all(gone(pid) for pid in pids)


def test_the_ini_file_names_it_too(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(fine=_FINE)
    pytester.makeini("[pytest]\ngym_env = fine:app\n")
    run = _run(pytester, "-k", "live-root")
    run.assert_outcomes(passed=1, deselected=run.parseoutcomes()["deselected"])
