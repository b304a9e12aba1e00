"""Every twin."""

from tests.twins import (
    calibration,
    cookies,
    drift,
    farmed,
    groups,
    innocent,
    metrics,
    of_main,
    repeat,
    resources,
    reward,
    run,
    seed,
    shelf,
    step,
    tools,
    typed,
    unrecorded,
    verify,
    whatever,
)
from tests.twins.twin import Twin

_MODULES = (
    seed,
    cookies,
    tools,
    drift,
    verify,
    groups,
    repeat,
    reward,
    farmed,
    shelf,
    calibration,
    typed,
    step,
    run,
    resources,
    metrics,
    whatever,
    unrecorded,
    of_main,
    innocent,
)
TWINS: tuple[Twin, ...] = tuple(twin for module in _MODULES for twin in module.TWINS)
