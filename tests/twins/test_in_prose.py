"""A help desk that answers in prose, and numbers its tickets over all sessions; and twins that share more than numbers."""

from itertools import count
from pathlib import Path

import pytest

from gym_conformance.contract.dataset_rows import Row, Source
from gym_conformance.dataset import Dataset
from gym_mocks.resources import ResourcesServer, TaskRow
from tests.twins.judging import judge, telling
from tests.twins.twin import rollout_of


class DeskRow(TaskRow):
    """A row with the title of the ticket that is to be opened and closed."""

    title: str


def desk(shares: str = "") -> ResourcesServer:
    """One that shares its `tickets`, which are then found by their numbers alone, or says how many are `open` anywhere."""
    numbers = count(2_000)
    everywhere: dict[int, str] = {}

    def open_ticket(state: dict[int, str], title: str) -> str:
        """Open a ticket."""
        number = next(numbers)
        state[number] = everywhere[number] = title
        return f"Opened ticket {number}, {len(everywhere if shares == 'open' else state)} in all."

    def close_ticket(state: dict[int, str], ticket: int) -> str:
        """Close a ticket."""
        title = (everywhere if shares == "tickets" else state).pop(ticket, None)
        if title is None:
            return f"There is no ticket {ticket}."
        everywhere.pop(ticket, None)
        state[ticket] = f"closed: {title}"
        return f"Ticket {ticket} is closed."

    def verify(row: DeskRow, state: dict[int, str]) -> float:
        return float(f"closed: {row.title}" in state.values())

    return ResourcesServer("desk", tools=[open_ticket, close_ticket], verify=verify, state=dict)


def data(*, recorded: bool) -> Dataset:
    rows, rollouts = [], []
    for at, title in enumerate(("Printer down", "Badge lost", "VPN drops"), 1):
        prompt = [{"role": "user", "content": f"Open a ticket '{title}', and close it."}]
        row = {"responses_create_params": {"input": prompt, "tools": desk().declarations}, "title": title}
        rows.append(Row(row, Source(Path("desk.jsonl"), at)))
        number = 1_040 + at
        turns = (
            ("open_ticket", {"title": title}, f"Opened ticket {number}, 1 in all."),
            ("close_ticket", {"ticket": number}, f"Ticket {number} is closed."),
        )
        rollouts.append(rollout_of(rows[-1], *turns, reward=1.0))
    return Dataset(tuple(rows), tuple(rollouts) if recorded else (), len(rows))


_CHECKS = {"isolation-interleaved", "repeat-recorded", "repeat-deterministic", "drift-argument-refused"}


@pytest.mark.parametrize("recorded", [True, False], ids=["recorded", "not recorded"])
@pytest.mark.parametrize("shares", ["", "tickets"])
def test_tickets_are_followed_by_numbers_that_only_prose_says(shares: str, *, recorded: bool) -> None:
    told = telling(judge(desk(shares), data(recorded=recorded), checks=_CHECKS))
    assert told == ({"isolation-interleaved"} if shares else set())


def test_words_beside_a_number_that_varies_are_compared() -> None:
    told = telling(judge(desk("open"), data(recorded=True), checks=_CHECKS))
    assert told == {"isolation-interleaved"}
