"""All checks, in the order in which they run and are reported."""

from types import ModuleType
from typing import Final

from gym_conformance.checks import (
    calls,
    cookies,
    echo,
    files,
    isolation,
    judges,
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
    found for module in (live, seed, cookies, tools, verify, echo, metrics) for found in _checks(module)
)

#: Tried only where `--gym-profile` asks for them: they have yet to be read on enough real servers.
PREVIEW: Final[tuple[Check, ...]] = tuple(
    found for module in (calls, isolation, repeat, reward, resources) for found in _checks(module)
)

#: About an env's folder: nothing is sent, and no server need be there.
FILES: Final[tuple[Check, ...]] = _checks(files)

#: Tried only on envs that the suite launches itself: these before it does, those after all others.
LAUNCHED: Final[tuple[Check, ...]] = FILES + _checks(judges)
