"""Slow servers, such as those that ask a judge model, come to the same verdicts as fast ones, and in time."""

import asyncio
import math
import time
from collections.abc import Sequence
from dataclasses import replace
from itertools import cycle, pairwise
from types import SimpleNamespace
from typing import Any, cast

import pytest

from gym_conformance.calibration.given_answer import GivenAnswer
from gym_conformance.calibration.row_scores import AnswerScore
from gym_conformance.checks.registry import CHECKS
from gym_conformance.contract.dataset_rows import Row
from gym_conformance.contract.openapi import ServerKind
from gym_conformance.dataset import Dataset
from gym_conformance.findings import Finding, Verdict
from gym_conformance.gym_under_test import BARE_ROW, Gym
from gym_conformance.judge import Judge
from gym_conformance.plugin.summary import _what_to_mend
from gym_conformance.scouting import learn as learning
from gym_conformance.scouting.learn import learn
from gym_conformance.session.channel import Channel
from gym_conformance.trajectories.evidence import chance_so_far
from gym_conformance.trajectories.execute import FEW
from gym_conformance.trajectories.generate import Knowledge
from gym_conformance.trajectories.profiles import USUAL
from gym_conformance.trajectories.trajectory import Trajectory
from gym_conformance.trials import chance, solo
from gym_conformance.trials.bench import Bench
from gym_conformance.trials.chance import beyond_chance
from gym_conformance.trials.check import Check
from gym_conformance.trials.scoring import Scoring
from gym_conformance.trials.solo import Solo
from gym_conformance.trials.trial import Trial
from gym_mocks.reference import ReferenceServer
from gym_mocks.resources import FunctionTool, ResourcesServer
from gym_mocks.wire.client import ASGIApp
from tests.twins.judging import found_by, on_gym, running
from tests.twins.properties import CurrentSession, PendingRow, VerifyConsumes
from tests.twins.twin import rollout_of
from tests.twins.unrecorded import Reading, rows_of

#: Seconds of a verify: so long that a few of them, one after the other, are told from a few at once.
_SECONDS = 0.15


class Waits(ReferenceServer):
    """A verify waits for a judge model, which answers many at once: `most` says how many wait at most."""

    waiting, most, seconds = 0, 0, _SECONDS

    async def score(self, session_id: str, row: Any, response: Any) -> Any:
        self.waiting += 1
        self.most = max(self.most, self.waiting)
        await asyncio.sleep(self.seconds)
        self.waiting -= 1
        return await super().score(session_id, row, response)


class Brief(Waits):
    """It does not wait for long."""

    seconds = 0.01


