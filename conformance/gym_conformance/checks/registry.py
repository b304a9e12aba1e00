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


CHECKS: Final[tuple[Check, ...]] = tuple(
    found for module in (live, seed, cookies, tools, drift, verify, echo, metrics) for found in _checks(module)
)

#: Tried only where `--gym-profile` asks for them: they have yet to be read on enough real servers.
PREVIEW: Final[tuple[Check, ...]] = tuple(
    found for module in (calls, isolation, repeat, reward, resources) for found in _checks(module)
)
