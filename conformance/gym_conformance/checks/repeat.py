"""The same again: a trajectory on a fresh session, a verify twice, a recorded rollout.

Source: nemo_gym/server_utils.py `request` sends again when a reply is lost (every version); `/reverify_mode` says
since 0.5.0 whether a verify needs the session.
"""

from gym_conformance.checks.check import Level, check
from gym_conformance.checks.needs import RECORDED_CALLS, RESOURCES_SERVER, ROLLOUTS, SCORE, SERVED_TOOLS, TOOLS
from gym_conformance.checks.outcome import NotApplicable, Violation
from gym_conformance.checks.property import alone, property_check
from gym_conformance.checks.recorded import differs_from_record
from gym_conformance.checks.trial import OK, Trial
from gym_conformance.contract.rows import Row
from gym_conformance.session.channel import Channel
from gym_conformance.session.exchange import Request
from gym_conformance.trajectories.execute import Rollout, run
from gym_conformance.trajectories.generate import trajectories
from gym_conformance.trajectories.outcome import differences, volatile
from gym_conformance.trajectories.trajectory import Schedule, Trajectory

_REVERIFY_MODE = "/reverify_mode"
_AGAIN = 3


async def _same_reward(trial: Trial, schedule: Schedule) -> None:
    """Statuses and rewards of a trajectory, run several times; what its replies hold may be volatile by design."""
    first = await run(trial.gym, trial.channel, schedule.trajectories[0])
    for _again in range(_AGAIN):
        second = await run(trial.gym, trial.channel, schedule.trajectories[0])
        for one, two in zip(first.steps, second.steps, strict=True):
            if one.status != two.status:
                raise Violation(f"{one.name} answers {one.status} each time", f"{two.status}", _RANDOM)
        if first.reward != second.reward:
            raise Violation(f"a reward of {first.reward} each time", f"{second.reward}", _RANDOM)


_RANDOM = "The environment draws at random without a seed from the row, or keeps state from earlier sessions."


async def _declares_stateless(trial: Trial) -> None:
    reply = await trial.send(Request("GET", _REVERIFY_MODE))
    if reply.status != OK or not reply.is_json:
        raise NotApplicable("the server does not say (/reverify_mode): nemo-gym before 0.5.0")
    if reply.json() != "stateless":
        raise NotApplicable(f"the server says that its verify is {reply.json()!r}")


@property_check(
    "repeat-deterministic",
    Level.SHOULD,
    "A trajectory SHOULD earn the same on every fresh session",
    why="group-relative advantages compare rollouts of one row: what the environment adds at random is taken for merit.",
    needs=[RESOURCES_SERVER, SCORE],
    examples=lambda knowledge: alone(trajectories(knowledge)),
)
async def repeat_deterministic(trial: Trial, schedule: Schedule) -> None:
    """Runs a trajectory four times, each on a fresh session: the statuses and the reward are the same.

    Our inference. Where the server declares its verify stateless, repeat-stateless asks for it as a MUST.
    """
    await _same_reward(trial, schedule)


@property_check(
    "repeat-stateless",
    Level.MUST,
    "A verify that is declared stateless MUST give the same for the same request",
    why="trainers score again what was recorded, and take the new reward for the old one.",
    needs=[RESOURCES_SERVER, SCORE],
    examples=lambda knowledge: alone(trajectories(knowledge)),
)
async def repeat_stateless(trial: Trial, schedule: Schedule) -> None:
    """Where `/reverify_mode` says stateless, runs a trajectory, and verifies its output again without the session.

    Source: `reverify_mode` in nemo_gym/base_resources_server.py (0.5.0 on).
    """
    await _declares_stateless(trial)
    rollout = Rollout(trial.gym, trial.channel, schedule.trajectories[0])
    first = (await rollout.finish()).reward
    stranger = Rollout(trial.gym, trial.channel, schedule.trajectories[0])
    stranger.output = rollout.output
    second = (await stranger.verify()).body
    if first != second:
        raise Violation(f"a reward of {first}, without the session too", f"{second}", "The verify reads the session.")


