"""What runs the programs of a policy: verify, where a row asks for one, and tools that take a program or a command."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice

from gym_conformance.contract.dataset_rows import Call, Row, Tool
from gym_conformance.contract.openapi import ServerKind
from gym_conformance.drift.definitions import Definition
from gym_conformance.gym_under_test import Gym
from gym_conformance.scouting.answers import asks_for_python
from gym_conformance.session.channel import Channel
from gym_conformance.session.exchange import Exchange, Reply
from gym_conformance.trajectories.execute import TrajectoryRun
from gym_conformance.trajectories.languages import sleeping_answer, sleeping_for
from gym_conformance.trajectories.trajectory import Trajectory

#: Rows among which one is looked for that asks for a program, and tools that are tried.
_ROWS, _TOOLS = 64, 4

#: Seconds that a program sleeps to show that it is run, how many times, and the share of them that must be seen.
_BRIEF, _TIMES, _SEEN = 0.5, 3, 0.8


@dataclass(frozen=True)
class ProgramRunner:
    """What may run programs: `sleeping` makes a trajectory whose second step is given one that sleeps for some seconds."""

    what: str
    sleeping: Callable[[float], Trajectory]

    def __str__(self) -> str:
        return self.what

    async def begun(self, gym: Gym, channel: Channel, seconds: float) -> TrajectoryRun:
        """A session of its own, whose next step has a program run that sleeps for so long."""
        rollout = TrajectoryRun(gym, channel, self.sleeping(seconds))
        await rollout.step()
        return rollout

    async def took(self, gym: Gym, channel: Channel, seconds: float) -> float:
        """How many seconds such a program's answer takes."""
        rollout = await self.begun(gym, channel, seconds)
        began = time.perf_counter()
        await rollout.step()
        return time.perf_counter() - began

    async def runs_programs(self, gym: Gym) -> bool:
        """Whether the fastest of a few programs that sleep takes longer by as much as they do: a busy machine only adds."""
        both = [[await self.took(gym, Channel(gym.endpoint), each) for each in (_BRIEF, 0.0)] for _ in range(_TIMES)]
        return min(sleeping for sleeping, _ in both) - min(idle for _, idle in both) > _SEEN * _BRIEF


@dataclass(frozen=True)
class EndlessProgram:
    """What came of a program that does not end by itself, on a row; without an answer, the last exchange has no reply."""

    row: Row
    exchanges: tuple[Exchange, ...]
    seconds: float

    @property
    def answer(self) -> Reply | None:
        """What was answered when the program was stopped."""
        return self.exchanges[-1].reply


def program_runners(gym: Gym) -> Iterator[ProgramRunner]:
    """What may run programs, whether or not it does."""
    row = next(filter(asks_for_python, gym.rows[:_ROWS]), None)
    if row is not None:
        yield ProgramRunner("verify", partial(_answering, row))
    if gym.kind is not ServerKind.SINGLE_TURN:
        yield from islice((one for tool in gym.tools.values() if (one := _runner(gym, tool))), _TOOLS)


def _answering(row: Row, seconds: float) -> Trajectory:
    return Trajectory(row, answer=sleeping_answer(seconds))


def _runner(gym: Gym, tool: Tool) -> ProgramRunner | None:
    if sleeping_for(tool, 0) is None:
        return None
    row, usual = gym.row_for(Definition(tool.name, tool.parameters)), gym.example_call(tool).arguments

    def sleeping(seconds: float) -> Trajectory:
        return Trajectory(row, (Call(tool.name, {**usual, **(sleeping_for(tool, seconds) or {})}),))

    return ProgramRunner(tool.name, sleeping)
