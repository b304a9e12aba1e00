"""Where nothing is recorded, and a draft is shown only between its opening and its commit."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import pytest

from gym_conformance.contract.dataset_rows import Row, Source
from gym_conformance.dataset import Dataset
from gym_conformance.scouting.learn import learn
from gym_mocks.resources import ResourcesServer
from gym_mocks.wire import HttpRefusal
from tests.twins.judging import judge, on_gym, telling


@dataclass
class Page:
    lines: list[str] = field(default_factory=lambda: ["north", "south"])
    draft: list[str] | None = None
    undone: list[list[str]] = field(default_factory=list)

    @property
    def open(self) -> list[str]:
        if self.draft is None:
            raise HttpRefusal(400, "no draft is open")
        return self.draft


def open_draft(state: Page) -> dict[str, int]:
    if state.draft is not None:
        raise HttpRefusal(400, "a draft is open")
    state.draft = list(state.lines)
    return {"lines": len(state.draft)}


def undo(state: Page) -> dict[str, list[str]]:
    if not state.open or not state.undone:
        raise HttpRefusal(400, "there is nothing to undo")
    state.draft = state.undone.pop()
    return {"text": state.draft}


def commit(state: Page) -> dict[str, int]:
    state.lines, state.draft = state.open, None
    return {"lines": len(state.lines)}


def show(state: Page, which: Literal["draft", "committed"]) -> dict[str, Any]:
    return {"text": state.open if which == "draft" else state.lines}


def drafts(*, careful: bool = True) -> ResourcesServer:
    """A page of lines; unless it is `careful`, it remembers what a change may undo before it finds that there is no such line."""

    def replace_line(state: Page, line: int, text: str) -> dict[str, int]:
        before = list(state.open)
        if not careful:
            state.undone.append(before)
        if not 1 <= line <= len(before):
            raise HttpRefusal(400, "there is no such line")
        if careful:
            state.undone.append(before)
        state.draft = [*before[: line - 1], text, *before[line:]]
        return {"replaced": line}

    tools: list[Callable[..., Any]] = [open_draft, replace_line, undo, commit, show]
    return ResourcesServer("drafts", tools=tools, verify=lambda: 0.0, state=Page)


def rows() -> Dataset:
    tools = drafts().declarations
    for tool in tools:
        properties = tool["parameters"]["properties"]
        properties |= {"line": properties["line"] | {"minimum": 1}} if "line" in properties else {}
    asked = [{"responses_create_params": {"input": f"Change page {at}.", "tools": tools}} for at in range(3)]
    return Dataset(tuple(Row(row, Source(Path("a.jsonl"), at)) for at, row in enumerate(asked, 1)), (), len(asked))


def test_a_read_that_was_refused_is_made_once_it_may_be() -> None:
    found = on_gym(drafts(), learn, rows()).known_trajectories
    calls = [[(call.name, call.arguments.get("which", "")) for call in one.calls] for one in found]
    assert any(("open_draft", "") in one and ("show", "draft") in one for one in calls), calls


@pytest.mark.parametrize("careful", [True, False])
def test_a_place_before_the_first_leaves_nothing_behind(careful: bool) -> None:
    found = judge(drafts(careful=careful), rows(), checks={"calls-refused-harmless"})
    assert telling(found) == (set() if careful else {"calls-refused-harmless"})
