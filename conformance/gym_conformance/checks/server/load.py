"""Load: whole episodes, many at once, come to what they come to alone. Runs only with `--gym-load`."""

import asyncio
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from math import ceil
from typing import Final

from gym_conformance.contract.endpoints import LIVENESS
from gym_conformance.contract.policy_output import message, response
from gym_conformance.findings import Cause
from gym_conformance.gym_under_test import Gym
from gym_conformance.session.channel import Channel
from gym_conformance.session.exchange import Request
from gym_conformance.session.process import allow_open_files, census, cpu_seconds
from gym_conformance.session.server_fault import Fault, ServerFault
from gym_conformance.trajectories.abandoning import abandon, half_sent
from gym_conformance.trajectories.driven import Strayed
from gym_conformance.trajectories.execute import run
from gym_conformance.trajectories.in_flight import HERE, Drivers, Known, Load, measured_alone
from gym_conformance.trajectories.known import known
from gym_conformance.trajectories.trajectory import Trajectory
from gym_conformance.trials.before_and_after import RUNS, lasting, run_times
from gym_conformance.trials.chance import beyond_chance
from gym_conformance.trials.check import check
from gym_conformance.trials.ending import NotApplicable, Violation
from gym_conformance.trials.needs import RESOURCES_SERVER, SCORE
from gym_conformance.trials.property import knowledge_of
from gym_conformance.trials.trial import Trial

#: Different episodes that are run beside each other.
_EPISODES: Final = 4

#: Seconds in which episodes are begun at each level; less in a profile whose searches take less than one.
_SECONDS: Final = 5.0

#: A trial and a control are so many runs of one episode that as many of them as this should go astray; no more than the last.
_EXPECTED, _MOST = 3, 64

#: Episodes that are looked at after others were abandoned, and beside an answer that is hard to score.
_AFTERWARDS, _BESIDE = 2, 4

#: Seconds by which those are held up, and that the answer has before them.
_HELD_UP, _HEAD_START = 5.0, 0.2

#: Requests in a row that a server may leave unanswered after more of them than it could do.
_TRIES: Final = 4

_PATHOLOGICAL: Final[Mapping[str, str]] = {
    "a tower of powers": "The answer is \\boxed{9^{9^{9^{9^{9}}}}}, that is 9**9**9**9**9.",
    "deep nesting": "(" * 50_000 + "1" + ")" * 50_000,
    "one letter": "a" * 200_000 + "!",
    "spaces": "answer:" + " " * 200_000 + "x",
}

_HINT: Final = (
    "State that requests change without a lock, a cache or a pool that many sessions share, an eviction, or a time limit "
    "within the server whose end is scored as a wrong answer."
)


@check(
    "load-episode",
    "An episode MUST earn the same reward however many are in flight",
    why="training runs hundreds of rollouts at once; what the load does to their rewards looks like merit.",
    needs=[RESOURCES_SERVER, SCORE],
)
async def load_episode(trial: Trial, _: object) -> None:
    """Runs whole episodes, 1, 8, 64, 256 and 1,024 at once (`--gym-load`), each in its own session, for some seconds.

    Up to four episodes are known from six runs alone each, among them some that do nothing if that earns something
    else. Values that differ among the six are not compared, and an episode whose reward differs is not used. A
    violation is another reply or reward, or a refusal or 5xx that does not occur alone, in more bursts of so many
    episodes than among episodes alone, chance excluded. Answers that do not come in time belong to load-answers.

    Source: `_run_examples_with_metadata` in nemo_gym/rollout_collection.py sends all rows at once, or
    `num_samples_in_parallel` of them (0.4.0).
    """
    load = await _load(trial)
    trial.load = load.levels
    trial.note = f"up to {load.levels[-1].in_flight:,} in flight, {sum(one.episodes for one in load.levels):,} episodes"
    strayed = load.strayed
    if strayed is None:
        trial.caution = next((f"nothing came from {one.missing[0]}" for one in load.levels if one.missing), "")
        return
    trial.channel.exchanges[:] = strayed.exchanges
    for exchange in strayed.exchanges:
        if exchange.reply:
            trial.gym.endpoint.heard(exchange.request, exchange.reply)  # others drove it
    level = next(one for one in load.levels if one.in_flight == strayed.in_flight)
    if await _is_of_the_load(trial, load.episodes, strayed):
        trial.channel.exchanges[:] = strayed.exchanges
        difference = strayed.difference
        raise Violation(
            f"{difference.answer}, as alone",
            f"{difference.actual!r}; in all, {level.wrong:,} of {level.episodes:,} episodes differed with "
            f"{level.in_flight:,} in flight",
            _HINT,
        )
    trial.caution = trial.caution or f"{level.wrong:,} of {level.episodes:,} episodes went astray, which may be chance"


