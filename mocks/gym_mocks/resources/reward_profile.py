"""`/aggregate_metrics`: what nemo-gym's RewardProfiler computes with pandas, in plain Python.

Reference: compute_aggregate_metrics and RewardProfiler (nemo_gym/reward_profile.py, 0.4.0). One thing
differs: two responses of the same rollout key are both counted, and numbers that no float's square holds are not,
where nemo-gym answers 500.
"""

import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

TASK = "_ng_task_index"
ROLLOUT = "_ng_rollout_index"
LARGEST = 1e100  # of a number that is counted: sums and squares of larger ones are no floats

Numbers = dict[str, float]


def aggregate(verify_responses: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The AggregateMetrics of some verify responses: by task, over all, and the headline of the latter."""
    if not verify_responses:
        return {"group_level_metrics": [], "agent_metrics": {}, "key_metrics": {}}
    by_task: dict[Any, list[Mapping[str, Any]]] = defaultdict(list)
    for response in verify_responses:
        by_task[_index(response, TASK)].append(response)
    overall = _statistics(map(_numbers, verify_responses))
    return {
        "group_level_metrics": [_group(task, by_task[task]) for task in sorted(by_task)],
        "agent_metrics": overall,
        "key_metrics": {name: value for name, value in overall.items() if name.startswith("mean/")},
    }


def _group(task: int, responses: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    count = len(responses)
    return {
        TASK: task,
        **_statistics(map(_numbers, responses)),
        "sample": {"agent_ref": {"name": "agent"}},
        "num_rollouts": count,
        "expected_num_rollouts": count,
        "missing_num_rollouts": 0,
        "reward_profile_completion_pct": 100.0,
        "rollout_infos": [_info(response) for response in sorted(responses, key=lambda r: _index(r, ROLLOUT))],
    }


def _statistics(columns: Iterable[Numbers]) -> dict[str, float]:
    rows = list(columns)
    values: dict[str, list[float]] = defaultdict(list)
    for row in rows:
        for name, number in row.items():
            values[name].append(number)
    described = {
        "mean": {name: statistics.fmean(column) for name, column in values.items()},
        "max": {name: max(column) for name, column in values.items()},
        "min": {name: min(column) for name, column in values.items()},
        "median": {name: statistics.median(column) for name, column in values.items()},
        "std": _deviations(values, len(rows)),
    }
    return {f"{kind}/{name}": number for kind, column in described.items() for name, number in column.items()}


def _deviations(values: Mapping[str, Sequence[float]], count: int) -> Numbers:
    """Sample deviations; where no column has one, 0 for those without gaps, as the profiler does."""
    known = {name: statistics.stdev(column) for name, column in values.items() if len(column) > 1}
    if known:
        return known
    return {name: 0.0 for name, column in values.items() if len(column) == count}


def _info(response: Mapping[str, Any]) -> dict[str, Any]:
    task, rollout = _index(response, TASK), _index(response, ROLLOUT)
    numbers = {name: number for name, number in _numbers(response).items() if name not in {"reward", TASK, ROLLOUT}}
    reward = {"reward": response["reward"]} if "reward" in response else {}
    return {"rollout_id": f"{task}:{rollout}", TASK: task, ROLLOUT: rollout, **reward, **numbers}


def _numbers(response: Mapping[str, Any]) -> Numbers:
    """A response's numeric fields and those of its `usage`; truth values count as 0 and 1."""
    answer = response.get("response")
    usage = answer.get("usage") if isinstance(answer, dict) else None
    fields = {**response, **(usage if isinstance(usage, dict) else {})}
    return {
        name: int(value) if isinstance(value, bool) else value
        for name, value in fields.items()
        if isinstance(value, int | float) and abs(value) <= LARGEST and name not in {TASK, ROLLOUT}
    }


def _index(response: Mapping[str, Any], key: str) -> int:
    value = response.get(key, 0)
    return value if isinstance(value, int) else 0
