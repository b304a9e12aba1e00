"""Fines that are paid, as a list of clients says: in a word that ends like an id, in another one, or by a flag that is called like a date."""

from dataclasses import dataclass, field
from typing import Any

import pytest

from gym_mocks.resources import ResourcesServer
from tests.twins.judging import judge, telling
from tests.twins.twin import said_by_users, tool

_FINES = {"F-2071": 45, "F-3390": 30}


@dataclass
class Desk:
    """One session: the fines that it has paid."""

    paid: set[str] = field(default_factory=set)


def _desk(called: str, *, flag: bool, shared: bool) -> ResourcesServer:
    ever, receipts = set[str](), [0]

    def get_fine(state: Desk, fine: str) -> dict[str, Any] | str:
        """Look a fine up."""
        if fine not in _FINES:
            return "Error: there is no such fine"
        done = fine in (ever if shared else state.paid)
        return {"clients": [{"fine": fine, called: done if flag else "yes" if done else "no"}]}

    def pay_fine(state: Desk, fine: str) -> dict[str, Any] | str:
        """Pay a fine."""
        if fine not in _FINES:
            return "Error: there is no such fine"
        state.paid.add(fine)
        ever.add(fine)
        receipts[0] += 1
        return {"receiptid": receipts[0], "amount": _FINES[fine]}

    server = ResourcesServer("fines", tools=[get_fine, pay_fine], verify=lambda: 0.0, state=Desk)
    del server.handlers["GET", "/openapi.json"]
    return server


@pytest.mark.parametrize(("called", "flag"), [("paid", False), ("settled", False), ("overdue_date_passed", True)])
@pytest.mark.parametrize("shared", [False, True])
def test_fines_that_are_paid_for_all_are_told_whatever_says_so(called: str, flag: bool, shared: bool) -> None:
    text = {"type": "string"}
    rows = said_by_users(
        ("Pay my fine F-2071, please.", "I was fined (F-3390)."),
        [tool("get_fine", fine=text), tool("pay_fine", fine=text)],
    )
    checks = {"isolation-earlier", "isolation-interleaved"}
    found = telling(judge(_desk(called, flag=flag, shared=shared), rows, checks=checks))
    assert bool(found) is shared
