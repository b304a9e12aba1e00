"""The live server's answer to a drift's witness. Pure."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class LiveAnswer(StrEnum):
    """The result of trying a witness, as reports show it."""

    CONFIRMED = "confirmed"
    NOT_CONFIRMED = "not confirmed"
    NOT_TRIED = "not tried"
    NOTHING_TO_TRY = ""


@dataclass(frozen=True)
class Live:
    """The live server's answer; `detail` has how it answered, or why it was not asked.

    It is `undecided` if the witness was refused and so was everything it was compared with, so that the reason is
    unknown.
    """

    said: LiveAnswer
    detail: str
    undecided: bool = False

    @property
    def confirmed(self) -> bool:
        """Whether the drift is visible to any client."""
        return self.said is LiveAnswer.CONFIRMED


NOTHING_TRIED: Final = Live(LiveAnswer.NOTHING_TO_TRY, "")
