"""Episodes on the wire: the request and the reply of an environment server's `POST /run`.

Source: nemo_gym/episode_types.py and nemo_gym/base_environment_server.py; `_episode_request_body` and `_episode_record`
in nemo_gym/rollout_collection.py; `materialize_task` in nemo_gym/task_materialization.py (0.7.0).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from gym_conformance.contract.dataset_rows import Row
from gym_conformance.contract.endpoints import ROLLOUT_INDEX, TASK_INDEX
from gym_conformance.contract.identity import Identity, task_of

#: The fields of an episode request; a server that declares them accepts no other form.
EPISODE_FIELDS: Final = frozenset({"episode_id", "task"})

#: The field of an older-style reply that says that the episode failed.
FAILURE_CLASS: Final = "_ng_failure_class"

#: Keys of a row that route it and are not part of the task.
_ROUTING: Final = frozenset({"agent_ref", "task_source", "skills_ref"})

#: Keys that rollout collection writes itself; a result that contains one of them aborts the collection.
_COLLECTED: Final = frozenset({"ng_trajectory", "ng_model_call_capture", "ng_perf"})


@dataclass(frozen=True)
class Episode:
    """One episode of a row, and the form of its request.

    Attributes:
        row: the row.
        typed: whether to send an episode request, or the flat row that agents accept.
        identity: whose episode it is.
    """

    row: Row
    typed: bool
    identity: Identity = field(default_factory=Identity)

    @property
    def task_id(self) -> Mapping[str, Any]:
        """The task's identity."""
        return task_of(self.row)

    @property
    def body(self) -> dict[str, Any]:
        """The body of the request."""
        if not self.typed:
            return {
                **self.row.data,
                TASK_INDEX: 0,
                ROLLOUT_INDEX: 0,
                "_ng_rollout_id": self.identity.rollout_id,
            }
        task = self.row.task
        flat = {
            key: value for key, value in self.row.data.items() if key not in _ROUTING and not key.startswith("_ng_")
        }
        given = task["task_input"] if task else flat
        return {"episode_id": self.identity.episode, "task": {"task_id": self.task_id, "task_input": given}}

    def ended(self, answer: Mapping[str, Any]) -> "Ended":
        """How it ended, according to a reply of either form; a reply to a flat row is the result itself."""
        if self.typed and isinstance(answer.get("episode_id"), dict) and {"result", "failure"} & answer.keys():
            return Ended(answer.get("result"), answer.get("failure"))
        if answer.get(FAILURE_CLASS) is not None:
            return Ended(None, {"failure_reason": answer.get("_ng_failure_message") or answer[FAILURE_CLASS]})
        return Ended(answer, None)


@dataclass(frozen=True)
class Ended:
    """How an episode ended, unchecked: with a result, or with a handled failure."""

    result: Any
    failure: Any

    @property
    def reason(self) -> str:
        """Why it failed."""
        reason = self.failure.get("failure_reason") if isinstance(self.failure, dict) else self.failure
        return str(reason)

    @property
    def reserved(self) -> list[str]:
        """Keys of the result that rollout collection refuses."""
        result = self.result if isinstance(self.result, dict) else {}
        return sorted(key for key in result if key in _COLLECTED or key.startswith("_ng_"))
