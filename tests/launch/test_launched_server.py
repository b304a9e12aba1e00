"""Launched servers: how they start, why they do not, and that nothing of them is left."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from statistics import median
from textwrap import dedent

import httpx
import pytest

from gym_conformance.launch.env import Env
from gym_conformance.launch.guard import Log
from gym_conformance.launch.launched_server import LOG_LIMIT, LOG_LINES, LaunchedServer
from gym_conformance.launch.not_launched import NotLaunched
from gym_conformance.launch.reasons import raised, reason, unfinished
from gym_conformance.launch.specification import Launch
from tests.launch.drills import ANSWERING, NOBODY, alive, application, descriptors, gone, written


def _refused(folder: Path, source: str, deadline: float = 20.0) -> NotLaunched:
    with pytest.raises(NotLaunched) as refused, application(folder, source, deadline):
        pass
    return refused.value


def test_it_answers_and_ends(tmp_path: Path) -> None:
    before = descriptors()
    with application(tmp_path, "print('hello')") as server:
        assert httpx.get(server.url).json() == {}
        assert alive(server.pid)
        assert "hello" in server.log()
    assert gone(server.pid)
    assert server.log() == ()
    assert descriptors() == before


def test_replies_wait_for_no_acknowledgement(tmp_path: Path) -> None:
    """Nagle's delay costs 40 ms a reply, on a socket whose protocol asyncio does not know."""
    with application(tmp_path, "") as server, httpx.Client() as client:
        client.get(server.url)

        def usual() -> float:
            seconds = []
            for _ in range(21):
                start = time.perf_counter()
                client.get(server.url)
                seconds.append(time.perf_counter() - start)
            return median(seconds)

        # the delay is there each time, and a busy machine is not
        assert any(usual() < 0.035 for _again in range(10))


@pytest.mark.parametrize(
    ("source", "needs"),
    [
        ("import no_such_module_here", "the module no_such_module_here: "),
        ("from .core import grade", "an entry point that imports by whole names: NeMo Gym runs it as a script"),
        ("import os; os.environ['NO_SUCH_VARIABLE']", "the environment variable NO_SUCH_VARIABLE"),
        ("open('weights.bin')", "the file weights.bin"),
        ("import sys; sys.exit('bye')", "an app.py that does not exit (bye)"),
        ("raise RuntimeError('no luck')", "to start: RuntimeError: no luck (drill.py, line 1)"),
        (
            "import json\njson.loads('')",
            "to start: JSONDecodeError: Expecting value: line 1 column 1 (char 0) (drill.py, line 2)",
        ),
        ("import sys; sys.path.insert(0, '/else')\n{}['b']", "to start: KeyError: 'b' (drill.py, line 2)"),
        ("import os; assert os.environ['SHOP_TOKEN'] == 'mine'", "the environment variable SHOP_TOKEN"),
        ("raise ConnectionRefusedError(111, 'Connection refused')", "the network, or the files that it would"),
        ("import os; os.kill(os.getpid(), 9)", "to start: it ended by SIGKILL"),
        ("import os; os._exit(3)", "to start: it ended with status 3"),
        ("class Mute(Exception): __str__ = None\nraise Mute", "to start: Mute: <exception str() failed> (drill.py"),
    ],
)
def test_why_it_does_not_start(tmp_path: Path, source: str, needs: str) -> None:
    assert _refused(tmp_path, source).needs.startswith(needs)


@pytest.mark.parametrize(
    ("printed", "needs"),
    [
        ("ModuleNotFoundError: No module named 'aviary'", "the module aviary: python -m pip install aviary"),
        ("(env) FileNotFoundError: [Errno 2] No such file or directory: 'a/b'", "the file a/b"),
        ("omegaconf.errors.InterpolationKeyError: Interpolation key 'size' not found", "the config key size: "),
        ("requests.exceptions.ConnectionError: no route", "the network, or the files that it would"),
        ("RuntimeError: no luck", "to start: RuntimeError: no luck"),
        ("Exception: The current node timed out", "to start: Exception: The current node timed out"),
    ],
)
def test_why_a_process_of_its_own_does_not_start_is_read_from_its_log(tmp_path: Path, printed: str, needs: str) -> None:
    failure = raised(["Traceback (most recent call last):", printed, "Shutting down Ray cluster"])
    assert failure is not None
    assert reason(failure, Env("env", tmp_path), "python").startswith(needs)
    assert raised(["Traceback (most recent call last):", "INFO: see https://a: b"]) is None


