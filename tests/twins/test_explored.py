"""What exploring finds where nothing is recorded: tools that later rows declare, or that need what another one took away."""

import asyncio
import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pydantic import Field

from gym_conformance.checks.calls.calls_at_once import Alike, AtOnce
from gym_conformance.contract.dataset_rows import Call, Row, Source
from gym_conformance.dataset import Dataset
from gym_conformance.findings import Verdict
from gym_conformance.gym_under_test import Gym
from gym_conformance.session.channel import Channel
from gym_conformance.trajectories.trajectory import Reference, Trajectory
from gym_conformance.trials.bench import Bench
from gym_conformance.trials.trial import Trial
from gym_mocks.resources import ResourcesServer, TaskRow, last_text
from gym_mocks.wire import HttpRefusal, HttpReply, HttpRequest
from tests.twins.judging import found_by, judge, on_gym, telling


class Room(TaskRow):
    """Who waits in a room, and how many steps into it they were driven back."""

    monsters: list[str]
    driven_back: dict[str, int] = Field(default_factory=dict)


def dungeon(*, current: bool = False) -> ResourcesServer:
    """Monsters are driven back; where it plays in the `current` room, that is the one which was entered last, by anybody."""
    entered: list[Room] = []

    def look(state: Room) -> dict[str, list[str]]:
        return {"monsters": state.monsters}

    def fight(state: Room, monster: str) -> dict[str, int]:
        room = entered[-1] if current else state
        if monster not in room.monsters:
            raise HttpRefusal(404, "no such monster")
        room.driven_back[monster] = room.driven_back.get(monster, 0) + 1
        return {"steps": room.driven_back[monster]}

    def opened(row: Room) -> Room:
        entered.append(row.model_copy(deep=True))
        return entered[-1]

    return ResourcesServer("dungeon", tools=[look, fight], verify=lambda: 0.0, state=opened)


def rooms() -> Dataset:
    """Nobody waits in the first rooms, and so they declare no tool to fight with."""
    look, fight = _declared(dungeon())
    empty: list[tuple[list[dict[str, Any]], dict[str, Any]]] = [([look], {"monsters": []})] * 3
    return _rows(*empty, ([look, fight], {"monsters": ["ogre"]}), ([look, fight], {"monsters": ["rat", "bat"]}))


class Kiosk(TaskRow):
    """What is on sale, and what is in the basket."""

    goods: dict[str, int]
    basket: Counter[str] = Field(default_factory=Counter)


def kiosk(*, shared: bool = False) -> ResourcesServer:
    """Goods are put into a basket, taken out of it and bought; `shared`, what was bought is gone for whoever has the same row."""
    stocks: dict[str, dict[str, int]] = {}

    def put(state: Kiosk, goods: str) -> dict[str, Any]:
        if state.goods.get(goods, 0) <= state.basket[goods]:
            raise HttpRefusal(409, "sold out")
        state.basket[goods] += 1
        return {"goods": goods, "left": state.goods[goods] - state.basket[goods]}

    def remove(state: Kiosk, goods: str) -> dict[str, str]:
        if not state.basket[goods]:
            raise HttpRefusal(404, "not in the basket")
        state.basket[goods] -= 1
        return {"removed": goods}

    def checkout(state: Kiosk) -> dict[str, int]:
        if not (bought := state.basket.total()):
            raise HttpRefusal(400, "the basket is empty")
        for goods, number in state.basket.items():
            state.goods[goods] -= number
        state.basket.clear()
        return {"bought": bought}

    def opened(row: Kiosk) -> Kiosk:
        row = row.model_copy(deep=True)
        if shared:
            row.goods = stocks.setdefault(json.dumps(sorted(row.goods)), row.goods)
        return row

    return ResourcesServer("kiosk", tools=[put, remove, checkout], verify=lambda: 0.0, state=opened)


def on_sale() -> Dataset:
    tools = _declared(kiosk())
    return _rows((tools, {"goods": {"tea": 4, "ink": 3}}), (tools, {"goods": {"mug": 5, "cap": 3}}))


class Inbox(TaskRow):
    """Letters that were not handed out yet."""

    letters: list[str]
    handed_out: int = 0


