"""A server that finds titles of its row in any case, and twins that keep what was found, or said, for all sessions."""

import json
from pathlib import Path
from typing import Any

import pytest

from gym_conformance.contract.dataset_rows import Row, Source
from gym_conformance.dataset import Dataset
from gym_mocks.resources import ResourcesServer, TaskRow
from tests.twins.judging import judge, telling
from tests.twins.twin import Turn, rollout_of


class CatalogueRow(TaskRow):
    """A row with the titles that it has."""

    titles: list[str]


def _found(titles: list[str], words: str) -> list[str]:
    return [title for title in titles if words.lower() in title.lower()]


def catalogue(*, cached: bool = False, limited: bool = False, remembering: bool = False) -> ResourcesServer:
    """One that, where it is `cached`, keeps what was found under the words alone, and where `limited` the first page.

    One that is `remembering` scores the last answer of all where none is given.
    """
    kept: dict[str, list[str]] = {}
    last = ""

    def search_titles(state: list[str], words: str, limit: int = 9) -> list[str]:
        """Find titles."""
        found = _found(state, words)[:limit]
        if limited:
            return kept.setdefault(words + state[0], found)
        return kept.setdefault(words.lower(), found) if cached else found

    def verify(row: CatalogueRow, response: dict[str, Any]) -> float:
        nonlocal last
        said = json.dumps(response["output"][-1:])
        last = last if remembering and "It is" not in said else said
        return float(row.titles[0] in last)

    def titles_of(row: CatalogueRow) -> list[str]:
        return row.titles

    return ResourcesServer("catalogue", tools=[search_titles], verify=verify, state=titles_of)


def _data(words: str) -> Dataset:
    """Rows whose recorded rollouts search for these words, `{}` in them being one of the row's titles."""
    rows, rollouts = [], []
    tools = [tool | {"strict": False} for tool in catalogue().declarations]
    for at, (one, other) in enumerate((("River", "Stone"), ("Garden", "Mirror"), ("Bridge", "Harbour")), 1):
        titles = [f"The Silent {one}", f"The Last {other}", f"A {one}"]
        prompt = [{"role": "user", "content": "What is silent?"}]
        row = {"responses_create_params": {"input": prompt, "tools": tools}, "titles": titles}
        rows.append(Row(row, Source(Path("catalogue.jsonl"), at)))
        said = words.format(titles[0])
        asked = ("search_titles", {"words": said}, _found(titles, said))
        answer = titles[at == 3]  # the last one is wrong
        rollouts.append(rollout_of(rows[-1], asked, said=f"It is {answer}.", reward=float(at != 3)))
    return Dataset(tuple(rows), tuple(rollouts), len(rows))


@pytest.mark.parametrize(
    ("kept", "words"),
    [("nothing", "the"), ("nothing", "{}"), ("cached", "the"), ("limited", "{}"), ("remembering", "the")],
)
def test_what_was_found_or_said_is_not_kept_for_other_rows(kept: str, words: str) -> None:
    server = catalogue(**{kept: True} if kept != "nothing" else {})
    findings = judge(server, _data(words), checks={"isolation-earlier"})
    assert telling(findings) == (set() if kept == "nothing" else {"isolation-earlier"})


@pytest.mark.parametrize("kept", [False, True])
def test_what_was_found_once_something_was_added_is_not_kept_for_all(kept: bool) -> None:
    found: dict[str, list[str]] = {}

    def add_title(state: list[str], title: str) -> int:
        """Add a title."""
        state.append(title)
        return len(state)

    def search_titles(state: list[str], statement: str) -> list[str] | str:
        """Find titles by a statement."""
        titles = {"select all titles from the shelf": state, "select the last title of the shelf": state[-1:]}.get(
            statement.lower()
        )
        if titles is None:
            return "Error: no such statement"
        return found.setdefault(statement, list(titles)) if kept else list(titles)

    def titles() -> list[str]:
        return ["The Silent River", "A Stone"]

    server = ResourcesServer("shelf", tools=[add_title, search_titles], verify=lambda: 0.0, state=titles)
    asked = {"input": "Add it.", "tools": server.declarations}
    row = Row({"responses_create_params": asked}, Source(Path("shelf.jsonl"), 1))
    calls: list[Turn] = [
        ("add_title", {"title": "The Silent Garden"}, 3),
        ("search_titles", {"statement": "select the last title of the shelf"}, ["The Silent Garden"]),
    ]
    findings = judge(server, Dataset((row,), (rollout_of(row, *calls),), 1), checks={"isolation-earlier"})
    assert telling(findings) == ({"isolation-earlier"} if kept else set())
