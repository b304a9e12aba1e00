"""What a server keeps and what it blocks: the faults that only a long run shows.

Our inference, from environments that leaked a subprocess or a tool environment for each session, and from verifies
that ran on the event loop.
"""

import asyncio
import math
import time
from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterable
from dataclasses import replace
from functools import partial
from itertools import pairwise
from statistics import median
from typing import Any, Final

from gym_conformance.contract.endpoints import LIVENESS, VERIFY
from gym_conformance.contract.openapi import ServerKind
from gym_conformance.contract.policy_output import (
    HUGE_POWERS,
    answered_in_every_form,
    degenerate_outputs,
    message,
    response,
    with_last_numbers,
)
from gym_conformance.findings import ProcessReading
from gym_conformance.session.channel import Channel
from gym_conformance.session.exchange import Request
from gym_conformance.session.process import census
from gym_conformance.session.server_fault import ServerFault
from gym_conformance.session.typed_sessions import TypedContract
from gym_conformance.session.unserved import NO_SUCH_TOOL
from gym_conformance.trajectories.execute import TrajectoryRun, run
from gym_conformance.trajectories.known import first_calls, known
from gym_conformance.trajectories.trajectory import Trajectory
from gym_conformance.trials.check import check
from gym_conformance.trials.ending import NotApplicable, NotExamined, Untestable, Violation
from gym_conformance.trials.needs import RESOURCES_SERVER, SCORE, TYPED
from gym_conformance.trials.program_runners import ProgramRunner, program_runners
from gym_conformance.trials.property import knowledge_of
from gym_conformance.trials.trial import Trial

#: A light request that waits this long, and this many times its idle latency, was held up.
HELD_UP_SECONDS: Final = 0.5
_HELD_UP_TIMES = 20

#: One that waits this long shows that some requests that come together may hold it up.
_SLOWED_SECONDS = 0.05

#: Calls of a known trajectory among which a tool's first one is looked for.
_BEFORE = 12

#: Sessions for each of the readings, of which the first only warms up; fewer would not tell growth from noise.
_SESSIONS, _READINGS, _FEWEST = 60, 6, 20

#: Seconds for all of them: a server whose sessions are slow is given fewer.
_BUDGET = 60.0

#: More than this for each session, all along, is kept for ever: a cookie session needs a few hundred bytes.
_KEPT_BYTES = 32 * 1024

#: A request that is not sent yet.
_Work = Coroutine[Any, Any, object]

#: Seconds between light requests; there is one in any case, for what goes on after the reply.
_BETWEEN = 0.02


async def _latency(trial: Trial) -> float:
    started = time.perf_counter()
    await Channel(trial.gym.endpoint).send(Request("GET", LIVENESS))
    return time.perf_counter() - started


@check(
    "resources-loop-free",
    "A verify or tool call SHOULD NOT block requests of other sessions",
    why="one slow handler stalls every rollout on the server, so a batch takes as long as if they ran one by one.",
    needs=[RESOURCES_SERVER, SCORE],
)
async def resources_loop_free(trial: Trial, _: object) -> None:
    """Verifies the longest recorded output, a very long text and huge powers of ten, calls each tool, and requests `/` meanwhile.

    Where verify or a tool may run programs, one that sleeps for a second is run, too; a second session's must not wait for
    it.

    A light request counts as blocked if it waits for both half a second and 20 times its idle latency, and does so
    again when the same is repeated. For each tool the first known call is made, recorded if there is any; if it delays a
    light request by 50 ms, it is made in as many concurrent sessions as should take a second together.

    Our inference: rollout collection has hundreds of sessions open on one server (nemo_gym/rollout_collection.py).
    """
    hung_before = bool(trial.gym.endpoint.hangs[VERIFY])
    idle = median([await _latency(trial) for _ in range(9)])
    heaviest = max(degenerate_outputs(NO_SUCH_TOOL), key=lambda output: len(str(output.items)))
    longest = sorted(trial.gym.rollouts, key=lambda rollout: -len(str(rollout.output)))
    outputs = [("verify", heaviest.response), *(("verify", response(rollout.output)) for rollout in longest[:2])]
    outputs += [(f"verify of {power}", response([message(text)])) for power, text in _huge_powers(trial)]
    try:
        with trial.gym.endpoint.forgiving(when=hung_before):  # it may be the same text again; others are answered
            for what, output in outputs:
                await _expect_free(trial, idle, partial(_verifies, trial, output), what)
    except ServerFault as fault:
        if not hung_before:
            raise
        raise Untestable("a verify that ends: it hung before in this run; see verify-degenerate") from fault
    for runner in program_runners(trial.gym):
        await _expect_free(trial, idle, partial(_runs, trial, runner), f"a program that {runner.what} runs")
        await _expect_beside(trial, runner)
    called = known(await knowledge_of(trial)) if trial.gym.kind is not ServerKind.SINGLE_TURN else ()
    for one, at in first_calls(called, lambda _: True, _BEFORE):
        what, calling = f"a call of {one.calls[at].name}", replace(one, calls=one.calls[: at + 1])
        waited = await _expect_free(trial, idle, partial(_calls_last, trial, calling), what)
        if waited > max(_SLOWED_SECONDS, _HELD_UP_TIMES * idle):
            sessions = math.ceil(2 * HELD_UP_SECONDS / waited)
            together = partial(_calls_last, trial, calling, sessions)
            await _expect_free(trial, idle, together, f"{what} in each of {sessions} sessions")


