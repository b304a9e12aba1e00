"""What the checks of one run share beside the gym: how much to search, and what was learned."""

from dataclasses import dataclass, field

from gym_conformance.trajectories.explore import USUAL, Search
from gym_conformance.trajectories.generate import Knowledge


@dataclass
class Memory:
    """Shared by all trials of a run.

    `pid` is the server's process, where it is on this machine and known; `statistics` are Hypothesis's, by check;
    `trials` counts them, one for each subject of a check or example of a property.
    """

    search: Search = USUAL
    pid: int | None = None
    knowledge: Knowledge | None = None
    statistics: dict[str, str] = field(default_factory=dict)
    trials: int = 0
