"""Servers that are ended in the midst of their sessions and started again, and second processes beside them."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from gym_conformance.checks.isolation.earlier import isolation_earlier
from gym_conformance.checks.launched.restart import restart_session
from gym_conformance.checks.reward.repeat import repeat_recorded
from gym_conformance.findings import Cause, Finding, Verdict
from gym_conformance.launch.env import Env
from gym_conformance.launch.launched_server import LaunchedServer
from gym_conformance.launch.specification import Launch
from gym_conformance.options import Options
from gym_conformance.plugin.launched_target import Relaunching
from gym_conformance.plugin.target_run import Run
from gym_conformance.trajectories.profiles import PROFILES, Profile
from gym_conformance.trials.launched import Launched
from tests.launch.drills import NOBODY, alive, application, gone
from tests.twins.twin import dataset

_CI = PROFILES["ci"]

_IMPORTS = """
import pickle
from pathlib import Path
from gym_mocks.reference import ReferenceServer
from gym_mocks.wire import HttpRefusal
"""

#: An id that it does not know starts empty, as nemo-gym's own servers do it.
_FORGETS = """
app = ReferenceServer()
"""

_KEEPS_IN_FILES = """
from dataclasses import replace

class Kept(dict):
    def get(self, key):
        path = Path(f"{key}.session")
        return pickle.loads(path.read_bytes()) if path.exists() else None

    def put(self, key, session):
        Path(f"{key}.session").write_bytes(pickle.dumps(session))
        return session

class Keeps(ReferenceServer):
    def __init__(self):
        super().__init__()
        self.sessions = Kept()
        self.cookie = replace(self.cookie, key="the same in each process")

    async def call(self, session_id, tool, arguments):
        session = self.sessions.get(session_id)
        result = await tool.call(session.state, arguments)
        self.sessions.put(session_id, session)
        return result

app = Keeps()
"""

_REFUSES = """
class Refuses(ReferenceServer):
    async def call(self, session_id, *rest):
        self.known(session_id)
        return await super().call(session_id, *rest)

    async def score(self, session_id, *rest):
        self.known(session_id)
        return await super().score(session_id, *rest)

    def known(self, session_id):
        if self.sessions.get(session_id) is None:
            raise HttpRefusal(404, f"the session {session_id} is lost")

app = Refuses()
"""

#: As NeMo Gym's main documents it: 404 to a tool, and a masked sample to verify.
_MASKS = """
from dataclasses import replace
import json

class Masks(ReferenceServer):
    async def call(self, session_id, *rest):
        if self.sessions.get(session_id) is None:
            raise HttpRefusal(404, "resources session lost")
        return await super().call(session_id, *rest)

    async def dispatch(self, request):
        known = self.sessions.get(self.cookie.read(request.headers.get("cookie", "")) or "")
        reply = await super().dispatch(request)
        if request.path != "/verify" or reply.status != 200 or known is not None:
            return reply
        said = json.loads(reply.body) | {"reward": 0.0, "mask_sample": True}
        return replace(reply, body=json.dumps(said).encode())

app = Masks()
"""

#: No tools: what it scores stands in the session since the seed, and verify looks only there.
_GRADES = """
from gym_mocks.resources import ResourcesServer

def verify(state, row, response):
    return float(state.get("seeded", 0.0))

class Grades(ResourcesServer):
    async def seed(self, session_id, row):
        said = await super().seed(session_id, row)
        self.sessions.get(session_id).state["seeded"] = 0.75
        return said

app = Grades("grades", verify=verify)
"""

_CRASHES = """
class Crashes(ReferenceServer):
    async def call(self, session_id, *rest):
        self.sessions.get(session_id).state
        return await super().call(session_id, *rest)

app = Crashes()
"""

#: Refuses a tool's call, and then scores what it has: nothing.
_SCORES_ALL_THE_SAME = """
class Scores(ReferenceServer):
    async def call(self, session_id, *rest):
        if self.sessions.get(session_id) is None:
            raise HttpRefusal(404, "no such session")
        return await super().call(session_id, *rest)

app = Scores()
"""

#: The first sessions leave something behind for good, before anything can be compared with what was before them.
_LATCHES = """
class Latches(ReferenceServer):
    seen = 0

    async def dispatch(self, request):
        reply = await super().dispatch(request)
        if request.path == "/count_stock" and reply.status == 200 and Latches.seen > 5:
            from dataclasses import replace
            return replace(reply, body=b'{"quantity": 77}')
        Latches.seen += request.path == "/count_stock"
        return reply