async def _verifies(trial: Trial, output: dict[str, Any]) -> list[_Work]:
    return [(await trial.open()).verify(output)]


async def _runs(trial: Trial, runner: ProgramRunner) -> list[_Work]:
    return [(await runner.begun(trial.gym, trial.channel, 2 * HELD_UP_SECONDS)).step()]


async def _expect_beside(trial: Trial, runner: ProgramRunner) -> None:
    """Require a program that does nothing not to wait, twice, for the end of one that sleeps in another session."""
    gym = trial.gym

    async def beside() -> float:
        sleeping = asyncio.ensure_future((await runner.begun(gym, trial.channel, 2 * HELD_UP_SECONDS)).step())
        try:
            return await runner.took(gym, trial.channel, 0.0)
        finally:
            await sleeping

    alone = await runner.took(gym, Channel(gym.endpoint), 0.0)
    if (waited := await beside()) > alone + HELD_UP_SECONDS:
        trial.channel.exchanges.clear()
        waited = min(waited, await beside())
    if waited > alone + HELD_UP_SECONDS:
        raise Violation(
            f"a program that does nothing is answered in about {alone * 1000:.0f} ms, as it is alone",
            f"{waited:.1f} s while {runner.what} runs one that sleeps in another session",
            "Programs wait for one another: there is a lock, or a pool with a single place, around what runs them.",
        )
    trial.channel.exchanges.clear()


async def _calls_last(trial: Trial, calling: Trajectory, sessions: int = 1) -> list[_Work]:
    """Its last call in so many sessions that have made the others; it is not sent yet."""
    runs = [TrajectoryRun(trial.gym, trial.channel, calling) for _ in range(sessions)]
    for each in runs:
        await each.step(len(calling.calls))  # the seed, and all but the last call
    return [each.step() for each in runs]


def _huge_powers(trial: Trial) -> Iterable[tuple[str, str]]:
    """Powers, and texts that answer with them in the forms that scorers look for, and as the first row is answered."""
    yield from ((power, answered_in_every_form(power)) for power in HUGE_POWERS)
    for rollout in trial.gym.recorded.get(trial.gym.row, ())[:1]:
        if text := with_last_numbers(rollout.last_text, HUGE_POWERS[0]):
            yield HUGE_POWERS[0], text


async def _expect_free(trial: Trial, idle: float, begun: Callable[[], Awaitable[list[_Work]]], what: str) -> float:
    """How many seconds a light request waits at most while work goes on, which is made anew each time.

    Raises:
        Violation: it was held up, twice: the first time something may have been loaded.
    """
    limit = max(HELD_UP_SECONDS, _HELD_UP_TIMES * idle)
    if (waited := await longest_wait(trial, await begun())) > limit:
        trial.channel.exchanges.clear()
        waited = min(waited, await longest_wait(trial, await begun()))
    if waited > limit:
        raise Violation(
            f"GET / answers in about {idle * 1000:.0f} ms, as it does when idle",
            f"{waited:.1f} s while {what} ran elsewhere",
            "It computes or waits on the event loop; run it in a thread or a process (run_in_threadpool), or await it.",
        )
    trial.channel.exchanges.clear()
    return waited


async def longest_wait(trial: Trial, work: Iterable[_Work]) -> float:
    """How many seconds a light request waits at most while the work goes on."""
    tasks = [asyncio.ensure_future(each) for each in work]
    worst = 0.0
    try:
        pending: Collection[asyncio.Future[object]] = tasks
        while pending:
            _, pending = await asyncio.wait(pending, timeout=_BETWEEN)
            worst = max(worst, await _latency(trial))
        for task in tasks:
            await task
    finally:
        for task in tasks:
            task.cancel()
    return worst


