"""A server that finds titles of its row in any case, and a twin that keeps what it has found for all sessions."""

import json
from pathlib import Path
from typing import Any

import pytest

from gym_conformance.contract.dataset_rows import Row, Source
from gym_conformance.dataset import Dataset
from gym_mocks.resources import ResourcesServer, TaskRow
from tests.twins.judging import judge, telling
from tests.twins.twin import rollout_of


class CatalogueRow(TaskRow):
    """A row with the titles that it has."""

    titles: list[str]


def _found(titles: list[str], words: str) -> list[str]:
    return [title for title in titles if words.lower() in title.lower()]


def catalogue(*, cached: bool = False) -> ResourcesServer:
    """One that, where it is `cached`, keeps what was found under the words alone."""
    kept: dict[str, list[str]] = {}

    def search_titles(state: list[str], words: str) -> list[str]:
        """Find titles."""
        found = _found(state, words)
        return kept.setdefault(words.lower(), found) if cached else found

    def verify(row: CatalogueRow, response: dict[str, Any]) -> float:
        return float(row.titles[0] in json.dumps(response["output"][-1]))

    def titles_of(row: CatalogueRow) -> list[str]:
        return row.titles

    return ResourcesServer("catalogue", tools=[search_titles], verify=verify, state=titles_of)


def _data() -> Dataset:
    rows, rollouts = [], []
    tools = [tool | {"strict": False} for tool in catalogue().declarations]
    for at, (one, other) in enumerate((("River", "Stone"), ("Garden", "Mirror"), ("Bridge", "Harbour")), 1):
        titles = [f"The Silent {one}", f"The Last {other}", f"A {one}"]
        prompt = [{"role": "user", "content": "What is silent?"}]
        row = {"responses_create_params": {"input": prompt, "tools": tools}, "titles": titles}
        rows.append(Row(row, Source(Path("catalogue.jsonl"), at)))
        asked = ("search_titles", {"words": "the"}, _found(titles, "the"))
        rollouts.append(rollout_of(rows[-1], asked, said=f"It is {titles[0]}.", reward=1.0))
    return Dataset(tuple(rows), tuple(rollouts), len(rows))


@pytest.mark.parametrize("cached", [False, True])
def test_what_is_found_under_words_in_any_case_is_not_kept_for_other_rows(cached: bool) -> None:
    findings = judge(catalogue(cached=cached), _data(), checks={"isolation-earlier"})
    assert telling(findings) == ({"isolation-earlier"} if cached else set())
