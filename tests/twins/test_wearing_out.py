"""A server that has so many places and no more is told with their number; one that has enough is not."""

import asyncio
import itertools
import json
import math
import time
from collections import defaultdict
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import date, timedelta
from typing import Any

import httpx
import pytest

from gym_conformance.checks.isolation import read_backs
from gym_conformance.checks.registry import CHECKS
from gym_conformance.checks.sessions import pauses
from gym_conformance.checks.sessions.pauses import resources_reward_kept, resources_session_kept
from gym_conformance.contract.dataset_rows import Rollout
from gym_conformance.dataset import Dataset
from gym_conformance.findings import Finding, Verdict, worst
from gym_conformance.scouting import asking_back
from gym_conformance.session import seeds
from gym_conformance.session.channel import Endpoint, NoRoom
from gym_conformance.session.exchange import Reply
from gym_conformance.session.held import Held
from gym_conformance.session.server_fault import NotSent
from gym_conformance.trajectories.waiting import Waiting
from gym_conformance.trials import needs, recorded
from gym_conformance.trials.check import Check
from gym_mocks.reference import ReferenceServer
from gym_mocks.resources import Score, TaskRow
from gym_mocks.resources.function_tool import FunctionTool
from gym_mocks.wire import HttpRefusal, HttpReply, HttpRequest
from tests.twins.cookies import NewIdForEachReply
from tests.twins.judging import ended, found_by, judge, running
from tests.twins.repeat import StateForEachCall, StateOfTheLastSeed
from tests.twins.twin import Json, Timed, dataset


class HasPlaces(ReferenceServer):
    def __init__(self, places: int) -> None:
        super().__init__()
        self.places = places

    async def seed(self, session_id: str, row: Json) -> Json:
        self.places -= 1
        if self.places < 0:
            raise HttpRefusal(503, "no place is left")
        return await super().seed(session_id, row)


def with_places(places: int) -> Finding:
    [finding] = found_by("resources-seeds", HasPlaces(places))
    return finding


