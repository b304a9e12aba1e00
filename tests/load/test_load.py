"""`--gym-load`: what many episodes at once do to a reward is told; what they only slow down is not."""

import asyncio
import json
import time
from importlib.resources import files
from pathlib import Path
from random import random
from types import SimpleNamespace
from typing import Any

import jsonschema_rs
import pytest

from gym_conformance.checks.registry import CHECKS, LAUNCHED, LOAD
from gym_conformance.checks.server.load import load_abandoned, load_answers, load_episode, load_pathological
from gym_conformance.findings import EndpointLoad, Finding, LoadLevel, Verdict
from gym_conformance.reports.load_curve import held, knee, sentence, text_lines
from gym_conformance.trajectories.in_flight import Driver
from gym_conformance.trajectories.profiles import PROFILES
from gym_conformance.trials.check import Check
from gym_mocks.reference import ReferenceServer
from gym_mocks.resources import Score, TaskRow
from gym_mocks.wire import HttpRefusal
from tests.twins.judging import running
from tests.twins.twin import Json

pytest_plugins = ["pytester"]


class Racing(ReferenceServer):
    """What is being scored stands in an attribute of the server, while something is waited for."""

    async def score(self, session_id: str, row: TaskRow, response: Json) -> Score:
        self.scoring = session_id
        await asyncio.sleep(0.02)
        return await super().score(self.scoring, row, response)


class CachesByContent(ReferenceServer):
    """Where several are scored at once, each gets what another rollout of its row got."""

    scoring = 0

    def __init__(self) -> None:
        super().__init__()
        self.scored: dict[str, Score] = {}

    async def score(self, session_id: str, row: TaskRow, response: Json) -> Score:
        self.scoring += 1
        await asyncio.sleep(0.02)
        own = await super().score(session_id, row, response)
        self.scoring -= 1
        key = str(row.model_dump().get("expected_answer"))
        last = self.scored.get(key, own)
        self.scored[key] = own
        return last if self.scoring else own