@check(
    "load-answers",
    "All episodes in flight SHOULD be answered in time",
    why="a rollout without an answer is lost, or scored as 0 by a client that takes its own time limit for a wrong answer.",
    needs=[RESOURCES_SERVER, SCORE],
)
async def load_answers(trial: Trial, _: object) -> None:
    """Counts the episodes of load-episode that got no answer within `--gym-timeout`, or whose connection broke.

    This depends on the machine, which client and server share, so it says nothing about the environment's logic.

    Our inference; the time limits of known clients are 30 s (Unsloth's notebook) and 60 s (Verifiers).
    """
    load = await _load(trial)
    failed = next((level for level in load.levels if level.unanswered or level.broken), None)
    if failed is not None:
        raise Violation(
            f"an answer within {trial.gym.endpoint.timeout:g} s to each episode with {failed.in_flight:,} in flight",
            f"{failed.unanswered:,} without one, {failed.broken:,} with a broken connection"
            + (f" ({load.unanswered})" if load.unanswered else ""),
            "A blocked event loop, too few workers or threads, a queue without end, or too few open files (ulimit -n).",
        )


async def _load(trial: Trial) -> Load:
    """What came of all levels; run once, by the first check that asks."""
    if trial.learned.load is None:
        episodes = await _episodes(trial)
        seconds = _SECONDS * min(1.0, trial.settings.search.profile.seconds)
        load = Load(episodes)
        for in_flight in trial.settings.load:
            await _level(trial, load, in_flight, seconds)
        trial.learned.load = load
    return trial.learned.load


async def _episodes(trial: Trial) -> list[Known]:
    """Episodes that are known alone, and for each row one that does nothing and earns something else."""
    found = list[Known]()
    for trajectory in known(await knowledge_of(trial))[: 2 * _EPISODES]:
        if len(found) >= _EPISODES or not (episode := await measured_alone(trial.gym, trajectory)):
            continue
        found.append(episode)
        idle = await measured_alone(trial.gym, Trajectory(trajectory.row)) if trajectory.calls else None
        if idle and idle.alone.reward != episode.alone.reward:
            found.append(idle)
    if not found:
        raise NotApplicable("no episode that was tried ends well and earns the same reward twice, alone")
    return found


@asynccontextmanager
async def _connections(trial: Trial, in_flight: int) -> AsyncIterator[Gym]:
    """The gym with connections of its own, for so many requests at once; what is sent over them is counted as the gym's."""
    endpoint = trial.gym.endpoint.at(trial.gym.endpoint.url, in_flight)
    try:
        yield replace(trial.gym, endpoint=endpoint)
    finally:
        await endpoint.transport.aclose()
        trial.gym.endpoint.requests += endpoint.requests
        trial.gym.endpoint.seconds += endpoint.seconds


async def _level(trial: Trial, load: Load, in_flight: int, seconds: float) -> None:
    """Run one level, and add what came of it."""
    allow_open_files(in_flight)
    async with _connections(trial, in_flight) as gym:
        busy = _busy(trial)
        driven = await _drivers(trial).drive(gym, load.episodes, in_flight, seconds)
        level = driven.level(in_flight, _memory(trial), (_busy(trial) - busy) / driven.seconds if busy else 0.0)
        load.levels.append(level)
        if level.unanswered or level.broken:
            await _worked_off(Channel(gym.endpoint))
    load.strayed = load.strayed or driven.strayed
    load.unanswered = load.unanswered or driven.fault


def _drivers(trial: Trial) -> Drivers:
    """Who runs episodes; where verify scores whole groups, one group at a time, no one can help."""
    return trial.settings.drivers if trial.gym.endpoint.groups.size == 1 else HERE


def _busy(trial: Trial) -> float:
    return cpu_seconds(trial.settings.pid) if trial.settings.pid else 0.0


def _memory(trial: Trial) -> int:
    try:
        return census(trial.settings.pid).memory if trial.settings.pid else 0
    except ProcessLookupError:
        return 0


async def _worked_off(channel: Channel) -> None:
    """Wait a while for the server to answer again: it may be at work for clients that have gone."""
    for _try in range(_TRIES):
        try:
            await channel.send(Request("GET", LIVENESS))
        except ServerFault:
            await asyncio.sleep(1.0)
        else:
            return


