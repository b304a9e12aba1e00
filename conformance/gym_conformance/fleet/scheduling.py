"""Scheduling of many targets on xdist's workers: all checks of a target go to the same worker."""

from collections import Counter
from contextlib import suppress
from typing import Any, Final

from gym_conformance.plugin.check_items import target_of

#: Give up a target after it has killed this many workers: it would kill the next one, too.
DEATHS: Final = 2


def allow_restarts(config: Any, targets: int) -> None:
    """Let xdist replace each worker that a target may kill, unless the user sets a limit; xdist's is 4 each."""
    option = config.option
    if getattr(option, "numprocesses", None) and option.maxworkerrestart is None:
        option.maxworkerrestart = str(4 * option.numprocesses + DEATHS * targets)


def scheduler(config: Any, log: Any) -> Any:
    """A scheduler that keeps the items of a target together, and hands out other tests one by one."""
    from xdist.scheduler import LoadScopeScheduling  # noqa: PLC0415 - xdist is optional

    class TargetScheduling(LoadScopeScheduling):  # type: ignore[misc, unused-ignore]
        def __init__(self, config: Any, log: Any) -> None:
            super().__init__(config, log)
            self.deaths: Counter[str] = Counter()

        def _split_scope(self, nodeid: str) -> str:
            return target_of(nodeid) or nodeid

        def remove_node(self, node: Any) -> Any:
            """Take back a worker's unfinished items; xdist itself would run the test that killed it over and over."""
            workload = self.assigned_work.pop(node)
            pending = [(unit, item) for unit in workload.values() for item, done in unit.items() if not done]
            if not pending:
                return None
            unit, died = pending[0]
            scope = self._split_scope(died)
            self.deaths[scope] += 1
            unit.update(dict.fromkeys(unit if self.deaths[scope] >= DEATHS else [died], True))
            self.workqueue.update({name: unit for name, unit in workload.items() if not all(unit.values())})
            for other in self.assigned_work:
                self._reschedule(other)
            return died

        def _assign_work_unit(self, node: Any) -> None:
            """Assign a target to a worker that has collected; xdist itself fails on replacements that have not yet.

            It fails on one that has just died, too, of which `remove_node` takes back what was assigned.
            """
            if node in self.registered_collections:
                with suppress(OSError):
                    super()._assign_work_unit(node)

    return TargetScheduling(config, log)
