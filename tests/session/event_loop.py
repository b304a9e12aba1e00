"""Tests that are coroutines."""

import asyncio
from collections.abc import Callable, Coroutine
from functools import wraps
from typing import ParamSpec

P = ParamSpec("P")

#: Seconds that a test may take: far more than any needs.
_LONG = 30.0


def in_loop(test: Callable[P, Coroutine[None, None, None]]) -> Callable[P, None]:
    """Run the test in an event loop of its own; none of its tasks may be left in the end."""

    @wraps(test)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        async def whole() -> None:
            async with asyncio.timeout(_LONG):
                await test(*args, **kwargs)
                while asyncio.all_tasks() != {asyncio.current_task()}:  # noqa: ASYNC110 - nothing tells when they end
                    await asyncio.sleep(0.01)

        asyncio.run(whole())

    return run