async def _is_of_the_load(trial: Trial, episodes: Sequence[Known], strayed: Strayed) -> bool:
    """Whether an episode goes astray among others more often than alone, chance excluded: as many runs of it each time."""
    count, watched = min(_MOST, ceil(_EXPECTED / strayed.share)), episodes[strayed.episode]

    async def one_by_one(channel: Channel) -> object:
        for _run in range(count):
            try:
                if found := watched.difference(await run(trial.gym, channel, watched.trajectory)):
                    return found
            except ServerFault as fault:
                if fault.fault is not Fault.HANG:
                    raise
            channel.exchanges.clear()
        return None

    async with _connections(trial, strayed.in_flight) as gym:

        async def burst(_: Channel) -> Strayed | None:
            return await _drivers(trial).burst(gym, episodes, strayed.in_flight, strayed.episode, count)

        return await beyond_chance(trial, burst, one_by_one, costly=True, suspected=True) is not None


@check(
    "load-abandoned",
    "A server MUST serve new episodes as before after others were abandoned",
    why="a trainer that is killed, or that stops a batch, leaves its sessions open, and all rollouts after it fail.",
    needs=[RESOURCES_SERVER, SCORE],
)
async def load_abandoned(trial: Trial, _: object) -> None:
    """Opens as many sessions as `--gym-load` has in flight, takes half of each one's steps, and abandons them.

    A quarter as many connections stay open with a request that is half sent. New episodes must then end as they did
    before; it is a violation if 17 runs before are all alike, and 17 after are all alike and different. No more
    sessions are opened after 20 seconds.

    Source: `SimpleAgent.run` raises for any status but 200 (0.4.0); no request of the cookie contract ends a session.
    """
    episodes = (await _load(trial)).episodes[:_AFTERWARDS]
    before = [await run_times(trial.gym, one.trajectory, RUNS) for one in episodes]
    async with _connections(trial, trial.settings.load[-1]) as gym:
        begun = await abandon(gym, [one.trajectory for one in episodes], trial.settings.load[-1])
        async with half_sent(gym.endpoint.url, begun) as open_requests:
            for one, runs in zip(episodes, before, strict=True):
                first = await run(trial.gym, trial.channel, one.trajectory)
                if next(lasting(runs, [first]), None) is None:
                    continue
                after = [first, *await run_times(trial.gym, one.trajectory, RUNS - 1)]
                if difference := next(lasting(runs, after), None):
                    raise Violation(
                        f"{difference.answer}, as before",
                        f"{difference.actual!r} after {begun:,} sessions were opened and left",
                        "What a session takes is given back by verify or a close alone: free the oldest sessions, or those "
                        "without requests for a long time.",
                        Cause.WORN_OUT,
                    )
    trial.note = f"after {begun:,} abandoned sessions, {open_requests:,} requests half sent"


@check(
    "load-pathological",
    "An answer that is hard to score SHOULD delay its own episode alone",
    why="one policy output in a batch of hundreds holds up all others, until their clients time out.",
    needs=[RESOURCES_SERVER, SCORE],
    subjects=lambda _: _PATHOLOGICAL,
)
async def load_pathological(trial: Trial, answer: str) -> None:
    """Verifies an answer that scorers choke on, and runs episodes beside it, which must be answered as fast as alone.

    The answers are a tower of powers, deep nesting, and 200,000 times one letter, or a space. How long their own verify
    takes, and what it answers, does not matter; an episode beside it is held up if it takes over five seconds longer
    than alone, twice in a row.

    Our inference; scorers of nemo-gym evaluate what the policy wrote with SymPy and with regular expressions.
    """
    episodes = (await _load(trial)).episodes[:_BESIDE]

    async def seconds() -> float:
        """How long the other episodes take."""
        began = time.monotonic()
        for one in episodes:
            await run(trial.gym, trial.channel, one.trajectory)
        return time.monotonic() - began

    usual, took = await seconds(), 0.0
    async with _connections(trial, _BESIDE) as gym:
        session = gym.contract.session(Channel(gym.endpoint), episodes[0].trajectory.row)
        for _again in range(2):
            trial.channel.exchanges.clear()
            await session.seed()
            verify = asyncio.ensure_future(session.verify(response([message(_PATHOLOGICAL[answer])])))
            try:
                await asyncio.sleep(_HEAD_START)
                took = await seconds()
            finally:
                verify.cancel()
                await asyncio.gather(verify, return_exceptions=True)
            if took <= _HELD_UP + usual:
                return
    raise Violation(
        f"{len(episodes)} other episodes in {usual:.1f} s, as alone, while the answer is scored",
        f"{took:.1f} s",
        "It is scored on the event loop, or in a thread or under a lock that all share: score in a process of its own, "
        "with a time limit.",
    )
