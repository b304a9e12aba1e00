"""How a trial ends when it does not pass."""

from gym_conformance.findings import Cause


class Violation(Exception):
    """The contract is violated.

    Args:
        expected: what the contract asks, as a short fact.
        actual: what came, as it came; it is escaped and cut where it is shown.
        hint: the likely cause, in an env author's words.
        cause: what reports group it by with the violations of other checks, where it is known.
    """

    def __init__(self, expected: str, actual: str, hint: str = "", cause: Cause | None = None) -> None:
        super().__init__(f"expected {expected}, got {actual}")
        self.expected = expected
        self.actual = actual
        self.hint = hint
        self.cause = cause


class NotApplicable(Exception):
    """The rule says nothing about this server; the message is the reason."""


class NotExamined(NotApplicable):
    """The rule may well apply, but an option or a file is missing to look; the message names it. The summary says so."""


class Untestable(Exception):
    """Something that the check needs is missing; the message names it."""