@check(
    "resources-kept",
    "Finished and abandoned sessions SHOULD NOT hold memory, processes, threads or files forever",
    why="a training run opens a million sessions, and the server or the machine runs out overnight.",
    needs=[RESOURCES_SERVER],
)
async def resources_kept(trial: Trial, _: object) -> None:
    """Runs up to 360 sessions, half of them abandoned without a verify, and watches the server's process.

    Needs a server on this machine whose process is known (`--gym-pid`). It is a leak if memory grows by more than 32
    KiB a session in every reading, or if child processes, threads or open files grow by one for every two sessions;
    threads must grow in every reading, since a thread pool fills up sooner or later.

    Our inference; environments have kept a subprocess or a tool environment for each session.
    """
    row, calls = next(iter(trial.gym.recorded_calls), (trial.gym.row, ()))

    async def session(number: int) -> None:
        if number % 2:
            await trial.open(row)
        else:
            await run(trial.gym, trial.channel, Trajectory(row, calls))

    await _expect_flat(trial, session)


@check(
    "resources-closed",
    "Closed sessions SHOULD release memory, processes, threads and files",
    why="a training run opens and closes a million sessions, and the server still runs out overnight.",
    needs=[RESOURCES_SERVER, TYPED],
)
async def resources_closed(trial: Trial, _: object) -> None:
    """Runs up to 360 typed sessions, closes each of them, half without a verify, and watches the server's process.

    It works like resources-kept, which is about sessions that nobody closes.

    Source: `close_resources_session` releases what the session holds (nemo_gym/base_resources_server.py, 0.7.0).
    """
    typed = trial.gym.typed or TypedContract()
    row, calls = next(iter(trial.gym.recorded_calls), (trial.gym.row, ()))

    async def session(number: int) -> None:
        if number % 2:
            opened = typed.session(trial.channel, row)
            await opened.seed()
            await opened.close()
        else:
            await run(replace(trial.gym, contract=typed), trial.channel, Trajectory(row, calls))

    await _expect_flat(trial, session)


async def _expect_flat(trial: Trial, session: Callable[[int], Awaitable[None]]) -> None:
    """Run sessions by their numbers, and look at the server's process every now and then."""
    pid = trial.settings.pid
    if pid is None:
        raise NotExamined("the server's process is not known (--gym-pid)")
    sessions = await _as_many_as_fit(session)
    trial.channel.exchanges.clear()
    for done in range(_READINGS):
        trial.readings.append(_look(pid, done * sessions))
        for number in range(sessions):
            await session(number)
            trial.channel.exchanges.clear()
    trial.readings.append(_look(pid, _READINGS * sessions))
    trial.note = _judge_growth(trial.readings[1:])


async def _as_many_as_fit(session: Callable[[int], Awaitable[None]]) -> int:
    """Sessions for each reading, by how long two of them take once the server is warm.

    Raises:
        NotApplicable: they are too slow.
    """
    for _warm in range(2):
        started = time.perf_counter()
        for number in range(2):
            await session(number)
    each = (time.perf_counter() - started) / 2
    sessions = min(_SESSIONS, int(_BUDGET / _READINGS / each))
    if sessions < _FEWEST:
        raise NotApplicable(f"a session takes {each:.1f} s: too few fit into {_BUDGET:g} s")
    return sessions


def _look(pid: int, sessions: int) -> ProcessReading:
    try:
        found = census(pid)
    except ProcessLookupError as error:
        raise Untestable(f"the process of --gym-pid: {error}") from None
    return ProcessReading(sessions, found.memory, found.children, found.files, found.threads)


def _judge_growth(readings: list[ProcessReading]) -> str:
    """What was seen; the first reading is of a server that is warm."""
    sessions = readings[-1].sessions - readings[0].sessions
    steps = list(pairwise(readings))
    children = readings[-1].children - readings[0].children
    files = readings[-1].files - readings[0].files
    memory = min((after.memory - before.memory) / (after.sessions - before.sessions) for before, after in steps)
    grown = (readings[-1].memory - readings[0].memory) / sessions
    hint = "A dictionary keyed by session id is never emptied, or what is started for each session is kept."
    threads = min((after.threads - before.threads) / (after.sessions - before.sessions) for before, after in steps)
    if children >= sessions / 2:
        raise Violation("no child process left behind", f"{children} more after {sessions} sessions", hint)
    if threads >= 1 / 2:
        more = readings[-1].threads - readings[0].threads
        raise Violation("no thread left behind", f"{more} more after {sessions} sessions", hint)
    if files >= sessions / 2:
        raise Violation("no open file left behind", f"{files} more after {sessions} sessions", hint)
    if memory > _KEPT_BYTES:
        raise Violation(
            "about the same memory after more sessions",
            f"{grown / 1024:.0f} KiB more for each session, in every reading",
            hint,
        )
    return f"{grown / 1024:+.1f} KiB for each of {sessions} sessions"
