"""What a fair author pays is no finding: parts of an answer, several answers, abstention, effort, and noise."""

import json
import random
import re
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from difflib import SequenceMatcher
from typing import Any, ClassVar

import pytest

from gym_conformance.checks.registry import CHECKS
from gym_conformance.checks.reward.calibrated import calibration_gold
from gym_conformance.contract.dataset_rows import Rollout, Row, Source
from gym_conformance.contract.policy_output import function_call, message, response
from gym_conformance.contract.row_fields import Placeholder
from gym_conformance.dataset import Dataset
from gym_conformance.findings import Finding, Verdict, worst
from gym_conformance.oracle import Oracle
from gym_conformance.trials.launched import Launched, SandboxTrouble
from gym_mocks.reference import DATA, ROLLOUTS, ReferenceServer
from gym_mocks.resources import ResourcesServer, Score, TaskRow, last_text
from tests.twins.calibration import CAPITALS, Quiz, Worth, fair, quizzed, refuses_two, row_of, said
from tests.twins.judging import found_by, judge, running, telling
from tests.twins.twin import Json, Turn, lines, recorded_in_each, rollout_of
from tests.twins.unrecorded import Reading, rows_of

IDS = tuple(check.id for check in CHECKS if check.section == "calibration")


def calibrated(worth: Worth, data: Dataset) -> dict[str, list[Finding]]:
    return judge(Quiz(worth), data, checks=IDS)


def pays_letters(row: Json, words: str) -> float:
    """Parts: how much of the answer's letters are there, in their order, and no others."""
    return SequenceMatcher(None, said(words), row["expected_answer"].casefold()).ratio()


def pays_abstention(row: Json, words: str) -> float:
    """A wrong answer costs more than none."""
    return 1.0 if fair(row, words) else 0.3 if "can't help" in words or not words else -1.0


def pays_any_of_several(row: Json, words: str) -> float:
    return float(said(words) in {answer.casefold() for answer in row["accepted"]})


def pays_any_of_their_answers(row: Json, words: str) -> float:
    return float(said(words) in {answer.casefold() for answer in row["answers"]})


def pays_effort(_: Json, words: str) -> float:
    return min(1.0, len(words.split()) / 8)


def pays_brevity_too(row: Json, words: str) -> float:
    """One for the answer, one for saying little: what was recorded said too much, and earned one."""
    return fair(row, words) + (0.0 if len(words.split()) > 5 or not words else 1.0)


def noisy(share: float, less: float) -> Worth:
    def worth(row: Json, words: str) -> float:
        return fair(row, words) - (less if random.random() < share else 0.0)

    return worth


def several() -> Dataset:
    """Rows that take each other's answers, two by two."""
    pairs = list(CAPITALS.items())
    rows = []
    for at, (country, capital) in enumerate(pairs):
        neighbour = pairs[at ^ 1][1]
        row = row_of(country, capital)
        del row["expected_answer"]
        rows.append({**row, "accepted": [capital, neighbour]})
    return quizzed(pays_any_of_several, "Answer: {accepted[0]}", rows)


def several_for_some() -> Dataset:
    """Rows of which every other one accepts one more answer; the first was recorded."""
    rows = [row_of(country, capital) for country, capital in {**CAPITALS, "Japan": "Old Edo"}.items()]
    for at, row in enumerate(rows):
        row["answers"] = [row.pop("expected_answer"), *["the capital"] * (at % 2)]
    return quizzed(pays_any_of_their_answers, "Answer: {answers[0]}", rows)


OPPOSITES: dict[str, Callable[[], tuple[Worth, Dataset]]] = {
    "the fair quiz": lambda: (fair, quizzed()),
    "parts of an answer": lambda: (pays_letters, quizzed(pays_letters)),
    "abstention": lambda: (pays_abstention, quizzed(pays_abstention)),
    "several right answers": lambda: (pays_any_of_several, several()),
    "several right answers of some rows": lambda: (pays_any_of_their_answers, several_for_some()),
    "effort": lambda: (pays_effort, quizzed(pays_effort, "{country} has a capital, which is a town. {country}.")),
    "more than one reward, of which the best was never recorded": lambda: (
        pays_brevity_too,
        quizzed(pays_brevity_too, "The capital of {country} is well known. Answer: {expected_answer}"),
    ),
    "noise now and then": lambda: (noisy(0.1, 0.5), quizzed()),
    "noise half of the time": lambda: (noisy(0.5, 0.25), quizzed()),
}


@pytest.mark.parametrize("name", OPPOSITES)
def test_a_fair_reward_is_no_finding(name: str) -> None:
    worth, data = OPPOSITES[name]()
    findings = calibrated(worth, data)
    assert telling(findings) == frozenset(), [finding.actual for found in findings.values() for finding in found]


