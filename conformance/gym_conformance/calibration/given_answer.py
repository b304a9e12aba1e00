"""What a policy hands in for a row. Pure."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from gym_conformance.contract.dataset_rows import Call, Rollout, Source
from gym_conformance.contract.policy_output import Item, function_call, message


@dataclass(frozen=True)
class GivenAnswer:
    """What a policy would hand in for a row.

    Attributes:
        items: the output, without tool results.
        calls: the calls among the items, to be made if the server executes them.
        gold: the parts taken from the row, as text; may be ().
    """

    items: tuple[Item, ...]
    calls: tuple[Call, ...] = ()
    gold: tuple[str, ...] = ()

    @property
    def words(self) -> str:
        """The last message; '' if there is none."""
        return Rollout({"response": {"output": list(self.items)}}, Source(Path(), 0)).last_text

    def saying(self, words: str) -> "GivenAnswer":
        """The same calls with another last message."""
        silent = [item for item in self.items if item.get("type") != "message"]
        return replace(self, items=(*silent, message(words)))

    @staticmethod
    def of(calls: Sequence[Call], words: str, gold: tuple[str, ...] = ()) -> "GivenAnswer":
        """Calls, then a message unless `words` is empty."""
        items = [function_call(call.name, json.dumps(call.arguments), f"call_{at}") for at, call in enumerate(calls)]
        return GivenAnswer((*items, *([message(words)] if words else [])), tuple(calls), gold)