class SeldomPays(Brief):
    """One in fifteen of its rewards is nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.scored = cycle(range(15))

    async def score(self, session_id: str, row: Any, response: Any) -> Any:
        scored = await super().score(session_id, row, response)
        return replace(scored, reward=scored.reward * bool(next(self.scored)))


class Computes(ReferenceServer):
    """A verify computes, on the event loop."""

    async def score(self, session_id: str, row: Any, response: Any) -> Any:
        time.sleep(_SECONDS)  # noqa: ASYNC251 - the fault
        return await super().score(session_id, row, response)


class SlowTools(ReferenceServer):
    """A call waits, and a session in which nothing is done does not."""

    async def call(self, session_id: str, tool: FunctionTool, arguments: dict[str, Any]) -> Any:
        await asyncio.sleep(_SECONDS)
        return await super().call(session_id, tool, arguments)


class TakesTurns(SlowTools):
    """Programs that a dozen sessions run at once take turns, as on a busy machine."""

    def __init__(self) -> None:
        super().__init__()
        self.processor = asyncio.Lock()

    async def call(self, session_id: str, tool: FunctionTool, arguments: dict[str, Any]) -> Any:
        async with self.processor:
            return await super().call(session_id, tool, arguments)


@pytest.mark.twins
def test_calls_that_take_turns_for_longer_than_the_deadline_do_not_hang() -> None:
    [finding] = found_by("verify-unfinished", TakesTurns(), timeout=6 * _SECONDS)
    assert finding.verdict is Verdict.PASS, finding.actual


@pytest.mark.parametrize(("server", "beside"), [(Waits, FEW), (SlowTools, FEW), (Computes, 6)])
def test_sessions_run_beside_each_other_where_the_server_waits(server: type[ReferenceServer], beside: int) -> None:
    allowed = range(2 if beside < FEW else FEW, beside + 1)
    tries = (on_gym(server(), learn) for _ in range(8))  # fewer on a busy machine, which makes all of them wait
    knowledge = next((known for known in tries if known.beside(FEW) in allowed), None)
    assert knowledge
    assert knowledge.at_once == 1 or server is not Computes
    assert (knowledge.call_seconds > knowledge.session_seconds) == (server is SlowTools)


@pytest.mark.parametrize(
    ("whole", "cores", "tried", "found"),
    [
        (0.5, 99, [16], 16),
        (2.5, 99, [6, 12, 16], 16),
        (10, 99, [2, 4, 8, 16], 16),
        (10, 1, [2], 1),
        (10, 2, [2, 4], 2),
        (0.5, 4, [16], 1),
        (13, 99, [], 1),
    ],
)
def test_how_many_run_at_once_is_found_out_within_the_deadline(
    monkeypatch: pytest.MonkeyPatch, whole: float, cores: int, tried: list[int], found: int
) -> None:
    """Where each of them waits, or takes its turn on one of so many cores."""
    made: list[int] = []

    async def seconds(_: object, several: Sequence[Trajectory]) -> float:
        made.append(len(several))
        return whole * math.ceil(len(several) / cores)

    monkeypatch.setattr(learning, "_seconds", seconds)
    gym = cast("Gym", SimpleNamespace(endpoint=SimpleNamespace(timeout=30)))
    assert (asyncio.run(learning.concurrency(gym, Trajectory(BARE_ROW), whole)), made) == (found, tried)


@pytest.mark.parametrize(("seconds", "made"), [(0.1, 1), (1.0, 2), (60.0, 3)])
def test_what_is_made_one_by_one_fits_into_its_time(seconds: float, made: int) -> None:
    knowledge = Knowledge((BARE_ROW,), session_seconds=0.1, call_seconds=0.05)
    assert len(list(knowledge.affordable([6] * 9, lambda calls: calls, seconds, 3))) == made


class Null(Waits):
    """The reward of a session in which nothing was done is null."""

    async def score(self, session_id: str, row: Any, response: Any) -> Any:
        scored = await super().score(session_id, row, response)
        return scored if scored.reward else scored.model_copy(update={"reward": None})


#: Gentle checks that do not take long.
_GENTLE = [
    check
    for check in CHECKS
    if check.id in ("seed-accepts-rows", "verify-scores-rows", "verify-reward-finite", "verify-floor", "verify-echoes")
]


@pytest.mark.parametrize("server", [Waits, Brief, Null, SlowTools])
def test_gentle_checks_find_the_same_beside_each_other(server: type[ReferenceServer]) -> None:
    def judged(upcoming: Sequence[Check]) -> tuple[dict[tuple[str, str], Verdict], int]:
        judging = server()
        with running(judging, first_look=False, upcoming=upcoming, timeout=5.0) as run:
            found = [finding for check in _GENTLE for finding in run.judge(check)]
        return {(each.check, each.subject): each.verdict for each in found}, getattr(judging, "most", 0)

    alone, beside = judged(()), judged(_GENTLE)
    assert all(check.gentle for check in _GENTLE)
    assert beside[0] == alone[0]
    assert (Verdict.FAIL in beside[0].values()) == (server is Null)
    if server in (Waits, Brief):
        assert beside[1] > alone[1], "they wait together"


@pytest.mark.parametrize("seldom", [False, True])
def test_what_a_property_waits_for_is_tried_beside_gentle_checks_and_again_where_it_fails(seldom: bool) -> None:
    [check] = [check for check in CHECKS if check.id == "repeat-deterministic"]

    async def judged(gym: Gym) -> tuple[set[str], Finding]:
        judging = Judge(Bench(gym), [*_GENTLE, check])
        await judging.judge(_GENTLE[0])
        waited = set(judging.bench.learned.waited)
        [finding] = await judging.judge(check)
        return waited, finding

    waited, finding = on_gym(SeldomPays() if seldom else Brief(), judged)
    assert waited == (set() if seldom else {check.id})
    assert (finding.verdict is Verdict.FAIL) == seldom


def test_what_takes_long_is_run_alone_once_for_several_trials(monkeypatch: pytest.MonkeyPatch) -> None:
    """But for one run each time, since what a session leaves to others may have changed."""
    monkeypatch.setattr(solo, "_LONG", 0.0)

    async def seeds(gym: Gym) -> list[int]:
        bench = Bench(gym)
        trajectory, counts = Trajectory(bench.gym.row), [bench.gym.endpoint.requests]
        for _trial in range(2):
            alone = Solo(Trial(bench), trajectory)
            await alone.settle()
            counts.append(bench.gym.endpoint.requests)
        return [(after - before) // 2 for before, after in pairwise(counts)]

    assert on_gym(ReferenceServer(), seeds) == [6, 1]


@pytest.mark.parametrize(
    ("server", "check"),
    [
        (PendingRow, "isolation-interleaved"),
        (CurrentSession, "isolation-concurrent"),
        (VerifyConsumes, "repeat-verify"),
    ],
)
def test_a_fault_is_found_all_the_same(server: type[ASGIApp], check: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(solo, "_LONG", 0.0)
    monkeypatch.setattr(chance, "_PATIENCE", 0)
    [finding] = found_by(check, cast("Any", server)())
    assert finding.verdict is Verdict.FAIL


def _trial() -> Any:
    return SimpleNamespace(
        once=False,
        shrinking=False,
        among=False,
        tried=SimpleNamespace(comparisons=0),
        settings=SimpleNamespace(search=USUAL),
        gym=SimpleNamespace(endpoint=SimpleNamespace()),
        learned=SimpleNamespace(knowledge=None, doubted=0.0, all_noise=0),
        channel=SimpleNamespace(exchanges=[]),
        dismissed=[],
        caution="",
    )


def _differing(*times: bool) -> Any:
    turns = cycle(times)

    async def run(_channel: Channel) -> bool | None:
        return next(turns) or None

    return run


def test_what_may_be_noise_is_given_up_where_patience_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pass says so; what differs each time, and never otherwise, is told all the same."""
    monkeypatch.setattr(chance, "_PATIENCE", 0)
    noisy, faulty = _trial(), _trial()
    noise = beyond_chance(noisy, _differing(True, False), _differing(True, False, False, False), suspected=True)
    assert asyncio.run(noise) is None
    assert noisy.caution.startswith(
        "a difference could not be distinguished from chance, after 0 s of trying in this run: "
    )
    assert noisy.caution.endswith("; use --gym-profile ci")
    assert asyncio.run(beyond_chance(faulty, _differing(True), _differing(False), suspected=True)) is True
    assert not faulty.caution


