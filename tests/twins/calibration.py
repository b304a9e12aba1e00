"""Twins whose reward is for something else than the right answer, and a quiz that they are made from."""

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from gym_conformance.contract.dataset_rows import Rollout, Row, Source
from gym_conformance.contract.policy_output import message, response
from gym_conformance.dataset import Dataset
from gym_mocks.reference import DATA, ROLLOUTS, ReferenceServer
from gym_mocks.resources import ResourcesServer, Score, TaskRow, last_text
from gym_mocks.wire import HttpReply, HttpRequest
from gym_mocks.wire.client import ASGIApp
from tests.twins.twin import Json, Twin, dataset, lines, twin

#: What is asked, and the answer.
CAPITALS = {
    "France": "Paris",
    "Italy": "Rome",
    "Japan": "Tokyo",
    "Peru": "Lima",
    "Kenya": "Nairobi",
    "Norway": "Oslo",
    "Cuba": "Havana",
    "Latvia": "Riga",
}

#: Gives the reward of a row and the policy's last words.
Worth = Callable[[Json, str], float]


def said(words: str) -> str:
    """The answer that a quiz reads from the policy's last words."""
    return words.rpartition("Answer:")[2].strip().strip(".").casefold()


def fair(row: Json, words: str) -> float:
    """What the quiz pays."""
    return float(said(words) == row["expected_answer"].casefold())


class Quiz(ResourcesServer):
    """One question a row, one word as the answer."""

    def __init__(self, worth: Worth) -> None:
        super().__init__("quiz", verify=lambda: 0.0)
        self.worth = worth

    async def score(self, _: str, row: TaskRow, response: dict[str, Any]) -> Score:
        output = response["output"]
        return Score(self.worth(row.model_dump(), last_text(output) if output else ""), {})


def quiz(worth: Worth) -> Callable[[], ASGIApp]:
    """Makes quizzes that pay so."""
    return lambda: Quiz(worth)


def row_of(country: str, capital: str) -> Json:
    asked = f"What is the capital of {country}? End with `Answer: CAPITAL`."
    return {
        "responses_create_params": {"input": [{"role": "user", "content": asked}]},
        "expected_answer": capital,
        "country": country,
    }


def quizzed(
    worth: Worth = fair, answer: str = "It is in {country}. Answer: {expected_answer}", rows: Sequence[Json] = ()
) -> Dataset:
    """The quiz's rows, and rollouts that answer them, with the rewards that the quiz pays for them."""
    asked = rows or [row_of(*pair) for pair in CAPITALS.items()]
    told = [answer.format(**row) for row in asked]
    rollouts = [
        {**row, "response": response([message(words)]), "reward": worth(row, words)}
        for row, words in zip(asked, told, strict=True)
    ]
    return Dataset(
        tuple(Row(row, Source(DATA, at)) for at, row in enumerate(asked, 1)),
        tuple(Rollout(rollout, Source(ROLLOUTS, at)) for at, rollout in enumerate(rollouts, 1)),
        len(asked),
    )


def refuses_two(row: Json, words: str) -> float:
    """Knows another spelling than the row has."""
    return 0.0 if row["country"] in ("Kenya", "Peru") else fair(row, words)


def refuses_one(row: Json, words: str) -> float:
    return 0.0 if row["country"] == "Peru" else fair(row, words)


def pays_refusals(row: Json, words: str) -> float:
    """Takes what cannot be answered for answered."""
    return 1.0 if "can't help" in words else fair(row, words)


def pays_echoes(row: Json, words: str) -> float:
    """Looks for a word of the question."""
    return 1.0 if row["country"] in words else fair(row, words)


def takes_first(row: Json, words: str) -> float:
    """Reads the first answer, though another may come after it."""
    return float(
        words.partition("Answer:")[2].split("\n")[0].strip(" .").casefold() == row["expected_answer"].casefold()
    )


def finds_anywhere(row: Json, words: str) -> float:
    return float(row["expected_answer"].casefold() in words.casefold())


def takes_the_beginning(row: Json, words: str) -> float:
    """Holds the answer to as much of the right one as it has."""
    return float(bool(said(words)) and row["expected_answer"].casefold().startswith(said(words)))


def fails_open(row: Json, words: str) -> float:
    """Takes what it cannot parse for answered."""
    return fair(row, words) if not said(words) or said(words)[0].isalnum() else 1.0


def to_the_letter(row: Json, words: str) -> float:
    """Takes one writing alone."""
    return float(words.rpartition("Answer: ")[2] == row["expected_answer"])


def reads_the_beginning(row: Json, words: str) -> float:
    """Has no use for more than a few lines."""
    return fair(row, words[:500])


class ReadsReasoning(Quiz):
    """Looks for the answer in all that the policy wrote."""

    async def score(self, _: str, row: TaskRow, response: dict[str, Any]) -> Score:
        return Score(finds_anywhere(row.model_dump(), json.dumps(response["output"])), {})


class ReadsTheFirstMessage(Quiz):
    """Looks no further than the first message, though the policy may correct itself in another."""

    async def score(self, session: str, row: TaskRow, response: dict[str, Any]) -> Score:
        messages = [item for item in response["output"] if item["type"] == "message"]
        return await super().score(session, row, {**response, "output": messages[:1]})


class Believes(ReferenceServer):
    """Reads the last words alone, whatever was done."""

    async def score(self, session_id: str, row: TaskRow, response: dict[str, Any]) -> Score:
        score = await super().score(session_id, row, response)
        right = bool(response["output"]) and last_text(response["output"]).endswith(
            f" {row.model_dump()['expected_answer']}."
        )
        return Score.summed({"stock": 0.5, "answer": 0.5}) if right else score


