"""`--gym-load` with `--gym-ray`: what two nodes drive together is judged as what one process drives.

Their processes are threads here, which get and give pickled values, as Ray's do; `tests/nemo_gym/test_on_ray.py` has a cluster.
"""

import pickle
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from gym_conformance.checks.server.load import load_answers, load_episode
from gym_conformance.findings import Finding, Verdict
from gym_conformance.fleet.load_on_ray import LoadOnRay, ensure_reached
from gym_conformance.fleet.node_driver import NodeDriver, Order
from gym_conformance.fleet.ray_cluster import Node
from gym_conformance.options import Options
from gym_conformance.plugin.target_run import Run
from gym_conformance.reports.load_curve import sentence, text_lines
from gym_conformance.trajectories.driven import Driven, added_up, divided
from gym_conformance.trajectories.profiles import PROFILES
from gym_mocks.reference import ReferenceServer
from gym_mocks.serving import serve
from tests.load.test_load import Evicts
from tests.twins.twin import dataset

#: What a node's process does beside answering.
Trouble = Callable[[Node, str], None]


class Process:
    """An actor: its methods run elsewhere."""

    def __init__(self, node: Node, order: Order, trouble: Trouble, pool: ThreadPoolExecutor) -> None:
        self._driver = NodeDriver(_sent(order))
        self._node, self._trouble, self._pool = node, trouble, pool

    def __getattr__(self, name: str) -> Any:
        def work(*arguments: Any) -> Any:
            self._trouble(self._node, name)
            return _sent(getattr(self._driver, name)(*_sent(arguments)))

        def remote(*arguments: Any) -> Any:
            done: Future[Any] = self._pool.submit(work, *arguments)
            return SimpleNamespace(future=lambda: done)

        return SimpleNamespace(remote=remote)


def _sent(value: Any) -> Any:
    return pickle.loads(pickle.dumps(value))  # noqa: S301 - our own


@contextmanager
def _cluster(trouble: Trouble = lambda _node, _method: None) -> Iterator[Any]:
    """A cluster of two nodes; `killed` are those whose process was ended."""
    nodes, killed = [Node("1", "10.0.0.1"), Node("2", "10.0.0.2")], list[Any]()
    with ThreadPoolExecutor(4) as pool:

        def options(scheduling_strategy: Node) -> Any:
            return SimpleNamespace(remote=lambda order: Process(scheduling_strategy, order, trouble, pool))

        ray = SimpleNamespace(remote=lambda **_: lambda _cls: SimpleNamespace(options=options), kill=killed.append)
        yield SimpleNamespace(
            ray=ray, nodes=lambda: nodes, on=lambda node: node, join=lambda _: None, leave=lambda: None, killed=killed
        )


def _judge(server: ReferenceServer, cluster: Any, monkeypatch: pytest.MonkeyPatch, *load: int) -> dict[str, Finding]:
    monkeypatch.setattr("gym_conformance.fleet.load_on_ray.RayCluster", lambda _: cluster)
    config: Any = SimpleNamespace(stash={}, option=SimpleNamespace(collectonly=False))
    with serve(server) as url:
        options = Options(url=url, timeout=20.0, profile=PROFILES["smoke"], load=load, ray="auto")
        drivers = LoadOnRay(config, options)
        drivers._nodes = cluster.nodes()  # noqa: SLF001 - they are not asked whether they reach a loopback address
        with Run(url, options, dataset(), drivers=drivers) as run:
            return {check.id: run.judge(check)[0] for check in (load_episode, load_answers)}