@pytest.mark.parametrize(
    ("kind", "message", "file", "needs"),
    [
        (
            "ModuleNotFoundError",
            "omegaconf",
            "",
            "nemo-gym where the server runs: python -m pip install nemo-gym, or --gym-python",
        ),
        (
            "ModuleNotFoundError",
            "nemo_gym",
            "pyproject.toml",
            "nemo-gym where the server runs: python -m pip install nemo-gym, or --gym-install",
        ),
        (
            "ModuleNotFoundError",
            "shop.goods",
            "pyproject.toml",
            "the module shop.goods: --gym-install, with its pyproject.toml asking for what brings it",
        ),
        (
            "CalledProcessError",
            "Command '['git', 'clone', 'https://a.org/b']' returned 128.",
            "",
            "the network, or the files that it would download: ",
        ),
        ("CalledProcessError", "Command '['make']' returned 2.", "", "to start: CalledProcessError: "),
        (
            "InterpolationResolutionError",
            "KeyError raised while resolving interpolation: \"Environment variable 'SHOP_HOME' not found\"\n    full_key: a",
            "",
            "the environment variable SHOP_HOME",
        ),
    ],
)
def test_what_brings_it_is_named(tmp_path: Path, kind: str, message: str, file: str, needs: str) -> None:
    if file:
        (tmp_path / file).touch()
    failure = {"type": kind, "bases": [kind], "message": message, "name": message, "file": ""}
    assert reason(failure, Env("env", tmp_path), "python").startswith(needs)


def test_credentials_that_it_reads_from_its_environment_are_made_up(tmp_path: Path) -> None:
    """One after another, as they are missed, and by whatever error."""
    source = """
        import os
        key = os.environ["SHOP_API_KEY"]
        if not os.getenv("SHOP_SEARCH_TOKEN"):
            raise ValueError("give api_token, or set SHOP_SEARCH_TOKEN")
    """
    with application(tmp_path, source) as server:
        assert httpx.get(server.url).json() == {}
        assert server.made_up == ("$SHOP_API_KEY", "$SHOP_SEARCH_TOKEN")