def test_what_is_refused_slowly_again_and_again_is_not_asked_for_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each check would wait for seconds to hear what the one before has heard; one tells it, with what came before."""
    monkeypatch.setattr(seeds, "_SLOW", 0.0)
    with running(server := HasPlaces(60)) as run:
        found = [finding for check in CHECKS[:30] for finding in run.judge(check)]
        asked = server.places
        found += [finding for check in CHECKS[30:] if not check.attempt for finding in run.judge(check)]
    assert asked - server.places < 10
    [told] = [finding for finding in found if finding.verdict is Verdict.FAIL and finding.check == "resources-seeds"]
    assert "the first 60 seeds" in told.expected
    assert "_stock (200)" in told.hint


class KeepsTheLock(ReferenceServer):
    """An item's name that lacks its second bracket is refused with the session's lock in hand."""

    def __init__(self) -> None:
        super().__init__()
        self.locks = defaultdict[str, asyncio.Lock](asyncio.Lock)

    async def call(self, session_id: str, tool: FunctionTool, arguments: dict[str, Any]) -> Any:
        await self.locks[session_id].acquire()
        if str(arguments).count("(") > str(arguments).count(")"):
            raise HttpRefusal(400, "this is no name")
        self.locks[session_id].release()
        return await super().call(session_id, tool, arguments)


def test_a_lock_that_a_refused_call_leaves_held_is_told() -> None:
    check = "calls-refused-harmless"
    [finding] = found_by(check, KeepsTheLock(), timeout=1.0)
    assert finding.verdict is Verdict.FAIL, finding
    assert "as in other sessions" in finding.expected
    assert "lock" in finding.hint


class WaitsForItself(ReferenceServer):
    """What has been added to a place once is never added there again."""

    def __init__(self) -> None:
        super().__init__()
        self.added = defaultdict[str, set[str]](set)

    async def call(self, session_id: str, tool: FunctionTool, arguments: dict[str, Any]) -> Any:
        if tool.name == "add_stock" and str(arguments) in self.added[session_id]:
            await asyncio.Event().wait()
        reply = await super().call(session_id, tool, arguments)
        self.added[session_id].add(str(arguments))
        return reply


def test_what_hangs_after_a_call_that_was_taken_is_no_trace_of_a_refused_one() -> None:
    [finding] = found_by("calls-refused-harmless", WaitsForItself(), timeout=1.0)
    assert finding.verdict is Verdict.FAIL, finding
    assert "no complete answer came in time" in finding.actual
    assert "refused" not in finding.hint


class KeepsAPlace(KeepsTheLock):
    """The same of all sessions: a few places, one of which each such call takes for good."""

    def __init__(self) -> None:
        super().__init__()
        self.places = asyncio.Semaphore(4)
        self.locks = defaultdict[str, Any](lambda: self.places)


def test_a_call_that_hangs_in_all_sessions_is_told_whoever_meets_it() -> None:
    """Where it hangs for each check, as each expects of others what it does, one of them says so."""
    found = judge(KeepsAPlace(), timeout=1.0, checks=["calls-refused-harmless", "isolation-interleaved"])
    told = [each for findings in found.values() for each in findings if each.verdict is Verdict.FAIL]
    assert any("no complete answer came in time" in each.actual and "place in a pool" in each.hint for each in told), (
        found
    )


class NeverCounts(ReferenceServer):
    """A read that is never answered."""

    async def call(self, session_id: str, tool: FunctionTool, arguments: dict[str, Any]) -> Any:
        if tool.name == "count_stock":
            await asyncio.Event().wait()
        return await super().call(session_id, tool, arguments)


def test_a_tool_that_hangs_is_a_must_though_a_should_met_it_first() -> None:
    checks = ("seed-complete", "isolation-interleaved")
    found = judge(NeverCounts(), timeout=0.5, checks=checks)
    assert ended(found, Verdict.FAIL) == set(checks), found


class HangsInVerify(ReferenceServer):
    """A verify that is never answered: none, or none of what claims to be right."""

    def __init__(self, claims: bool = False) -> None:
        super().__init__()
        self.claims = claims

    async def score(self, session_id: str, row: TaskRow, response: Json) -> Score:
        if not self.claims or "correct" in json.dumps(response):
            await asyncio.Event().wait()
        return await super().score(session_id, row, response)


def judged_in_turn(server: ReferenceServer, *checks: str, timeout: float = 1.5) -> dict[str, Verdict]:
    with running(server, timeout=timeout) as run:
        return {name: worst(run.judge(check)) for name in checks for check in CHECKS if check.id == name}


def test_a_verify_that_hangs_is_a_must_though_two_of_level_should_met_it_first() -> None:
    checks = ("seed-complete", "calls-complete", "verify-scores-rows")
    assert judged_in_turn(HangsInVerify(), *checks, timeout=0.5) == dict.fromkeys(checks, Verdict.FAIL)


def test_a_verify_that_hangs_on_odd_answers_alone_is_no_must() -> None:
    claim, *must = checks = ("reward-claim", "repeat-verify", "verify-reward-finite")
    found = judged_in_turn(HangsInVerify(claims=True), *checks)
    assert found == {claim: Verdict.FAIL, **dict.fromkeys(must, Verdict.PASS)}


class TakesItsTime(ReferenceServer):
    """Megabytes take it a while, in which nothing else is scored, whether somebody still waits for them or not."""

    busy_until = 0.0

    async def score(self, session_id: str, row: TaskRow, response: Json) -> Score:
        if len(json.dumps(response)) > 1_000_000:
            self.busy_until = time.monotonic() + 12.0
        await asyncio.sleep(max(0.0, self.busy_until - time.monotonic()))
        return await super().score(session_id, row, response)


def test_a_server_may_come_to_the_end_of_megabytes_before_it_is_asked_for_more() -> None:
    checks = ("verify-long-rollout", "verify-without-session")
    found = judged_in_turn(TakesItsTime(), *checks, timeout=5.0)  # in which a slow machine has read them, too
    assert found == {"verify-long-rollout": Verdict.NOT_APPLICABLE, "verify-without-session": Verdict.PASS}


class NeverScores(ReferenceServer):
    """A verify never comes to an end, and keeps one of the threads in which all requests are answered."""

    def __init__(self, threads: int) -> None:
        super().__init__()
        self.threads = asyncio.Semaphore(threads)

    async def dispatch(self, request: HttpRequest) -> HttpReply:
        async with self.threads:
            return await super().dispatch(request)

    async def score(self, session_id: str, row: TaskRow, response: Json) -> Score:
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(60)
        await asyncio.sleep(60)
        return await super().score(session_id, row, response)


@pytest.mark.parametrize("threads", [40, 3])
def test_a_verify_that_never_ends_is_told_though_it_takes_the_threads(threads: int) -> None:
    """Of 40, as FastAPI has, some are left; where there are few, what hangs besides is laid to it."""
    checks = [check for check in CHECKS if check.section in ("seed", "verify")]
    with running(NeverScores(threads), timeout=1.0, upcoming=checks, sockets=True) as run:
        told = [found for check in checks for found in run.judge(check) if found.verdict is Verdict.FAIL]
    assert "/verify" in told[0].expected + told[0].hint
    assert {found.check for found in told} <= {told[0].check, "seed-accepts-rows"}


@pytest.mark.parametrize("places", [50, 100])
def test_a_fixed_number_of_places_is_told_with_the_number(places: int) -> None:
    finding = with_places(places)
    assert finding.verdict is Verdict.FAIL
    assert f"the first {places} seeds" in finding.expected
    assert "no place is left" in finding.actual


def test_a_server_with_places_enough_passes() -> None:
    assert with_places(10_000).verdict is Verdict.PASS


class ForgetsSoon(ReferenceServer):
    """A session ends so many seconds after its seed."""

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self.seconds = seconds
        self.ends: dict[str, float] = {}

    async def seed(self, session_id: str, row: Json) -> Json:
        self.ends[session_id] = time.monotonic() + self.seconds
        return await super().seed(session_id, row)

    async def call(self, session_id: str, tool: FunctionTool, arguments: Json) -> Any:
        if time.monotonic() > self.ends.get(session_id, 0):
            raise HttpRefusal(404, "no such session")
        return await super().call(session_id, tool, arguments)


def judge_after(
    seconds: float,
    server: ReferenceServer,
    check: Check,
    monkeypatch: pytest.MonkeyPatch,
    *,
    pause: float = 1.0,
    strangers: int = 0,
) -> Finding:
    """What is found once sessions were left alone for so long; they count as left alone for long enough to try one pause."""
    monkeypatch.setattr(pauses, "_PAUSES", (pause, 60.0))
    monkeypatch.setattr(Waiting, "age", pause + 0.5)
    with running(server) as run:
        run.judge(next(check for check in CHECKS if check.id == "repeat-replies"))
        time.sleep(seconds)
        with httpx.Client() as client:
            for number in range(strangers):
                row = {**dataset().rows[0].data, "first": not number}
                client.cookies.clear()
                client.post(f"{run.url}/seed_session", json=row).raise_for_status()
        (finding,) = run.judge(check)
    return finding


@pytest.mark.parametrize(("seconds", "verdict"), [(0.9, Verdict.FAIL), (60.0, Verdict.PASS)])
def test_a_session_with_a_time_to_live_is_told(
    seconds: float, verdict: Verdict, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once one was left alone for longer than that."""
    alone = 1.0 if verdict is Verdict.FAIL else 0.0
    finding = judge_after(alone, ForgetsSoon(seconds), resources_session_kept, monkeypatch)
    assert finding.verdict is verdict, finding
    assert not finding.caution
    assert "pause of 1 s" in finding.expected or verdict is Verdict.PASS


