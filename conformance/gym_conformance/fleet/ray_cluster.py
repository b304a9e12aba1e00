"""An existing Ray cluster: joining it, listing its nodes, and leaving it."""

import socket
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Final

import psutil
import pytest

from gym_conformance.printable import Refusal

#: Seconds within which the address of a cluster must accept a connection.
_CONNECT: Final = 5.0


class NoCluster(Refusal):
    """No cluster can be used; the message says why and how to fix it."""


@dataclass(frozen=True)
class Node:
    """A node that runs tasks: its Ray id, and its address."""

    id: str
    address: str

    @property
    def is_here(self) -> bool:
        """Whether it is this machine, which can reach servers on our loopback interface."""
        own = {each.address for addresses in psutil.net_if_addrs().values() for each in addresses}
        return self.address in own or self.address.startswith("127.")


class RayCluster:
    """The cluster at an address; `ray` is the package, once the cluster has been joined."""

    def __init__(self, address: str) -> None:
        self._address = address
        self.ray: Any = None
        self._ours = False

    def join(self, config: pytest.Config) -> None:
        """Join the cluster.

        Raises:
            pytest.UsageError: it cannot be joined, or xdist is set to run the checks.
        """
        if getattr(config.option, "numprocesses", None):
            raise pytest.UsageError(
                "--gym-ray and -n: the cluster decides how many run at once; leave out -n, or give -n0"
            )
        try:
            self._join()
        except NoCluster as error:
            raise pytest.UsageError(f"--gym-ray {self._address}: {error}") from None

    def _join(self) -> None:
        try:
            import ray  # noqa: PLC0415 - optional: only with --gym-ray
        except ImportError:
            raise NoCluster("Ray is not installed here; python -m pip install ray, in the cluster's version") from None
        self.ray = ray
        if ray.is_initialized():
            return
        _ensure_there(self._address)
        try:
            with warnings.catch_warnings(action="ignore"):
                ray.init(address=self._address, configure_logging=False, log_to_driver=False)
        except Exception as error:  # noqa: BLE001 - Ray lets errors of any of its layers through: each means that we have not joined
            first = next(iter(str(error).splitlines()), type(error).__name__)
            fix = "Ray's version must be the cluster's, and where that asks for a token, RAY_AUTH_MODE=token be set"
            raise NoCluster(f"the cluster cannot be joined: {first}; {fix}") from None
        self._ours = True

    def nodes(self) -> Iterator[Node]:
        """The nodes that are alive and run tasks."""
        for each in self.ray.nodes():
            if each["Alive"] and each["Resources"].get("CPU", 0) >= 1:
                yield Node(each["NodeID"], each["NodeManagerAddress"])

    def on(self, node: Node) -> Any:
        """The Ray scheduling strategy that runs something on this node and nowhere else."""
        strategies = import_module("ray.util.scheduling_strategies")
        return strategies.NodeAffinitySchedulingStrategy(node.id, soft=False)

    def leave(self) -> None:
        """Leave the cluster, unless somebody else had joined it before us."""
        if self._ours:
            self.ray.shutdown()
            self._ours = False


def _ensure_there(address: str) -> None:
    """Try to connect to an address that names a host: Ray itself would wait for a minute.

    Raises:
        NoCluster: nothing accepts connections there.
    """
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if not colon:
        return
    try:
        socket.create_connection((host.strip("[]"), int(port)), _CONNECT).close()
    except (OSError, ValueError) as error:
        raise NoCluster(f"nothing answers there ({error}); `ray status` shows the cluster's address") from None
