"""Where the suite and the mocks are joined: the demo's server, and the head and the models that launched servers ask."""

from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from gym_conformance.launch.server import Peers


def serve_demo(started: ExitStack) -> str:
    """Serve the reference server until `started` is closed; its URL."""
    from gym_mocks.reference import reference_app  # noqa: PLC0415 - only the demo needs it
    from gym_mocks.serving import serve  # noqa: PLC0415

    return started.enter_context(serve(reference_app()))


def demo_data() -> tuple[Path, ...]:
    """The reference server's rows."""
    from gym_mocks.reference import DATA  # noqa: PLC0415 - only the demo needs it

    return (DATA,)


class MockPeers:
    """A head and a policy for the servers that this process launches, started when the first one is."""

    def __init__(self, started: ExitStack) -> None:
        self._started = started
        self._head: Any = None
        self._peers: Peers | None = None

    @property
    def addresses(self) -> Peers:
        """Where they are."""
        if self._peers is None:
            from gym_mocks.head import Head  # noqa: PLC0415 - only launching needs them
            from gym_mocks.policy import FakePolicy  # noqa: PLC0415
            from gym_mocks.serving import Host  # noqa: PLC0415

            host = Host()
            self._started.callback(host.close)
            self._head, policy = Head({}), FakePolicy()
            self._peers = Peers(_address(host.serve(self._head)), _address(host.serve(policy)))
        return self._peers

    def tell_head(self, config: Mapping[str, Any]) -> None:
        """Let the head tell of this config."""
        self._head.config = config


def _address(url: str) -> tuple[str, int]:
    parts = urlsplit(url)
    assert parts.hostname is not None  # noqa: S101 - ours has both
    assert parts.port is not None  # noqa: S101
    return parts.hostname, parts.port