class LeavesTheOldId(NewIdForEachReply):
    """The session moves to a new id with each reply, and the old one is not known any more."""

    def __init__(self) -> None:
        super().__init__()
        self.left = set[str]()

    async def call(self, session_id: str, tool: FunctionTool, arguments: Json) -> Any:
        if session_id in self.left:
            raise HttpRefusal(404, "no such session")
        self.left.add(session_id)
        return await super().call(session_id, tool, arguments)


def test_what_is_lost_without_a_pause_is_not_laid_to_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """For a client that keeps the seed's cookie a session is lost at once: another check tells that."""
    finding = judge_after(0.0, LeavesTheOldId(), resources_session_kept, monkeypatch)
    assert finding.verdict is Verdict.PASS, finding
    assert not finding.caution


class TidiesUp(ForgetsSoon):
    """What nobody has asked for so many seconds goes with the next seed, or one of so many; or the oldest session does."""

    def __init__(self, seconds: float, places: float = math.inf, each: int = 1) -> None:
        super().__init__(seconds)
        self.places, self.each = places, each
        self.seeds = itertools.count(1)

    async def seed(self, session_id: str, row: Json) -> Json:
        reply = await super().seed(session_id, row)
        if next(self.seeds) % self.each:
            return reply
        kept = {one: end for one, end in self.ends.items() if end > time.monotonic()}
        self.ends = dict([*kept.items()][-int(min(self.places, 9_999)) :])
        return reply

    async def call(self, session_id: str, tool: FunctionTool, arguments: Json) -> Any:
        if session_id in self.ends:
            self.ends[session_id] = time.monotonic() + self.seconds
        return await super().call(session_id, tool, arguments)


