"""All checks, in the order in which they run and are reported."""

from types import ModuleType
from typing import Final

from gym_conformance.checks import (
    calls,
    cookies,
    drift,
    echo,
    isolation,
    live,
    metrics,
    repeat,
    resources,
    reward,
    seed,
    tools,
    verify,
)
from gym_conformance.checks.check import Check


def _checks(module: ModuleType) -> tuple[Check, ...]:
    return tuple(value for value in vars(module).values() if isinstance(value, Check))


_MODULES = (
    *(live, seed, cookies, tools, drift, verify, echo, calls, isolation, repeat, reward, resources),
    metrics,  # last: where the framework's own endpoint hangs, all else is judged
)

CHECKS: Final[tuple[Check, ...]] = tuple(found for module in _MODULES for found in _checks(module))
