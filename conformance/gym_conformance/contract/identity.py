"""Typed sessions on the wire: the caller names the session, says whose it is, and closes it.

Source: nemo_gym/base_resources_server.py, nemo_gym/episode_types.py and environment_servers/single_agent_turn/app.py,
0.7.0.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from uuid import uuid4

from gym_conformance.contract.dataset_rows import Row

#: The field of the seed's body that a server with typed sessions declares.
SESSION_ID: Final = "resources_session_id"

#: All that a typed seed's reply may have: a server that merely returns what it was sent has more.
_CONFIRMED: Final = frozenset({SESSION_ID, "resources_tools", "sandbox_access"})

#: Sessions of one run share a taskset.
_TASKSET: Final = "gym-conformance"

#: Fields in which a row may name its task, in the order of nemo_gym/task_materialization.py (0.7.0).
_TASK_IDS: Final = ("task_id", "problem_id", "instance_id")


def task_of(row: Row) -> Mapping[str, Any]:
    """The `task_id` of requests about a row: its own if it is materialized or names one, else by its line, from 0."""
    if row.task:
        materialized: Mapping[str, Any] = row.task["task_id"]
        return materialized
    named = (row.data[key] for key in _TASK_IDS if row.data.get(key) is not None)
    return {"taskset": _TASKSET, "task_id": str(next(named, max(0, row.source.line - 1)))}


@dataclass(frozen=True)
class Identity:
    """Whose a typed session is: the id that the caller gave it, the episode, and the task."""

    session_id: str = field(default_factory=lambda: f"resources-session-{uuid4().hex}")
    # no hyphen: what follows one may be read as an attempt's number
    rollout_id: str = field(default_factory=lambda: f"rollout.{uuid4().hex}")
    attempt: int = 0
    task_id: str = "1"

    @property
    def episode(self) -> dict[str, Any]:
        """The `episode_id` of every request about the session."""
        return {"rollout_id": self.rollout_id, "attempt": self.attempt}

    def seed(self, data: Mapping[str, Any]) -> dict[str, Any]:
        """The body of `/seed_session` for a row: everything but the policy's request is task data."""
        task = {key: value for key, value in data.items() if key != "responses_create_params"}
        return {
            SESSION_ID: self.session_id,
            "episode_id": self.episode,
            "task_id": {"taskset": _TASKSET, "task_id": self.task_id},
            "task_data": task,
        }

    def confirmed_by(self, reply: Mapping[str, Any]) -> bool:
        """Whether a seed's reply names the session, as only a typed one does."""
        return reply.get(SESSION_ID) == self.session_id and reply.keys() <= _CONFIRMED

    def close(self) -> dict[str, Any]:
        """The body of `/close_session`."""
        return {SESSION_ID: self.session_id, "episode_id": self.episode}
