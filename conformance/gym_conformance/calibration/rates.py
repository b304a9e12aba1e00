"""How often something happened in a number of rows, and the confidence interval. Pure."""

import math
from dataclasses import dataclass

from gym_conformance.printable import counted

#: Standard deviations of a 95% confidence interval.
_Z = 1.959964


@dataclass(frozen=True)
class Rate:
    """A count out of a number of rows."""

    hits: int
    of: int

    @property
    def interval(self) -> tuple[float, float]:
        """Wilson's 95% interval of the share; (0, 1) for no rows."""
        if not self.of:
            return 0.0, 1.0
        share, square = self.hits / self.of, _Z * _Z
        middle = (share + square / (2 * self.of)) / (1 + square / self.of)
        half = _Z * math.sqrt(share * (1 - share) / self.of + square / (4 * self.of**2)) / (1 + square / self.of)
        return max(0.0, middle - half), min(1.0, middle + half)

    def __str__(self) -> str:
        low, high = self.interval
        return f"{self.hits} of {counted(self.of, 'row')} ({self.hits / max(1, self.of):.0%}; 95% interval {low:.0%} to {high:.0%})"
