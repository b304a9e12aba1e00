"""The reference server: a small stateful environment that keeps every rule of the contract."""

from pathlib import Path

from gym_mocks.reference.stockroom import Stock, add_stock, count_stock, list_stock, move_stock, open_stock, verify
from gym_mocks.resources import FunctionTool, ResourcesServer, SessionStore, SignedCookie, StoredSession

__all__ = [
    "DATA",
    "ROLLOUTS",
    "FunctionTool",
    "ReferenceServer",
    "SessionStore",
    "SignedCookie",
    "StoredSession",
    "reference_app",
]

DATA = Path(__file__).parent / "data" / "example.jsonl"
ROLLOUTS = DATA.with_name("example_rollouts.jsonl")


class ReferenceServer(ResourcesServer):
    """The stockroom's server; override one of its steps to break one thing."""

    def __init__(
        self,
        *,
        name: str = "stockroom",
        cookie: SignedCookie | None = None,
        sessions: SessionStore | None = None,
        expose_tools_over_mcp: bool = False,
    ) -> None:
        super().__init__(
            name,
            tools=[add_stock, move_stock, count_stock, list_stock],
            verify=verify,
            state=open_stock,
            cookie=cookie,
            sessions=sessions,
            expose_tools_over_mcp=expose_tools_over_mcp,
        )

    @staticmethod
    def stock_of(session: StoredSession) -> Stock:
        """The state of one of its sessions."""
        stock: Stock = session.state
        return stock


def reference_app() -> ReferenceServer:
    """A fresh reference server, as an ASGI application."""
    return ReferenceServer()