app = Latches()
"""


#: The first move is seen in no read and no reward, but in every reply of another tool from then on.
_MOVED = """
class Moved(ReferenceServer):
    moved = False

    async def call(self, session_id, tool, arguments):
        said = await super().call(session_id, tool, arguments)
        Moved.moved |= tool.name == "move_stock"
        return {**said, "moved": True} if Moved.moved and tool.name == "add_stock" else said

app = Moved()
"""


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a server writes, it writes where it was launched."""
    monkeypatch.chdir(tmp_path)


@contextmanager
def _launched(folder: Path, source: str, profile: Profile) -> Iterator[Run]:
    (folder / "drill.py").write_text(_IMPORTS + source)
    with LaunchedServer(Launch(Env("drill", folder, "drill:app"), NOBODY, deadline=60.0)) as server:
        options = Options(url=server.url, profile=profile)
        with Run(server.url, options, dataset(), launched=Launched(relaunch=Relaunching(server, options))) as run:
            yield run


def _judge(folder: Path, source: str, profile: Profile = _CI) -> Finding:
    with _launched(folder, source, profile) as run:
        [finding] = run.judge(restart_session)
    return finding


@pytest.mark.parametrize(
    ("source", "actual"),
    [
        (_FORGETS, "in a session that was open when the process ended"),
        (_CRASHES, "status 500, in a session that was open"),
        (_SCORES_ALL_THE_SAME, "0.0, in a session that was open"),
        (_GRADES, "0.0, in a session that was open"),
    ],
)
def test_what_becomes_of_open_sessions_is_told(tmp_path: Path, source: str, actual: str) -> None:
    finding = _judge(tmp_path, source)
    assert finding.verdict is Verdict.FAIL, finding
    assert actual in finding.actual
    assert "4xx" in finding.expected
    assert finding.reproduce


@pytest.mark.parametrize(
    ("source", "note"),
    [
        (_KEEPS_IN_FILES, "it goes on with its sessions"),
        (_REFUSES, "it refuses the sessions that it has lost"),
        (_MASKS, "it refuses the sessions that it has lost"),
    ],
)
def test_who_goes_on_or_says_so_passes(tmp_path: Path, source: str, note: str) -> None:
    finding = _judge(tmp_path, source)
    assert (finding.verdict, finding.reason) == (Verdict.PASS, note), finding


def test_a_short_profile_starts_nothing_again(tmp_path: Path) -> None:
    finding = _judge(tmp_path, _FORGETS, PROFILES["quick"])
    assert finding.verdict is Verdict.NOT_APPLICABLE
    assert finding.not_examined
    assert "--gym-profile ci" in finding.reason


def test_a_server_that_does_not_start_twice_is_untestable(tmp_path: Path) -> None:
    once = "import os\nos.open('only-once', os.O_CREAT | os.O_EXCL)\n"
    finding = _judge(tmp_path, once + _FORGETS)
    assert finding.verdict is Verdict.UNTESTABLE
    assert "to start a second time: it needs " in finding.reason


def test_the_address_stays_and_nothing_is_left(tmp_path: Path) -> None:
    with application(tmp_path, "") as server, httpx.Client() as client:
        url, first = server.url, server.pid
        assert client.get(url).status_code == 200
        server.restart()
        assert (server.url, alive(first)) == (url, False)
        assert httpx.get(url).status_code == 200
        second = server.pid
        with server.another() as beside:
            assert beside.url != url
            assert httpx.get(beside.url).status_code == 200
        assert gone(beside.pid)
    assert gone(second)


def test_a_fresh_process_tells_a_leak_from_a_stale_record(tmp_path: Path) -> None:
    """The record held only before others came."""
    with _launched(tmp_path, _LATCHES, PROFILES["quick"]) as run:
        run.judge(isolation_earlier)
        found = [one for one in run.judge(repeat_recorded) if one.verdict is Verdict.FAIL]
    assert found
    assert {one.cause for one in found} == {Cause.OUTLIVING_STATE}


def test_a_fresh_process_shows_what_the_first_sessions_changed_for_good(tmp_path: Path) -> None:
    with _launched(tmp_path, _MOVED, _CI) as run:
        [finding] = run.judge(isolation_earlier)
    assert finding.verdict is Verdict.FAIL
    assert finding.cause is Cause.OUTLIVING_STATE


def test_a_fresh_process_shows_nothing_of_a_sound_server(tmp_path: Path) -> None:
    with _launched(tmp_path, _FORGETS, _CI) as run:
        [finding] = run.judge(isolation_earlier)
    assert finding.verdict is Verdict.PASS
    assert finding.reason.endswith("more on a process started for it")
