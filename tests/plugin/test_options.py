"""Bad options: one line that says what, where and how to fix it, and exit code 4, before anything is judged."""

import pytest

from gym_conformance.checks.registry import CHECKS

pytest_plugins = ["pytester"]

_NOBODY = "http://127.0.0.1:1"


def test_a_server_elsewhere_is_not_surprised(pytester: pytest.Pytester) -> None:
    run = pytester.runpytest_inprocess("--collect-only", "--gym-url", "http://192.0.2.1:8000")
    run.stdout.fnmatch_lines(
        ["http://192.0.2.1:8000: not on this machine; expect about 500 requests, *, at most 4 at a time *"]
    )


def test_a_server_of_one_s_own_needs_no_warning(pytester: pytest.Pytester) -> None:
    run = pytester.runpytest_inprocess("--collect-only", "--gym-url", _NOBODY)
    run.stdout.no_fnmatch_line("*not on this machine*")


_FINE = ["--gym-env", "fine:app"]
_LAUNCHED = "it applies only to a server that is launched; give --gym-env DIR too"

BAD = {
    "unknown contract": (
        ["--gym-url", _NOBODY, "--gym-contract", "token"],
        "*--gym-contract 'token': unknown; give one of auto, cookie, typed",
    ),
    "unreachable": (
        ["--gym-url", _NOBODY],
        f"--gym-url {_NOBODY}: 127.0.0.1 port 1: connection refused; start the server*",
    ),
    "unreachable by name": (
        ["--gym-url", "http://localhost:1"],
        "*localhost port 1: connection refused; start the server*",
    ),
    "no such host": (
        ["--gym-url", "http://no-such-host.invalid"],
        "*no-such-host.invalid port 80: *; start the server, or fix the URL",
    ),
    "query": (
        ["--gym-url", _NOBODY + "/a?b=c"],
        "*it has a query or a fragment; give the URL to which /seed_session is appended",
    ),
    "empty query": (["--gym-url", _NOBODY + "/?"], "*it has a query or a fragment; *"),
    "fragment": (["--gym-url", _NOBODY + "#top"], "*it has a query or a fragment; *"),
    "unknown scheme": (
        ["--gym-url", "ftp://127.0.0.1"],
        "*not an http or https URL; give one such as http://127.0.0.1:8000",
    ),
    "no scheme": (["--gym-url", "127.0.0.1:8000"], "*not an http or https URL; *"),
    "no host": (["--gym-url", "http://"], "*not an http or https URL; *"),
    "white space": (["--gym-url", "http://exa mple"], "*not an http or https URL; *"),
    "control character": (["--gym-url", "http://a\x1b]0;b"], "*; give *"),
    "bad port": (["--gym-url", "http://127.0.0.1:99999"], "*99999*Port out of range*; give a URL such as *"),
    "open bracket": (["--gym-url", "http://[::1"], "*Invalid IPv6 URL; *"),
    "empty URL": (["--gym-url", ""], "--gym-url '': not an http or https URL; *"),
    "password": (
        ["--gym-url", "http://me:hunter2@127.0.0.1:99999"],
        "--gym-url: it contains a user name or password; give --gym-header *",
    ),
    "URL and demo": (["--gym-url", _NOBODY, "--gym-demo"], "*--gym-url and --gym-demo: give one of them"),
    "demo and data": (["--gym-demo", "--gym-data", "x.jsonl"], "--gym-data: --gym-demo has data of its own; *"),
    "nothing to judge": (
        ["--gym-data=x.jsonl"],
        "--gym-data: there is nothing to judge; give --gym-url URL, --gym-env DIR or --gym-demo too",
    ),
    "nothing to judge with": (["--gym-header", "A: hunter2"], "--gym-header: there is nothing to judge; *"),
    "report's suffix": (
        ["--gym-demo", "--gym-report", "a.pdf"],
        "--gym-report 'a.pdf': unknown suffix '.pdf'; give one of .json*",
    ),
    "no suffix": (["--gym-demo", "--gym-report", "json"], "--gym-report 'json': unknown suffix ''; *"),
    "report's folder": (
        ["--gym-demo", "--gym-report", "no/a.json"],
        "--gym-report 'no/a.json': its folder does not exist; make it first",
    ),
    "report is a folder": (
        ["--gym-demo", "--gym-report", "folder.json"],
        "--gym-report 'folder.json': that is a folder; give a file",
    ),
    "drift report's suffix": (
        ["--gym-demo", "--gym-drift", "a.sarif"],
        "--gym-drift 'a.sarif': unknown suffix '.sarif'; give one of .json, .md, .html",
    ),
    "no lock": (
        ["--gym-demo", "--gym-lock", "gym.lock"],
        "--gym-lock 'gym.lock': there is no such file; write it with --gym-lock-update",
    ),
    "a lock of no name": (
        ["--gym-demo", "--gym-lock", "x" * 5_000],
        "--gym-lock 'xxx*': there is no such file; write it with --gym-lock-update",
    ),
    "a new lock of no name": (
        ["--gym-demo", "--gym-lock", "x" * 5_000, "--gym-lock-update"],
        "--gym-lock: File name too long; give another file",
    ),
    "nowhere to lock": (["--gym-demo", "--gym-lock-update"], "--gym-lock-update: there is no lock to write; *"),
    "timeout is no number": (
        ["--gym-demo", "--gym-timeout", "soon"],
        "--gym-timeout 'soon': not a number; give seconds, such as 30",
    ),
    "timeout zero": (["--gym-demo", "--gym-timeout", "0"], "--gym-timeout '0': out of range; *"),
    "timeout negative": (["--gym-demo", "--gym-timeout=-1"], "--gym-timeout '-1': out of range; *"),
    "timeout NaN": (["--gym-demo", "--gym-timeout", "nan"], "--gym-timeout 'nan': out of range; *"),
    "timeout endless": (["--gym-demo", "--gym-timeout", "inf"], "--gym-timeout 'inf': out of range; *"),
    "header without colon": (["--gym-demo", "--gym-header", "hunter2"], "--gym-header: not of the form 'Name: value'*"),
    "header's name": (["--gym-demo", "--gym-header", "hunter2 x: y"], "--gym-header: not of the form 'Name: value'*"),
    "two lines": (["--gym-demo", "--gym-header", "A: hunter2\r\nB: c"], "--gym-header: not of the form 'Name: value'*"),
    "not ASCII": (["--gym-demo", "--gym-header", "A: hunter2\xe9"], "--gym-header: not of the form 'Name: value'*"),
    "URL without its value": (["--gym-url"], "--gym-url: its value is missing; give --gym-url URL"),
    "report without its value": (
        ["--gym-demo", "--gym-report", "a.json", "--gym-report", "--gym-strict"],
        "--gym-report: its value is missing; give --gym-report FILE",
    ),
    "no rows to check": (
        ["--gym-url", _NOBODY, "--gym-rows", "all"],
        "--gym-rows: there are no rows to check; give --gym-data PATH too",
    ),
    "no rows to answer": (
        ["--gym-url", _NOBODY, "--gym-oracle", "json:loads"],
        "--gym-oracle: there are no rows to answer; give --gym-data PATH too",
    ),
    "cookie": (
        ["--gym-demo", "--gym-header", "Cookie: hunter2"],
        "--gym-header Cookie: the suite sets this header itself; leave it out",
    ),
    "load from afar": (
        ["--gym-url=http://192.0.2.1:1", "--gym-load"],
        "--gym-load: the server is not on this machine, and *",
    ),
    "load no number": (["--gym-demo", "--gym-load=1,x"], "--gym-load 'x': give a whole number, 1 or more, *"),
    "load too large": (["--gym-demo", "--gym-load=99999"], "--gym-load '99999': more than 16,384; *"),
    "no load": (["--gym-demo", "--gym-load-anyway"], "--gym-load-anyway: there is no load; *"),
    "load of a launched env on Ray": (
        [*_FINE, "--gym-load", "--gym-ray=auto"],
        "--gym-load, --gym-ray and --gym-env: other nodes cannot reach an env that is launched; start it, and *",
    ),
    "installing nothing": (["--gym-demo", "--gym-install"], f"--gym-install: {_LAUNCHED}"),
    "release of nothing": ([*_FINE, "--gym-nemo", "0.4.0"], "--gym-nemo: nothing is installed; give --gym-install too"),
    "no release": (
        [*_FINE, "--gym-install", "--gym-nemo", "newest"],
        "--gym-nemo 'newest': not the number of a release; give one such as 0.7.0",
    ),
    "settings of nothing": (["--gym-demo", "--gym-env-set", "a=b"], f"--gym-env-set: {_LAUNCHED}"),
    "launching nothing": (["--gym-demo", "--gym-launch", "real"], f"--gym-launch: {_LAUNCHED}"),
    "an env of no name": (["--gym-env", "x" * 5_000], "--gym-env '*xxx*': File name too long; give another file"),
    "a folder for a baseline": (
        ["--gym-demo", "--gym-baseline-write", "folder.json"],
        "--gym-baseline-write 'folder.json': that is a folder; give a file",
    ),
    "workers of nothing": (["--gym-demo", "--gym-workers", "2"], f"--gym-workers: {_LAUNCHED}"),
    "no workers": ([*_FINE, "--gym-workers", "0"], "--gym-workers '0': give a whole number, 1 or more, *"),
    "many workers": ([*_FINE, "--gym-workers", "65"], "--gym-workers: more than 64; give fewer, since *"),
    "env and URL": ([*_FINE, "--gym-url", _NOBODY], "--gym-env, --gym-url and --gym-demo: give one of them"),
    "no Python": ([*_FINE, "--gym-python", "no-such-python"], "--gym-python 'no-such-python': no such program;*"),
    "no setting": ([*_FINE, "--gym-env-set", "key"], "--gym-env-set: not of the form key=value;*"),
    "no launch": ([*_FINE, "--gym-launch", "fast"], "--gym-launch 'fast': unknown; give one of direct, real"),
    "real launch of an app": (
        [*_FINE, "--gym-launch", "real"],
        "--gym-launch real: fine:app is not an env in NeMo Gym's layout; give its folder",
    ),
    "no launch timeout": ([*_FINE, "--gym-launch-timeout", "soon"], "--gym-launch-timeout 'soon': not a number;*"),
    "data of several envs": (
        [*_FINE, "--gym-env", "other:app", "--gym-data", "x.jsonl"],
        "--gym-data: this is about one server,*",
    ),
}