@property_check(
    "repeat-verify",
    Level.MUST,
    "A repeated verify MUST give the same reward",
    why="clients send a verify again when its reply is lost: the rollout is then scored by the second one.",
    needs=[RESOURCES_SERVER, SCORE],
    examples=lambda knowledge: alone(trajectories(knowledge)),
)
async def repeat_verify(trial: Trial, schedule: Schedule) -> None:
    """Runs a trajectory, and verifies it twice more in its session: the reward stays.

    Not where two fresh sessions already differ: that is repeat-deterministic's finding.

    Source: nemo_gym/server_utils.py `request` retries on a lost connection (every version).
    """
    rollout = Rollout(trial.gym, trial.channel, schedule.trajectories[0])
    first = await rollout.finish()
    for _again in range(2):
        second = await rollout.verify()
        if (second.status, second.body) != (first.steps[-1].status, first.reward):
            aside = Channel(trial.gym.line)
            for _control in range(_AGAIN):
                if (await run(trial.gym, aside, schedule.trajectories[0])).reward != first.reward:
                    raise NotApplicable("the reward is not reproducible on fresh sessions")
            raise Violation(
                f"a reward of {first.reward} again",
                f"status {second.status}, reward {second.body}",
                "verify consumes or resets the session's state: score without changing it.",
            )


@property_check(
    "repeat-verify-pure",
    Level.SHOULD,
    "A verify SHOULD NOT change what the tools answer",
    why="an agent that asks for an interim score then plays another game than the one that is trained.",
    needs=[RESOURCES_SERVER, TOOLS, SERVED_TOOLS, SCORE],
    examples=lambda knowledge: alone(trajectories(knowledge, min_calls=1)),
)
async def repeat_verify_pure(trial: Trial, schedule: Schedule) -> None:
    """Verifies before each call of a trajectory: all replies are as without, but for what differs alone too.

    Our inference: nothing says that a verify ends the session.
    """
    trajectory = schedule.trajectories[0]
    rollout = Rollout(trial.gym, trial.channel, trajectory)
    for _step in range(trajectory.steps - 1):
        await rollout.step()
        await rollout.verify()
    await rollout.step()
    aside = Channel(trial.gym.line)
    plain = await run(trial.gym, aside, trajectory)
    mask = volatile(plain, await run(trial.gym, aside, trajectory)) | volatile(
        plain, await run(trial.gym, aside, trajectory)
    )
    for difference in differences(plain, rollout.outcome, mask):
        raise Violation(
            f"{difference.step} answers {difference.expected!r}, as without a verify before",
            f"{difference.actual!r}",
            "verify releases or resets the session's state.",
        )


@check(
    "repeat-recorded",
    Level.SHOULD,
    "Recorded rollouts SHOULD still hold",
    why="the examples that a newcomer trusts, and the rewards that a baseline was measured with, are no longer true.",
    needs=[RESOURCES_SERVER, ROLLOUTS, SCORE],
    subjects=lambda gym: list(gym.recorded),
)
async def repeat_recorded(trial: Trial, row: Row) -> None:
    """Makes a recorded rollout's calls again and verifies its output: tool outputs and reward are as recorded.

    Parsed JSON is compared, not text; what differs between two runs now is left out; outputs recorded from tools that
    are not served are, too.

    Our inference: `example_rollouts.jsonl` is part of every environment (nemo-gym's contribution rules).
    """
    await differs_from_record(trial, row)


@check(
    "repeat-tool-calls",
    Level.MAY,
    "A repeated tool call MAY change nothing",
    why="clients send a call again when its reply is lost: a tool that is not idempotent then acts twice.",
    needs=[RESOURCES_SERVER, SERVED_TOOLS, RECORDED_CALLS],
)
async def repeat_tool_calls(trial: Trial, _: object) -> None:
    """Makes each call of the longest recorded rollout twice, and names the tools after which later replies differ.

    Source: nemo_gym/server_utils.py `request` retries on a lost connection (every version).
    """
    row, calls = trial.gym.recorded_calls[0]
    plain = await run(trial.gym, trial.channel, Trajectory(row, calls))
    mask = volatile(plain, await run(trial.gym, trial.channel, Trajectory(row, calls)))
    acting = []
    for at, call in enumerate(calls):
        doubled = Trajectory(row, (*calls[: at + 1], *calls[at:]))
        outcome = await run(trial.gym, trial.channel, doubled)
        once = type(outcome)((*outcome.steps[: at + 2], *outcome.steps[at + 3 :]))
        if any(differences(plain, once, mask)):
            acting.append(call.name)
    if acting:
        raise Violation(
            "calls that act once, however often they arrive",
            f"not idempotent: {', '.join(dict.fromkeys(acting))}",
            "Usual for tools that add or move; know it when you retry.",
        )