def test_what_nodes_drive_together_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a server that keeps four sessions: each node has fewer."""
    with _cluster() as cluster:
        found = _judge(Evicts(), cluster, monkeypatch, 1, 6)["load-episode"]
    assert found.verdict is Verdict.FAIL, found
    assert "with 6 in flight" in found.actual
    assert [(level["nodes"], level["wrong"] > 0) for level in found.load] == [(1, False), (2, True)]
    assert found.reproduce


def test_who_holds_holds_and_its_rates_are_added_up(monkeypatch: pytest.MonkeyPatch) -> None:
    with _cluster() as cluster:
        found = _judge(ReferenceServer(), cluster, monkeypatch, 1, 3)
    assert {one.verdict for one in found.values()} == {Verdict.PASS}, found
    assert not found["load-episode"].caution
    assert [(level["nodes"], level["missing"]) for level in found["load-episode"].load] == [(1, ()), (2, ())]


@pytest.mark.parametrize(("method", "nodes"), [("reach", [1, 1]), ("drive", [1, 1])])
def test_the_part_of_a_node_that_is_lost_is_missing(
    method: str, nodes: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    def trouble(node: Node, asked: str) -> None:
        if (node.id, asked) == ("2", method):
            raise RuntimeError("Traceback:\n  its process has died\n")

    with _cluster(trouble) as cluster:
        found = _judge(ReferenceServer(), cluster, monkeypatch, 2, 3)
    assert {one.verdict for one in found.values()} == {Verdict.PASS}, found
    assert found["load-episode"].caution == "nothing came from 10.0.0.2:   its process has died"
    assert [level["nodes"] for level in found["load-episode"].load] == nodes
    assert [bool(level["missing"]) for level in found["load-episode"].load] == [True, False]
    assert len(cluster.killed) == 1


def test_without_any_node_nothing_is_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    def trouble(_node: Node, _asked: str) -> None:
        raise RuntimeError("no process")

    with _cluster(trouble) as cluster:
        found = _judge(ReferenceServer(), cluster, monkeypatch, 2)
    assert {one.verdict for one in found.values()} == {Verdict.UNTESTABLE}, found
    assert "a node of the cluster that drives: nothing came from 10.0.0.2: no process" in found["load-answers"].reason


def test_counts_and_rates_are_added_up() -> None:
    """Two nodes of 10 and 5 episodes a second are 15, however long each one took."""
    parts = [Driven(seconds=1.0), Driven(seconds=2.0)]
    for part in parts:
        part.ended.update({0: 6, 1: 4})
        part.counts["broken"] += 1
        part.latencies.add("POST /verify", part.seconds)
    whole = added_up(8, parts).level(8, 0, 0.0)
    assert whole.rate == pytest.approx(15, abs=0.1)
    assert (whole.episodes, whole.broken, whole.nodes) == (20, 2, 2)
    assert [(one.count, one.p50, one.p99) for one in whole.endpoints] == [(2, 2.0, 2.0)]


def test_parts_are_even() -> None:
    assert (divided(7, 3), divided(2, 2), divided(1, 1)) == ([3, 2, 2], [1, 1], [1])


def test_the_curve_says_from_how_many_nodes_and_what_is_missing() -> None:
    level = added_up(8, [Driven(seconds=1.0)] * 2).level(8, 0, 0.0)
    lines = list(text_lines([level]))
    assert lines[0] == "Load (episodes in flight; driven from 2 nodes of a cluster, whose times these are):"
    lost = Driven(seconds=1.0, nodes=1, missing=("10.0.0.2: gone",)).level(8, 0, 0.0)
    assert "  With 8, nothing came from 10.0.0.2: gone" in text_lines([lost])
    assert sentence([lost]).startswith("Not known to hold, ")


@pytest.mark.parametrize("url", ["http://127.0.0.1:8000", "http://localhost:8000", None])
def test_other_nodes_cannot_reach_loopback(url: str | None) -> None:
    away = Node("2", "192.0.2.9")
    with pytest.raises(pytest.UsageError, match=r"is on this machine's loopback interface, and 192\.0\.2\.9 of the"):
        ensure_reached([Node("1", "127.0.0.1"), away], url)
    ensure_reached([Node("1", "127.0.0.1")], url)
    ensure_reached([away], "http://192.0.2.1:8000")


def test_a_cluster_without_a_processor_is_refused() -> None:
    with pytest.raises(pytest.UsageError, match="no node of the cluster has a processor"):
        ensure_reached([], "http://192.0.2.1:8000")
