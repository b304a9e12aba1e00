"""A recorded rollout against the server as it is now."""

import json
from typing import Any

from gym_conformance.checks.outcome import NotApplicable, Violation
from gym_conformance.checks.trial import OK, Trial
from gym_conformance.contract.openapi import Kind
from gym_conformance.contract.policy_output import response
from gym_conformance.contract.rows import Call, Rollout, Row
from gym_conformance.session.exchange import Reply, reply_of
from gym_conformance.trajectories.outcome import Outcome, StepOutcome, differences, volatile

_UNROUTED = (404, 405)
_HINT = "The environment changed since: record the rollouts anew, or find out what changed the answer."


async def differs_from_record(trial: Trial, row: Row) -> None:
    """Hold a row's first recorded rollout to what the server answers now.

    Raises:
        Violation: a tool's output or the reward is not as recorded.
        NotApplicable: the server refuses the record, made by an older version.
    """
    rollout = trial.gym.recorded[row][0]
    recorded = _recorded(rollout)
    if trial.gym.kind is Kind.SINGLE_TURN and len(recorded.steps) > 1:
        raise NotApplicable("its calls were made to something that is not served here")
    now, again = await _run(trial, row, rollout), await _run(trial, row, rollout)
    if now.steps[-1].status != OK:
        raise NotApplicable(f"/verify answers {now.steps[-1].status} to it, recorded by an older version")
    mask = volatile(now, again)
    for number, (was, now_is) in enumerate(zip(recorded.steps, now.steps, strict=True)):
        if was.name != "/verify" and now_is.status in _UNROUTED:
            mask |= {(number, "status"), (number, "body")}
        if was.name != "/verify":
            mask |= {(number, "status")}  # a recorded output has none
        if was.name == "/verify" and not isinstance(was.body, int | float):
            raise NotApplicable("its recorded reward is no number")
    for difference in differences(recorded, now, mask):
        raise Violation(
            f"{difference.step} answers {difference.expected!r}, as recorded in {rollout}",
            f"{difference.actual!r}",
            _HINT,
        )


def _recorded(rollout: Rollout) -> Outcome:
    outputs = {
        item.get("call_id"): item.get("output")
        for item in rollout.output
        if isinstance(item, dict) and item.get("type") == "function_call_output"
    }
    steps = [
        StepOutcome(f"/{call.name}", OK, _parsed(outputs.get(call_id)))
        for call_id, call in _calls(rollout)
        if call_id in outputs
    ]
    return Outcome((*steps, StepOutcome("/verify", OK, rollout.reward)))


def _calls(rollout: Rollout) -> list[tuple[Any, Call]]:
    found = []
    for item in rollout.output:
        if isinstance(item, dict) and item.get("type") == "function_call":
            arguments = _parsed(item.get("arguments"))
            if isinstance(arguments, dict):
                found.append((item.get("call_id"), Call(str(item.get("name")), arguments)))
    return found


async def _run(trial: Trial, row: Row, rollout: Rollout) -> Outcome:
    answered = {step.get("call_id") for step in rollout.output if isinstance(step, dict) and "output" in step}
    session = await trial.open(row)
    steps = []
    for call_id, call in _calls(rollout):
        if call_id in answered:
            reply = reply_of(await session.call(call))
            steps.append(StepOutcome(f"/{call.name}", reply.status, _body(reply)))
    reply = reply_of(await session.verify(response(rollout.output)))
    verdict = reply.json() if reply.status == OK and reply.is_json else {}
    return Outcome((*steps, StepOutcome("/verify", reply.status, verdict.get("reward"))))


def _body(reply: Reply) -> Any:
    return reply.json() if reply.is_json else reply.text


def _parsed(text: Any) -> Any:
    try:
        return json.loads(text)
    except (TypeError, ValueError):
        return text
