"""Programs that verify or a tool runs: one that a policy writes may never end."""

import time
from collections.abc import Iterable

from gym_conformance.checks.server.resources import HELD_UP_SECONDS, longest_wait
from gym_conformance.contract.endpoints import VERIFY
from gym_conformance.contract.policy_output import FAILING_PROGRAM
from gym_conformance.contract.verify_reply import WHOLE
from gym_conformance.session.channel import Channel, apart
from gym_conformance.session.server_fault import Fault, ServerFault
from gym_conformance.trajectories.execute import run
from gym_conformance.trajectories.trajectory import Trajectory
from gym_conformance.trials.check import check
from gym_conformance.trials.ending import NotApplicable, Violation
from gym_conformance.trials.in_form import expect_number
from gym_conformance.trials.needs import RESOURCES_SERVER, SCORE
from gym_conformance.trials.program_runners import EndlessProgram, ProgramRunner, program_runners
from gym_conformance.trials.trial import Trial, expect_no_crash, expect_success

#: An answer must come within so many times --gym-timeout, and the program sleeps for so many.
_WITHIN, _SLEEPS = 2, 3

#: Seconds that a program sleeps to show whether it holds up other requests.
_BRIEF = 2 * HELD_UP_SECONDS


def _runners(trial: Trial) -> Iterable[ProgramRunner | str]:
    return (*program_runners(trial.gym),) or ("server",)


async def _endless(trial: Trial, runner: ProgramRunner | str) -> EndlessProgram:
    """What came of a program that does not end, which is run once for all checks.

    Raises:
        NotApplicable: none is run.
    """
    if isinstance(runner, str):
        raise NotApplicable("no row asks for a program, and no tool takes one")
    known = trial.learned.endless.get(runner.what)
    if known is None:
        known = trial.learned.endless[runner.what] = await _run(trial, runner)
    if isinstance(known, str):
        raise NotApplicable(known)
    trial.channel.exchanges[:] = known.exchanges
    return known


async def _run(trial: Trial, runner: ProgramRunner) -> EndlessProgram | str:
    gym = trial.gym
    if not await runner.runs_programs(gym):
        return "no program is run"
    within, sleeps = _WITHIN * gym.endpoint.timeout, _SLEEPS * gym.endpoint.timeout
    async with apart(Channel(gym.endpoint), within) as channel:
        brief = await runner.begun(gym, channel, _BRIEF)
        if await longest_wait(trial, [brief.step()]) > HELD_UP_SECONDS:
            return "a program holds up all other requests; see resources-loop-free"
        channel.exchanges.clear()
        endless = await runner.begun(gym, channel, sleeps)
        began = time.monotonic()
        try:
            with gym.endpoint.forgiving():
                await endless.step()
        except ServerFault as fault:
            if fault.fault is not Fault.HANG:
                raise
        return EndlessProgram(endless.trajectory.row, tuple(channel.exchanges), time.monotonic() - began)


@check(
    "resources-program-ends",
    "A program that never ends SHOULD be answered in time, and SHOULD NOT be paid",
    why="policies write endless loops all the time; each holds up its rollout, and a process or thread, for ever.",
    needs=[RESOURCES_SERVER, SCORE],
    subjects=_runners,
)
async def resources_program_ends(trial: Trial, runner: ProgramRunner | str) -> None:
    """Has a program run that sleeps for three times --gym-timeout, and waits twice as long as that for an answer.

    It is given to verify, if a row asks for Python, and to tools that take a program or a command, if they are found to
    run programs: then the fastest of three that sleep for half a second takes longer than that of three that do not.

    Once it is stopped, verify must not give it 1, unless a program that fails at once earns that, too.

    Our inference: by default that is a minute, after which Verifiers' taskset gives up a verify (verifiers 0.4.0).
    """
    endless = await _endless(trial, runner)
    if endless.answer is None:
        timeout = trial.gym.endpoint.timeout
        raise Violation(
            f"an answer within {_WITHIN * timeout:g} s, whatever the program does",
            f"none to one that sleeps for {_SLEEPS * timeout:g} s",
            "The program is run without a time limit: set one (subprocess.run(timeout=...), asyncio.wait_for), and kill the "
            "program's whole process group when it is over.",
        )
    trial.note = f"answered after {endless.seconds:.1f} s"
    failing = Trajectory(endless.row, answer=FAILING_PROGRAM)
    if (
        endless.answer.fields.get("reward") == WHOLE
        and (await run(trial.gym, Channel(trial.gym.endpoint), failing)).earned < WHOLE
    ):
        raise Violation(
            f"less than {WHOLE:g} for a program that is stopped, as for one that fails",
            f"{WHOLE:g}",
            "A test that takes too long is skipped, or its missing result is taken for a good one: it has failed.",
        )


@check(
    "resources-program-stopped",
    "A program that is stopped MUST be answered without a crash",
    why="policies write endless loops all the time; each crash loses a rollout that was paid for.",
    needs=[RESOURCES_SERVER, SCORE],
    subjects=_runners,
)
async def resources_program_stopped(trial: Trial, runner: ProgramRunner | str) -> None:
    """Looks at the answer to the program of resources-program-ends: verify must score it, and a tool must not answer 5xx.

    Source: `SimpleAgent.run` raises if verify answers another status than 200 (0.4.0).
    """
    endless = await _endless(trial, runner)
    if endless.answer is None:
        raise NotApplicable("it is not stopped in time; see resources-program-ends")
    hint = "The error that says so (subprocess.TimeoutExpired, TimeoutError) is not caught: a program that is stopped has failed."
    if endless.exchanges[-1].request.path == VERIFY:
        expect_success(endless.answer, hint)
        expect_number(endless.answer)
    else:
        expect_no_crash(endless.answer, hint, "a program that is stopped")