def _one_line(run: pytest.RunResult, said: str) -> None:
    lines = [line for line in run.errlines + run.outlines if line]
    assert len(lines) == 1, lines
    assert lines[0].startswith("ERROR: ")
    assert "hunter2" not in lines[0]
    assert "\x1b" not in lines[0]
    pytest.LineMatcher([lines[0].removeprefix("ERROR: ")]).fnmatch_lines([said.replace("[", "[[]")])
    assert run.ret == pytest.ExitCode.USAGE_ERROR


@pytest.mark.parametrize(("arguments", "said"), BAD.values(), ids=BAD)
def test_a_bad_option_is_one_line(pytester: pytest.Pytester, arguments: list[str], said: str) -> None:
    pytester.mkdir("folder.json")
    _one_line(pytester.runpytest_inprocess(*arguments), said)


@pytest.mark.parametrize("which", ["unreachable", "report's folder", "header's name"])
def test_with_xdist_too(pytester: pytest.Pytester, which: str) -> None:
    arguments, said = BAD[which]
    _one_line(pytester.runpytest_subprocess("-n", "2", *arguments, timeout=60), said)


def test_a_process_that_is_not_there_is_one_line(pytester: pytest.Pytester, gym: str) -> None:
    """Otherwise it would be found missing after minutes, by the check that measures it."""
    run = pytester.runpytest_inprocess("--gym-url", gym, "--gym-pid", "99999999")
    assert run.ret == pytest.ExitCode.USAGE_ERROR
    run.stderr.fnmatch_lines(["ERROR: --gym-pid 99999999: *not found*; give the process id of the server"])