@pytest.mark.parametrize(
    ("server", "said"),
    [(TidiesUp(2.5), "after 3 s, and another's seed"), (TidiesUp(600, places=150), "after the seeds of 400 others")],
    ids=["a seed tidies up", "the oldest goes"],
)
def test_a_session_that_others_push_out_is_told(
    server: ReferenceServer, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    finding = judge_after(3.0, server, resources_session_kept, monkeypatch, pause=3.0, strangers=160)
    assert finding.verdict is Verdict.FAIL, finding
    assert said in finding.expected


def test_state_that_is_shared_is_not_left_alone_for_minutes() -> None:
    found = judge(StateOfTheLastSeed(), checks=["isolation-interleaved", "resources-session-kept"])
    [kept] = found["resources-session-kept"]
    assert kept.verdict is Verdict.NOT_APPLICABLE, kept
    assert "shares its state" in kept.reason


class HangsOnce(ReferenceServer):
    """As one that finds out then that its connection to a database was closed meanwhile."""

    hangs = False

    async def call(self, session_id: str, tool: FunctionTool, arguments: dict[str, Any]) -> Any:
        if self.hangs:
            self.hangs = False
            await asyncio.Event().wait()
        return await super().call(session_id, tool, arguments)


def test_a_session_that_hangs_when_it_is_taken_up_is_not_taken_up_again() -> None:
    """What it was answered until then is no outcome; the other session is."""
    with running(server := HangsOnce(), timeout=0.5) as run:
        run.judge(next(check for check in CHECKS if check.id == "calls-complete"))
        server.hangs = True
        [kept], [rewarded] = (run.judge(check) for check in (resources_session_kept, resources_reward_kept))
    assert kept.verdict is Verdict.PASS, kept
    assert rewarded.verdict is Verdict.PASS, rewarded


class EndsTheOldest(ForgetsSoon):
    """A verify ends the oldest session, which is mostly one that nobody will take up again."""

    def __init__(self) -> None:
        super().__init__(600)

    async def seed(self, session_id: str, row: Json) -> Json:
        if row.get("first"):
            self.ends.clear()  # as after a verify for each of them
        return await super().seed(session_id, row)

    async def score(self, session_id: str, row: TaskRow, response: Json) -> Score:
        self.ends.pop(next(iter(self.ends)), None)
        return await super().score(session_id, row, response)


def test_a_session_that_verifies_of_others_end_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pauses, "_STRANGERS", 100)
    finding = judge_after(0.0, EndsTheOldest(), resources_session_kept, monkeypatch, pause=0.1, strangers=150)
    assert finding.verdict is Verdict.FAIL, finding
    assert "verifies of 100 others" in finding.expected


def test_a_session_that_few_of_many_others_clear_away_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    server = TidiesUp(0.3, each=97)
    finding = judge_after(0.4, server, resources_session_kept, monkeypatch, pause=0.4, strangers=97)
    assert finding.verdict is Verdict.FAIL, finding
    assert "the seeds of 400 others" in finding.expected


