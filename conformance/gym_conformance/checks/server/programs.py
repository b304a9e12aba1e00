"""Programs that verify or a tool runs: one that a policy writes may never end."""

import time
from collections.abc import Iterable

from gym_conformance.checks.server.resources import HELD_UP_SECONDS, longest_wait
from gym_conformance.session.channel import apart
from gym_conformance.session.server_fault import Fault, ServerFault
from gym_conformance.trials.check import check
from gym_conformance.trials.ending import NotApplicable, Violation
from gym_conformance.trials.needs import RESOURCES_SERVER, SCORE
from gym_conformance.trials.program_runners import ProgramRunner, program_runners
from gym_conformance.trials.trial import Trial

#: An answer must come within so many times --gym-timeout, and the program sleeps for so many.
_WITHIN, _SLEEPS = 2, 3

#: Seconds that a program sleeps to show whether it holds up other requests.
_BRIEF = 2 * HELD_UP_SECONDS


def _runners(trial: Trial) -> Iterable[ProgramRunner | str]:
    return (*program_runners(trial.gym),) or ("server",)


@check(
    "resources-program-ends",
    "A program that never ends SHOULD be answered in time",
    why="policies write endless loops all the time; each holds up its rollout, and a process or thread, for ever.",
    needs=[RESOURCES_SERVER, SCORE],
    subjects=_runners,
)
async def resources_program_ends(trial: Trial, runner: object) -> None:
    """Has a program run that sleeps for three times --gym-timeout, and waits twice as long as that for an answer.

    It is given to verify, if a row asks for Python, and to tools that take a program or a command, if they are found to
    run programs: then they take half a second longer if a program sleeps for half a second, three times in a row.

    Our inference: by default that is a minute, after which Verifiers' taskset gives up a verify (verifiers 0.4.0).
    """
    if not isinstance(runner, ProgramRunner):
        raise NotApplicable("no row asks for a program, and no tool takes one")
    gym = trial.gym
    if not await runner.runs_programs(gym):
        raise NotApplicable("no program is run")
    within, sleeps = _WITHIN * gym.endpoint.timeout, _SLEEPS * gym.endpoint.timeout
    async with apart(trial.channel, within) as channel:
        if await longest_wait(trial, [await runner.given(gym, channel, _BRIEF)]) > HELD_UP_SECONDS:
            raise NotApplicable("a program holds up all other requests; see resources-loop-free")
        channel.exchanges.clear()
        running = await runner.given(gym, channel, sleeps)
        began = time.monotonic()
        try:
            with gym.endpoint.forgiving():
                await running
        except ServerFault as fault:
            if fault.fault is not Fault.HANG:
                raise
            raise Violation(
                f"{runner.what} answers within {within:g} s, whatever its program does",
                f"no answer to a program that sleeps for {sleeps:g} s",
                "The program is run without a time limit: set one (subprocess.run(timeout=...), asyncio.wait_for), and kill the "
                "program's whole process group when it is over.",
            ) from None
    trial.note = f"answered after {time.monotonic() - began:.1f} s"
