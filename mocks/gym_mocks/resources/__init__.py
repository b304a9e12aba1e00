"""A library to make a NeMo Gym resources server of plain typed functions; see `ResourcesServer`."""

from gym_mocks.resources.cookies import SignedCookie
from gym_mocks.resources.outputs import last_text
from gym_mocks.resources.rows import Row
from gym_mocks.resources.scores import Score
from gym_mocks.resources.server import ResourcesServer
from gym_mocks.resources.sessions import Session, SessionStore
from gym_mocks.resources.tools import Tool
from gym_mocks.resources.typed import TypedSessions

__all__ = [
    "ResourcesServer",
    "Row",
    "Score",
    "Session",
    "SessionStore",
    "SignedCookie",
    "Tool",
    "TypedSessions",
    "last_text",
]
