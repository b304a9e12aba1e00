"""Servers with a judge: one that copes with whatever it says, and twins that do not, each seen by its own check only."""

import re
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import httpx
import pytest

from gym_conformance.checks.registry import CHECKS, JUDGE_MODELS
from gym_conformance.findings import Finding, Verdict
from gym_conformance.plugin.mocks import MockPeers
from gym_conformance.trials.launched import JudgeModels, Launched
from gym_mocks.reference import ReferenceServer
from gym_mocks.resources import Score, TaskRow
from gym_mocks.wire import HttpReply, HttpRequest
from tests.twins.judging import ended, running, telling

#: Made once: each takes longer than a request.
_TLS = httpx.create_ssl_context()

OF_JUDGE_MODELS = [check for check in JUDGE_MODELS if check.id in ("judge-answers", "judge-silent")]


@pytest.fixture
def mocks() -> Iterator[MockPeers]:
    with ExitStack() as started:
        yield MockPeers(started)


class _Judged(ReferenceServer):
    """Asks its judge before it scores, and copes: within seconds, and whatever is said."""

    patience = 2.5
    prompt = "Is it right?"

    def __init__(self, mocks: MockPeers) -> None:
        super().__init__()
        self.judge = "http://{}:{}/v1/responses".format(*mocks.addresses.policy)

    async def score(self, session_id: str, row: TaskRow, response: dict[str, Any]) -> Score:
        try:
            async with httpx.AsyncClient(timeout=self.patience, verify=_TLS) as client:
                reply = await client.post(self.judge, json={"input": self.prompt})
            self.read(reply)
        except httpx.TimeoutException:
            pass
        return await super().score(session_id, row, response)

    def read(self, reply: httpx.Response) -> None:
        """Take anything."""


class _TakesItForGranted(_Judged):
    def read(self, reply: httpx.Response) -> None:
        text = reply.json()["output"][0]["content"][0]["text"]
        assert text.startswith(("Yes", "No", "Is it"))


class _WantsItsOwn(_Judged):
    """Scores nothing with what no judge of its own has said, as 0.7.0's bbq does."""

    def read(self, reply: httpx.Response) -> None:
        text = reply.json()["output"][0]["content"][0]["text"]
        raise ValueError(f"the judge did not return one JSON object: {text}")


class _AsksForJson(_Judged):
    """Scores nothing with anything else, and says so."""

    prompt = 'Is it right? Answer in JSON: {"verdict": "PASS" or "FAIL", "reason": "..."}'

    def read(self, reply: httpx.Response) -> None:
        text = reply.json()["output"][0]["content"][0]["text"] if reply.is_success else ""
        if not re.search(r'"verdict": "(PASS|FAIL)"', text):
            raise RuntimeError(f"the judge did not return the object that it is asked for: {text:.200}")


class _Waits(_Judged):
    patience = 60.0


def _judge(server: ReferenceServer, judge_models: JudgeModels | None) -> dict[str, Any]:
    with running(server, launched=Launched(judge_models=judge_models), timeout=6.0) as run:
        return {check.id: run.judge(check) for check in OF_JUDGE_MODELS}


@pytest.mark.parametrize(
    ("server", "fails"),
    [(_Judged, set()), (_AsksForJson, set()), (_TakesItForGranted, {"judge-answers"}), (_Waits, {"judge-silent"})],
)
def test_a_twin_fails_exactly_its_own(server: type[_Judged], fails: set[str], mocks: MockPeers) -> None:
    found = _judge(server(mocks), JudgeModels(("judge",), mocks))
    assert telling(found) == fails
    assert ended(found, Verdict.PASS) == {check.id for check in OF_JUDGE_MODELS} - fails
    if fails == {"judge-answers"}:
        subjects = {finding.subject for finding in found["judge-answers"] if finding.verdict is Verdict.FAIL}
        assert subjects == {"garbage", "500", "400, as its context is too short"}


class _Strict(_Judged):
    """What is no yes earns nothing, whatever became of the judge."""

    earns, patience = 0.0, 30.0

    async def score(self, *_: object) -> Score:
        async with httpx.AsyncClient(timeout=self.patience, verify=_TLS) as client:
            reply = await client.post(self.judge, json={"input": "Is it right?"})
        if reply.status_code != 200:
            return Score(self.earns)
        return Score(float("Yes" in reply.text))


