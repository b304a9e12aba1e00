"""A verify that waits for rollouts of other rows, by its own log: it answers none alone, however long it is waited for."""

import re
from collections.abc import Sequence
from typing import Final

from gym_conformance.contract.endpoints import VERIFY
from gym_conformance.diagnoses.diagnosis import Case, Missing

#: So many of so many are there, and what is said of those that are (`critpt` of nemo-gym 0.7.0: "1/70 submissions buffered").
_COUNT: Final = re.compile(r"(?<![\d./])(\d{1,6})\s*(?:/|of|out of)\s*(\d{1,6})(?![\d./])")
_WAITING: Final = re.compile(r"\b(?:wait(?:s|ing)?|awaiting|buffer(?:ed|ing)?|pending|collected)\b", re.IGNORECASE)

#: Characters of a line that are shown.
_CUT: Final = 200


class AwaitsOthers:
    """A hung verify, where the server has just printed that more has to come.

    Groups of one prompt's rollouts are found otherwise, and sent. Rollouts of so many different rows cannot be made up.
    """

    def suspects(self, case: Case) -> bool:
        """Whether a verify got no answer in time, and no other host was asked for one."""
        return case.hung is not None and case.hung.path == VERIFY and not case.asked.outside

    async def confirm(self, case: Case) -> Missing | None:
        """Read what it printed meanwhile."""
        line = _waiting(case.log())
        if not line:
            return None
        return Missing(
            f"rollouts of other rows, without which POST {VERIFY} does not answer; it printed: {line}", lasts=True
        )


def _waiting(log: Sequence[str]) -> str:
    """The last line that says so; '' where none does."""
    for line in reversed(log):
        count = _COUNT.search(line)
        if count and int(count[1]) < int(count[2]) and _WAITING.search(line):
            return line.strip()[:_CUT]
    return ""