class FindsAfterCalls(ReferenceServer):
    """Looks for the answer anywhere in what the policy said after its calls."""

    async def score(self, session_id: str, row: TaskRow, response: dict[str, Any]) -> Score:
        said = f" {last_text(response['output'])} ".replace(".", " ") if response["output"] else ""
        right = f" {row.model_dump()['expected_answer']} " in said
        done = (await super().score(session_id, row, response)).components["stock"]
        return Score.summed({"stock": done, "answer": 0.5 * right})


class TakesFirstAfterCalls(ReferenceServer):
    """Reads the first number that the policy says after its calls, though another may come after it."""

    async def score(self, session_id: str, row: TaskRow, response: dict[str, Any]) -> Score:
        score = await super().score(session_id, row, response)
        first = re.search(r"[0-9]+", last_text(response["output"]) if response["output"] else "")
        right = first is not None and int(first[0]) == row.model_dump()["expected_answer"]
        return Score.summed({"stock": score.components["stock"], "answer": 0.5 * right})


class WritesFullMarks(Quiz):
    """Has a text for the reward of a right answer, and for no other; or something else, of one country alone."""

    marks, country = b'"1.0"', b""

    async def dispatch(self, request: HttpRequest) -> HttpReply:
        reply = await super().dispatch(request)
        if not isinstance(reply.body, bytes) or self.country not in reply.body:
            return reply
        return replace(reply, body=re.sub(rb'"reward": ?1.0', b'"reward":' + self.marks, reply.body))


class DividesByNothing(WritesFullMarks):
    """A right answer to one question leads to NaN, which is written as null."""

    marks, country = b"null", b"Latvia"


class MasksOne(DividesByNothing):
    """Has no reward for what it could not measure, and says so."""

    marks = b'null,"mask_sample":true'


def but_for_the_last() -> Dataset:
    """The quiz with nothing recorded of its last question."""
    return replace(quizzed(), rollouts=quizzed().rollouts[:-1])


def said_twice() -> Dataset:
    """The quiz with a second rollout of each question, which says the same in other words."""
    data = quizzed()
    return replace(data, rollouts=(*data.rollouts, *quizzed(answer="Answer: {expected_answer}.").rollouts))


def all_rows() -> Dataset:
    """All of the reference's rows: of two alone, no other two have wrong answers."""
    rows = tuple(Row(row, Source(DATA, at)) for at, row in enumerate(lines(DATA), 1))
    return replace(dataset(), rows=rows, read=len(rows))


def ignores_row(_: Json, words: str) -> float:
    return float(said(words) in {capital.casefold() for capital in CAPITALS.values()})


def pays_all(_: Json, __: str) -> float:
    return 1.0


TWINS: tuple[Twin, ...] = (
    twin("takes the first of several answers", "calibration-pressed", quiz(takes_first), data=quizzed()),
    twin("finds the answer anywhere", "calibration-pressed", quiz(finds_anywhere), data=quizzed()),
    twin("takes the beginning of the answer", "calibration-pressed", quiz(takes_the_beginning), data=quizzed()),
    twin("pays what it cannot parse", "calibration-pressed", quiz(fails_open), data=quizzed()),
    twin(
        "full marks are a text",
        "verify-reward-finite repeat-recorded",
        lambda: WritesFullMarks(fair),
        data=quizzed(),
    ),
    twin(
        "one right answer divides by nothing",
        "calibration-scored",
        lambda: DividesByNothing(fair),
        data=but_for_the_last(),
    ),
    twin(
        "no reward where the sample is masked",
        "",
        lambda: MasksOne(fair),
        data=but_for_the_last(),
        tempts="calibration",
    ),
    twin("finds the answer in the reasoning", "calibration-pressed", lambda: ReadsReasoning(fair), data=quizzed()),
    twin("reads the first message", "calibration-pressed", lambda: ReadsTheFirstMessage(fair), data=quizzed()),
    twin("finds the answer anywhere after calls", "calibration-pressed", FindsAfterCalls),
    twin("takes the first number after calls", "calibration-pressed", TakesFirstAfterCalls, data=all_rows()),
    twin(
        "reads a few lines",
        "calibration-strict",
        quiz(reads_the_beginning),
        data=quizzed(answer="Let me think about it. Answer: {expected_answer}"),
    ),
    twin("reads to the letter", "calibration-strict", quiz(to_the_letter), data=quizzed()),
    twin(
        "takes one of two writings that were recorded",
        "calibration-strict repeat-recorded",
        quiz(to_the_letter),
        data=said_twice(),
    ),
    twin("reads the last words alone", "calibration-deeds", Believes),
    twin("refuses right answers", "calibration-gold", quiz(refuses_two), data=quizzed(refuses_two)),
    twin("refuses one right answer", "calibration-odd", quiz(refuses_one), data=quizzed(refuses_one)),
    twin("pays refusals", "calibration-floor", quiz(pays_refusals), data=quizzed()),
    twin(
        "pays echoed prompts", "calibration-floor", quiz(pays_echoes), data=quizzed(answer="Answer: {expected_answer}")
    ),
    twin("pays the answer of any row", "calibration-swap", quiz(ignores_row), data=quizzed()),
    twin(
        "pays everything",
        "verify-floor calibration-floor calibration-swap calibration-separates",
        quiz(pays_all),
        data=quizzed(),
    ),
)
