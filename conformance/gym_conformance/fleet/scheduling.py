"""Many targets over xdist's workers: the unit of work is one target, whose checks all go to one worker."""

from collections import Counter
from typing import Any, Final

from gym_conformance.plugin.check_items import target_of

#: A target that so many workers have died of is left: the next one would, too.
DEATHS: Final = 2


def allow_restarts(config: Any, targets: int) -> None:
    """Let xdist replace every worker that a target may cost, unless the user says how many; its own limit is 4 each."""
    option = config.option
    if getattr(option, "numprocesses", None) and option.maxworkerrestart is None:
        option.maxworkerrestart = str(4 * option.numprocesses + DEATHS * targets)


def scheduler(config: Any, log: Any) -> Any:
    """A scheduler that keeps a target together, and gives other tests out one by one."""
    from xdist.scheduler import LoadScopeScheduling  # noqa: PLC0415 - xdist is optional

    class TargetScheduling(LoadScopeScheduling):  # type: ignore[misc, unused-ignore]
        def __init__(self, config: Any, log: Any) -> None:
            super().__init__(config, log)
            self.deaths: Counter[str] = Counter()

        def _split_scope(self, nodeid: str) -> str:
            return target_of(nodeid) or nodeid

        def remove_node(self, node: Any) -> Any:
            """Take back what a worker has not done; xdist's own way runs the test that it died of again, and again."""
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
            """Give a target to a worker that has collected; xdist's own way fails on one that replaces a dead one and has not yet."""
            if node in self.registered_collections:
                super()._assign_work_unit(node)

    return TargetScheduling(config, log)