class TimesOutAsZero(ReferenceServer):
    """One scorer, for which nobody waits longer than a moment: whoever did earns nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.scorer = asyncio.Semaphore(1)

    async def score(self, session_id: str, row: TaskRow, response: Json) -> Score:
        try:
            async with asyncio.timeout(0.02):
                await self.scorer.acquire()
        except TimeoutError:
            return Score(0.0)
        try:
            await asyncio.sleep(0.02)
            return await super().score(session_id, row, response)
        finally:
            self.scorer.release()


class Sheds(ReferenceServer):
    """No more than two calls at once."""

    calls = 0

    async def call(self, *rest: Any) -> Any:
        self.calls += 1
        try:
            if self.calls > 2:
                raise HttpRefusal(503, "busy")
            await asyncio.sleep(0.01)
            return await super().call(*rest)
        finally:
            self.calls -= 1


class Evicts(ReferenceServer):
    """Keeps the four sessions that were seeded last."""

    async def seed(self, session_id: str, row: Json) -> Json:
        said = await super().seed(session_id, row)
        kept: dict[str, Any] = self.sessions._sessions  # noqa: SLF001
        while len(kept) > 4:
            del kept[next(iter(kept))]
        return said


class Queues(ReferenceServer):
    """One scorer that everybody waits for: slow, and right."""

    def __init__(self) -> None:
        super().__init__()
        self.scorer = asyncio.Lock()

    async def score(self, session_id: str, row: TaskRow, response: Json) -> Score:
        async with self.scorer:
            await asyncio.sleep(0.002)
            return await super().score(session_id, row, response)


class Noisy(ReferenceServer):
    """One verify of thirty is wrong, whoever else is there."""

    async def score(self, session_id: str, row: TaskRow, response: Json) -> Score:
        score = await super().score(session_id, row, response)
        return Score(0.25) if random() < 1 / 30 else score


class Hangs(ReferenceServer):
    """Verifies of more than twenty at once wait for each other, for ever; no other check has so many."""

    scoring = 0

    async def score(self, session_id: str, row: TaskRow, response: Json) -> Score:
        self.scoring += 1
        if self.scoring > 20:
            await asyncio.sleep(60)
        await asyncio.sleep(0.3)
        self.scoring -= 1
        return await super().score(session_id, row, response)


class Blocks(ReferenceServer):
    """A verify holds up all others, those too whose clients have gone."""

    async def score(self, session_id: str, row: TaskRow, response: Json) -> Score:
        time.sleep(0.15)  # noqa: ASYNC251 - that is the fault
        return await super().score(session_id, row, response)


def _judge(server: ReferenceServer, timeout: float = 20.0, most: int = 16) -> dict[str, Finding]:
    with running(server, timeout=timeout, profile=PROFILES["smoke"], load=(1, most), sockets=True) as run:
        return {check.id: run.judge(check)[0] for check in (load_episode, load_answers)}


@pytest.mark.parametrize(
    "server",
    [Racing, *(pytest.param(one, marks=pytest.mark.load) for one in (Evicts, CachesByContent, TimesOutAsZero, Sheds))],
)
def test_what_the_load_does_to_episodes_is_told(server: type[ReferenceServer]) -> None:
    found = _judge(server())["load-episode"]
    assert found.verdict is Verdict.FAIL, found
    assert "with 16 in flight" in found.actual
    assert [level["in_flight"] for level in found.load] == [1, 16]
    assert found.load[0]["wrong"] == 0
    assert found.reproduce


@pytest.mark.parametrize("server", [ReferenceServer, Queues])
def test_who_is_slow_and_right_holds(server: type[ReferenceServer]) -> None:
    found = _judge(server())
    assert {check: one.verdict for check, one in found.items()} == dict.fromkeys(found, Verdict.PASS), found


def test_noise_is_not_the_load() -> None:
    assert _judge(Noisy())["load-episode"].verdict is not Verdict.FAIL


class NeverFrees(ReferenceServer):
    """Some places, which only a verify gives back."""

    def __init__(self) -> None:
        super().__init__()
        self.taken: set[str] = set()

    async def seed(self, session_id: str, row: Json) -> Json:
        if len(self.taken) >= 36:
            raise HttpRefusal(503, "no place is free")
        self.taken.add(session_id)
        return await super().seed(session_id, row)

    async def score(self, session_id: str, row: TaskRow, response: Json) -> Score:
        self.taken.discard(session_id)
        return await super().score(session_id, row, response)


class LocksWhenLeft(ReferenceServer):
    """A verify takes a lock, and evaluates what it was given meanwhile."""

    def __init__(self) -> None:
        super().__init__()
        self.scorer = asyncio.Lock()

    async def score(self, session_id: str, row: TaskRow, response: Json) -> Score:
        async with self.scorer:
            if "9**9" in str(response["output"]):
                await asyncio.sleep(8)
            return await super().score(session_id, row, response)


def _one(server: ReferenceServer, check: Check) -> list[Finding]:
    with running(server, timeout=20.0, profile=PROFILES["smoke"], load=(1, 32), sockets=True) as run:
        return run.judge(check)


def test_places_that_abandoned_sessions_keep_are_told() -> None:
    [found] = _one(NeverFrees(), load_abandoned)
    assert found.verdict is Verdict.FAIL, found
    assert "503 after 32 sessions were opened and left" in found.actual


@pytest.mark.load
def test_what_holds_up_the_others_is_told() -> None:
    found = _one(LocksWhenLeft(), load_pathological)
    assert [one.subject for one in found if one.verdict is Verdict.FAIL] == ["a tower of powers"], found


@pytest.mark.parametrize("check", [load_abandoned, load_pathological])
def test_a_server_that_frees_and_does_not_choke_passes(check: Check) -> None:
    assert {one.verdict for one in _one(ReferenceServer(), check)} == {Verdict.PASS}


@pytest.mark.load
@pytest.mark.parametrize(("server", "timeout"), [(Hangs, 4.0), (Blocks, 2.0)])
def test_a_timeout_is_no_wrong_score(server: type[ReferenceServer], timeout: float) -> None:
    found = _judge(server(), timeout, most=96)
    assert found["load-episode"].verdict is Verdict.PASS
    assert found["load-answers"].verdict is Verdict.FAIL
    assert "without one" in found["load-answers"].actual


def _level(in_flight: int, rate: float, p50: float, **more: Any) -> LoadLevel:
    counts = dict.fromkeys(("wrong", "lost", "crashed", "unanswered", "broken"), 0)
    endpoints = (
        EndpointLoad("POST /seed_session", 9, 0.001, 0.002, 0.003),
        EndpointLoad("POST /verify", 9, p50, p50, p50),
    )
    values: dict[str, Any] = counts | {"memory": 1 << 20, "cores": 1.0, "endpoints": endpoints} | more
    return LoadLevel(in_flight, round(rate * 5), 5.0, **values)


def test_the_sentence_names_what_holds_and_what_queues() -> None:
    levels = [_level(1, 20, 0.01), _level(8, 100, 0.05), _level(64, 104, 0.6, wrong=3)]
    assert (held(levels), knee(levels).in_flight) == (8, 8)
    assert sentence(levels) == (
        "Holds to 8 in flight; 3 another reply or reward with 64; no faster beyond 8 (100 episodes a second), where /verify "
        "queues (10 ms, then 600 ms): the server keeps one core busy."
    )
    assert sentence(levels[:2]) == "Holds to 8 in flight; 100 episodes a second, still rising."
    assert len(list(text_lines(levels))) == len(levels) + 3


def test_ids_are_the_committed_ones() -> None:
    committed = Path(__file__).with_name("ids.txt").read_text().splitlines()
    assert sorted(f"{check.id} {check.level}" for check in LOAD) == committed
    assert not {check.id for check in LOAD} & {check.id for check in CHECKS + LAUNCHED}


def test_the_curve_is_in_the_summary_and_in_each_report(pytester: pytest.Pytester) -> None:
    reports = [f"--gym-report=r.{suffix}" for suffix in ("json", "html", "md")]
    given = ["--gym-demo", "--gym-load=1,4", "--gym-profile=smoke", "-k", "load"]
    run = pytester.runpytest_subprocess(*given, *reports, timeout=120)
    assert run.ret == pytest.ExitCode.OK
    run.stdout.fnmatch_lines(
        ["Load (episodes in flight; times are this machine's*", "*  4 *#*", "  Holds to 4 in flight*"]
    )
    written = json.loads(Path("r.json").read_text())
    schema = json.loads(files("gym_conformance.reports").joinpath("report.schema.json").read_text())
    jsonschema_rs.validator_for(schema).validate(written)
    [levels] = [one["load"] for one in written["findings"] if "load" in one]
    assert [level["in_flight"] for level in levels] == [1, 4]
    assert "Holds to 4 in flight" in Path("r.html").read_text()
    assert "Holds to 4 in flight" in Path("r.md").read_text()


def test_without_the_option_there_is_no_load(pytester: pytest.Pytester) -> None:
    run = pytester.runpytest_subprocess("--gym-demo", "--collect-only", "-q", timeout=60)
    assert "gym/load" not in run.stdout.str()


def test_what_ends_the_waiting_ends_the_episodes_that_are_late() -> None:
    """An interrupt would close their connections under them otherwise, and each would say so with a traceback."""

    class Endless(Driver):
        async def _episode(self, *_: Any) -> Any:
            await asyncio.sleep(60)

    async def left() -> set[asyncio.Task[Any]]:
        gym: Any = SimpleNamespace(endpoint=SimpleNamespace(timeout=1))
        episodes: Any = [None]
        driving = asyncio.ensure_future(Endless(gym, episodes, 4).drive(30))
        await asyncio.sleep(0.05)
        driving.cancel()
        await asyncio.wait([driving])
        return asyncio.all_tasks() - {asyncio.current_task()}

    assert asyncio.run(left()) == set()
