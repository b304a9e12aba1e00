"""Load: whole episodes, many at once, come to what they come to alone. Runs only with `--gym-load`."""

from collections.abc import Sequence
from dataclasses import replace
from math import ceil
from typing import Final

from gym_conformance.checks.chance import beyond_chance
from gym_conformance.checks.check import Level, check
from gym_conformance.checks.ending import NotApplicable, Violation
from gym_conformance.checks.needs import RESOURCES_SERVER, SCORE
from gym_conformance.checks.property import knowledge_of
from gym_conformance.checks.trial import Trial
from gym_conformance.session.channel import Channel
from gym_conformance.session.process import allow_open_files
from gym_conformance.session.server_fault import Fault, ServerFault
from gym_conformance.trajectories.execute import run
from gym_conformance.trajectories.first import known
from gym_conformance.trajectories.in_flight import Driver, Known, Load, Strayed, known_alone
from gym_conformance.trajectories.trajectory import Trajectory

#: Different episodes that are run beside each other.
_EPISODES: Final = 4

#: Seconds in which episodes are begun at each level; less in a profile whose searches take less than one.
_SECONDS: Final = 5.0

#: A trial and a control are so many runs of one episode that as many of them as this should go astray; no more than the last.
_EXPECTED, _MOST = 3, 64

_HINT: Final = (
    "State that requests change without a lock, a cache or a pool that many sessions share, an eviction, or a limit of time "
    "within the server, whose end is scored as a wrong answer."
)


@check(
    "load-episode",
    Level.MUST,
    "An episode MUST come to the same reward however many are in flight",
    why="training runs hundreds of rollouts at once; what the load does to their rewards looks like merit.",
    needs=[RESOURCES_SERVER, SCORE],
)
async def load_episode(trial: Trial, _: object) -> None:
    """Runs whole episodes, 1, 8, 64, 256 and 1,024 at once (`--gym-load`), each in its own session, for some seconds.

    Up to four episodes are known from six runs alone each, among them some that do nothing where that earns something
    else: what differs among the six is left out, and an episode whose reward differs is not run. A violation is another reply or reward, a refusal or a 5xx where there is none alone, in
    more bursts of so many episodes than among episodes alone, chance excluded. Answers that do not come in time are
    load-answers's.

    Source: `_run_examples_with_metadata` in nemo_gym/rollout_collection.py sends all rows at once, or
    `num_samples_in_parallel` of them (0.4.0).
    """
    load = await _load(trial)
    trial.load = load.levels
    trial.note = f"up to {load.levels[-1].in_flight:,} in flight, {sum(one.episodes for one in load.levels):,} episodes"
    strayed = load.strayed
    if strayed is None:
        return
    trial.channel.exchanges[:] = strayed.exchanges
    level = next(one for one in load.levels if one.in_flight == strayed.in_flight)
    if await _is_of_the_load(trial, load.episodes, strayed):
        trial.channel.exchanges[:] = strayed.exchanges
        difference = strayed.difference
        raise Violation(
            f"{difference.step} answers {difference.expected!r}, as alone",
            f"{difference.actual!r}; so or otherwise, {level.wrong:,} of {level.episodes:,} episodes went astray with "
            f"{level.in_flight:,} in flight",
            _HINT,
        )
    trial.caution = trial.caution or f"{level.wrong:,} of {level.episodes:,} episodes went astray, which may be chance"


@check(
    "load-answers",
    Level.SHOULD,
    "Episodes in flight SHOULD all be answered in time",
    why="a rollout without an answer is lost, or scored as 0 by a client that takes its own time limit for a wrong answer.",
    needs=[RESOURCES_SERVER, SCORE],
)
async def load_answers(trial: Trial, _: object) -> None:
    """Counts the episodes of load-episode that got no answer within `--gym-timeout`, or whose connection broke.

    It depends on the machine, which the client shares with the server: no verdict of the environment's logic.

    Our inference; the time limits of known clients are 30 s (Unsloth's notebook) and 60 s (Verifiers).
    """
    load = await _load(trial)
    failed = next((level for level in load.levels if level.unanswered or level.broken), None)
    if failed is not None:
        raise Violation(
            f"an answer within {trial.gym.endpoint.timeout:g} s to each episode with {failed.in_flight:,} in flight",
            f"{failed.unanswered:,} without one, {failed.broken:,} with a broken connection ({load.unanswered})",
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
        if len(found) >= _EPISODES or not (episode := await known_alone(trial.gym, trajectory)):
            continue
        found.append(episode)
        idle = await known_alone(trial.gym, Trajectory(trajectory.row)) if trajectory.calls else None
        if idle and idle.alone.reward != episode.alone.reward:
            found.append(idle)
    if not found:
        raise NotApplicable("no episode that was tried ends well and comes to the same reward twice, alone")
    return found


async def _level(trial: Trial, load: Load, in_flight: int, seconds: float) -> None:
    """Run one level, and add what came of it."""
    endpoint = trial.gym.endpoint.at(trial.gym.endpoint.url, in_flight)
    driver = Driver(replace(trial.gym, endpoint=endpoint), load.episodes, in_flight, trial.settings.pid)
    allow_open_files(in_flight)
    try:
        load.levels.append(await driver.drive(seconds))
    finally:
        await endpoint.transport.aclose()
        trial.gym.endpoint.requests += endpoint.requests
        trial.gym.endpoint.seconds += endpoint.seconds
    load.strayed = load.strayed or driver.strayed
    load.unanswered = load.unanswered or driver.fault


async def _is_of_the_load(trial: Trial, episodes: Sequence[Known], strayed: Strayed) -> bool:
    """Whether an episode goes astray among others more often than alone, chance excluded: as many runs of it each time."""
    count = min(_MOST, ceil(_EXPECTED / strayed.share))
    endpoint = trial.gym.endpoint.at(trial.gym.endpoint.url, strayed.in_flight)
    gym, pid = replace(trial.gym, endpoint=endpoint), trial.settings.pid

    async def burst(_: Channel) -> Strayed | None:
        return await Driver(gym, episodes, strayed.in_flight, pid).burst(strayed.known, count)

    async def one_by_one(channel: Channel) -> object:
        for _run in range(count):
            try:
                if found := strayed.known.difference(await run(trial.gym, channel, strayed.known.trajectory)):
                    return found
            except ServerFault as fault:
                if fault.fault is not Fault.HANG:
                    raise
            channel.exchanges.clear()
        return None

    try:
        return await beyond_chance(trial, burst, one_by_one, costly=True) is not None
    finally:
        await endpoint.transport.aclose()
