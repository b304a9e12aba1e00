"""Faults of tools that only the last recorded rollout calls, or none, and of one that undoes."""

from pathlib import Path
from secrets import token_hex
from typing import Any

import pytest

from gym_conformance.contract.dataset_rows import Row, Source
from gym_conformance.dataset import Dataset
from gym_conformance.findings import Verdict
from gym_mocks.resources import ResourcesServer
from tests.twins.judging import found_by
from tests.twins.twin import Turn, rollout_of

State = dict[str, list[str]]


class Desk(ResourcesServer):
    """Things are lent, ordered, filed and given; what is given is kept for all sessions under its name, unless it is `careful`."""

    def __init__(self, *, careful: bool) -> None:
        given: State = {}

        def lend(state: State, thing: str) -> int:
            return put(state, "lent", thing)

        def order(state: State, thing: str) -> int:
            return put(state, "ordered", thing)

        def file(state: State, thing: str) -> int:
            return put(state, "filed", thing)

        def give(state: State, thing: str) -> int:
            return put(state if careful else given, thing, thing)

        def put(state: State, kind: str, thing: str) -> int:
            state.setdefault(kind, []).append(thing)
            return len(state[kind])

        super().__init__("desk", tools=[lend, order, file, give], verify=lambda: 0.0, state=dict)


class Pages(ResourcesServer):
    """Pages are written and undone; what there is to undo is kept under a page's name alone, unless it is `careful`."""

    def __init__(self, *, careful: bool) -> None:
        kept: State = {}

        def write(state: State, page: str, text: str) -> str:
            (state if careful else kept).setdefault(page, []).append(text)
            return "written"

        def undo(state: State, page: str) -> str:
            done = (state if careful else kept).get(page)
            return f"undone {done.pop()}" if done else "nothing to undo"

        super().__init__("pages", tools=[write, undo], verify=lambda: 0.0, state=dict)


def _recorded(server: ResourcesServer, *rollouts: tuple[Turn, ...]) -> Dataset:
    """Rows with the server's tools, each with one of the rollouts."""
    rows = []
    for at, turns in enumerate(rollouts, 1):
        asked = {"input": [{"role": "user", "content": f"Do no. {at}."}], "tools": server.declarations}
        rows.append(
            Row(
                {"responses_create_params": asked, "wanted": next(iter(turns[0][1].values()))},
                Source(Path("a.jsonl"), at),
            )
        )
    recorded = tuple(rollout_of(row, *turns) for row, turns in zip(rows, rollouts, strict=True))
    return Dataset(tuple(rows), recorded, len(rows))


@pytest.mark.parametrize("careful", [False, True])
def test_a_tool_that_the_last_rollout_alone_calls_is_tried_too(careful: bool) -> None:
    def twice(tool: str, thing: str) -> tuple[Turn, ...]:
        return (tool, {"thing": thing}, 1), (tool, {"thing": thing}, 2)

    turns = twice("lend", "a book"), twice("order", "a lamp"), twice("file", "a letter"), twice("give", "a pen")
    [finding] = found_by("isolation-earlier", Desk(careful=careful), _recorded(Desk(careful=True), *turns))
    assert (finding.verdict is Verdict.FAIL) is not careful, finding
    assert careful or "give" in finding.expected


@pytest.mark.parametrize("careful", [False, True])
def test_what_an_earlier_session_left_to_undo_is_told(careful: bool) -> None:
    def written(page: str, text: str) -> tuple[str, dict[str, Any], str]:
        return "write", {"page": page, "text": text}, "written"

    turns = (
        written("plan", "go north"),
        ("undo", {"page": "plan"}, "undone go north"),
        written("plan", "go south"),
    )
    [finding] = found_by("isolation-earlier", Pages(careful=careful), _recorded(Pages(careful=True), turns))
    assert (finding.verdict is Verdict.FAIL) is not careful, finding
    assert careful or "undo" in finding.expected


class Notes(ResourcesServer):
    """Things are listed, and noted under an id that is drawn; where it is not `careful`, anybody's note is found by that."""

    def __init__(self, *, careful: bool) -> None:
        every: dict[str, str] = {}

        def look(state: dict[str, str], note_id: str) -> str:
            return (state if careful else every).get(note_id, "no such note")

        def drop(state: dict[str, str], note_id: str) -> bool:
            return state.pop(note_id, None) is not None

        def note(state: dict[str, str], text: str) -> dict[str, str]:
            note_id = token_hex(4)
            state[note_id] = every[note_id] = text
            return {"note_id": note_id}

        super().__init__("notes", tools=[look, drop, note], verify=lambda: 0.0, state=lambda: {"n0": "bread"})


@pytest.mark.parametrize("careful", [False, True])
def test_an_id_that_another_rollouts_tool_returns_is_asked_for_too(careful: bool) -> None:
    server = Notes(careful=careful)
    data = _recorded(
        server,
        (("look", {"note_id": "n0"}, "bread"), ("drop", {"note_id": "n0"}, True), ("drop", {"note_id": "n0"}, False)),
        (("look", {"note_id": "n0"}, "bread"), ("drop", {"note_id": "n0"}, True)),
        (("note", {"text": "buy milk"}, {"note_id": "5c4b6b3f"}),),
    )
    [finding] = found_by("isolation-told", server, data)
    assert (finding.verdict is Verdict.FAIL) is not careful, finding
    assert careful or "/look" in finding.expected