def test_it_finds_uv_as_where_gym_env_start_runs_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some servers make an environment of their own to score in."""
    monkeypatch.setenv("PATH", str(tmp_path))
    with application(tmp_path, "import shutil; print(shutil.which('uv'))") as server:
        assert server.log()[0].endswith("/uv")


def test_a_package_in_its_src_folder_is_found(tmp_path: Path) -> None:
    """An install would bring it; it need not be installed."""
    package = tmp_path / "src" / "launched_goods"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("PRICE = 7")
    with application(tmp_path, "import launched_goods; print('price', launched_goods.PRICE)") as server:
        assert "price 7" in server.log()
    (tmp_path / "src" / "__init__.py").touch()
    assert Env("env", tmp_path).sources == ()


def test_data_that_a_library_wants_downloaded_is_named(tmp_path: Path) -> None:
    said = "\n****\n  Resource wordnet not found.\n  Please use the NLTK Downloader to obtain the resource:\n****\n"
    failure = {"type": "LookupError", "bases": ["LookupError"], "message": said, "name": "", "file": ""}
    needs = "the network, or the files that it would download: LookupError: Resource wordnet not found."
    assert reason(failure, Env("env", tmp_path), "python") == needs


@pytest.mark.parametrize(
    ("code", "why"),
    [
        ("x = 1", "drill has no attribute app"),
        ("app = 1", "drill:app is a int of builtins; start it yourself, and give its address with --gym-url"),
        ("def app(): ...", "drill:app is a NoneType of builtins; start it yourself"),
        ("def app(one): ...", "drill:app is a function; start it yourself"),
    ],
)
def test_an_application_that_is_not_there(tmp_path: Path, code: str, why: str) -> None:
    server = application(tmp_path, "")
    (tmp_path / "drill.py").write_text(code)
    with pytest.raises(NotLaunched, match=why), server:
        pass


@pytest.mark.parametrize(
    "code",
    [
        f"def app():\n    {ANSWERING.lstrip()}\n    return app",
        "def app(environ, start):\n    start('200 OK', [('Content-Length', '2')])\n    return [b'{}']",
        "class Shop:\n    def __call__(self, environ, start):\n        start('200 OK', [])\n        return [b'{}']\ndef app():\n    return Shop()",
    ],
    ids=["factory", "wsgi", "wsgi-factory"],
)
def test_applications_of_other_kinds_are_served_as_uvicorn_does(tmp_path: Path, code: str) -> None:
    (tmp_path / "here.txt").touch()
    server = application(tmp_path, "")
    (tmp_path / "drill.py").write_text(f"open('here.txt')\n{code}")
    with server:
        assert httpx.get(server.url).json() == {}


def test_why_its_own_start_up_ends_is_read_from_its_log(tmp_path: Path) -> None:
    """Uvicorn prints the exception and exits with 3, which says nothing."""
    (tmp_path / "drill.py").write_text(
        dedent("""
        from contextlib import asynccontextmanager
        from starlette.applications import Starlette
        @asynccontextmanager
        async def life(app):
            raise ConnectionError("Error -2 connecting to redis:6379. Name or service not known.")
            yield
        app = Starlette(lifespan=life)
        """)
    )
    with pytest.raises(NotLaunched) as refused:
        LaunchedServer(Launch(Env("drill", tmp_path, "drill:app"), NOBODY)).start()
    assert refused.value.needs.startswith(
        "the network, or the files that it would download: ConnectionError: Error -2 con"
    )


def test_a_credential_that_its_own_start_up_wants_is_made_up(tmp_path: Path) -> None:
    """It is named in what uvicorn printed of the exception."""
    (tmp_path / "drill.py").write_text(
        dedent("""
        import os
        from contextlib import asynccontextmanager
        from starlette.applications import Starlette
        @asynccontextmanager
        async def life(app):
            if not os.environ.get("DRILL_API_TOKEN"):
                raise RuntimeError("DRILL_API_TOKEN must be set")
            yield
        app = Starlette(lifespan=life)
        """)
    )
    with LaunchedServer(Launch(Env("drill", tmp_path, "drill:app"), NOBODY)) as server:
        assert server.made_up == ("$DRILL_API_TOKEN",)


def test_it_never_binds(tmp_path: Path) -> None:
    """It costs its own deadline, and is gone after it."""
    start = time.monotonic()
    refused = _refused(tmp_path, "import time, os; print('I am', os.getpid()); time.sleep(600)", deadline=2.0)
    assert refused.needs == "to start within 2 s (--gym-launch-timeout)"
    assert time.monotonic() - start < 60
    [said] = [line for line in refused.log if line.startswith("I am")]
    assert not alive(int(said.split()[-1]))


def test_a_start_up_that_does_not_end_is_told_with_what_it_is_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It listens by then, and answers nobody: some load much, or wait for another service."""
    said = ("INFO:     Waiting for application startup.", "loading the index")
    with application(tmp_path, "") as server:
        monkeypatch.setattr(server, "log", lambda *_: said)
        needs = server.refused("no answer").needs
    limit = "within 20 s, or longer with --gym-launch-timeout"
    assert needs == f"a start-up that ends {limit}: it is still at 'loading the index'"


def test_a_start_up_that_is_over_is_not_blamed() -> None:
    said = ["INFO:     Waiting for application startup.", "loading", "INFO:     Application startup complete."]
    assert (unfinished(said), unfinished(said[:2]), unfinished(["loading"])) == ("", "loading", "")


def test_what_it_prints_is_bounded_and_safe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_API_KEY", "hunter2hunter2")
    source = """
        import sys, os
        for _ in range(100):
            sys.stdout.write("x" * 999_999 + "\\n")
        print("\\x1b[31m" + os.environ["MY_API_KEY"])
    """
    with application(tmp_path, source, deadline=60.0) as server:
        folder = server.log_folder
        assert folder is not None
        assert sum(file.stat().st_size for file in folder.iterdir()) <= LOG_LIMIT + 65536
        log = server.log()
    assert len(log) <= LOG_LINES
    assert not any("hunter2" in line or "\x1b" in line for line in log)
    assert "\\x1b[31m[redacted]" in log[-1] or any("[redacted]" in line for line in log)


