"""Isolation: no session can observe what another does.

Source: the cookie contract itself: `add_session_id` in nemo_gym/server_utils.py gives each client a session of its
own (every version).
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import replace
from itertools import accumulate, count, cycle, islice, pairwise, takewhile
from random import randrange

from gym_conformance.checks.isolation.read_backs import expect_known_read_back, expect_read_back
from gym_conformance.contract.dataset_rows import Row
from gym_conformance.contract.endpoints import LIVENESS, ROLLOUT_INDEX, ROLLOUT_KEYS, TASK_INDEX
from gym_conformance.contract.openapi import ServerKind
from gym_conformance.contract.statuses import is_crash
from gym_conformance.findings import Cause
from gym_conformance.gym_under_test import Gym
from gym_conformance.session.channel import Channel
from gym_conformance.session.contracts import CookieHabit
from gym_conformance.session.exchange import Request
from gym_conformance.trajectories.execute import TrajectoryRun, run_schedule, seeded_within
from gym_conformance.trajectories.first import around, at_once, in_turn, side_by_side
from gym_conformance.trajectories.generate import Knowledge, crowded, interleaved, trajectories
from gym_conformance.trajectories.outcome import Difference, Outcome
from gym_conformance.trajectories.reading_back import ReadBack
from gym_conformance.trajectories.trajectory import Schedule, Trajectory, asks_another, session_name
from gym_conformance.trials.chance import beyond_chance
from gym_conformance.trials.check import check
from gym_conformance.trials.ending import NotApplicable, Violation
from gym_conformance.trials.needs import COOKIES, RESOURCES_SERVER, SCORE, SERVED_TOOLS, TOOLS
from gym_conformance.trials.property import alone, property_check
from gym_conformance.trials.replay import known_trajectory
from gym_conformance.trials.solo import Solo
from gym_conformance.trials.suspicions import MEANWHILE, STORE
from gym_conformance.trials.trial import Trial

_NEEDS = [RESOURCES_SERVER, SCORE]

#: What is likely where a session is told what another one has asked for by its id.
FOUND_BY_ID = "What a session made is found by its id or cursor alone: look it up within the session that asks."

_IN_THE_WAY = (
    "Concurrent scorings get in each other's way: a place in a pool or the time runs short, and what could not be scored counts "
    "as wrong; or they share a variable, a file or a process. A failed scoring is no reward: answer with an error, or wait "
    "for a place."
)

_EVICTED = (
    "The session was evicted by a store of a fixed size or an expiry, unless isolation-interleaved says that sessions "
    "share state. Sooner or later, a store of a fixed size is smaller than a batch."
)

_WORKERS = (
    "State, or the key that signs the cookie, is in the memory of one process, and several processes answer: keep it "
    "where all of them find it, or run one worker."
)

#: Runs in which the steps may come to any worker, and how many of these must be lost.
_SCATTERED, _LOST = 12, 2

#: No dataset has so many rows.
_TASK = 1_000_000_000

#: Requests that are under way beside one, so that no worker is known to take it.
_OTHERS = 3

#: What comes twice in so many tries may be a leak.
_TRIES = 6

#: So many seconds' worth of sessions at once, and so many at least.
_AT_ONCE_SECONDS, _LEAST_AT_ONCE = 10.0, 4

#: Sessions for which every store has room.
_FEW = 3

#: Sessions that are watched once they are under suspicion.
_WATCHED = 4

#: How many sessions come and go while one idles, and fewer where so many would take longer than these seconds one after
#: the other; but more than twenty, which is what an author thinks to be many.
_CROWD, _CROWD_SECONDS, _LEAST = 120, 30.0, 24

#: Rows that a crowd is seeded with and verified: several crowds must fit into what one trial may send.
_CROWD_BYTES = 16 << 20


def _crowd(knowledge: Knowledge) -> int:
    largest = max((len(json.dumps(row.data)) for row in knowledge.rows), default=1)
    return max(_LEAST, min(knowledge.sessions_in(_CROWD_SECONDS, at_most=_CROWD), _CROWD_BYTES // (2 * largest)))


async def expect_isolated(trial: Trial, schedule: Schedule) -> None:
    """Compare a schedule with what each of its trajectories does alone.

    Raises:
        Violation: a session behaves differently beside others than alone, chance excluded.
        NotApplicable: nothing is left to compare.
    """
    # Of a crowd one session is watched, and none that takes what another was given: alone there is nothing to take.
    watched = schedule.trajectories[:1] if schedule.passing else tuple(takewhile(_acts_alone, schedule.trajectories))
    solos = {id(trajectory): Solo(trial, trajectory) for trajectory in watched}
    for solo in solos.values():
        await solo.outcome()
    if schedule.concurrent:
        watched = watched[: fitting(solos[id(trajectory)].seconds for trajectory in watched)]
        schedule = replace(schedule, trajectories=watched)
    suspects: Sequence[int] = range(len(watched))

    def differing(outcomes: Sequence[Outcome]) -> list[tuple[int, Difference]]:
        told = ((at, solos[id(watched[at])].told_from(outcomes[at])) for at in suspects)
        return [(at, difference) for at, difference in told if difference]

    async def together(channel: Channel) -> list[tuple[int, Difference]] | None:
        return differing(await run_schedule(trial.gym, channel, schedule)) or None

    first = await run_schedule(trial.gym, trial.channel, schedule)
    if not (suspected := differing(first)):
        return
    for at, _ in suspected:
        await solos[id(watched[at])].settle(first[at])
    # As many runs alone are the control, for more runs differ more often by chance; so few are watched from here on:
    # those that still differ, now that it is known what differs alone, too.
    suspects = [at for at, _ in differing(first)][:_WATCHED]
    if (
        suspects
        and await _comes_again(trial, together)
        and (
            found := await beyond_chance(
                trial, together, *(solos[id(watched[at])] for at in suspects), costly=schedule.passing, suspected=True
            )
        )
    ):
        raise await _leak(trial, schedule, [solos[id(watched[at])] for at, _ in found], *found[0])


def _acts_alone(trajectory: Trajectory) -> bool:
    """Whether it uses nothing that another session was given."""
    return not any(asks_another(call.arguments) for call in trajectory.calls)


async def _leak(trial: Trial, schedule: Schedule, solos: Iterable[Solo], at: int, difference: Difference) -> Violation:
    """What to raise of a session that differs beside others, with the cause that it seems to have."""
    # kept, since a shortened example shows it in fewer runs
    learned = trial.learned
    if not learned.apart and not trial.once:
        learned.apart = await _lives_in_one_process(trial, solos)
        learned.evicts = schedule.passing or (not learned.apart and await _are_too_many(trial.gym, schedule, solos))
        learned.shared |= not learned.evicts and not learned.apart
    keeps_state = trial.gym.kind is not ServerKind.SINGLE_TURN or not schedule.concurrent
    at_once = schedule.concurrent and Cause.SHARED_STATE not in learned.causes
    hint = (MEANWHILE if at_once else STORE) if keeps_state else _IN_THE_WAY
    if not all(map(_acts_alone, schedule.trajectories)):
        hint = FOUND_BY_ID
    if learned.evicts:
        hint = _EVICTED
    shared = None if learned.evicts else Cause.SHARED_STATE
    return Violation(
        f"{difference.answer} in session {session_name(at)}, as alone",
        f"{difference.actual!r}, while other sessions are open",
        _WORKERS if learned.apart else hint,
        Cause.SEPARATE_PROCESSES if learned.apart else shared,
    )


def fitting(seconds: Iterable[float]) -> int:
    """How many sessions the server can do one by one in time, and some at least: scoring may block it for all."""
    return max(_LEAST_AT_ONCE, sum(total <= _AT_ONCE_SECONDS for total in accumulate(seconds)))


async def _are_too_many(gym: Gym, schedule: Schedule, solos: Iterable[Solo]) -> bool:
    """Whether sessions that run at the same time differ where they take turns, too, if they are so many, and not if they are few.

    A store of a fixed size is too small for all of them then.
    """
    of = {id(solo.trajectory): solo for solo in solos}

    async def differ(some: Sequence[Trajectory]) -> bool:
        outcomes = await run_schedule(gym, Channel(gym.endpoint), Schedule(tuple(some), tuple(in_turn(some))))
        return any(of[id(one)].told_from(came) for one, came in zip(some, outcomes, strict=True) if id(one) in of)

    some = schedule.trajectories
    return schedule.concurrent and len(some) > _FEW and await differ(some) and not await differ(some[:_FEW])


async def _lives_in_one_process(trial: Trial, solos: Iterable[Solo]) -> bool:
    """Whether a session that is alone is lost as soon as several workers may get its steps.

    The same steps among the same requests, but over one connection, tell that from a server that takes any request for the
    session's: one worker answers all of them.
    """

    async def differs(solo: Solo, *, fresh: bool) -> bool:
        channel = Channel(trial.gym.endpoint, fresh=fresh)
        rollout = TrajectoryRun(trial.gym, channel, solo.trajectory, CookieHabit.KEEPING)
        for _step in range(solo.trajectory.steps):
            await _among_others(trial.gym, rollout)
        return solo.told_from(rollout.outcome) is not None

    tried, lost = list[Solo](), 0
    for solo in islice(cycle(solos), _SCATTERED):
        tried.append(solo)
        lost += await differs(solo, fresh=True)
        if lost == _LOST:
            return not any([await differs(solo, fresh=False) for solo in tried])
    return False


async def _comes_again(trial: Trial, together: Callable[[Channel], Awaitable[object]]) -> bool:
    """Whether what came once comes again: cheaper than excluding chance, which is asked of little else."""
    for _again in range(_TRIES):
        trial.channel.exchanges.clear()
        if await together(trial.channel):
            return True
    return False


@property_check(
    "isolation-interleaved",
    "Sessions MUST NOT see each other",
    why="rollouts of one batch overwrite each other's state; the rewards are noise, and nothing reports it.",
    needs=_NEEDS,
    examples=interleaved,
    first=side_by_side,
    together=False,
    deep=True,
)
async def isolation_interleaved(trial: Trial, schedule: Schedule) -> None:
    """Runs two or three trajectories alone, and then with their steps interleaved, each in its own session.

    Every reply and reward must be as it is alone. Values that differ between two runs alone are not compared, nor are
    times, and durations that the server gives for its own replies, such as `elapsed_ms`, or any number that is no more
    than the seconds that its reply took, and 0.1 at most.

    Source: `add_session_id` in nemo_gym/server_utils.py (every version).
    """
    await expect_isolated(trial, schedule)


@check(
    "isolation-same-task",
    "Rollouts of one task MUST be apart, as rollout collection numbers them",
    why="a batch has several rollouts of each task, and the same task comes again: each is scored on what the others did.",
    needs=[RESOURCES_SERVER, TOOLS, SERVED_TOOLS, COOKIES],
)
async def isolation_same_task(trial: Trial, _: object) -> None:
    """Runs known calls twice in rows with the same new `_ng_task_index`, the second seeded halfway through the first.

    They have another `_ng_rollout_index` each. Both must be as one without these keys, chance excluded, if two rollouts of
    different tasks with these indexes are, so that tasks and rollouts may differ by their numbers.

    Source: nemo_gym/rollout_collection.py adds both keys, and sends each task `num_repeats` times (0.4.0).
    """
    if trial.gym.endpoint.groups.size > 1:
        raise NotApplicable("the rollouts of a task are scored together")
    plain = await known_trajectory(trial)
    if not plain.calls:
        raise NotApplicable("no call is known that its tool accepts")
    solo, tasks = Solo(trial, plain), count(_TASK)

    def rollout(channel: Channel, task: int, index: int) -> TrajectoryRun:
        keys = {**ROLLOUT_KEYS, TASK_INDEX: task, ROLLOUT_INDEX: index}
        return TrajectoryRun(trial.gym, channel, replace(plain, row=Row({**plain.row.data, **keys}, plain.row.source)))

    async def together(channel: Channel) -> Outcome:
        task, apart = next(tasks), Channel(trial.gym.endpoint)
        both = [rollout(channel, task, index) for index in range(2)]
        others = [rollout(apart, next(tasks), index) for index in range(2)]
        first, second = await seeded_within(*both)
        differ = [solo.told_from(await other.finish()) for other in others]
        for each in (*both, *others):
            await each.session.close()
        if any(differ):
            return await solo.outcome()
        return first if solo.told_from(first) else second

    if difference := await solo.beyond_chance(together):
        raise Violation(
            f"{difference.answer} in each rollout of a task",
            f"{difference.actual!r} in one of two",
            f"Sessions are found by {TASK_INDEX}, which all rollouts of a task share, and not by their cookie.",
            Cause.OUTLIVING_STATE,
        )


@property_check(
    "isolation-concurrent",
    "Sessions MUST NOT see each other when they run at the same time",
    why="training runs hundreds of sessions at once, and what goes wrong only then is never seen when trying by hand.",
    needs=_NEEDS,
    examples=lambda knowledge: interleaved(knowledge, concurrent=True),
    first=at_once,
    together=False,
    deep=True,
)
async def isolation_concurrent(trial: Trial, schedule: Schedule) -> None:
    """Runs two or three trajectories alone, and then at the same time, over several connections.

    It begins with fifteen sessions of three rollouts, with as many of rollouts that call other tools, and with as many
    whose verifies wait for one another.

    Source: rollout collection runs up to `num_samples_in_parallel` rollouts at once (nemo_gym/rollout_collection.py).
    """
    await expect_isolated(trial, schedule)


async def _expect_apart(trial: Trial, _: Knowledge) -> None:
    """A crowd shows nothing more, and takes minutes, where two sessions are known to get in each other's way.

    Raises:
        NotApplicable: they do.
    """
    if trial.learned.causes & {Cause.SHARED_STATE, Cause.SEPARATE_PROCESSES}:
        raise NotApplicable("a session differs beside any others, not only in a crowd: another finding says so")


@property_check(
    "isolation-crowded",
    "A session MUST survive idling while others come and go",
    why="a policy may think for minutes between two calls; an evicted session is scored on untouched state.",
    needs=_NEEDS,
    examples=lambda knowledge: crowded(knowledge, _crowd(knowledge)),
    first=lambda knowledge: around(knowledge, _crowd(knowledge)),
    before=_expect_apart,
    together=False,
    weight=10,
)
async def isolation_crowded(trial: Trial, schedule: Schedule) -> None:
    """Starts a trajectory, runs up to 120 others in sessions of their own, several at once, and then continues the first.

    There are fewer than 120 if a session takes more than 250 ms, but never fewer than 24. Nothing is tried if sessions
    were found to share state.

    Source: `setup_session_middleware` in nemo_gym/server_utils.py gives the cookie 14 days (every version).
    """
    await expect_isolated(trial, schedule)


@property_check(
    "isolation-two-clients",
    "A session MUST be the same for every client that has its cookie",
    why="the tools may be called by one program and the reward requested by another; they must see one state.",
    needs=_NEEDS,
    examples=lambda knowledge: alone(trajectories(knowledge, min_calls=1)),
    before=expect_known_read_back,
    waits=True,
)
async def isolation_two_clients(trial: Trial, schedule: Schedule) -> None:
    """Runs a trajectory whose steps two clients take in turn, both with the seed's cookie.

    Every reply and the reward must be as with a single client that has the seed's cookie. In addition, a few reads are
    made at once, a second after a write, or one by one where those before it came over one connection: none may answer
    as before the write if another shows what was written. Chance is excluded by sessions that do not write.

    Source: verifiers/v1/tasksets/nemo_gym/taskset.py (verifiers 0.4.0) takes the cookie at the seed, hands it to the
    program that calls the tools, and verifies with it.
    """
    trajectory = schedule.trajectories[0]

    async def taken_in_turn(channel: Channel) -> Outcome:
        fresh = Channel(trial.gym.endpoint, fresh=True, record=channel)
        rollout = TrajectoryRun(trial.gym, fresh, trajectory, CookieHabit.KEEPING)
        await _among_others(trial.gym, rollout)
        sessions = [rollout.session, rollout.session.shared()]
        # no sooner than alone: where a connection is kept, small packets may wait 40 ms, in which a world goes on
        for step, (before, after) in enumerate(pairwise((await solo.outcome()).began), start=1):
            await rollout.wait(after - before)
            rollout.session = sessions[step % 2]
            await _among_others(trial.gym, rollout)
        return rollout.outcome

    if read_back := ReadBack.of(trajectory):
        await expect_read_back(trial, [read_back])
        return
    solo = Solo(trial, trajectory, CookieHabit.KEEPING)
    if any(is_crash(step.status) for step in (await solo.outcome()).steps):
        return  # a crash sends no cookie: section calls tells it, and clients differ after it
    # one at a time: controls that run beside each other share connections, and so come to other workers, too
    if difference := await solo.beyond_chance(taken_in_turn, together=False):
        hint, cause = (STORE, Cause.SHARED_STATE) if trial.learned.shared else (_WORKERS, Cause.SEPARATE_PROCESSES)
        expected = f"{difference.answer}, as with one client"
        raise Violation(expected, f"{difference.actual!r}", hint, cause)


async def _among_others(gym: Gym, rollout: TrajectoryRun) -> None:
    """Take a step over a connection of its own, opened among others, now before them and now after: any worker may get it."""
    asked: list[Awaitable[object]] = [
        Channel(gym.endpoint, fresh=True).send(Request("GET", LIVENESS)) for _ in range(_OTHERS)
    ]
    at = randrange(_OTHERS + 1)
    asked.insert(at, rollout.step())
    ended: list[object] = await asyncio.gather(*asked, return_exceptions=True)
    if isinstance(failure := ended[at], BaseException):
        raise failure
