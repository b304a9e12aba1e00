"""A library to make a NeMo Gym resources server of plain typed functions; see `ResourcesServer`."""

from gym_mocks.resources.cookies import SignedCookie
from gym_mocks.resources.outputs import last_text
from gym_mocks.resources.rows import TaskRow
from gym_mocks.resources.scores import Score
from gym_mocks.resources.server import ResourcesServer
from gym_mocks.resources.sessions import SessionStore, StoredSession
from gym_mocks.resources.tools import FunctionTool
from gym_mocks.resources.typed import TypedSessions

Row = TaskRow  # its name before 0.2, as environments have it

__all__ = [
    "FunctionTool",
    "ResourcesServer",
    "Row",
    "Score",
    "SessionStore",
    "SignedCookie",
    "StoredSession",
    "TaskRow",
    "TypedSessions",
    "last_text",
]