class _Masks(_Strict):
    """0.5.0 and later can say that the judge failed."""

    def __init__(self, mocks: MockPeers) -> None:
        super().__init__(mocks)
        self.handlers["GET", "/reverify_mode"] = self._mode

    async def _mode(self, _: HttpRequest) -> HttpReply:
        return HttpReply.json("unknown")


class _Pays(_Strict):
    earns = 0.5


class _NoIsANo(_Strict):
    """Whatever is no no is a yes, or as good as half of one."""

    otherwise = 1.0

    async def score(self, *_: object) -> Score:
        async with httpx.AsyncClient(timeout=self.patience, verify=_TLS) as client:
            reply = await client.post(self.judge, json={"input": "Is it right?"})
        if reply.status_code != 200 or "No, " in reply.text:
            return Score(0.0)
        return Score(1.0 if "Yes" in reply.text else self.otherwise)


class _Ties(_NoIsANo):
    otherwise = 0.5


@pytest.mark.parametrize(
    ("server", "told"),
    [(_Strict, ""), (_Masks, "a reward of 0.0, as for a wrong answer"), (_Pays, "a reward of 0.5")],
)
def test_a_judge_that_fails_in_silence(server: type[_Strict], told: str, mocks: MockPeers) -> None:
    found = _found(server(mocks), mocks, "judge-answers")
    failed = {one.subject: one.actual for one in found if one.verdict is Verdict.FAIL}
    assert failed == ({"500": told} if told else {})


@pytest.mark.parametrize(("server", "told"), [(_NoIsANo, {"garbage": "a reward of 1.0"}), (_Ties, {})])
def test_a_verdict_that_cannot_be_read_is_no_yes(server: type[_Strict], told: dict[str, str], mocks: MockPeers) -> None:
    found = _found(server(mocks), mocks, "judge-answers")
    assert {one.subject: one.actual for one in found if one.verdict is Verdict.FAIL} == told


def test_without_a_judge_it_does_not_apply(mocks: MockPeers) -> None:
    assert mocks.addresses
    for judges in (None, JudgeModels((), mocks), JudgeModels(("judge",), mocks)):
        found = _judge(ReferenceServer(), judges)
        assert ended(found, Verdict.NOT_APPLICABLE) == {check.id for check in OF_JUDGE_MODELS}


def _found(server: ReferenceServer, mocks: MockPeers, check: str) -> list[Finding]:
    with running(server, launched=Launched(judge_models=JudgeModels(("judge",), mocks)), timeout=6.0) as run:
        return run.judge(next(one for one in (*CHECKS, *OF_JUDGE_MODELS) if one.id == check))


def test_a_judge_of_its_own_is_named_as_missing(mocks: MockPeers) -> None:
    """It is not where the crash has another cause, and the mock's answers would do."""

    class Crashes(_Judged):
        async def score(self, session_id: str, row: TaskRow, response: dict[str, Any]) -> Score:
            score = await super().score(session_id, row, response)
            return score if response["output"] else Score(1 / 0)

    own = _found(_WantsItsOwn(mocks), mocks, "verify-scores-rows")
    assert {finding.verdict for finding in own} == {Verdict.UNTESTABLE}
    assert own[0].reason.startswith("a judge model that answers in the form it asks for")
    crashes = _found(Crashes(mocks), mocks, "verify-degenerate")
    failed = [one.subject for one in crashes if one.verdict is Verdict.FAIL]
    assert failed == ["empty output", "empty output, on example.jsonl:2"]


def test_a_recorded_reward_is_not_held_against_a_mock_judge(mocks: MockPeers) -> None:
    class Doubts(_Judged):
        async def score(self, session_id: str, row: TaskRow, response: dict[str, Any]) -> Score:
            await super().score(session_id, row, response)
            return Score(0.125)

    found = _found(Doubts(mocks), mocks, "repeat-recorded")
    assert {finding.verdict for finding in found} == {Verdict.NOT_APPLICABLE}