class PaysForHaste(Timed):
    """So many seconds after its seed a session earns half of what it did."""

    def __init__(self, seconds: float, *, shows: bool = False) -> None:
        super().__init__()
        self.seconds, self.shows = seconds, shows

    def late(self, session_id: str) -> bool:
        return self.age(session_id) > self.seconds

    async def call(self, session_id: str, tool: FunctionTool, arguments: Json) -> Any:
        result = await super().call(session_id, tool, arguments)
        return {"late": self.late(session_id), "result": result} if self.shows else result

    async def score(self, session_id: str, row: TaskRow, response: Json) -> Score:
        score = await super().score(session_id, row, response)
        return replace(score, reward=score.reward / 2) if self.late(session_id) else score


@pytest.mark.parametrize(
    ("server", "verdict"),
    [
        (PaysForHaste(2.5), Verdict.FAIL),
        (PaysForHaste(math.inf), Verdict.PASS),
        (PaysForHaste(2.5, shows=True), Verdict.PASS),  # a world that goes on by itself
    ],
    ids=["falls", "stays", "is seen to fall"],
)
def test_a_reward_that_falls_while_nothing_is_done_is_told(
    server: ReferenceServer, verdict: Verdict, monkeypatch: pytest.MonkeyPatch
) -> None:
    # no session takes so long by itself, on a busy machine either
    finding = judge_after(3.0, server, resources_reward_kept, monkeypatch, pause=3.0)
    assert finding.verdict is verdict, finding
    assert verdict is Verdict.PASS or "after a pause of 3 s" in finding.expected


class MovesOnce(ReferenceServer):
    """What can be moved of an item is one pile for all sessions, and the first of them takes it."""

    def __init__(self) -> None:
        super().__init__()
        self.moved: set[str] = set()

    async def call(self, session_id: str, tool: FunctionTool, arguments: dict[str, Any]) -> Any:
        result = await super().call(session_id, tool, arguments)
        if tool.name != "move_stock":
            return result
        item = arguments["amount"].item
        first, self.moved = item not in self.moved, self.moved | {item}
        return {"moved": first}


def test_a_record_that_held_on_the_untouched_server_alone_is_not_called_stale() -> None:
    found = found_by("repeat-recorded", MovesOnce())
    (told,) = [finding for finding in found if finding.verdict is Verdict.FAIL]
    assert "The record is not stale, but earlier sessions have left something behind" in told.hint


def test_a_record_that_earns_less_now_says_so_beside_what_differs_first() -> None:
    found = found_by("repeat-recorded", StateForEachCall())
    told = [finding for finding in found if finding.verdict is Verdict.FAIL]
    assert {finding.actual for finding in told} == {"[], and the rollout earns 0.0 where it earned 1.0"}


def recorded_with(output: Callable[[Rollout], list[Json]]) -> Dataset:
    """The rollouts with another output."""
    rollouts = (rollout.with_response(output=output(rollout)) for rollout in dataset().rollouts)
    return replace(dataset(), rollouts=tuple(rollouts))


class FailsInWords(ReferenceServer):
    async def call(self, session_id: str, tool: FunctionTool, arguments: dict[str, Any]) -> Any:
        result = await super().call(session_id, tool, arguments)
        return {"error": "KeyError('quantity')"} if tool.name == "count_stock" else result


def test_a_recorded_call_that_fails_now_is_shown_with_what_it_is_answered() -> None:
    found = found_by("repeat-recorded", FailsInWords())
    told = [finding for finding in found if finding.verdict is Verdict.FAIL]
    assert told
    assert all("""status 200, body {"error":"KeyError('quantity')"}""" in finding.actual for finding in told), told


class CountsTokens(ReferenceServer):
    """Takes a part of the reward for each token; may refuse a usage of another form."""

    refuses = False

    async def score(self, session_id: str, row: TaskRow, response: Json) -> Score:
        score = await super().score(session_id, row, response)
        usage = response.get("usage") or {}
        if usage and self.refuses:
            raise HttpRefusal(422, "usage: extra fields")
        return Score(score.reward - usage.get("output_tokens", 0) / 1000)


def with_usage(output_tokens: int) -> Dataset:
    """Rollouts whose tokens were counted."""
    usage = {"input_tokens": 100, "output_tokens": output_tokens, "total_tokens": 100 + output_tokens}

    def counted(rollout: Rollout) -> Rollout:
        earned = {"reward": rollout.reward - output_tokens / 1000}
        return replace(rollout, data={**rollout.data, **earned}).with_response(usage=usage)

    return replace(dataset(), rollouts=tuple(map(counted, dataset().rollouts)))


