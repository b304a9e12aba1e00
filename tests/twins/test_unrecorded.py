"""Servers of which nothing is recorded are tried with answers and words that are found by asking."""

import time
from collections.abc import Callable

import pytest

from gym_conformance.dataset import Dataset
from gym_conformance.findings import Verdict
from gym_mocks.reference import ReferenceServer
from gym_mocks.resources import ResourcesServer
from gym_mocks.wire import HttpReply, HttpRequest
from tests.twins.calibration import CAPITALS, Quiz, quizzed, row_of, said
from tests.twins.judging import found_by, judge, telling
from tests.twins.twin import Json
from tests.twins.unrecorded import (
    ForgetsJobs,
    appointments,
    booked,
    calculated,
    chests,
    compiler,
    counting,
    dark_rooms,
    drafting,
    drafts,
    errands,
    exam,
    examiner,
    found_notes,
    grader,
    library,
    lights,
    lit_rooms,
    pinboard,
    pinned,
    programs,
    quay,
    recorded_jobs,
    rented,
    renting,
    rows_of,
    searching,
    sheet,
    sums,
    words_and_programs,
)


@pytest.mark.parametrize(
    "fault", [{}, *({each: True} for each in ("cached", "counted", "by_task", "by_beginning", "novel"))], ids=str
)
def test_a_score_that_hangs_on_earlier_answers_is_told(fault: dict[str, bool]) -> None:
    findings = judge(grader(**fault), sums(), checks={"isolation-earlier"})
    assert telling(findings) == ({"isolation-earlier"} if fault else set())
    [finding] = findings["isolation-earlier"]
    assert ("as the first 6 times" in finding.expected) == ("counted" in fault)
    assert ("as the first time" in finding.expected) == ("novel" in fault)


@pytest.mark.parametrize("novel", [False, True])
def test_a_word_that_earns_less_once_it_was_said_is_told(novel: bool) -> None:
    """The right word is one of a list."""
    said_before = set[str]()

    def worth(row: Json, words: str) -> float:
        paid = float(said(words) in map(str.casefold, row["accepted"])) * (
            0.5 if novel and words in said_before else 1.0
        )
        said_before.add(words)
        return paid

    rows = [{**row_of(*pair), "accepted": [pair[1]], "expected_answer": None} for pair in CAPITALS.items()]
    data = quizzed(worth, "Answer: {accepted[0]}", rows)
    findings = judge(Quiz(worth), data, checks={"isolation-earlier"})
    assert telling(findings) == ({"isolation-earlier"} if novel else set())


@pytest.mark.parametrize("remembered", [False, True])
def test_a_part_of_the_last_answer_that_fills_in_for_a_missing_one_is_told(remembered: bool) -> None:
    """What an answer cites earns the other half."""
    last = ""

    def worth(row: Json, words: str) -> float:
        nonlocal last
        answer, _, cited = said(words).partition(" [")
        last = cited or (last if remembered else "")
        right = bool(answer == row["expected_answer"].casefold())
        return 0.5 * right + 0.5 * (right and last.strip("].") == row["country"].casefold())

    data = quizzed(worth, "Answer: {expected_answer} [{country}]")
    findings = judge(Quiz(worth), data, checks={"isolation-earlier"})
    assert telling(findings) == ({"isolation-earlier"} if remembered else set())


#: How a server is made, with a fault or without it, what it is judged with, and the check that alone tells the fault.
FAULTS: dict[str, tuple[Callable[[bool], ResourcesServer], Callable[[], Dataset], str]] = {
    "a block whose program is broken": (lambda faulty: compiler(crashes=faulty), programs, "verify-unfinished"),
    "a poor rollout's record": (lambda faulty: lights(partial=faulty), lit_rooms, "repeat-recorded"),
    # rollouts find before they book: only a session that finds after it shows that the next one is told of it
    "kept under the task alone": (lambda faulty: renting(cached=faulty), rented, "isolation-earlier"),
    "a kind of row that is read by other code": (
        lambda faulty: errands(trusting=faulty),
        words_and_programs,
        "verify-degenerate",
    ),
    # no call says the task's id, under which its budget is kept
    "a budget of the task": (lambda faulty: renting(metered=faulty), rented, "isolation-earlier"),
    # no word stands for a cell, but another cell does: one that nobody has used before
    "kept under a text of some pattern": (lambda faulty: sheet(cached=faulty), calculated, "isolation-earlier"),
    # the row's owner stands in it, and words that the tool lists stay as they are: no row could be seeded with others
    "a list that stands for none": (lambda faulty: appointments(shared=faulty), booked, "isolation-told"),
    # what earns anything is only found by handing in what rows say their answers are
    "any answer that a tool takes": (lambda faulty: examiner(generous=faulty), exam, "calibration-swap"),
    "whatever was handed in last": (lambda faulty: examiner(shared=faulty), exam, "isolation-interleaved"),
    "what a row says is to be done": (lambda faulty: lights(pooled=faulty), dark_rooms, "isolation-earlier"),
}


@pytest.mark.parametrize("faulty", [False, True])
@pytest.mark.parametrize(("make", "data", "check"), FAULTS.values(), ids=FAULTS)
def test_a_fault_is_told_and_nothing_without_it(
    make: Callable[[bool], ResourcesServer], data: Callable[[], Dataset], check: str, faulty: bool
) -> None:
    findings = judge(make(faulty), data(), checks={check})
    assert telling(findings) == ({check} if faulty else set())


