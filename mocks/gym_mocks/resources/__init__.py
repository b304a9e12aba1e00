"""A library to make a NeMo Gym resources server of plain typed functions; see `ResourcesServer`."""

from gym_mocks.resources.failure_reports import FailureReports
from gym_mocks.resources.function_tool import FunctionTool
from gym_mocks.resources.lent_sandboxes import LentSandboxes
from gym_mocks.resources.lost_sessions import LostSessions
from gym_mocks.resources.outputs import last_text
from gym_mocks.resources.resources_server import ResourcesServer
from gym_mocks.resources.rows import TaskRow
from gym_mocks.resources.scores import Score
from gym_mocks.resources.sessions import SessionStore, StoredSession
from gym_mocks.resources.signed_cookie import SignedCookie
from gym_mocks.resources.typed_server import TypedSessions
from gym_mocks.resources.web_sessions import WebSessions

__all__ = [
    "FailureReports",
    "FunctionTool",
    "LentSandboxes",
    "LostSessions",
    "ResourcesServer",
    "Score",
    "SessionStore",
    "SignedCookie",
    "StoredSession",
    "TaskRow",
    "TypedSessions",
    "WebSessions",
    "last_text",
]