class Hurried:
    """A control that differs unless it is made to wait: what it is held to was slow when it was first asked."""

    async def differs(self, endpoint: Any, seconds: float) -> bool:
        del endpoint
        return not seconds


def test_what_is_the_same_alone_without_waiting_is_no_fault() -> None:
    trial = _trial()
    assert asyncio.run(beyond_chance(trial, _differing(True), Hurried(), suspected=True)) is None
    assert trial.dismissed


def test_the_comparisons_of_a_run_share_one_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each check meets the same noise, and a minute for each would take half an hour."""
    first, second = _trial(), _trial()
    second.learned = first.learned

    def compared(trial: Any, *control: bool) -> Any:
        return asyncio.run(beyond_chance(trial, _differing(True, False), _differing(*control), suspected=True))

    assert compared(first, True, False) is None
    assert not first.caution, "there was time to find that it is noise"
    assert first.learned.doubted > 0
    monkeypatch.setattr(
        chance, "_PATIENCE", first.learned.doubted / 10
    )  # as much as it took, of a profile's 10 seconds
    assert compared(second, True, False, False, False) is None
    assert second.caution.startswith("a difference could not be distinguished from chance, after 0 s")


def test_on_a_noisy_server_two_controls_that_differ_are_enough() -> None:
    """Where a reward is drawn, nearly each trajectory is compared; a fault whose controls do not differ is found as before."""
    trial, made = _trial(), list[int]()

    def compared(*control: bool) -> Any:
        runs = list[Channel]()

        def counted(run: Any) -> Any:
            async def one(channel: Channel) -> Any:
                runs.append(channel)
                return await run(channel)

            return one

        tried, differing = counted(_differing(True)), counted(_differing(*control))
        found = asyncio.run(beyond_chance(trial, tried, differing, suspected=True))
        made.append(len(runs))
        return found

    assert [compared(True) for _ in range(5)] == [None] * 5
    assert made[2] >= 18 > max(made[3:]), "the first three take a whole look each"
    assert trial.tried.comparisons == 3
    assert compared(False) is True


class TakesLong(Scoring):
    """Time is up with the first score, which is poor."""

    scored = 0

    def __init__(self, trial: Any, suspicions: int) -> None:
        super().__init__(trial, seconds=60.0)
        self._suspicions = suspicions

    async def score(self, row: Row, answer: GivenAnswer) -> AnswerScore:
        del row, answer
        self.scored, self.end = self.scored + 1, 0.0
        return AnswerScore(0.0)


@pytest.mark.parametrize(("suspicions", "scored"), [(0, 9), (3, 1)])
def test_more_than_a_few_suspicions_are_left_where_time_is_up(suspicions: int, scored: int) -> None:
    """A suspicion that was not looked into is none."""
    trial: Any = SimpleNamespace(
        gym=SimpleNamespace(kind=ServerKind.SINGLE_TURN), launched=SimpleNamespace(judge_models=None)
    )
    scoring = TakesLong(trial, suspicions)
    scores = asyncio.run(scoring.gold(BARE_ROW, GivenAnswer((), (), ()), 1.0))
    assert scoring.scored == scored
    assert bool(scores.unchecked) == (scored == 1)


def test_checks_that_miss_the_same_are_told_as_one() -> None:
    """Such as those that had no time: they are no more to mend than one."""
    missed = [Finding(each, "MUST", "", Verdict.UNTESTABLE, "server", reason="more time") for each in ("a", "b", "c")]
    assert "Fix first: a, and 2 more for the same reason: it needs more time" in _what_to_mend(missed)
    other = Finding("d", "MUST", "", Verdict.UNTESTABLE, "server", reason="a score")
    assert "a, and 2 more for the same reason (1 more after it)" in _what_to_mend([*missed, other])


@pytest.mark.parametrize(
    ("forms", "differed", "least", "most"),
    [("TC" * 5, "10" * 5, 0.0, 0.005), ("TC" * 5, "11" * 5, 1.0, 1.0), ("CCCC", "0000", 1.0, 1.0)],
)
def test_a_part_of_a_look_tells_whether_to_go_on(forms: str, differed: str, least: float, most: float) -> None:
    assert least <= chance_so_far([form == "T" for form in forms], [one == "1" for one in differed]) <= most


def test_of_a_long_rollout_few_calls_are_made_twice() -> None:
    """Its sessions are as long as it is: with one for each of its calls, a slow server is never done."""

    def step(state: Reading) -> dict[str, int]:
        state.pages += 1
        return {"steps": state.pages}

    server = ResourcesServer("walk", tools=[step], state=Reading, verify=lambda: 1.0)
    row = rows_of(server).rows[0]
    rollout = rollout_of(row, *(("step", {}, {"steps": at + 1}) for at in range(40)), reward=1.0)
    [finding] = found_by("repeat-tool-calls", server, Dataset((row,), (rollout,), 1))
    assert (finding.verdict, "step" in finding.actual) == (Verdict.NOTE, True)
    assert len(server.sessions) < 40
