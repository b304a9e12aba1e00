"""Environment servers whose model fails: one that says so in form, and twins that do not, each seen by its own check only."""

import asyncio
import itertools
import json
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from gym_conformance.checks.episodes.run import run_isolation
from gym_conformance.checks.registry import JUDGE_MODELS
from gym_conformance.findings import Finding, Verdict
from gym_conformance.plugin.mocks import MockPeers
from gym_conformance.trials.launched import JudgeModels, Launched
from gym_mocks.agent.loop import body_of
from gym_mocks.wire import HttpReply, HttpRequest
from gym_mocks.wire.client import LocalClient
from tests.twins.judging import ended, running, telling
from tests.twins.run import EpisodeRequest, Playing, Relaying
from tests.twins.twin import Json, unrecorded

OF_MODELS = [check for check in JUDGE_MODELS if check.section == "model"] + [run_isolation]


@pytest.fixture
def mocks() -> Iterator[MockPeers]:
    with ExitStack() as started:
        yield MockPeers(started)


class _Asking(Playing):
    """Asks the policy before it scores, and gives up on it soon."""

    patience = 0.3

    def __init__(self, mocks: MockPeers) -> None:
        super().__init__()
        self.policy = "http://{}:{}/v1/responses".format(*mocks.addresses.policy)

    async def play(self, task: Json) -> Json:
        client = LocalClient()
        try:
            async with asyncio.timeout(self.patience):
                asked = {"content-type": "application/json"}
                reply = await client.request("POST", self.policy, b'{"input":"What now?"}', asked)
        finally:
            await client.close()
        return await super().play(task) | {"said": self.read(reply.status, body_of(reply))}

    def read(self, status: int, said: bytes) -> Any:
        """What the policy said.

        Raises:
            OSError: it said that it failed.
        """
        if status != 200:
            raise OSError(f"the model answers {status}")
        return json.loads(said)["output"]


class _LetsItOut(_Asking):
    async def run(self, request: EpisodeRequest) -> Json:
        return self.answer_with(request, result=await self.play(request.task.task_input))


class _ScoresAnOutage(_Asking):
    def read(self, status: int, said: bytes) -> Any:
        return super().read(status, said) if status == 200 else []


class _Waits(_Asking):
    patience = 60.0


class _DrawsLots(_Asking):
    def __init__(self, mocks: MockPeers) -> None:
        super().__init__(mocks)
        self.lots = itertools.count()

    async def play(self, task: Json) -> Json:
        return await super().play(task) | {"reward": float(next(self.lots) % 2)}


class _MixesRewards(_Asking):
    """Says whose row it is, and earns what another one does."""

    stock: list[Any]

    async def play(self, task: Json) -> Json:
        self.stock = task["stock"]
        result = await super().play(task)
        return result | {"reward": len(self.stock) / 8}


class _Relaying(_Asking, Relaying):
    """Takes rows, and hands on what went wrong, as agents do: `repr` of the error and 500."""


class _Nulls(_Relaying):
    async def _run(self, request: HttpRequest) -> HttpReply:
        try:
            return await super()._run(request)
        except (OSError, ValueError):
            return HttpReply.json(None)


def _judge(server: Playing, judge_models: JudgeModels | None) -> dict[str, list[Finding]]:
    with running(server, unrecorded(), launched=Launched(judge_models=judge_models), timeout=1.0) as run:
        return {check.id: run.judge(check) for check in OF_MODELS}


@pytest.mark.parametrize(
    ("server", "fails"),
    [
        (_Asking, set()),
        (_Relaying, set()),
        (_Waits, set()),
        (_LetsItOut, {"model-fails"}),
        (_Nulls, {"model-fails"}),
        (_ScoresAnOutage, {"model-unscored"}),
        (_DrawsLots, {"model-repeat"}),
        (_MixesRewards, {"run-isolation"}),
    ],
)
def test_a_twin_fails_exactly_its_own(server: type[_Asking], fails: set[str], mocks: MockPeers) -> None:
    found = _judge(server(mocks), JudgeModels(("policy",), mocks))
    assert telling(found) == fails
    assert not ended(found, Verdict.UNTESTABLE) | ended(found, Verdict.NOT_APPLICABLE)
    verdicts = {finding.subject: finding.verdict for finding in found["model-fails"]}
    silent = Verdict.NOT_APPLICABLE if server is _Waits else Verdict.PASS
    assert (verdicts["nothing, for long"] is silent) is ("model-fails" not in fails)


def test_without_a_model_of_ours_it_does_not_apply(mocks: MockPeers) -> None:
    assert mocks.addresses
    for judges in (None, JudgeModels((), mocks)):
        found = _judge(_MixesRewards(mocks), judges)
        assert ended(found, Verdict.NOT_APPLICABLE) == {check.id for check in OF_MODELS} - {"run-isolation"}
        assert ended(found, Verdict.PASS) == {"run-isolation"}, "its policy may sample, for all that is known"
    found = _judge(Playing(), JudgeModels(("policy",), mocks))
    assert ended(found, Verdict.NOT_APPLICABLE) == {"model-fails", "model-unscored"}, "it asks none"
