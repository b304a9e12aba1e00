"""`POST /aggregate_metrics` and liveness.

Source: `aggregate_metrics` in nemo_gym/base_resources_server.py and `AggregateMetrics` in nemo_gym/config_types.py (0.3.0 on);
0.2.x serves neither it nor `GET /`.
"""

from http import HTTPStatus
from typing import Any

from gym_conformance.contract.endpoints import AGGREGATE_METRICS, ROLLOUT_INDEX, TASK_INDEX
from gym_conformance.contract.openapi import ServerKind
from gym_conformance.contract.policy_output import DO_NOTHING
from gym_conformance.contract.statuses import is_success
from gym_conformance.session.channel import Channel
from gym_conformance.session.contracts import post
from gym_conformance.session.exchange import Reply, reply_of
from gym_conformance.session.likeness import Answer, alike
from gym_conformance.session.unserved import NO_SUCH_TOOL
from gym_conformance.trials.check import check
from gym_conformance.trials.ending import NotApplicable, Violation
from gym_conformance.trials.needs import RESOURCES_SERVER, SCORE
from gym_conformance.trials.trial import Trial, expect_object, expect_success


async def _aggregate(trial: Trial, verdicts: list[dict[str, Any]]) -> Reply:
    body = {"verify_responses": verdicts}
    reply = await trial.send(post(AGGREGATE_METRICS, body))
    unknown = reply.status == HTTPStatus.NOT_FOUND
    if not unknown and (trial.gym.kind is ServerKind.CATCH_ALL or not is_success(reply.status)):
        stranger = reply_of(await Channel(trial.gym.endpoint).send(post(f"/{NO_SUCH_TOOL}", body)))
        unknown = alike(Answer(reply, (AGGREGATE_METRICS[1:],)), Answer(stranger, (NO_SUCH_TOOL,)))
    if unknown:
        raise NotApplicable("the server has no /aggregate_metrics, like nemo-gym before 0.3.0")
    return reply


async def _verdicts(trial: Trial) -> list[dict[str, Any]]:
    """Verify replies of two tasks, two rollouts each, with the keys that collection adds."""
    verdict = await trial.scored(await trial.open(), DO_NOTHING.response)
    indices = [(task, rollout) for task in range(2) for rollout in range(2)]
    return [verdict | {TASK_INDEX: task, ROLLOUT_INDEX: rollout} for task, rollout in indices]


@check(
    "metrics-shape",
    "aggregate_metrics MUST reply with its three members",
    why="`gym eval run` fails at the very end, after all rollouts are done.",
    needs=[RESOURCES_SERVER, SCORE],
)
async def metrics_shape(trial: Trial, _: object) -> None:
    """Aggregates four verify replies; group_level_metrics must be a list of objects, agent_metrics and key_metrics objects.

    Source: `AggregateMetrics` in nemo_gym/config_types.py (0.4.0), with which the agent validates the reply.
    """
    reply = await _aggregate(trial, await _verdicts(trial))
    hint = "compute_metrics() or get_key_metrics() fails on verify's own replies."
    expect_success(reply, hint)
    body = expect_object(reply, hint)
    groups = body.get("group_level_metrics", [])
    if not isinstance(groups, list) or not all(isinstance(group, dict) for group in groups):
        raise Violation("group_level_metrics: a list of objects", f"{groups!r}", hint)
    for key in ("agent_metrics", "key_metrics"):
        if not isinstance(body.get(key, {}), dict):
            raise Violation(f"{key}: an object", f"{body.get(key)!r}", hint)


@check(
    "metrics-empty",
    "aggregate_metrics MUST accept an empty list",
    why="a collection in which every rollout failed ends in a crash instead of a report.",
    needs=[RESOURCES_SERVER],
)
async def metrics_empty(trial: Trial, _: object) -> None:
    """Aggregates an empty list.

    Source: `compute_aggregate_metrics` in nemo_gym/reward_profile.py returns empty metrics for it (0.4.0).
    """
    reply = await _aggregate(trial, [])
    hint = "compute_metrics() divides by the number of replies, or reads the first one."
    expect_success(reply, hint)
    expect_object(reply, hint)


@check(
    "metrics-order",
    "aggregate_metrics SHOULD NOT depend on the order of the replies",
    why="rollouts finish in any order, so the same run would have different metrics each time.",
    needs=[RESOURCES_SERVER, SCORE],
)
async def metrics_order(trial: Trial, _: object) -> None:
    """Aggregates four replies with different rewards, grouped by task and mixed, and compares `key_metrics`.

    The rollouts of one task keep their order: metrics such as pass@1 and majority votes may use it.

    Our inference: rollout collection writes the replies in the order in which they finish.
    """
    verdicts = [verdict | {"reward": float(at % 3)} for at, verdict in enumerate(await _verdicts(trial))]
    replies = [await _aggregate(trial, order) for order in (verdicts, [verdicts[at] for at in (2, 0, 3, 1)])]
    if any(not is_success(reply.status) or not reply.is_json for reply in replies):
        raise NotApplicable("it does not aggregate them; see metrics-shape")
    in_turn, mixed = (_numbers(reply) for reply in replies)
    if in_turn != mixed:
        raise Violation(
            f"{in_turn} in either order",
            f"{mixed} where tasks are mixed",
            "compute_metrics() relies on the order of its input.",
        )


def _numbers(reply: Reply) -> dict[str, Any]:
    key_metrics = reply.fields.get("key_metrics")
    metrics = key_metrics if isinstance(key_metrics, dict) else {}
    return {key: round(value, 6) if isinstance(value, float) else value for key, value in metrics.items()}
