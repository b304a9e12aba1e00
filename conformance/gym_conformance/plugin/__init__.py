"""The pytest plugin's thin skin: options and markers.

Every pytest run on the user's machine loads this module, so it imports nothing but pytest; all else is loaded when an
option asks for it.
"""

import pytest

_LEVELS = {
    "must": "a rule that fails the run when it is violated",
    "should": "a rule that warns (and fails the run with --gym-strict)",
    "may": "a rule that informs",
}


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options, each an ini option of the same name with underscores."""
    group = parser.getgroup("gym", "gym conformance (judge a NeMo Gym resources server)")
    group.addoption("--gym-url", metavar="URL", help="the server to judge, such as http://127.0.0.1:8000")
    group.addoption("--gym-demo", action="store_true", help="judge an embedded reference server instead")
    group.addoption(
        "--gym-env",
        metavar="DIR",
        action="append",
        help="launch an env and judge it: its folder, a quoted glob, or module:attribute of an ASGI app (repeatable)",
    )
    group.addoption(
        "--gym-python", metavar="PATH", help="the interpreter to launch with (default: its .venv's, or ours)"
    )
    group.addoption(
        "--gym-env-set",
        metavar="KEY=VALUE",
        action="append",
        help="set a key of its config, as `gym env start ++KEY=VALUE` does (repeatable)",
    )
    group.addoption(
        "--gym-launch",
        metavar="HOW",
        help="direct (default: we serve its app, without Ray) or real (its own process, as NeMo Gym starts it)",
    )
    group.addoption(
        "--gym-launch-timeout", metavar="SECONDS", help="how long a launched server may take to answer (default: 120)"
    )
    group.addoption(
        "--gym-ray", metavar="ADDRESS", help="judge envs as tasks of this Ray cluster, such as 10.0.0.1:6379 or auto"
    )
    group.addoption(
        "--gym-resume",
        action="store_true",
        help="of several servers, judge only those that the last run did not finish",
    )
    group.addoption(
        "--gym-data",
        metavar="PATH",
        action="append",
        # pytest takes the value for a test path where it looks for the ini file: it does not know the option by then
        help="dataset rows: a JSONL file or a folder of them; recorded rollouts beside it are read too (repeatable; "
        "write --gym-data=PATH for a file of another project, or pytest takes that project's settings)",
    )
    group.addoption("--gym-strict", action="store_true", help="SHOULD findings fail the run too")
    group.addoption(
        "--gym-report",
        metavar="FILE",
        action="append",
        help="write a report; the suffix decides its form: .json, .md, .html, .sarif, .svg or .xml (repeatable)",
    )
    group.addoption("--gym-timeout", metavar="SECONDS", help="how long one request may take (default: 30)")
    group.addoption(
        "--gym-header",
        metavar="'NAME: VALUE'",
        action="append",
        help="a header for every request; its value is never shown (repeatable)",
    )
    group.addoption(
        "--gym-contract",
        metavar="NAME",
        help="how sessions are made: cookie, typed, or auto (default), as the server's OpenAPI document says",
    )
    group.addoption(
        "--gym-profile",
        metavar="NAME",
        help="how many trajectories to try: smoke, quick (default), ci (the same ones each time), or thorough",
    )
    group.addoption("--gym-seed", metavar="N", help="try the same trajectories each time, those of this seed")
    group.addoption(
        "--gym-replay",
        metavar="FILE",
        action="append",
        help="try only the schedule in this file, which a failing property wrote (repeatable)",
    )
    group.addoption("--gym-pid", metavar="PID", help="the server's process on this machine: see what it keeps")
    group.addoption(
        "--gym-in-flight", metavar="N", help="requests under way at once (default: 256, 4 for another machine)"
    )
    group.addoption("--gym-baseline", metavar="FILE", help="findings that are accepted, with reasons (TOML)")
    group.addoption("--gym-baseline-write", metavar="FILE", help="write what fails the run as a first baseline")
    group.addoption(
        "--gym-drift",
        metavar="FILE",
        action="append",
        help="write the drift report alone: what rows and server say of each tool; .json, .md or .html (repeatable)",
    )
    group.addoption("--gym-lock", metavar="FILE", help="hold the tools of rows and server to this lock file")
    group.addoption("--gym-lock-update", action="store_true", help="write the lock file anew")
    parser.addini("gym_url", "the same as --gym-url")
    parser.addini("gym_demo", "the same as --gym-demo", type="bool", default=False)
    parser.addini("gym_env", "the same as --gym-env, one a line", type="linelist")
    parser.addini("gym_python", "the same as --gym-python")
    parser.addini("gym_env_set", "the same as --gym-env-set, one a line", type="linelist")
    parser.addini("gym_launch", "the same as --gym-launch")
    parser.addini("gym_launch_timeout", "the same as --gym-launch-timeout")
    parser.addini("gym_data", "the same as --gym-data, one PATH a line", type="paths")
    parser.addini("gym_strict", "the same as --gym-strict", type="bool", default=False)
    parser.addini("gym_report", "the same as --gym-report, one FILE a line", type="paths")
    parser.addini("gym_timeout", "the same as --gym-timeout")
    parser.addini("gym_contract", "the same as --gym-contract")
    parser.addini("gym_profile", "the same as --gym-profile")
    parser.addini("gym_seed", "the same as --gym-seed")
    parser.addini("gym_replay", "the same as --gym-replay, one FILE a line", type="paths")
    parser.addini("gym_pid", "the same as --gym-pid")
    parser.addini("gym_in_flight", "the same as --gym-in-flight")
    parser.addini("gym_header", "the same as --gym-header, one a line", type="linelist")
    parser.addini("gym_baseline", "the same as --gym-baseline", type="paths")
    parser.addini("gym_drift", "the same as --gym-drift, one FILE a line", type="paths")
    parser.addini("gym_lock", "the same as --gym-lock", type="paths")
    parser.addini(
        "gym_github", "under GitHub Actions, annotate and write the step's summary", type="bool", default=True
    )


def pytest_configure(config: pytest.Config) -> None:
    """Register the level markers, and the suite itself where an option asks for it."""
    for level, meaning in _LEVELS.items():
        config.addinivalue_line("markers", f"{level}: {meaning} (gym-conformance)")
    option = config.option
    if (
        option.gym_url is not None
        or option.gym_env
        or option.gym_demo
        or any(config.getini(name) for name in ("gym_url", "gym_env", "gym_demo"))
    ):
        from gym_conformance.plugin.hooks import activate  # noqa: PLC0415 - heavy, and only needed here

        activate(config)
    elif given := [arg for arg in config.invocation_params.args if str(arg).startswith("--gym-")]:
        name = str(given[0]).partition("=")[0]
        raise pytest.UsageError(
            f"{name}: there is nothing to judge; give --gym-url URL, --gym-env DIR or --gym-demo too"
        )
