"""A second process of a launched server: the one yardstick that no session has ever touched."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Final

from gym_conformance.gym_under_test import Gym
from gym_conformance.launch.not_launched import NotLaunched
from gym_conformance.trials.trial import Trial

#: Seconds: a server that starts within these is launched again on suspicion, whatever the profile.
_SOON: Final = 5.0

#: Processes that are started in one run.
_PROCESSES: Final = 3


@asynccontextmanager
async def fresh_process(trial: Trial, *, suspicion: bool) -> AsyncIterator[Gym | None]:
    """The gym in a process of its own; None where none is to be had, or it would cost too much for what it tells.

    Args:
        trial: whose question it is.
        suspicion: whether there is one. Without, only the longer profiles start a process.
    """
    relaunch, relaunches = trial.launched.relaunch, trial.settings.search.profile.relaunches
    worth = relaunch and (relaunches or (suspicion and relaunch.seconds <= _SOON))
    if not worth or relaunch is None or trial.tried.processes >= _PROCESSES:
        yield None
        return
    trial.tried.processes += 1
    process = relaunch.another()
    try:
        url = await asyncio.to_thread(process.__enter__)
    except NotLaunched:  # it came up once: that two of them do not fit beside each other is no fault
        yield None
        return
    endpoint = trial.gym.endpoint.at(url)
    try:
        yield replace(trial.gym, endpoint=endpoint)
    finally:
        await endpoint.transport.aclose()
        await asyncio.to_thread(process.__exit__, None, None, None)