def test_what_its_dot_env_holds_is_shown_nowhere(tmp_path: Path) -> None:
    """It is loaded by the server itself, and in no environment of ours."""
    (tmp_path / ".env").write_text(
        "export SHOP_API_KEY='hunter2hunter2'  # mine\nSHOP_TOKEN=hunter3hunter3\nSHOP_SIZE=12\n"
    )
    source = "print('it is hunter2hunter2')\nraise RuntimeError('401 for hunter3hunter3')"
    refused = _refused(tmp_path, source)
    assert refused.needs == "to start: RuntimeError: 401 for [redacted] (drill.py, line 2)"
    assert "hunter" not in "".join(refused.log)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no disk that is full")
def test_a_disk_without_room_for_its_log_does_not_end_it() -> None:
    """The guard died of it, and the server with it: a crash of the server's, as it seemed."""
    log = Log(Path("/dev/full"), 100)
    for _ in range(3):
        log.write(b"x" * 40)
    log.file.close()


def test_whoever_listens_hears_only_what_comes_after(tmp_path: Path) -> None:
    """Also where the file that was current then is the older one now, or is gone."""
    with application(tmp_path, "") as server:
        folder = server.log_folder
        assert folder is not None
        log = folder / "log"
        end = time.monotonic() + 20
        while "startup complete" not in log.read_text() and time.monotonic() < end:
            time.sleep(0.02)  # what it still has to say would come in between
        log.write_text("one\n")
        after_one = server.listen()
        log.write_text("one\ntwo\n")
        assert after_one() == ("two",)
        log.replace(folder / "log.before")
        log.write_text("three\n")
        assert after_one() == ("two", "three")
        after_three = server.listen()
        log.replace(folder / "log.before")
        log.write_text("four\n")
        assert after_three() == ("four",)
        assert server.log() == ("three", "four")
    assert after_one() == server.listen()() == ()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux gives us the children of the dead")
def test_children_that_ignore_every_signal_end_too(tmp_path: Path) -> None:
    """One in the group that ignores SIGTERM, as the server does itself; one that left for a session of its own."""
    source = f"""
        import os, signal, time
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        if os.fork() == 0:
            open({str(tmp_path / "first")!r}, "w").write(str(os.getpid()))
            time.sleep(600)
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                open({str(tmp_path / "second")!r}, "w").write(str(os.getpid()))
                time.sleep(600)
            os._exit(0)
    """
    with application(tmp_path, source) as server:
        children = [written(tmp_path / name) for name in ("first", "second")]
        assert all(map(alive, children))
    assert not alive(server.pid)
    assert not any(map(alive, children))


_PARENT = """
    import sys, time
    from pathlib import Path
    from tests.launch.drills import application
    server = application(Path(sys.argv[1]), "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)").start()
    Path(sys.argv[1], "pid").write_text(str(server.pid))
    time.sleep(600)
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_it_ends_with_us(tmp_path: Path, number: signal.Signals) -> None:
    """Whatever ends us, and though the server ignores SIGTERM."""
    root = Path(__file__).parents[2]
    parent = subprocess.Popen(
        [sys.executable, "-c", dedent(_PARENT), str(tmp_path)], cwd=root, stderr=subprocess.DEVNULL
    )
    try:
        server = written(tmp_path / "pid")
        parent.send_signal(number)
        parent.wait(10)
        assert gone(server)
    finally:
        parent.kill()
        parent.wait()


@pytest.mark.skipif(sys.platform != "linux", reason="PR_SET_PDEATHSIG is Linux's")
def test_it_ends_with_its_guard(tmp_path: Path) -> None:
    with application(tmp_path, "") as server:
        os.kill(os.getpgid(server.pid), signal.SIGKILL)
        assert gone(server.pid)


def test_an_interpreter_that_does_not_run(tmp_path: Path) -> None:
    server = application(tmp_path, ANSWERING)
    object.__setattr__(server.launch, "python", str(tmp_path / "python"))
    with pytest.raises(NotLaunched, match="a working interpreter"), server:
        pass