def test_help_has_a_group_of_its_own(pytester: pytest.Pytester) -> None:
    run = pytester.runpytest_inprocess("--help")
    options = ["URL", "", "PATH", "", "FILE", "SECONDS", "'NAME: VALUE'"]
    names = ["url", "demo", "data", "strict", "report", "timeout", "header"]
    expected = [
        f"  --gym-{name}{f'=[[]{value}]' if value else ''}*" for name, value in zip(names, options, strict=True)
    ]
    run.stdout.fnmatch_lines(["gym conformance (judge a NeMo Gym resources server):", *expected])
    assert all(f"the same as --gym-{name}" in run.stdout.str() for name in names)


def test_each_is_an_ini_option_too(pytester: pytest.Pytester, gym: str) -> None:
    """Paths are relative to the ini file, wherever pytest is started."""
    pytester.makeini(
        f"""
        [pytest]
        gym_url = {gym}
        gym_data = data/rows.jsonl
        gym_strict = true
        gym_report = out.json
        gym_timeout = 20
        gym_header =
            X-One: first one
            X-Two: second one
        """
    )
    data = pytester.mkdir("data")
    data.joinpath("rows.jsonl").write_text('{"responses_create_params": {"input": "hi"}}\n')
    pytester.makepyfile("def test_own(): pass")
    inside = pytester.mkdir("inside")
    inside.joinpath("test_inside.py").write_text("def test_own(): pass")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(inside)
        run = pytester.runpytest_subprocess("-k", "live or test_own", timeout=60)
    run.assert_outcomes(passed=3, deselected=len(CHECKS) - 2)
    assert '"rows": 1' in pytester.path.joinpath("out.json").read_text()


@pytest.mark.parametrize(
    ("ini", "arguments"),
    [
        ("gym_url = http://127.0.0.1:1\ngym_data = no.jsonl", ["--gym-demo"]),
        ("gym_demo = true", ["--gym-url", "GYM"]),
        ("gym_demo = true", []),
    ],
)
def test_the_command_line_goes_before_the_ini_file(
    pytester: pytest.Pytester, gym: str, ini: str, arguments: list[str]
) -> None:
    pytester.path.joinpath("pytest.ini").write_text(f"[pytest]\n{ini}\n")
    arguments = [gym if argument == "GYM" else argument for argument in arguments]
    run = pytester.runpytest_inprocess(*arguments, "-k", "live-root")
    run.assert_outcomes(passed=1, deselected=len(CHECKS) - 1)
