"""What all trials of one gym share: the gym, how to try it, and what came of it so far."""

from dataclasses import dataclass, field
from typing import Any

from gym_conformance.calibration.prompt_places import JudgedRow
from gym_conformance.calibration.row_plan import RowPlan
from gym_conformance.calibration.row_scores import Calibration, RowScores
from gym_conformance.contract.dataset_rows import Row
from gym_conformance.findings import Cause
from gym_conformance.gym_under_test import Gym
from gym_conformance.mcp.offer import Offer
from gym_conformance.oracle import Oracle
from gym_conformance.scouting.acting import Exploration
from gym_conformance.trajectories.generate import Knowledge
from gym_conformance.trajectories.in_flight import HERE, Drivers, Load
from gym_conformance.trajectories.outcome import Outcome, Place
from gym_conformance.trajectories.profiles import USUAL, Search
from gym_conformance.trajectories.trajectory import Trajectory
from gym_conformance.trajectories.waiting import TakenUp, Waiting
from gym_conformance.trials.before_and_after import FirstLook
from gym_conformance.trials.launched import NOT_LAUNCHED, Launched
from gym_conformance.trials.program_runners import EndlessProgram


@dataclass(frozen=True)
class Settings:
    """How to try a gym.

    Attributes:
        search: how much to search.
        pid: the server's process, if it is known and on this machine.
        first_look: whether a check of this run wants to know what the untouched server answers.
        load: how many episodes at once are tried, one number after the other.
        oracle: what gives the right answers of rows; None where nobody said.
        rows: which rows of the whole dataset are asked; None for a few.
        drivers: who runs the episodes of a load.
    """

    search: Search = USUAL
    pid: int | None = None
    first_look: bool = True
    load: tuple[int, ...] = ()
    oracle: Oracle | None = None
    rows: RowPlan | None = None
    drivers: Drivers = HERE


@dataclass(frozen=True)
class KnownAlone:
    """What a trajectory came to alone: the outcome of its first run, what differed among so many, and how long one took."""

    outcome: Outcome
    mask: frozenset[Place]
    runs: int
    seconds: float


@dataclass
class Learned:
    """What trials found out about a gym, for those that follow.

    Attributes:
        knowledge: what trajectories are made from; None until a property needs it.
        first_look: what it answered before any session had written anything; None until it is taken.
        replayed: the recorded calls that replays make; None until a check replays them.
        met: what searches were answered, as `Novelty` tells it apart: few go on for what an earlier one met.
        answered: paths that properties have asked for, and that have answered without an error at least once.
        alone: what trajectories came to alone, of the first few.
        waiting: sessions that were begun when it was learned, and are left alone until a check takes them up.
        explored: episodes of a gymnasium-style server that were found by trying; None until a check asks.
        taken_up: what became of those that a check has taken up.
        after_errors: trajectories whose later replies were others after calls that were refused only in words; None until
            that was looked for.
        waited: properties for which what is tried before the search has passed.
        shared: whether sessions were found to share state while they are open.
        apart: whether workers were found to keep sessions of their own.
        evicts: whether what was found last is that a session has no place among so many.
        causes: of the violations so far.
        endless: what came of programs that do not end, by what runs them; why none was run, where none was.
        load: what came of episodes, so many at once; None until they were run.
        offer: what it serves over MCP, as far as it is known.
        calibration: what rows' own answers and others earn; None until a check asks.
        probed: what probes earn in rows; None until a check asks.
        judged_rows: rows whose judge model is shown what the policy writes; None until a check asks.
        earned: what episodes of an environment server earned that were played alone, by their row and what the policy said.
        words: words of their own that sessions were told, each of which no other may hear.
        doubted: seconds spent on comparisons that came to nothing.
        all_noise: how many of them there were in which each control differed.
    """

    knowledge: Knowledge | None = None
    first_look: FirstLook | None = None
    replayed: Trajectory | None = None
    met: set[Any] = field(default_factory=set, repr=False)
    answered: set[str] = field(default_factory=set, repr=False)
    alone: dict[Any, KnownAlone] = field(default_factory=dict, repr=False)
    waiting: list[Waiting] = field(default_factory=list, repr=False)
    explored: Exploration | None = field(default=None, repr=False)
    taken_up: list[TakenUp] = field(default_factory=list, repr=False)
    after_errors: list[Trajectory] | None = field(default=None, repr=False)
    waited: set[str] = field(default_factory=set)
    shared: bool = False
    apart: bool = False
    evicts: bool = False
    causes: set[Cause] = field(default_factory=set)
    endless: dict[str, EndlessProgram | str] = field(default_factory=dict, repr=False)
    load: Load | None = None
    offer: Offer = field(default_factory=Offer)
    calibration: Calibration | None = None
    probed: tuple[RowScores, ...] | None = None
    judged_rows: tuple[JudgedRow, ...] | None = None
    earned: dict[tuple[Row, str], list[float]] = field(default_factory=dict, repr=False)
    words: set[str] = field(default_factory=set, repr=False)
    doubted: float = 0.0
    all_noise: int = 0

    def forget_answers(self) -> None:
        """Forget what it answered, since what it asks answers otherwise from now on: another answer is no other session's doing then."""
        self.knowledge = self.first_look = None
        self.alone.clear()


@dataclass
class Tried:
    """How much was tried.

    Attributes:
        trials: one for each subject of a check or example of a property.
        comparisons: suspicions that were held against chance.
        processes: of a launched server, started beside it.
        statistics: Hypothesis's accounts, by check.
    """

    trials: int = 0
    comparisons: int = 0
    processes: int = 0
    statistics: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Bench:
    """A gym, and everything that trials need beside it."""

    gym: Gym
    settings: Settings = Settings()
    launched: Launched = NOT_LAUNCHED
    learned: Learned = field(default_factory=Learned)
    tried: Tried = field(default_factory=Tried)