def test_nothing_is_wrong_with_a_call_that_says_nothing() -> None:
    """What its tool says of it is not said of wrong arguments: it takes none."""
    [finding] = found_by("calls-valid", server := chests(), rows_of(server))
    assert finding.verdict is Verdict.PASS, finding.actual
    assert "no call of open_chest" in finding.caution


@pytest.mark.parametrize("hurried", [False, True])
def test_a_score_that_finds_no_place_is_told(hurried: bool) -> None:
    """Rows of one kind alone are scored by what there is little of, and they are the last."""
    findings = judge(errands(hurried=hurried), words_and_programs(), checks={"isolation-concurrent"})
    assert telling(findings) == ({"isolation-concurrent"} if hurried else set())
    [finding] = findings["isolation-concurrent"]
    assert ("a place in a pool" in finding.hint) == hurried


@pytest.mark.parametrize("lenient", [False, True])
def test_a_program_that_stops_in_its_midst_is_no_right_one(lenient: bool) -> None:
    findings = judge(compiler(lenient=lenient), programs(), checks={"calibration-swap", "calibration-pressed"})
    assert telling(findings) == ({"calibration-pressed"} if lenient else set())
    [finding] = findings["calibration-pressed"]
    assert ("the right answer, cut off in its midst: 5 of 5" in finding.actual) == lenient


@pytest.mark.parametrize("cached", [False, True])
def test_what_is_kept_under_a_part_of_the_arguments_is_told(cached: bool) -> None:
    findings = judge(searching(cached=cached), found_notes(), checks={"isolation-earlier"})
    assert telling(findings) == ({"isolation-earlier"} if cached else set())
    [finding] = findings["isolation-earlier"]
    assert ("part of the arguments" in finding.hint) == cached


def test_a_word_was_told_by_whom_it_was_said_first() -> None:
    """What earlier sessions left on the board, a session only says again: a schedule of that alone shows nothing anew."""
    [finding] = found_by("isolation-told", pinboard(), pinned())
    word = finding.expected.split("'")[1]
    assert any("add_note" in line and word in line for line in finding.trajectory), finding.trajectory
    assert any(word in command for command in finding.reproduce)


@pytest.mark.parametrize("shared", ["", "send_draft", "toss_draft"])
def test_what_another_session_may_use_up_is_told(shared: str) -> None:
    findings = judge(drafting(shared), drafts(), checks={"isolation-interleaved"})
    assert telling(findings) == ({"isolation-interleaved"} if shared else set())
    [finding] = findings["isolation-interleaved"]
    assert ("found by its id or cursor alone" in finding.hint) == bool(shared)


@pytest.mark.parametrize(
    ("server", "told"),
    [(counting(), False), (counting(scoped=False), True), (library(), False)],
    ids=["scoped", "not", "read by all"],
)
def test_what_another_session_has_made_is_not_found_by_its_number(server: ResourcesServer, told: bool) -> None:
    [finding] = found_by("isolation-told", server, rows_of(server))
    assert (finding.verdict is Verdict.FAIL) == told, finding.actual
    assert ("found by its id" in finding.hint) == told


@pytest.mark.parametrize("kind", [ResourcesServer, ForgetsJobs])
def test_a_replay_asks_for_what_it_was_given_itself(kind: type[ResourcesServer]) -> None:
    [finding] = found_by("tool-refused-call", counting(kind=kind), recorded_jobs())
    assert finding.verdict is (Verdict.FAIL if kind is ForgetsJobs else Verdict.PASS), finding.actual


def test_another_rows_calls_may_come_to_this_rows_answer() -> None:
    server, data = quay()
    [finding] = found_by("calibration-swap", server, data)
    assert finding.verdict is not Verdict.FAIL, finding.actual


class NeedsAPassword(ReferenceServer):
    """A tool takes a word that no row and no reply says; where it has none, it says so with a 200, or with a 403."""

    def __init__(self, status: int) -> None:
        super().__init__()
        self.status = status

    async def dispatch(self, request: HttpRequest) -> HttpReply:
        reply = await super().dispatch(request)
        if request.path != "/count_stock":
            return reply
        kept = (pair for pair in reply.headers if pair[0] == "set-cookie")
        return HttpReply.json({"error": "which password?"}, self.status).plus(*kept)


@pytest.mark.parametrize("status", [200, 403])
def test_a_tool_that_was_never_called_with_success_is_named(status: int) -> None:
    [finding] = found_by("calls-valid", NeedsAPassword(status))
    assert finding.verdict is Verdict.PASS, finding.actual
    assert finding.caution.startswith("no call of count_stock was answered without an error")


class Boots(ReferenceServer):
    """Says for a second that it is not there yet."""

    async def dispatch(self, request: HttpRequest) -> HttpReply:
        self.until = getattr(self, "until", time.monotonic() + 1.0)
        if time.monotonic() < self.until:
            return HttpReply.json({"error": "loading"}, 503)
        return await super().dispatch(request)


def test_a_server_that_is_not_there_yet_is_waited_for() -> None:
    findings = judge(Boots(), checks={"live-root", "seed-accepts-rows", "tool-served-declared"})
    assert {finding.verdict for several in findings.values() for finding in several} == {Verdict.PASS}