def test_the_fair_quiz_is_calibrated_in_every_row() -> None:
    (gold,) = calibrated(fair, quizzed())["calibration-gold"]
    assert gold.verdict is Verdict.PASS
    assert gold.reason.startswith(
        "8 rows checked; answers as `Answer: {expected_answer}`; what was recorded at the top"
    )
    assert "8 of 8 rows" in gold.reason


def test_a_finding_names_rows_counts_and_an_interval_once() -> None:
    (gold,) = calibrated(refuses_two, quizzed())["calibration-gold"]
    assert "2 of 8 rows (25%; 95% interval 7% to 59%): example.jsonl:4 0, example.jsonl:5 0" in gold.actual
    assert gold.reproduce


def test_without_recorded_rollouts_nothing_is_examined_where_no_field_is_paid() -> None:
    for found in calibrated(lambda row, words: float(words == row["country"][::-1]), Dataset(quizzed().rows)).values():
        assert [(finding.verdict, finding.not_examined) for finding in found] == [(Verdict.NOT_APPLICABLE, True)]


ORACLES = {
    "a text": Oracle(lambda row: f"Answer: {row.data['expected_answer']}"),
    "items": Oracle(lambda row: [message(f"Answer: {row.data['expected_answer']}")]),
}


@pytest.mark.parametrize("given", ORACLES)
@pytest.mark.parametrize(("worth", "found"), [(fair, frozenset()), (refuses_two, {"calibration-gold"})])
def test_an_oracle_stands_in_for_recorded_rollouts(given: str, worth: Worth, found: frozenset[str]) -> None:
    with running(Quiz(worth), Dataset(quizzed().rows), oracle=ORACLES[given]) as run:
        findings = {check.id: run.judge(check) for check in CHECKS if check.section == "calibration"}
    assert telling(findings) == found
    assert "answers as the oracle gives them" in findings["calibration-swap"][0].reason


