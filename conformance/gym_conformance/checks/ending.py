"""How a trial ends when it does not pass."""


class Violation(Exception):
    """The contract is violated.

    Args:
        expected: what the contract asks, as a short fact.
        actual: what came, as it came; it is escaped and cut where it is shown.
        hint: the likely cause, in an env author's words.
    """

    def __init__(self, expected: str, actual: str, hint: str = "") -> None:
        super().__init__(f"expected {expected}, got {actual}")
        self.expected = expected
        self.actual = actual
        self.hint = hint


class NotApplicable(Exception):
    """The rule says nothing about this server; the message is the reason."""


class Untestable(Exception):
    """Something that the check needs is missing; the message names it."""
