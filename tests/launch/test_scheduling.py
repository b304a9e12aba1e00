"""Which worker does which target, and what becomes of one whose worker died."""

from dataclasses import dataclass, field
from types import SimpleNamespace

import pytest

from gym_conformance.fleet.scheduling import scheduler

pytest_plugins = ["pytester"]

ITEMS = [f"gym/{env}/live::{check}" for env in ("one", "two", "three", "four") for check in ("a", "b", "c")]


@dataclass(eq=False)
class Worker:
    """What a scheduler asks of xdist's controller of a worker: the items that it was sent, and whether it was told to end."""

    sent: list[str] = field(default_factory=list)
    shutting_down: bool = False
    gateway: SimpleNamespace = field(default_factory=lambda: SimpleNamespace(id="gw"))
    is_dead: bool = False

    def send_runtest_some(self, indices: list[int]) -> None:
        if self.is_dead:
            raise OSError("cannot send (already closed?)")
        self.sent += [ITEMS[index] for index in indices]

    def shutdown(self) -> None:
        self.shutting_down = True


def test_workers_that_replace_dead_ones_get_work_as_each_has_collected(pytester: pytest.Pytester) -> None:
    """Two die at once: the first to replace them must not wait for the other, nor fail over it."""
    scheduling = scheduler(pytester.parseconfig("--tx=2*popen"), None)
    first, second, third, fourth = (Worker() for _ in range(4))

    def collected(*workers: Worker) -> None:
        for each in workers:
            scheduling.add_node_collection(each, ITEMS)
        scheduling.schedule()

    scheduling.add_node(first)
    scheduling.add_node(second)
    collected(first, second)
    died = [scheduling.remove_node(each) for each in (first, second)]
    scheduling.add_node(third)
    scheduling.add_node(fourth)
    collected(third)
    assert third.sent
    assert not fourth.sent
    collected(fourth)
    assert fourth.sent
    assert died == [first.sent[0], second.sent[0]]
    assert not {*died} & {*third.sent, *fourth.sent}


def test_what_a_worker_is_to_do_that_has_just_died_is_done_by_another(pytester: pytest.Pytester) -> None:
    """It died in the midst of a test, and xdist hears of the one before that only now, and not yet that it died."""
    scheduling = scheduler(pytester.parseconfig("--tx=2*popen"), None)
    first, second = Worker(), Worker()
    for each in (first, second):
        scheduling.add_node(each)
        scheduling.add_node_collection(each, ITEMS)
    scheduling.schedule()
    done, died, *_ = first.sent
    first.is_dead = True
    scheduling.mark_test_complete(first, ITEMS.index(done))
    assert scheduling.remove_node(first) == died
    for number in map(ITEMS.index, second.sent):  # what it is sent while it does the others is among these
        scheduling.mark_test_complete(second, number)
    assert {*second.sent} == {*ITEMS} - {done, died}