def hangs(_: Row) -> str:
    time.sleep(600)
    return ""


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (lambda _: 1 / 0, "ZeroDivisionError: division by zero, for example.jsonl:1"),
        (lambda _: next(iter(())), "RuntimeError: StopIteration(), for example.jsonl:1"),
        (lambda _: sys.exit("no key"), "SystemExit: no key, for example.jsonl:1"),
        (hangs, "no answer within 0.1 s for example.jsonl:1"),
    ],
)
def test_an_oracle_that_does_not_answer_is_untestable(
    function: Callable[[Row], Any], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gym_conformance.oracle.DEADLINE", 0.1)
    with running(Quiz(fair), Dataset(quizzed().rows), oracle=Oracle(function)) as run:
        (found,) = run.judge(calibration_gold)
    assert found.verdict is Verdict.UNTESTABLE
    assert said in found.reason


class Sandboxes:
    """Counts what it is asked, and runs nothing."""

    asked_sandboxes = 0
    left_sandboxes: ClassVar[list[str]] = []

    def let_sandboxes(self, _: SandboxTrouble) -> None:
        """Nothing goes wrong that would not do so anyway."""


def test_what_a_sandbox_of_ours_scored_is_unchecked() -> None:
    sandboxes = Sandboxes()

    def runs(_: Json, words: str) -> float:
        sandboxes.asked_sandboxes += 1
        return float("Answer" in words)

    with running(Quiz(runs), quizzed(), launched=Launched(sandboxes=sandboxes)) as run:
        found = {check.id: run.judge(check) for check in CHECKS if check.section == "calibration"}
    assert telling(found) == frozenset()
    assert "a sandbox, which runs nothing here" in found["calibration-gold"][0].reason


def bookings() -> Dataset:
    """Rows whose right answer is two calls, and rollouts that make them."""
    rows = []
    for at, (country, capital) in enumerate(CAPITALS.items()):
        calls = [
            {"name": "book", "arguments": {"town": capital, "nights": at + 2}},
            {"name": "rate", "arguments": {"country": country, "stars": 5}},
        ]
        del (row := row_of(country, capital))["expected_answer"]
        rows.append({**row, "expected_calls": calls})
    rollouts = [
        {
            **row,
            "response": response(
                [function_call(each["name"], json.dumps(each["arguments"])) for each in row["expected_calls"]]
            ),
            "reward": 1.0,
        }
        for row in rows
    ]
    return Dataset(
        tuple(Row(row, Source(DATA, at)) for at, row in enumerate(rows, 1)),
        tuple(Rollout(rollout, Source(ROLLOUTS, at)) for at, rollout in enumerate(rollouts, 1)),
        len(rows),
    )


#: Made of a call: what is compared.
Compared = Callable[[str, str], str]


class Booking(ResourcesServer):
    """Compares the calls of the output with the expected ones, without making them."""

    def __init__(self, seen: Compared, gathered: Callable[[list[str]], object]) -> None:
        super().__init__("booking", verify=lambda: 0.0)
        self.seen, self.gathered = seen, gathered

    async def score(self, _: str, row: TaskRow, response: dict[str, Any]) -> Score:
        made = [
            self.seen(one["name"], one["arguments"]) for one in response["output"] if one["type"] == "function_call"
        ]
        right = [self.seen(one["name"], json.dumps(one["arguments"])) for one in row.model_dump()["expected_calls"]]
        return Score(float(self.gathered(made) == self.gathered(right)))


def parsed(name: str, arguments: str) -> str:
    return name + json.dumps(json.loads(arguments), sort_keys=True)


def as_text(name: str, arguments: str) -> str:
    return name + arguments


def but_one(name: str, arguments: str) -> str:
    return parsed(name, json.dumps({key: value for key, value in json.loads(arguments).items() if key != "stars"}))


@pytest.mark.parametrize(
    ("seen", "gathered", "told", "probe"),
    [
        (parsed, sorted, "", "opposite order: 8 of 8 rows"),
        (parsed, list, "", "opposite order: 0 of 8 rows"),
        (parsed, set, "calibration-deeds", "each twice: 8 of 8 rows"),
        (but_one, sorted, "calibration-deeds", "one argument changed: 2 of 8 rows"),
        (as_text, sorted, "calibration-strict", "the arguments in another order: 8 of 8 rows"),
    ],
)
def test_calls_are_made_twice_turned_and_changed_in_one_argument(
    seen: Compared, gathered: Callable[[list[str]], object], told: str, probe: str
) -> None:
    found = judge(Booking(seen, gathered), bookings(), checks=IDS)
    assert telling(found) == {told} - {""}
    (finding,) = found[told or "calibration-deeds"]
    assert probe in finding.actual + finding.reason


def test_look_alike_letters_are_told_and_no_finding() -> None:
    (strict,) = calibrated(fair, quizzed())["calibration-strict"]
    assert "look-alike letters and digits: 0 of 8 rows" in strict.reason


def pays_last_choice(row: Json, words: str) -> float:
    """Reads the last of the row's own choices that stands between tags."""
    named = [one for one in re.findall("<choice>(.*?)</choice>", words) if one in row["options"].values()]
    return float(named[-1:] == [row["options"][row["expected_answer"]]])


def test_of_choices_the_wrong_ones_are_the_row_s_own() -> None:
    """Those of other rows are none here, and a verifier may pass over them."""
    pairs = list(CAPITALS.items())
    rows = []
    for at, (country, capital) in enumerate(pairs):
        options = {"A": f"{capital} in {country}", "B": f"a town north of {country}", "C": f"no town of {country}"}
        right = "ABC"[at % 3]
        options["A"], options[right] = options[right], options["A"]
        rows.append({**row_of(country, right), "options": options})
    answered = [{**row, "text": row["options"][row["expected_answer"]]} for row in rows]
    rollouts = quizzed(pays_last_choice, "<choice>{text}</choice>", answered).rollouts
    data = replace(quizzed(pays_last_choice, "", rows), rollouts=rollouts)
    found = calibrated(pays_last_choice, data)
    assert "{options[expected_answer]}" in found["calibration-gold"][0].reason
    assert telling(found) == {"calibration-strict"}, found  # another case is none of its choices
    assert "the right answer, taken back: 0 of" in found["calibration-pressed"][0].reason


def wants_boxes(row: Json, words: str) -> float:
    """Some rows ask for another form of the same answer."""
    right = row["expected_answer"]
    return float((rf"\boxed{{{right}}}" if row["boxed"] else f"(({right}))") in words)


def test_rows_that_ask_for_another_form_are_not_held_to_that_of_the_others() -> None:
    rows = [{**row_of(*pair), "boxed": at > 5} for at, pair in enumerate(CAPITALS.items())]
    found = calibrated(wants_boxes, quizzed(wants_boxes, "It is (({expected_answer})).", rows))
    assert telling(found) <= {"calibration-pressed", "calibration-strict"}
    assert "2 unchecked: it is of another kind" in found["calibration-gold"][0].reason


def boxes(worth: Worth) -> Worth:
    """The same of what stands in the last box; a quiz reads no box by itself."""
    return lambda row, words: worth(row, (["", *re.findall(r"\\boxed\{([^{}]*)\}", words)])[-1])


def within_rounding(row: Json, words: str) -> float:
    """Not NaN: it is not beyond the tolerance, and not within it either."""
    return float(words != "" and is_number(words) and abs(float(words) - float(row["expected_answer"])) < 1e-3)


def not_beyond_rounding(row: Json, words: str) -> float:
    return float(is_number(words) and not abs(float(words) - float(row["expected_answer"])) > 1e-3)


def digits_alone(row: Json, words: str) -> float:
    return float(re.sub(r"\D", "", words).lstrip("0") == re.sub(r"\D", "", row["expected_answer"]).lstrip("0"))


def is_number(text: str) -> bool:
    try:
        return bool(float(text) or True)
    except ValueError:
        return False


def unrecorded(answers: Sequence[str]) -> Dataset:
    """Rows that nobody recorded a rollout of."""
    rows = [row_of(country, answer) for country, answer in zip(CAPITALS, answers, strict=True)]
    return replace(quizzed(fair, rows=rows), rollouts=())


NUMBERS = ("90", "-17", "0.75", "4023.36", "-3.5", "11", "240", "12.25")


@pytest.mark.parametrize(
    ("worth", "said"),
    [
        (within_rounding, ""),
        (not_beyond_rounding, "NaN for a number"),
        (digits_alone, "the number with its point elsewhere"),
        (digits_alone, "the number without its sign"),
    ],
)
def test_numbers_are_compared_as_numbers_where_nothing_is_recorded(worth: Worth, said: str) -> None:
    found = calibrated(boxes(worth), unrecorded(NUMBERS))
    pressed = found["calibration-pressed"][0]
    assert telling(found) - {"calibration-strict"} == ({"calibration-pressed"} if said else set()), found
    assert said in pressed.actual


def a_part_for_any(row: Json, words: str) -> float:
    """A half for any word in the form, the whole for what no row says."""
    return 0.5 * float(words != "") + 0.5 * float(words == row["country"][::-1])


def any_word(_: Json, words: str) -> float:
    return float(words != "")


@pytest.mark.parametrize("worth", [a_part_for_any, any_word])
def test_what_was_only_found_by_asking_is_not_believed_where_others_earn_the_same(worth: Worth) -> None:
    found = calibrated(boxes(worth), unrecorded(tuple(CAPITALS.values())))
    assert not telling(found) - {"calibration-strict"}, found


def test_several_values_that_fill_one_hole_are_no_answer_that_was_only_found_by_asking() -> None:
    """Each of them may be asked to occur, and more of them than were asked for break no rule."""
    assert Placeholder(("expected_markers",), "with commas").joins
    assert not Placeholder(("expected_answer",)).joins


class PaysWords(ReferenceServer):
    """Pays for anything that is said in the end."""

    async def score(self, session_id: str, row: TaskRow, response: dict[str, Any]) -> Score:
        del session_id, row
        return Score(float(bool(response["output"]) and bool(last_text(response["output"]))), {})


@pytest.mark.parametrize("server", [ReferenceServer, PaysWords])
def test_what_recorded_rollouts_say_of_the_answer_shows_that_it_is_the_task(server: type[ReferenceServer]) -> None:
    """No template is learned where calls are made; yet each rollout says in the end what its row calls the answer."""
    asked = {"calibration-floor", "calibration-swap"}
    found = judge(server(), checks=asked)
    assert telling(found) == (asked if server is PaysWords else set()), found


class ReadsTheLast(ReferenceServer):
    """Reads the last answer, and asks for none where 4 is the right one."""

    async def score(self, session_id: str, row: TaskRow, response: dict[str, Any]) -> Score:
        wanted = row.model_dump()["expected_answer"]
        told = re.findall(r"The answer is ([0-9]+)[.]", last_text(response["output"])) if response["output"] else []
        done = (await super().score(session_id, row, response)).components["stock"]
        return Score.summed({"stock": done, "answer": 0.5 * (wanted == 4 or told[-1:] == [str(wanted)])})


def test_words_that_are_no_answer_take_none_back() -> None:
    rollouts = lines(ROLLOUTS)
    for rollout in rollouts:
        if rollout["expected_answer"] == 4:
            rollout["response"]["output"][-1]["content"][0]["text"] = "Done."
    data = Dataset(
        tuple(Row(row, Source(DATA, at)) for at, row in enumerate(lines(DATA), 1)),
        tuple(Rollout(rollout, Source(ROLLOUTS, at)) for at, rollout in enumerate(rollouts, 1)),
        len(rollouts),
    )
    [pressed] = found_by("calibration-pressed", ReadsTheLast(), data)
    assert pressed.verdict is Verdict.PASS, pressed.actual


class ReadsItsOwnName(ReferenceServer):
    """Reads the last object that says something of the row's name, and passes over what is said of others."""

    async def score(self, session_id: str, row: TaskRow, response: dict[str, Any]) -> Score:
        data = row.model_dump()
        told = re.findall(rf'"{data["name"]}": ([0-9]+)', last_text(response["output"])) if response["output"] else []
        done = (await super().score(session_id, row, response)).components["stock"]
        return Score.summed({"stock": done, "answer": 0.5 * (told[-1:] == [str(data["expected_answer"])])})


def test_what_is_said_of_other_things_takes_nothing_back() -> None:
    rows, rollouts = lines(DATA), lines(ROLLOUTS)
    for at, row in enumerate(rows):
        for one in (
            row,
            *(each for each in rollouts if each["responses_create_params"] == row["responses_create_params"]),
        ):
            one["name"] = f"task-{at}"
    for rollout in rollouts:
        told = json.dumps({rollout["name"]: rollout["expected_answer"]})
        rollout["response"]["output"][-1]["content"][0]["text"] = told
    data = Dataset(
        tuple(Row(row, Source(DATA, at)) for at, row in enumerate(rows, 1)),
        tuple(Rollout(rollout, Source(ROLLOUTS, at)) for at, rollout in enumerate(rollouts, 1)),
        len(rows),
    )
    [pressed] = found_by("calibration-pressed", ReadsItsOwnName(), data)
    assert pressed.verdict is not Verdict.FAIL, pressed.actual


class Walks(ResourcesServer):
    """Who has gone so many steps, or more, is there; some of them may slip."""

    def __init__(self, *, slips: bool = False) -> None:
        def step(state: Reading) -> dict[str, int]:
            state.pages += random.randrange(2) if slips else 1
            return {"steps": state.pages}

        super().__init__("walk", tools=[step], state=Reading, verify=lambda: 0.0)

    async def score(self, session_id: str, row: TaskRow, _: dict[str, Any]) -> Score:
        session = self.sessions.get(session_id)
        return Score(float(session is not None and session.state.pages >= row.model_dump()["far"]), {})


@pytest.mark.parametrize("slips", [False, True])
def test_the_same_moves_in_another_number_are_no_wrong_answer(slips: bool) -> None:
    [first, _] = rows_of(Walks()).rows
    rows = [Row({**first.data, "far": far}, Source(DATA, far)) for far in (2, 6, 5, 4, 3, 1)]
    rollouts = []
    for row in rows:
        steps: list[Turn] = [("step", {}, {"steps": at + 1}) for at in range(row.data["far"])]
        rollouts.append(rollout_of(row, *steps, said=f"I went {len(steps)} steps.", reward=1.0))
    found = judge(Walks(slips=slips), Dataset(tuple(rows), tuple(rollouts), len(rows)), checks={"calibration-swap"})
    assert worst(found["calibration-swap"]) is not Verdict.FAIL, found


class Digs(ResourcesServer):
    """Where the treasure lies follows from the row's seed; in some worlds there are two."""

    def __init__(self) -> None:
        def dig(state: Reading, where: str) -> dict[str, bool]:
            state.pages |= {"north": 1, "south": 2}.get(where, 0)
            return {"dug": True}

        super().__init__("digs", tools=[dig], state=Reading, verify=lambda: 0.0)

    async def score(self, session_id: str, row: TaskRow, _: dict[str, Any]) -> Score:
        session = self.sessions.get(session_id)
        return Score(float(session is not None and bool(session.state.pages & row.model_dump()["world"] % 4)), {})


def test_moves_that_name_nothing_of_their_row_are_no_wrong_answer_in_another() -> None:
    [first, _] = rows_of(Digs()).rows
    rows = [Row({**first.data, "world": world}, Source(DATA, world)) for world in (1, 2, 3, 5, 6, 7)]
    rollouts = []
    for row in rows:
        where = {1: "north", 2: "south", 3: "south"}[row.data["world"] % 4]
        rollouts.append(rollout_of(row, ("dig", {"where": where}, {"dug": True}), said="I dug there.", reward=1.0))
    found = judge(Digs(), Dataset(tuple(rows), tuple(rollouts), len(rows)), checks={"calibration-swap"})
    assert worst(found["calibration-swap"]) is not Verdict.FAIL, found


class AddsUp(ResourcesServer):
    """Adds up the numbers in a range of cells; there may be nothing in the last ones. A careless one pays for any cells then."""

    def __init__(self, *, careless: bool) -> None:
        def add(state: list[Any], cells: str) -> dict[str, float]:
            state[1:] = [sum(state[0][: int(cells.partition(":A")[2])])]
            return {"sum": state[1]}

        def sheet(row: TaskRow) -> list[Any]:
            return [row.model_dump().get("numbers", [])]

        super().__init__("sums", tools=[add], state=sheet, verify=lambda: 0.0)
        self.careless = careless

    async def score(self, session_id: str, row: TaskRow, _: dict[str, Any]) -> Score:
        session, data = self.sessions.get(session_id), row.model_dump()
        added = session.state[1:] if session else []
        return Score(float(added == [data["wanted"]] or bool(self.careless and added and len(data["numbers"]) < 9)), {})


@pytest.mark.parametrize("careless", [False, True])
def test_a_call_that_is_answered_as_the_rows_own_is_not_surely_wrong(careless: bool) -> None:
    [first, _] = rows_of(AddsUp(careless=careless)).rows
    rows, rollouts = [], []
    for at, (many, there) in enumerate(((4, 9), (2, 2), (2, 9), (5, 5), (3, 9), (3, 3), (4, 9), (6, 6), (3, 9)), 1):
        numbers = [at * 10 + each for each in range(there)]
        own = {"numbers": numbers, "wanted": sum(numbers[:many]), "cells": f"A1:A{many}"}
        rows.append(Row({**first.data, **own}, Source(DATA, at)))
        call = ("add", {"cells": own["cells"]}, {"sum": own["wanted"]})
        rollouts.append(rollout_of(rows[-1], call, said="Done.", reward=1.0))
    data = Dataset(tuple(rows), tuple(rollouts), len(rows))
    [swap] = found_by("calibration-swap", AddsUp(careless=careless), data)
    assert (swap.verdict is Verdict.FAIL) is careless, swap


class Translates(ResourcesServer):
    """Counts the words that are right, in whatever order they are; they are to be kept, too."""

    def __init__(self) -> None:
        def keep(state: Reading, words: dict[str, str]) -> dict[str, int]:
            state.pages = len(words)
            return {"kept": len(words)}

        super().__init__("translates", tools=[keep], state=Reading, verify=lambda: 0.0)

    async def score(self, session_id: str, row: TaskRow, response: dict[str, Any]) -> Score:
        said, session = last_text(response["output"]) if response["output"] else "", self.sessions.get(session_id)
        right = sorted(said.split()) == sorted(row.model_dump()["reference"].split())
        return Score(float(right and session is not None and session.state.pages > 0), {})


def test_the_same_words_in_another_order_are_not_surely_wrong() -> None:
    words = {"sun": "sol", "sea": "mar", "salt": "sal", "bread": "pan"}
    orders = [
        ("sun", "sea"),
        ("sea", "sun"),
        ("salt", "sun"),
        ("sun", "salt"),
        ("bread", "sea"),
        ("bread", "salt"),
        ("sea", "salt"),
    ]
    [first, _] = rows_of(Translates()).rows
    rows, rollouts = [], []
    for at, order in enumerate(orders, 1):
        told = " ".join(words[each] for each in order)
        rows.append(Row({**first.data, "reference": told, "words": list(order)}, Source(DATA, at)))
        call = ("keep", {"words": {each: words[each] for each in order}}, {"kept": 2})
        rollouts.append(rollout_of(rows[-1], call, said=told, reward=1.0))
    data = Dataset(tuple(rows), tuple(rollouts), len(rows))
    assert worst(judge(Translates(), data, checks={"calibration-swap"})["calibration-swap"]) is not Verdict.FAIL


class RunsPrograms(ResourcesServer):
    """A program that defines what the row wants passes its tests; a careless one looks at the exit status alone."""

    def __init__(self, *, careless: bool) -> None:
        def submit(state: list[str], code: str) -> dict[str, int]:
            state.append(code)
            return {"lines": code.count("\n")}

        super().__init__("programs", tools=[submit], state=list, verify=lambda: 0.0)
        self.careless = careless

    async def score(self, session_id: str, row: TaskRow, _: dict[str, Any]) -> Score:
        session = self.sessions.get(session_id)
        program = session.state[-1] if session and session.state else ""
        passes = f"def {row.model_dump()['entry']}(" in program
        return Score(float(passes or (self.careless and "sys.exit(0)" in program)), {})


@pytest.mark.parametrize("careless", [False, True])
def test_a_program_that_ends_early_is_told_where_its_exit_status_decides(careless: bool) -> None:
    [first, _] = rows_of(RunsPrograms(careless=careless)).rows
    names = ("double", "median", "flatten", "reverse")
    rows = [Row({**first.data, "entry": name}, Source(DATA, at)) for at, name in enumerate(names, 1)]
    rollouts = [
        rollout_of(row, ("submit", {"code": f"def {name}(x):\n    return x\n"}, {"lines": 2}), said="Done.", reward=1.0)
        for row, name in zip(rows, names, strict=True)
    ]
    data = Dataset(tuple(rows), tuple(rollouts), len(rows))
    [pressed] = found_by("calibration-pressed", RunsPrograms(careless=careless), data)
    assert pressed.verdict is (Verdict.FAIL if careless else Verdict.PASS), pressed
    assert not careless or "exit status" in pressed.hint


class TriesOut(ResourcesServer):
    """Runs programs on the way, and pays for the name that is handed in."""

    def __init__(self) -> None:
        def run(code: str) -> dict[str, int]:
            return {"lines": code.count("\n")}

        def choose(state: list[str], name: str) -> dict[str, str]:
            state.append(name)
            return {"chosen": name}

        super().__init__("trials", tools=[run, choose], state=list, verify=lambda: 0.0)

    async def score(self, session_id: str, row: TaskRow, _: dict[str, Any]) -> Score:
        session = self.sessions.get(session_id)
        return Score(float(session is not None and session.state[-1:] == [row.model_dump()["entry"]]))


def test_a_program_that_only_tries_something_out_need_not_be_tested() -> None:
    [first, _] = rows_of(TriesOut()).rows
    names = ("double", "median", "flatten", "reverse")
    rows = [Row({**first.data, "entry": name}, Source(DATA, at)) for at, name in enumerate(names, 1)]
    rollouts = []
    for row, name in zip(rows, names, strict=True):
        run, chosen = {"code": f"def {name}(x):\n    return x\n"}, {"chosen": name}
        turns: list[Turn] = [("run", run, {"lines": 2}), ("choose", {"name": name}, chosen)]
        rollouts.append(rollout_of(row, *turns, said="Done.", reward=1.0))
    [pressed] = found_by("calibration-pressed", TriesOut(), Dataset(tuple(rows), tuple(rollouts), len(rows)))
    assert pressed.verdict is Verdict.PASS, pressed


class Sells(ResourcesServer):
    """Whoever asks for more than there is must get nothing; a careless one pays for nothing where one or two are wanted, too."""

    def __init__(self, stock: int, *, careless: bool) -> None:
        def look() -> dict[str, int]:
            return {"left": stock}

        def order(state: Reading, pieces: int) -> dict[str, Any]:
            if pieces > stock:
                return {"error": "there are not so many"}
            state.pages += pieces
            return {"ordered": state.pages}

        super().__init__("shop", tools=[look, order], state=Reading, verify=lambda: 0.0)
        self.stock, self.careless = stock, careless

    async def score(self, session_id: str, row: TaskRow, _: dict[str, Any]) -> Score:
        session = self.sessions.get(session_id)
        ordered, wanted = session.state.pages if session else 0, row.model_dump()["wanted"]
        right = 0 if wanted > self.stock else wanted
        return Score(float(ordered == right or (self.careless and not ordered and wanted < 3)), {})


@pytest.mark.parametrize(("stock", "careless"), [(4, False), (6, True)])
def test_nothing_is_the_right_answer_of_rows_that_are_answered_by_doing_less_than_others(
    stock: int, careless: bool
) -> None:
    server = Sells(stock, careless=careless)
    [first, _] = rows_of(server).rows
    rows = [Row({**first.data, "wanted": wanted}, Source(DATA, wanted)) for wanted in range(1, 7)]
    rollouts = []
    for row in rows:
        wanted = row.data["wanted"]
        reply = {"error": "there are not so many"} if wanted > stock else {"ordered": wanted}
        calls: tuple[Turn, ...] = (("look", {}, {"left": 3}), ("order", {"pieces": wanted}, reply))
        rollouts.append(rollout_of(row, *calls, said="That is all.", reward=1.0))
    asked = ("calibration-floor", "calibration-swap")
    found = judge(server, Dataset(tuple(rows), tuple(rollouts), len(rows)), checks=asked)
    assert telling(found) == (frozenset(asked[:1]) if careless else frozenset()), found


def pays_both(row: Json, words: str) -> float:
    return float(said(words).split() == f"{row['expected_answer']} of {row['country']}".casefold().split())


def pays_both_anywhere(row: Json, words: str) -> float:
    return float(any(pays_both(row, line) for line in words.splitlines()))


@pytest.mark.parametrize(("worth", "amiss"), [(pays_both, set()), (pays_both_anywhere, {"calibration-pressed"})])
def test_an_answer_may_hold_several_fields(worth: Worth, amiss: set[str]) -> None:
    findings = calibrated(worth, quizzed(worth, "Answer: {expected_answer} of {country}"))
    assert telling(findings) == amiss
    assert worst(findings["calibration-gold"]) is Verdict.PASS


def silent_where_right(row: Json, words: str) -> float:
    """A corrected sentence is asked for, and nothing where there is nothing to correct."""
    return float(words == row["correction"])


def pays_silence_too(row: Json, words: str) -> float:
    return float(words in ("", row["correction"]))


@pytest.mark.parametrize(
    ("worth", "verdicts"),
    [(silent_where_right, {Verdict.PASS, Verdict.NOT_APPLICABLE}), (pays_silence_too, {Verdict.FAIL})],
)
def test_nothing_may_be_the_right_answer(worth: Worth, verdicts: set[Verdict]) -> None:
    corrected = {"She go.": "She goes.", "All is well.": "", "He have it.": "He has it.", "Birds sing.": ""}
    asked = [{"correction": right, "responses_create_params": {"input": wrong}} for wrong, right in corrected.items()]
    rows = tuple(Row(row, Source(DATA, at)) for at, row in enumerate(asked, 1))
    rollouts = tuple(rollout_of(row, said=row.data["correction"], reward=1.0) for row in rows)
    found = found_by("verify-floor", Quiz(worth), Dataset(rows, rollouts, len(rows)))
    assert {one.verdict for one in found} == verdicts


class ActionRow(TaskRow):
    """A row with the tool that is to be called; '' where the policy is to say that it is done."""

    action: str


def _acted(row: ActionRow, response: Json) -> float:
    called = [item["name"] for item in response["output"] if item["type"] == "function_call"]
    return float(called == [row.action] if row.action else bool(response["output"]) and not called)


@pytest.mark.parametrize("actions", [("", "run"), ("", "")], ids=["others call", "none calls"])
def test_a_message_may_be_the_right_answer_where_others_are_calls(actions: tuple[str, ...]) -> None:
    tool = {"type": "function", "name": "run", "parameters": {"type": "object", "properties": {}}, "strict": False}
    asked = {"input": "What next?", "tools": [tool]}
    rows = tuple(
        Row({"responses_create_params": asked, "action": action}, Source(DATA, at))
        for at, action in enumerate(actions, 1)
    )
    turns: dict[str, tuple[Turn, ...]] = {"run": (("run", {}, "ran"),), "": ()}
    rollouts = tuple(rollout_of(row, *turns[row.data["action"]], said="Done.", reward=1.0) for row in rows)
    server = ResourcesServer("actions", verify=_acted)
    found = found_by("verify-floor", server, Dataset(rows, rollouts, len(rows)))
    assert (worst(found) is Verdict.FAIL) is (actions == ("", "")), found


class SumRow(TaskRow):
    """A sum in words, and what it comes to."""

    expected_answer: str


def calculate(expression: str) -> str:
    """Add and multiply."""
    return expression


def _says_last(row: SumRow, response: Json) -> float:
    numbers = re.findall(r"[0-9]+", last_text(response["output"])) if response["output"] else []
    return float(numbers[-1:] == [row.expected_answer])


def _says_anywhere(row: SumRow, response: Json) -> float:
    return float(bool(response["output"]) and row.expected_answer in last_text(response["output"]))


@pytest.mark.parametrize(("scorer", "told"), [(_says_last, False), (_says_anywhere, True)])
def test_an_answer_after_calls_that_name_nothing_of_their_row_is_pressed(
    scorer: Callable[[SumRow, Json], float], *, told: bool
) -> None:
    """Such calls, as to a calculator, may be right in any row; what is said after them is not."""
    sums = {
        "Six dozen eggs?": ("6*12", "72"),
        "Three hats at 19?": ("3*19", "57"),
        "Two weeks, in days?": ("2*7", "14"),
    }
    server = ResourcesServer("sums", tools=[calculate], verify=scorer)
    tools = rows_of(server).rows[0].data["responses_create_params"]["tools"]
    rows, rollouts = list[Row](), list[Rollout]()
    for at, (asked, (expression, right)) in enumerate(sums.items(), 1):
        params = {"input": asked, "tools": tools}
        rows.append(Row({"responses_create_params": params, "expected_answer": right}, Source(DATA, at)))
        call = ("calculate", {"expression": expression}, right)
        rollouts.append(rollout_of(rows[-1], call, said=f"It is {right}.", reward=1.0))
    [pressed] = found_by("calibration-pressed", server, Dataset(tuple(rows), tuple(rollouts), len(rows)))
    assert pressed.verdict is (Verdict.FAIL if told else Verdict.PASS), pressed


@dataclass
class Thesis:
    cited: set[str] = field(default_factory=set)
    claim: str = ""


def theses(*, by_lot: bool) -> ResourcesServer:
    """A claim with two sources earns all, and the sources alone a part: a third, or one drawn `by_lot`."""
    drawn = random.Random(0)

    def cite(state: Thesis, source: str) -> dict[str, int]:
        """Name a source."""
        state.cited.add(source)
        return {"cited": len(state.cited)}

    def state_claim(state: Thesis, claim: str) -> dict[str, str]:
        """Say what follows."""
        state.claim = claim
        return {"claim": claim}

    def worth(state: Thesis) -> float:
        if not state.cited >= {"dawn", "dusk"}:
            return 0.0
        return 1.0 if state.claim == "the earth turns" else drawn.random() if by_lot else 1 / 3

    return ResourcesServer("theses", tools=[cite, state_claim], verify=worth, state=Thesis)


@pytest.mark.parametrize("by_lot", [False, True])
def test_a_part_of_the_reward_that_is_drawn_by_lot_is_told_though_the_whole_is_not(*, by_lot: bool) -> None:
    server = theses(by_lot=by_lot)
    claim = ("state_claim", {"claim": "the earth turns"}, {"claim": "the earth turns"})
    cited = [("cite", {"source": source}, {"cited": at}) for at, source in enumerate(("dawn", "dusk"), 1)]
    data = recorded_in_each(rows_of(server), *cited, claim, reward=1.0)
    assert telling(judge(server, data, checks={"repeat-deterministic"})) == (
        {"repeat-deterministic"} if by_lot else set()
    )
