"""Accounts that are asked for by their owner's whole name, and of which nothing can be paid once they are frozen: nothing is recorded."""

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from gym_mocks.resources import ResourcesServer
from tests.twins.judging import judge, telling
from tests.twins.twin import said_by_users

_OWNERS = {"DE-4401": "Nora Blum", "DE-7710": "Ivo Lang"}


@dataclass
class Account:
    balance: float = 900.0
    frozen: bool = False


def _accounts() -> dict[str, Account]:
    return {number: Account() for number in _OWNERS}


def _desk(habit: str) -> ResourcesServer:
    flags_of_all = _accounts()

    def find_accounts(state: dict[str, Account], owner: str) -> dict[str, list[dict[str, object]]]:
        """Find somebody's accounts."""
        own = {number: account for number, account in state.items() if _OWNERS[number] == owner}
        return {"accounts": [{"number": number, **vars(account)} for number, account in own.items()]}

    def freeze(state: dict[str, Account], account: str, frozen: bool) -> dict[str, object]:
        """Freeze an account, or unfreeze it."""
        if account not in state:
            return {"error": f"there is no account {account}"}
        state[account].frozen = frozen
        return {"account": account, "frozen": frozen}

    def pay(state: dict[str, Account], account: str, amount: float) -> dict[str, object]:
        """Pay from an account."""
        if account not in state or amount <= 0:
            return {"error": f"there is no account {account}, or nothing to pay"}
        own = state[account]
        before, after = own.balance, own.balance - amount
        if own.frozen:
            own.balance = {"pays before it looks": after, "takes a fee": before - 1}.get(habit, before)
            return {"error": f"{account} is frozen"}
        own.balance = after
        return {"account": account, "balance": after}

    tools: list[Callable[..., object]] = [find_accounts, pay, *([] if habit == "pays for all" else [freeze])]
    state = (lambda: flags_of_all) if habit.endswith("for all") else _accounts
    return ResourcesServer("desk", tools=tools, verify=lambda: 0.0, state=state)


@pytest.mark.parametrize(
    ("habit", "told"),
    [
        ("each its own", set()),
        ("takes a fee", set()),
        ("freezes for all", {"isolation-earlier"}),
        ("pays for all", {"isolation-earlier"}),
        ("pays before it looks", {"calls-error-harmless"}),
    ],
)
def test_what_becomes_of_accounts_is_told(habit: str, told: set[str]) -> None:
    server = _desk(habit)
    said = ("I am Nora Blum. Freeze DE-4401, please.", "Ivo Lang speaking. I have lost the card of DE-7710.")
    checks = {"isolation-earlier", "calls-error-harmless"}
    assert telling(judge(server, said_by_users(said, server.declarations), checks=checks)) == told