def test_a_reward_may_count_the_tokens_that_a_recorded_rollout_took() -> None:
    found = found_by("repeat-recorded", CountsTokens(), with_usage(50))
    assert worst(found) is Verdict.PASS, found
    (refusing := CountsTokens()).refuses = True
    assert worst(found_by("repeat-recorded", refusing, with_usage(0))) is Verdict.PASS


class SaysWhatItAdded(ReferenceServer):
    """Says how many it was asked to add, and takes no more than `most` of them for asked."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self.most = most

    async def call(self, session_id: str, tool: FunctionTool, arguments: dict[str, Any]) -> Any:
        result = await super().call(session_id, tool, arguments)
        if tool.name != "add_stock":
            return result
        return {**result, "added": min(arguments["amount"].quantity, self.most)}


def with_what_was_added() -> Dataset:
    """Rollouts that were recorded when all was added."""

    def output(rollout: Rollout) -> list[Json]:
        asked = {each["call_id"]: json.loads(each["arguments"]) for each in rollout.output if "arguments" in each}

        def told(item: Json) -> Json:
            amount = asked.get(item.get("call_id"), {}).get("amount") if "output" in item else None
            reply = {**json.loads(item["output"]), "added": amount["quantity"]} if amount else {}
            return {**item, "output": json.dumps(reply)} if "quantity" in reply else item

        return [told(item) for item in rollout.output]

    return recorded_with(output)


@pytest.mark.parametrize("most", [1000, 2])
def test_what_was_recorded_of_a_calls_own_argument_is_laid_to_that(most: int) -> None:
    found = found_by("repeat-recorded", SaysWhatItAdded(most), with_what_was_added())
    told = [finding.hint for finding in found if finding.verdict is Verdict.FAIL]
    assert bool(told) is (most < 1000)
    assert all(hint.startswith("It was the call's own `quantity`, which the tool now") for hint in told), told


class Counts(Timed):
    """The stock of a session is being counted at first: who asks at once is told so."""

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self.seconds = seconds

    async def call(self, session_id: str, tool: FunctionTool, arguments: dict[str, Any]) -> Any:
        result = await super().call(session_id, tool, arguments)
        ready = self.age(session_id) >= self.seconds
        return result if ready or tool.name != "list_stock" else {"state": "counting"}


@pytest.mark.parametrize(("seconds", "verdict"), [(0.2, Verdict.PASS), (math.inf, Verdict.FAIL)], ids=["soon", "never"])
def test_a_record_of_what_is_ready_after_a_while_holds(
    monkeypatch: pytest.MonkeyPatch, seconds: float, verdict: Verdict
) -> None:
    monkeypatch.setattr(recorded, "PAUSES", (0.25,))
    found = found_by("repeat-recorded", Counts(seconds))
    assert worst(found) is verdict, found


#: The days on which a delivery can be had, when the rollouts were recorded.
_RECORDED = date(2026, 2, 26)


class Delivers(ReferenceServer):
    """Each reply names the first days on which a delivery can be had: so many days after those that were recorded."""

    def __init__(self, *later: int) -> None:
        super().__init__()
        self.days = [f"{_RECORDED + timedelta(days=at + more):%A, %d %B %Y}" for at, more in enumerate(later)]

    async def call(self, session_id: str, tool: FunctionTool, arguments: dict[str, Any]) -> Any:
        result = await super().call(session_id, tool, arguments)
        return {**result, "delivery": self.days} if isinstance(result, dict) else result


def delivered() -> Dataset:
    """Rollouts that were recorded when deliveries could be had from that day on."""

    def told(item: Json) -> Json:
        reply = json.loads(item["output"]) if item["type"] == "function_call_output" else None
        added = {"output": json.dumps({**reply, "delivery": Delivers(0, 0, 0).days})} if isinstance(reply, dict) else {}
        return {**item, **added}

    return recorded_with(lambda rollout: [told(item) for item in rollout.output])


@pytest.mark.parametrize(
    ("later", "verdict"),
    [((0, 0, 0), Verdict.PASS), ((4, 4, 4), Verdict.PASS), ((0, 1, 0), Verdict.FAIL), ((-1, -1, -1), Verdict.FAIL)],
    ids=["that day", "days later", "one is wrong", "before the record"],
)
def test_a_calendar_that_begins_today_is_no_stale_record(later: tuple[int, ...], verdict: Verdict) -> None:
    found = found_by("repeat-recorded", Delivers(*later), delivered())
    assert worst(found) is verdict, found


def test_a_first_look_that_cannot_be_held_leaves_the_rest_to_be_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    async def too_much(_: object) -> None:
        raise NotSent("smaller rows and replies")

    monkeypatch.setattr(needs, "look", too_much)
    found = judge(ReferenceServer(), checks=["verify-degenerate", "repeat-recorded"])
    assert worst(found["verify-degenerate"]) is Verdict.PASS
    assert {each.reason for each in found["repeat-recorded"]} == {"smaller rows and replies"}


@pytest.mark.parametrize("each", [pytest.param(150, marks=pytest.mark.twins), 200])
def test_what_finds_no_room_beside_the_rest_is_left_out_and_told(monkeypatch: pytest.MonkeyPatch, each: int) -> None:
    asked = itertools.count(1)
    monkeypatch.setattr(Held, "over", lambda _: "too much" if next(asked) % each == 0 else "")
    checks = ["isolation-earlier", "isolation-two-clients", "repeat-deterministic", "repeat-verify-pure"]
    found = judge(ReferenceServer(), checks=checks)
    assert {check: worst(found[check]) for check in checks} == dict.fromkeys(checks, Verdict.PASS), found
    assert any("smaller rows and replies: too much" in one.caution for check in checks for one in found[check])


def test_a_rollout_that_found_no_room_beside_others_is_played_from_its_start(monkeypatch: pytest.MonkeyPatch) -> None:
    carry, under_way = Endpoint.carry, 0

    async def alone(*asked: Any, **over: Any) -> Reply:
        nonlocal under_way
        under_way += 1
        try:
            if under_way > 1:
                raise NoRoom("smaller rows and replies")
            return await carry(*asked, **over)
        finally:
            under_way -= 1

    monkeypatch.setattr(Endpoint, "carry", alone)
    [finding] = found_by("verify-reward-components", ReferenceServer())
    assert finding.verdict is Verdict.PASS, finding


def test_what_finds_no_room_before_a_search_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    async def read_back(*_: object) -> None:
        raise NoRoom("smaller rows and replies")

    monkeypatch.setattr(read_backs, "expect_read_back", read_back)
    [finding] = found_by("isolation-two-clients", ReferenceServer())
    assert finding.verdict is Verdict.PASS, finding
    assert "was not compared, which needs smaller rows" in finding.caution


def test_reads_that_find_no_room_are_not_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    async def too_much(*_: object) -> None:
        raise NoRoom("smaller rows and replies")

    monkeypatch.setattr(asking_back, "_explored", too_much)
    [finding] = found_by("repeat-deterministic", ReferenceServer())
    assert finding.verdict is Verdict.PASS, finding


def test_where_nothing_finds_room_nothing_was_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Held, "over", lambda _: "too much")
    found = judge(ReferenceServer(), checks=["isolation-earlier", "repeat-deterministic"])
    assert {worst(each) for each in found.values()} == {Verdict.UNTESTABLE}


class PaysSoOften(ReferenceServer):
    """After so many verifies, of all sessions together, what was recorded no longer earns anything."""

    def __init__(self, most: float) -> None:
        super().__init__()
        self.most, self.paid = most, 0

    async def score(self, *scored: Any) -> Score:
        score = await super().score(*scored)
        self.paid += 1
        return score if self.paid <= self.most else replace(score, reward=0.0)


@pytest.mark.parametrize(("most", "verdict"), [(200, Verdict.FAIL), (math.inf, Verdict.PASS)])
def test_a_record_that_held_so_often_and_never_again_is_a_leak(most: float, verdict: Verdict) -> None:
    checks = ("repeat-deterministic", "isolation-earlier")
    assert judged_in_turn(PaysSoOften(most), *checks)["isolation-earlier"] is verdict
