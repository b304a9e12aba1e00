"""Sandboxes: what a launched server makes of their failures, and whether it closes what it has made.

Where its config refers to a sandbox and has none, the suite's stand for it; they run nothing, and can be made to fail.
"""

import asyncio
from typing import Any, Final

from gym_conformance.contract.statuses import is_success
from gym_conformance.contract.verify_reply import is_masked, is_number
from gym_conformance.session.exchange import Reply
from gym_conformance.trials.check import check
from gym_conformance.trials.ending import NotApplicable, Violation
from gym_conformance.trials.in_form import expect_named_cause, expect_reported
from gym_conformance.trials.launched import FakeSandboxes, SandboxTrouble
from gym_conformance.trials.needs import RESOURCES_SERVER, SCORE
from gym_conformance.trials.replay import an_answer
from gym_conformance.trials.trial import Trial

#: Seconds within which a sandbox is closed after a verify.
_CLOSING = 5.0
_PAUSE = 0.1

#: Failures of the sandbox itself, whatever the policy wrote.
_OUTAGES: Final = (SandboxTrouble.NOT_CREATED, SandboxTrouble.NO_CAPACITY, SandboxTrouble.BAD_GATEWAY)


def _sandboxes(trial: Trial) -> FakeSandboxes:
    found = trial.launched.sandboxes
    if found is None:
        raise NotApplicable("it is known only for servers that the suite launches, with sandboxes of our own")
    return found


@check(
    "sandbox-answers",
    "verify SHOULD score or say what failed, whatever its sandbox does",
    why="sandboxes fail by the hundred under load; each crash loses a rollout, and nothing points to its cause.",
    needs=[RESOURCES_SERVER, SCORE],
    subjects=lambda _: [each for each in SandboxTrouble if each is not SandboxTrouble.NONE],
)
async def sandbox_answers(trial: Trial, trouble: SandboxTrouble) -> None:
    """Verifies a row while creation, commands, files or closing fail, and expects a score or a named error in time.

    A 5xx is a violation if it says nothing, or is the bare `repr` of a programming error; so is a 200 without a reward
    or `_ng_failure_class`. So is a 200 that neither masks its sample nor names what failed while no sandbox can be
    created or reached, if its reward is more than commands with status 1 earn; or, if the reward depends on that status,
    if it is exactly what they earn. Applies only to launched servers that ask a sandbox.

    Our inference: `SandboxProvider` in nemo_gym/sandbox/providers/base.py (0.5.0 on) says what a provider may raise and
    answer, and `mask_sample` in nemo_gym/base_resources_server.py (0.7.0) is for failures of the infrastructure.
    """
    reply = await _verified(trial, trouble)
    expect_named_cause(
        reply,
        f"a score when {trouble}",
        "The scorer assumes what the sandbox answers; catch what it may raise, and say so.",
    )
    expect_reported(reply, "verify does not report what its sandbox did.")
    if trouble in _OUTAGES and is_success(reply.status) and not is_masked(reply.said):
        await _expect_told_apart(trial, trouble, reply.fields.get("reward"))


async def _expect_told_apart(trial: Trial, trouble: SandboxTrouble, earned: Any) -> None:
    """Raise if an outage earns more than commands that fail, or just as much though the reward depends on these."""
    aside = Trial(trial.bench)
    rewards = [
        (await _verified(aside, each)).fields.get("reward") for each in (SandboxTrouble.NONE, SandboxTrouble.FAILED)
    ]
    passed, failed = rewards
    if not all(map(is_number, (earned, *rewards))):
        return
    if earned > failed:
        raise Violation(
            f"no more than {failed}, which commands with status 1 earn, when {trouble}",
            f"a reward of {earned}",
            "The scorer takes what is no result for one: an outage of the sandbox earns a reward.",
        )
    if earned == failed != passed:
        raise Violation(
            f"mask_sample, _ng_failure_class, or an error, when {trouble}",
            f"a reward of {earned}, as for a wrong answer",
            "The scorer catches the error and scores all the same: an outage of the sandbox looks like failures of the policy.",
        )


@check(
    "sandbox-closed",
    "Every sandbox that was created SHOULD be closed after verify, even after a failure",
    why="a sandbox that nobody closes runs, and is paid for, until its time to live ends.",
    needs=[RESOURCES_SERVER, SCORE],
    subjects=lambda _: tuple(each for each in SandboxTrouble if each is not SandboxTrouble.NOT_CLOSED),
)
async def sandbox_closed(trial: Trial, trouble: SandboxTrouble) -> None:
    """Verifies a row, once as usual and while something fails, and checks which of the sandboxes created meanwhile are left.

    A session that can be closed is closed first. Applies only to launched servers that ask a sandbox.

    Our inference: `AsyncSandbox.stop` in nemo_gym/sandbox/api.py (0.5.0 on) ends a sandbox; nothing else does.
    """
    sandboxes = _sandboxes(trial)
    before = set(sandboxes.left_sandboxes)
    await _verified(trial, trouble)
    for _look in range(int(_CLOSING / _PAUSE)):
        if set(sandboxes.left_sandboxes) <= before:
            return
        await asyncio.sleep(_PAUSE)
    left = set(sandboxes.left_sandboxes) - before
    raise Violation(
        "no sandbox left behind",
        f"{len(left)} still there {_CLOSING:g} s after verify"
        + ("" if trouble is SandboxTrouble.NONE else f", when {trouble}"),
        "Stop the sandbox in a `finally`, whatever happened to its commands.",
    )


async def _verified(trial: Trial, trouble: SandboxTrouble) -> Reply:
    """What verify answers in a session that was opened before the trouble began; the session is closed.

    Raises:
        NotApplicable: the server asks no sandbox.
    """
    sandboxes = _sandboxes(trial)
    row = next(iter(trial.gym.recorded), trial.gym.row)
    asked = sandboxes.asked_sandboxes
    session = await trial.open(row)
    sandboxes.let_sandboxes(trouble)
    try:
        reply = await trial.verify(session, an_answer(trial.gym, row))
        await session.close()
    finally:
        sandboxes.let_sandboxes(SandboxTrouble.NONE)
    if sandboxes.asked_sandboxes == asked:
        raise NotApplicable("it asks no sandbox for this row")
    return reply
