"""Only a verify that asked our mock, and crashes on the plainest output too, wants a judge model of its own."""

from dataclasses import dataclass
from typing import Any

import pytest

from gym_conformance.diagnoses.diagnosis import Case
from gym_conformance.diagnoses.mock_too_plain import judge_model
from gym_conformance.gym_under_test import Gym
from gym_conformance.session.exchange import Exchange, Reply, Request
from gym_conformance.trials.bench import Bench
from gym_conformance.trials.launched import JudgeModels, Launched, Saying, TimesAsked
from gym_mocks.reference import ReferenceServer
from gym_mocks.resources import Score, TaskRow
from tests.twins.judging import on_gym
from tests.twins.twin import unrecorded

CRASH = (Exchange(1, Request("POST", "/verify"), Reply(500, (), b"", 0.1)),)


@dataclass
class Model:
    """Counts as the server that is served beside it tells."""

    asked: int = 0
    prompts: tuple[dict[str, Any], ...] = ()

    def says(self, saying: Saying | str) -> None:
        """Say always the same."""


class Asks(ReferenceServer):
    """Asks its judge model, and crashes where `crashes` says so."""

    def __init__(self, model: Model, *, asks: bool, crashes: bool) -> None:
        super().__init__()
        self.model, self.asks, self.crashes = model, asks, crashes

    async def score(self, session_id: str, row: TaskRow, response: dict[str, Any]) -> Score:
        self.model.asked += self.asks
        if self.crashes:
            raise ValueError("no JSON object")
        return await super().score(session_id, row, response)


@pytest.mark.parametrize(
    ("asks", "crashes", "missing"),
    [(True, True, True), (True, False, False), (False, True, False)],
)
def test_it_is_probed_once_with_a_plain_message(asks: bool, crashes: bool, missing: bool) -> None:
    model = Model()
    diagnosis = judge_model()

    async def confirmed(gym: Gym) -> bool:
        bench = Bench(gym, launched=Launched(judge_models=JudgeModels(("judge",), model)))
        case = Case(bench, CRASH, asked=TimesAsked(judge_model=1))
        assert not diagnosis.suspects(Case(bench, CRASH))
        assert not diagnosis.suspects(Case(bench, (), asked=TimesAsked(judge_model=1)))
        assert diagnosis.suspects(case)
        found = await diagnosis.confirm(case)
        assert not diagnosis.suspects(case)
        return found is not None and found.lasts

    assert on_gym(Asks(model, asks=asks, crashes=crashes), confirmed, unrecorded()) is missing
