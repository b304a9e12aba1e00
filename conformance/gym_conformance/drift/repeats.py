"""Reads rows without parsing a list of tools again, since in most datasets all rows have the same tools.

If the text of a known list occurs in the line, a mark is parsed in its place. The text was that list only if the mark
then appears at `responses_create_params.tools`; otherwise the whole line is parsed. So the result does not depend on
where the text was found.
"""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from gym_conformance.contract.dataset_rows import Source
from gym_conformance.drift.definitions import Definitions

#: How many bytes of text are kept, and after how many unused texts in a row no more are kept.
KEPT, IN_VAIN = 8_000_000, 2_000

#: Bytes of a text by which it is looked up, and how many texts with the same prefix are tried, one by one.
_PREFIX, _ALIKE = 192, 16

_KEY = re.compile(rb'"tools"\s*:\s*')


@dataclass(frozen=True)
class _Seen:
    text: bytes
    tools: list[Any]
    number: int


class Repeats:
    """Parses the lines of a dataset, and passes the tools of those that `counts` selects to `definitions`.

    Rows with the same tools list share one object, which must not be modified. `number` identifies the list of the last
    line: equal for equal lists, -1 if unknown.
    """

    def __init__(
        self,
        definitions: Definitions,
        parse: Callable[[bytes], Any],
        counts: Callable[[Any], bool] = lambda _: True,
    ) -> None:
        self.definitions = definitions
        self.number = -1
        self._parse = parse
        self._counts = counts
        self._seen: dict[bytes, list[_Seen]] = {}
        self._learnt = self._used = self._size = 0
        self._mark = uuid4().hex  # occurs in no dataset
        self._mark_text = f'"{self._mark}"'.encode()

    def read(self, line: bytes, source: Source) -> Any:
        """The line's JSON value, of any type.

        Raises:
            ValueError: as `parse` does.
        """
        key = _KEY.search(line)
        if key:
            for seen in self._seen.get(line[key.end() : key.end() + _PREFIX], ()):
                if line.startswith(seen.text, key.end()):
                    row = self._parse(line[: key.end()] + self._mark_text + line[key.end() + len(seen.text) :])
                    if _tools(row) == self._mark:
                        return self._again(row, seen, source)
                    break
        row = self._parse(line)
        self.number = -1
        if self._counts(row):
            tools = _tools(row)
            self.number = self.definitions.add(tools, source)
            if key and self.number >= 0:
                self._learn(line[key.end() :], tools, self.number)
        return row

    def _again(self, row: Any, seen: _Seen, source: Source) -> Any:
        self._used += 1
        row["responses_create_params"]["tools"] = seen.tools
        self.number = -1
        if self._counts(row):
            self.number = seen.number
            self.definitions.again(seen.number, source)
        return row

    def _learn(self, rest: bytes, tools: Any, number: int) -> None:
        """Keep the text of the list, newest first, and give up if lists hardly ever recur."""
        if self._learnt > IN_VAIN + self._used:
            return
        try:
            text = rest.decode()
            value, end = json.JSONDecoder().raw_decode(text)
        except (ValueError, RecursionError):
            return
        if value == tools:
            self._learnt += 1
            seen = _Seen(text[:end].encode(), tools, number)
            alike = self._seen.pop(rest[:_PREFIX], [])
            self._seen[rest[:_PREFIX]] = [seen, *alike[: _ALIKE - 1]]  # the newest prefix comes last
            self._size += len(seen.text) - sum(len(each.text) for each in alike[_ALIKE - 1 :])
            while self._size > KEPT and len(self._seen) > 1:
                oldest = self._seen.pop(next(iter(self._seen)))
                self._size -= sum(len(each.text) for each in oldest)


def _tools(row: Any) -> Any:
    params = row.get("responses_create_params") if isinstance(row, dict) else None
    return params.get("tools") if isinstance(params, dict) else None
