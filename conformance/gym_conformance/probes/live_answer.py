"""What the live server said to a drift's witness. Pure."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class LiveAnswer(StrEnum):
    """What came of a witness; as the reports show it."""

    CONFIRMED = "confirmed"
    NOT_CONFIRMED = "not confirmed"
    NOT_TRIED = "not tried"
    NOTHING_TO_TRY = ""


@dataclass(frozen=True)
class Live:
    """What the live server said, and in `detail` how it said it, or why it was not asked.

    It is `undecided` where the witness was refused, and so was everything beside it: nobody knows for what.
    """

    said: LiveAnswer
    detail: str
    undecided: bool = False

    @property
    def confirmed(self) -> bool:
        """Whether the drift is there for any client to see."""
        return self.said is LiveAnswer.CONFIRMED


NOTHING_TRIED: Final = Live(LiveAnswer.NOTHING_TO_TRY, "")
