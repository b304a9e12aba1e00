"""Many targets over xdist's workers: the unit of work is one target, whose checks all go to one worker."""

from typing import Any

from gym_conformance.plugin.items import target_of


def scheduler(config: Any, log: Any) -> Any:
    """A scheduler that keeps a target together, and gives other tests out one by one."""
    from xdist.scheduler import LoadScopeScheduling  # noqa: PLC0415 - xdist is optional

    class TargetScheduling(LoadScopeScheduling):  # type: ignore[misc, unused-ignore]
        def _split_scope(self, nodeid: str) -> str:
            return target_of(nodeid) or nodeid

    return TargetScheduling(config, log)
