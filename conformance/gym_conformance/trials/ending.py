"""How a trial ends when it does not pass."""

from gym_conformance.findings import Cause


class Violation(Exception):
    """The contract is violated.

    Args:
        expected: what the contract requires, in a short phrase.
        actual: what came instead, unescaped; it is escaped and shortened wherever it is shown.
        hint: the likely cause, in an env author's words.
        cause: the cause that it shares with violations of other checks, if known; reports group them by it.
    """

    def __init__(self, expected: str, actual: str, hint: str = "", cause: Cause | None = None) -> None:
        super().__init__(f"expected {expected}, got {actual}")
        self.expected = expected
        self.actual = actual
        self.hint = hint
        self.cause = cause


class NotApplicable(Exception):
    """The rule does not apply to this server; the message is the reason."""


class NotExamined(NotApplicable):
    """The rule may well apply, but examining it takes an option or a file, which the message names. The summary lists it."""


class Untestable(Exception):
    """The check needs something that is missing; the message names it."""
