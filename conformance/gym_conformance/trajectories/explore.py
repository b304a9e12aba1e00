"""Searching for an example that breaks a property, and shrinking it, with Hypothesis.

Hypothesis is synchronous and the suite's HTTP is not, so the search runs in its own thread, and each example runs on
the event loop, which is not blocked.
"""

import asyncio
import contextlib
import math
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import hypothesis
from hypothesis import HealthCheck, Phase, Verbosity, settings
from hypothesis import strategies as st
from hypothesis.database import ExampleDatabase
from hypothesis.errors import Flaky, Unsatisfiable
from hypothesis.statistics import collector, describe_statistics
from hypothesis.strategies import SearchStrategy

from gym_conformance.session.process import slowdown
from gym_conformance.trajectories.profiles import Profile, Search

E = TypeVar("E")


#: Seconds for shrinking an example, however short the search.
_SHRINKING = 3.0

#: The share of a search's seconds that finds out how busy the machine is, and the most seconds.
_ASKING, _MOST_ASKING = 0.1, 0.1


@dataclass
class Found(Generic[E]):
    """The result of a search: how many examples were tried, and the last, smallest one that broke the property.

    `cut_short` says that time ran out before the profile's floor was reached; `statistics` is Hypothesis's own account.
    """

    tried: int = 0
    cut_short: bool = False
    statistics: str = ""
    seconds: float = 0.0
    example: E | None = None
    failure: Exception | None = None


class _Drawn(Generic[E]):
    """An example with a short repr, since Hypothesis prints failing examples, which may be long."""

    def __init__(self, example: E) -> None:
        self.example = example

    def __repr__(self) -> str:
        return "..."


class _Enough(BaseException):
    """Ends a search from within; not an `Exception`, so that Hypothesis lets it pass."""


async def explore(
    name: str,
    examples: SearchStrategy[E],
    attempt: Callable[[E], Awaitable[None]],
    search: Search,
    broken: type[Exception],
    *,
    enough: Callable[[], bool] = lambda: False,
    until: float = math.inf,
) -> Found[E]:
    """Try examples until one breaks the property, and shrink it.

    Args:
        name: the property's key in Hypothesis's database.
        examples: what to try.
        attempt: tries one, and raises `broken` if the property does not hold.
        search: how much to try.
        broken: what a broken property raises; any other exception from `attempt` ends the search and is raised.
        enough: whether the search may end once it has reached its floor and found nothing.
        until: when it ends in any case, in time.monotonic()'s seconds.

    Raises:
        Exception: what `attempt` raised that is not `broken`.
    """
    found: Found[E] = Found()
    course = _Course(found, search.profile, enough, until)
    loop = asyncio.get_running_loop()
    started = time.monotonic()
    fault: list[Exception] = []

    def try_one(example: E) -> None:
        course.ensure_time()
        found.tried += 1
        try:
            asyncio.run_coroutine_threadsafe(_await(attempt(example)), loop).result()
        except broken as failure:
            if found.failure is None:
                course.end = time.monotonic() + max(search.profile.seconds, _SHRINKING)
            found.example, found.failure = example, failure
            raise
        except Exception as other:
            fault.append(other)
            raise _Enough from other

    try:
        found.statistics = await asyncio.to_thread(_search, name, examples, course.ensure_time, try_one, search)
    except Exception:
        if found.failure is None and not fault:
            raise  # a bug of ours in making examples
    finally:
        course.over = True
        found.seconds = time.monotonic() - started
    if fault:
        raise fault[0]
    return found


@dataclass
class _Course:
    """How long a search continues: until `end`, longer if its floor is not reached, but never beyond `until`.

    Where other work keeps the machine busy, `end` is put off once, so that as much is tried as on an idle one.
    """

    found: Found[Any]
    profile: Profile
    enough: Callable[[], bool]
    until: float
    end: float = math.inf
    over: bool = False
    looked: bool = False
    put_off: bool = False

    def ensure_time(self) -> None:
        """End the search if its time is over; called before each draw too, as a huge schema may yield few examples."""
        now = time.monotonic()
        if (
            self.end == math.inf and self.looked
        ):  # the first draw builds the strategies, which is not part of the search
            self.end = now + self.profile.seconds
        self.looked = True
        if now > self.end and self.found.failure is None and not self.put_off:
            self.put_off = True
            self.end += self._lost()
        short = self.found.failure is None and self.found.tried < self.profile.floor
        settled = self.found.failure is None and not short and self.enough()
        longer = short * (self.profile.patience - self.profile.seconds)
        if settled or self.over or now > min(self.end + longer, self.until):
            self.found.cut_short = short
            raise _Enough

    def _lost(self) -> float:
        """The seconds of the search that other work on the machine has taken, and no more than its patience."""
        seconds = self.profile.seconds
        return min(seconds * (slowdown(min(_ASKING * seconds, _MOST_ASKING)) - 1), self.profile.patience - seconds)


async def _await(work: Awaitable[None]) -> None:
    await work


def _search(
    name: str,
    examples: SearchStrategy[E],
    ensure_time: Callable[[], None],
    try_one: Callable[[E], None],
    search: Search,
) -> str:
    @st.composite  # no arguments: Hypothesis prints the outermost strategy, rows and all, if a draw fails
    def drawn(draw: st.DrawFn) -> _Drawn[E]:
        ensure_time()
        return _Drawn(draw(examples))

    def holds(one: _Drawn[E]) -> None:
        try_one(one.example)

    holds.__name__ = holds.__qualname__ = name.replace("-", "_")
    holds._hypothesis_internal_add_digest = name.encode()  # type: ignore[attr-defined]  # noqa: SLF001 - its own key in the database
    test = settings(
        max_examples=search.profile.examples,
        deadline=None,
        derandomize=search.profile.derandomize and search.seed is None,
        database=_database(search),
        suppress_health_check=list(HealthCheck),
        report_multiple_bugs=False,
        print_blob=False,
        verbosity=Verbosity.quiet,  # the finding shows what was found
        phases=[Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink],
    )(hypothesis.given(drawn())(holds))
    if search.seed is not None:
        test = hypothesis.seed(search.seed)(test)
    statistics: list[Any] = []
    note = collector.with_value(statistics.append)  # type: ignore[arg-type]  # typed as its initial value, None
    with note, contextlib.suppress(_Enough, Flaky, Unsatisfiable):
        test()
    return "".join(describe_statistics(one | {"nodeid": name}) for one in statistics)


def _database(search: Search) -> ExampleDatabase | None:
    """Hypothesis's database, so that earlier failures come first; None if every run must try the same examples."""
    chosen = settings.default
    return None if chosen is None or search.seed is not None or search.profile.derandomize else chosen.database