class AnyOrder(ResourcesServer):
    """Calls that are made at once come to their turn in any order."""

    async def dispatch(self, request: HttpRequest) -> HttpReply:
        await asyncio.sleep(random.random() / 100)
        return await super().dispatch(request)


def post_office() -> ResourcesServer:
    """Letters are handed out one by one, and each can be read."""

    def next_letter(state: Inbox) -> dict[str, str | None]:
        state.handed_out += 1
        return {"letter_id": next(iter(state.letters[state.handed_out - 1 :]), None)}

    def get_letter(state: Inbox, letter_id: str) -> dict[str, int]:
        if letter_id not in state.letters:
            raise HttpRefusal(404, "no such letter")
        return {"page": state.letters.index(letter_id) + 1}

    def opened(row: Inbox) -> Inbox:
        return row.model_copy(deep=True)

    return AnyOrder("post", tools=[next_letter, get_letter], verify=lambda: 0.0, state=opened)


def letters() -> Dataset:
    tools = _declared(post_office())
    return _rows(*((tools, {"letters": [f"{name}-{at}" for at in range(9)]}) for name in ("red", "blue")))


class Question(TaskRow):
    """A row with its answer."""

    expected_answer: str


def exam(*, every: int = 0) -> ResourcesServer:
    """Answers are compared; one in so many counts as wrong, whatever it is. A score is a sum, in an order of its own."""
    scored = Counter[None]()

    def verify(row: Question, response: dict[str, Any]) -> float:
        scored[None] += 1
        wrong = every and not scored[None] % every
        parts = random.sample((0.1, 0.2, 0.7), 3)
        return 0.0 if wrong or last_text(response["output"]) != row.expected_answer else sum(parts)

    return ResourcesServer("exam", verify=verify)


def questions() -> Dataset:
    return _rows(*(([], {"expected_answer": answer}) for answer in ("amber", "birch", "cedar")))


def _declared(server: ResourcesServer) -> list[dict[str, Any]]:
    return [tool | {"strict": False} for tool in server.declarations]


def _rows(*tasks: tuple[list[dict[str, Any]], dict[str, Any]]) -> Dataset:
    prompt = [{"role": "user", "content": "Do what is to be done."}]
    rows = [{"responses_create_params": {"input": prompt, "tools": tools}, **own} for tools, own in tasks]
    return Dataset(tuple(Row(row, Source(Path("tasks.jsonl"), at)) for at, row in enumerate(rows, 1)), (), len(rows))


@pytest.mark.parametrize("current", [False, True])
def test_a_tool_that_only_later_rows_declare_is_tried(current: bool) -> None:
    findings = judge(dungeon(current=current), rooms(), checks={"isolation-interleaved"})
    assert telling(findings) == ({"isolation-interleaved"} if current else set())


@pytest.mark.parametrize("shared", [False, True])
def test_a_tool_is_tried_again_that_needs_what_a_removal_has_taken(shared: bool) -> None:
    findings = judge(kiosk(shared=shared), on_sale(), checks={"isolation-earlier"})
    assert telling(findings) == ({"isolation-earlier"} if shared else set())


def test_a_read_of_what_calls_at_once_gave_differs_by_their_order_alone() -> None:
    """It asks for what the first of them gave, which is another letter where that one is answered last."""

    async def compared(gym: Gym) -> tuple[bool, bool]:
        asked = Call("get_letter", {"letter_id": Reference(0, ("letter_id",), "").as_json()})
        one = AtOnce(Trajectory(gym.rows[0], (*[Call("next_letter", {})] * 3, asked)), 0, 3)
        trial = Trial(Bench(gym))
        forth, again = [await one.made(trial, Channel(gym.endpoint)) for _ in range(2)]
        back = await one.made(trial, Channel(gym.endpoint), back=True)
        return Alike([forth]).differs(again) is None, Alike([forth]).differs(back) is None

    assert on_gym(post_office(), compared, letters()) == (True, False)
    [finding] = found_by("calls-complete", post_office(), letters())
    assert finding.verdict is Verdict.PASS, finding.actual


@pytest.mark.parametrize("every", [0, 25])
def test_an_answer_that_is_seldom_scored_otherwise_is_told(every: int) -> None:
    findings = judge(exam(every=every), questions(), checks={"repeat-deterministic"})
    assert telling(findings) == ({"repeat-deterministic"} if every else set())
