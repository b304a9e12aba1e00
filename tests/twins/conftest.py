"""What all twins have in common."""

import pytest

from gym_conformance.trials import recorded


@pytest.fixture(autouse=True)
def _nothing_comes_by_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """A twin answers at once or never: seconds before a record is called stale would be wasted."""
    monkeypatch.setattr(recorded, "PAUSES", (0.01,))
