"""How often something came of so many rows, and how sure that is. Pure."""

import math
from dataclasses import dataclass

from gym_conformance.printable import counted

#: Standard deviations of an interval that holds the true share in 95 of 100 cases.
_Z = 1.959964


@dataclass(frozen=True)
class Rate:
    """So many of so many rows."""

    hits: int
    of: int

    @property
    def interval(self) -> tuple[float, float]:
        """Wilson's interval of the share, at 95 percent; (0, 1) of no rows."""
        if not self.of:
            return 0.0, 1.0
        share, square = self.hits / self.of, _Z * _Z
        middle = (share + square / (2 * self.of)) / (1 + square / self.of)
        half = _Z * math.sqrt(share * (1 - share) / self.of + square / (4 * self.of**2)) / (1 + square / self.of)
        return max(0.0, middle - half), min(1.0, middle + half)

    def __str__(self) -> str:
        low, high = self.interval
        return f"{self.hits} of {counted(self.of, 'row')} ({self.hits / max(1, self.of):.0%}; 95% interval {low:.0%} to {high:.0%})"
