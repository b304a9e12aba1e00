from collections import OrderedDict
from dataclasses import dataclass
from typing import Any

LIMIT = 20_000  # sessions: clients never close one, so the oldest must go at some point


@dataclass(slots=True)
class StoredSession:
    """What a server keeps of one rollout.

    Attributes:
        state: whatever the environment's state factory made.
        seed: a digest of the row it was seeded with; None where a tool came before any seed.
        scored: whether verify has run.
    """

    state: Any
    seed: bytes | None = None
    scored: bool = False


class SessionStore:
    """Sessions by id, bounded: past `limit` the one that was longest unused is forgotten."""

    def __init__(self, limit: int = LIMIT) -> None:
        self.limit = limit
        self._sessions: OrderedDict[str, StoredSession] = OrderedDict()

    def __len__(self) -> int:
        return len(self._sessions)

    def get(self, session_id: str) -> StoredSession | None:
        """The session of an id, or None."""
        session = self._sessions.get(session_id)
        if session is not None:
            self._sessions.move_to_end(session_id)
        return session

    def drop(self, session_id: str) -> None:
        """Forget a session, where it is known."""
        self._sessions.pop(session_id, None)

    def put(self, session_id: str, session: StoredSession) -> StoredSession:
        """Keep a session, in place of any other of that id."""
        self._sessions[session_id] = session
        self._sessions.move_to_end(session_id)
        while len(self._sessions) > self.limit:
            self._sessions.popitem(last=False)
        return session
