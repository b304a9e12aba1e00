"""Running trajectories and schedules against a gym: the only part of this package that talks to a server."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import nullcontext
from functools import partial
from http import HTTPStatus
from itertools import pairwise
from typing import Any, Final, TypeVar

from gym_conformance.contract.dataset_rows import Call
from gym_conformance.contract.endpoints import SEED_SESSION
from gym_conformance.contract.openapi import ServerKind
from gym_conformance.contract.policy_output import Item, function_call, function_call_output, message, response
from gym_conformance.gym_under_test import Gym
from gym_conformance.session.channel import Channel, Endpoint, NoRoom, unanswered
from gym_conformance.session.contracts import CookieHabit, Session
from gym_conformance.session.exchange import Exchange, Reply, reply_of
from gym_conformance.trajectories.outcome import Outcome, StepOutcome
from gym_conformance.trajectories.trajectory import Schedule, Trajectory, is_linked, resolve
from gym_schemas import admits

T = TypeVar("T")

#: Sessions of a crowd that run concurrently.
_AT_ONCE = 16

#: Sessions that run concurrently, unless concurrency is what is tested, so that slow tools are waited for together.
FEW: Final = 8


class TrajectoryRun:
    """One trajectory in a session, run step by step as the default agent would.

    `made` has its calls as they were sent. `ids` has the session id, as far as a client can read it, at each step after
    the seed.
    """

    def __init__(
        self,
        gym: Gym,
        channel: Channel,
        trajectory: Trajectory,
        habit: CookieHabit = CookieHabit.REPLACING,
        session: Session | None = None,
    ) -> None:
        self.trajectory = trajectory
        self.session = session or gym.contract.session(channel, trajectory.row, habit)
        self.steps: list[StepOutcome] = []
        self.began: list[float] = []
        self.exchanges: list[Exchange] = []
        self.output: list[Item] = []
        self.refusals: list[StepOutcome] = []
        self.made: list[Call] = []
        self._graded = gym.kind is ServerKind.SINGLE_TURN  # its calls are only written down, never sent
        self.replies: list[Any] = []
        self.ids: list[str | None] = []
        self.others: Sequence[list[Any]] = ()
        self._walk = self._run()

    async def step(self, count: int = 1) -> None:
        """Take the next `count` steps; there are `trajectory.steps` in all.

        Raises:
            ServerFault: no whole reply came.
        """
        for _step in range(count):
            await anext(self._walk, None)

    async def finish(self) -> Outcome:
        """Take all remaining steps."""
        async for _ in self._walk:
            pass
        return self.outcome

    async def make_calls(self) -> None:
        """Make all calls in a session that is already seeded."""
        self.steps.append(StepOutcome(SEED_SESSION, HTTPStatus.OK.value, None))
        for number, call in enumerate(self.trajectory.calls):
            await self._call(number, call)

    async def walk_on(self) -> Outcome:
        """Take all steps but the seed, in a session that is already seeded."""
        await self.make_calls()
        self.steps.append(await self.verify())
        return self.outcome

    @property
    def outcome(self) -> Outcome:
        """The outcome so far."""
        return Outcome(tuple(self.steps), tuple(self.began))

    async def wait(self, apart: float) -> None:
        """Wait until so many seconds after the last step began."""
        await asyncio.sleep(max(0.0, self.began[-1] + apart - time.monotonic()))

    async def _run(self) -> AsyncIterator[None]:
        # A seed's reply contains tokens and ids by design (the mcp block), so only its status is part of the outcome.
        self.began.append(time.monotonic())
        self.steps.append(StepOutcome(SEED_SESSION, self._kept(await self.session.seed()).status, None))
        yield
        for number, call in enumerate(self.trajectory.calls):
            if number not in self.trajectory.noise:  # as without the noise, whose time the step before it has taken
                self.began.append(time.monotonic())
            await self._call(number, call)
            yield
        self.began.append(time.monotonic())
        self.steps.append(await self.verify())
        yield

    async def _call(self, number: int, call: Call) -> None:
        arguments = self.arguments(call)
        if self._graded:
            self.output.append(function_call(call.name, json.dumps(arguments), f"call_{number}"))
            return
        self.ids.append(self.session.id)
        self.made.append(Call(call.name, arguments))
        reply = self._kept(await self.session.call(self.made[-1]))
        outcome = StepOutcome.of_call(call, reply)
        self.replies.append(outcome.body)
        if number in self.trajectory.noise:
            self.refusals.append(outcome)
            return
        call_id = f"call_{len(self.steps) - 1}"  # as without the noise, so that verify is sent the very same
        self.steps.append(outcome)
        self.output += [
            function_call(call.name, json.dumps(arguments), call_id),
            function_call_output(reply.text, call_id),
        ]

    def _kept(self, exchange: Exchange) -> Reply:
        self.exchanges.append(exchange)
        return reply_of(exchange)

    def arguments(self, call: Call) -> Any:
        """A call's arguments with references resolved; their stand-ins if the tool's schema rejects the values."""
        if not is_linked(call.arguments):
            return call.arguments
        resolved, stand_ins = resolve(call.arguments, self.replies, self.others), resolve(call.arguments, [])
        if resolved == stand_ins:
            return resolved
        definitions = [tool.parameters for tool in self.trajectory.row.tools if tool.name == call.name]
        return resolved if all(admits(definition, resolved) for definition in definitions) else stand_ins

    async def verify(self) -> StepOutcome:
        """Verify the session with everything done so far."""
        self.ids.append(self.session.id)
        scored = response([*self.output, message(self.trajectory.answer)])
        return StepOutcome.of_verify(self._kept(await self.session.verify(scored)))


async def beside(
    works: Iterable[Callable[[], Awaitable[T]]], at_once: int = FEW, endpoint: Endpoint | None = None
) -> list[T]:
    """Run all works, `at_once` at a time; the first failure is raised once all have ended.

    Works that found no room beside the others are repeated one at a time. So are those that got no answer in time from
    the endpoint, if one is given: programs that compute for seconds take turns on a busy machine.
    """
    free = asyncio.Semaphore(at_once)
    all_works = tuple(works)

    async def one(work: Callable[[], Awaitable[T]]) -> T:
        async with free:
            return await work()

    with endpoint.forgiving() if endpoint else nullcontext():
        ended = await asyncio.gather(*map(one, all_works), return_exceptions=True)
    return [_result(each) for each in await again_alone(all_works, ended, hung=endpoint is not None)]


async def again_alone(
    works: Sequence[Callable[[], Awaitable[T]]], ended: list[T | BaseException], *, hung: bool = False
) -> list[T | BaseException]:
    """The results of works that ran concurrently, repeating one at a time those that raised `NoRoom`, or that `hung`."""
    crowded = [at for at, each in enumerate(ended) if isinstance(each, NoRoom) or (hung and unanswered(each))]
    for at in crowded:
        ended[at] = asyncio.CancelledError()  # the frames of the old exception hold replies
    for at in crowded:
        ended[at] = await works[at]()
    return ended


async def seeded_within(first: TrajectoryRun, second: TrajectoryRun) -> tuple[Outcome, Outcome]:
    """What both come to if the second is seeded halfway through the first, and goes on when that one has finished.

    A store that keeps what it finds at a seed shows the second what the first did before it, and one that is replaced by
    each seed what the first does after it.
    """
    await first.step(max(1, first.trajectory.steps // 2))
    await second.step()
    return await first.finish(), await second.finish()


def _result(ended: T | BaseException) -> T:
    if isinstance(ended, BaseException):
        raise ended
    return ended


async def _finish(rollout: TrajectoryRun, free: asyncio.Semaphore) -> None:
    async with free:
        await rollout.finish()


async def run(
    gym: Gym,
    channel: Channel,
    trajectory: Trajectory,
    began: Sequence[float] = (),
    habit: CookieHabit = CookieHabit.REPLACING,
) -> Outcome:
    """Run one trajectory alone in a fresh session, then close it.

    `began` paces it: the steps are at least as far apart as these times, in seconds.
    """
    rollout = TrajectoryRun(gym, channel, trajectory, habit)
    for before, after in pairwise(began):
        await rollout.step()
        await rollout.wait(after - before)
    outcome = await rollout.finish()
    await rollout.session.close()
    return outcome


async def run_each(
    gym: Gym, trajectories: Iterable[Trajectory], habit: CookieHabit = CookieHabit.REPLACING
) -> list[Outcome]:
    """Run each trajectory alone in a fresh session, a few concurrently."""
    works = (partial(run, gym, Channel(gym.endpoint), each, habit=habit) for each in trajectories)
    return await beside(works, endpoint=gym.endpoint)


def opened(gym: Gym, channel: Channel, schedule: Schedule) -> list[TrajectoryRun]:
    """The schedule's trajectories, not yet begun; each can see the replies of the others."""
    rollouts = [TrajectoryRun(gym, channel, trajectory) for trajectory in schedule.trajectories]
    for rollout in rollouts:
        rollout.others = [other.replies for other in rollouts]
    return rollouts


async def run_schedule(gym: Gym, channel: Channel, schedule: Schedule) -> tuple[Outcome, ...]:
    """Run all trajectories of a schedule, each in a fresh session, and return an outcome for each.

    A session that takes turns is closed after its last step. Those of a crowd, and those that run concurrently, stay
    open until the end.
    """
    rollouts = opened(gym, channel, schedule)
    ended = list[TrajectoryRun]()
    if schedule.concurrent:
        if schedule.meeting:
            await asyncio.gather(*(rollout.step(rollout.trajectory.steps - 1) for rollout in rollouts))
        await asyncio.gather(*(rollout.finish() for rollout in rollouts))
    else:
        for turns in schedule.groups():
            if len(turns) == 1:
                rollout = rollouts[turns[0]]
                await rollout.step()
                if len(rollout.steps) == rollout.trajectory.steps and not schedule.passing:
                    ended.append(rollout)
                    await rollout.session.close()
                continue
            free = asyncio.Semaphore(_AT_ONCE)
            await asyncio.gather(*(_finish(rollouts[turn], free) for turn in turns))
    for rollout in rollouts:
        if rollout not in ended:
            await rollout.session.close()
    return tuple(rollout.outcome for rollout in rollouts)
