"""Accounts that are asked for by their owner's whole name, and of which only a flag may change: nothing is recorded."""

from pathlib import Path

import pytest

from gym_conformance.contract.dataset_rows import Row, Source
from gym_conformance.dataset import Dataset
from gym_mocks.resources import ResourcesServer
from tests.twins.judging import judge, telling

_OWNERS = {"DE-4401": "Nora Blum", "DE-7710": "Ivo Lang"}


def _desk(*, for_all: bool) -> ResourcesServer:
    frozen_for_all = dict.fromkeys(_OWNERS, False)

    def flags() -> dict[str, bool]:
        return frozen_for_all if for_all else dict.fromkeys(_OWNERS, False)

    def find_accounts(state: dict[str, bool], owner: str) -> dict[str, list[dict[str, object]]]:
        """Find somebody's accounts."""
        own = [number for number, each in _OWNERS.items() if each == owner]
        return {"accounts": [{"number": number, "frozen": state[number]} for number in own]}

    def freeze(state: dict[str, bool], account: str, frozen: bool) -> dict[str, object]:
        """Freeze an account, or unfreeze it."""
        if account not in state:
            return {"error": f"there is no account {account}"}
        state[account] = frozen
        return {"account": account, "frozen": frozen}

    return ResourcesServer("desk", tools=[find_accounts, freeze], verify=lambda: 0.0, state=flags)


@pytest.mark.parametrize("for_all", [False, True])
def test_a_flag_that_all_sessions_share_is_told(for_all: bool) -> None:
    server = _desk(for_all=for_all)
    said = ("I am Nora Blum. Freeze DE-4401, please.", "Ivo Lang speaking. I have lost the card of DE-7710.")
    asked = [{"input": text, "tools": server.declarations} for text in said]
    rows = tuple(Row({"responses_create_params": each}, Source(Path("desk.jsonl"), 1)) for each in asked)
    findings = judge(server, Dataset(rows, (), len(rows)), checks={"isolation-earlier"})
    assert telling(findings) == ({"isolation-earlier"} if for_all else set())
