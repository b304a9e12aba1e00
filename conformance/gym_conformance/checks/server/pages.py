"""Whether the pages of a list add up to the same, whatever their size, and none comes again."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from gym_conformance.contract.dataset_rows import Call, Tool
from gym_conformance.contract.statuses import is_success
from gym_conformance.session.channel import Channel
from gym_conformance.session.contracts import Session
from gym_conformance.session.exchange import reply_of
from gym_conformance.trajectories.execute import TrajectoryRun
from gym_conformance.trajectories.known import known
from gym_conformance.trajectories.trajectory import Trajectory
from gym_conformance.trials.chance import beyond_chance
from gym_conformance.trials.check import check
from gym_conformance.trials.ending import NotApplicable, Violation
from gym_conformance.trials.needs import RESOURCES_SERVER, SERVED_TOOLS, TOOLS
from gym_conformance.trials.property import knowledge_of
from gym_conformance.trials.trial import Trial
from gym_schemas import admits, properties_of

#: How arguments are called that say how long a page is, and where it begins: with a cursor, after so many items, or after
#: so many pages.
_SIZE: Final = re.compile(
    r"(top_?)?k|limit|(page|batch)_?(size|limit)|per_?page|max_?(results|items)|size|count", re.IGNORECASE
)
_CURSOR: Final = re.compile(r"(.*_)?(cursor|(page|continuation|next)_?token|after|before)", re.IGNORECASE)
_OFFSET: Final = re.compile(r"offset|skip|start|start_?index", re.IGNORECASE)
_SKIPPED: Final = re.compile(r"offset|skip", re.IGNORECASE)
_PAGE: Final = re.compile(r"page(_?(no|num|number|index))?", re.IGNORECASE)
_NEXT: Final = re.compile(r".*(cursor|token|next).*", re.IGNORECASE)

#: What an item is known by.
_NAMES: Final = ("id", "uuid", "key", "sku", "code", "slug", "url", "path", "name", "title")

#: Sizes of pages that are held to the largest one, requests of one walk, and tools that are walked through.
_SIZES, _REQUESTS, _TOOLS = (2, 3), 40, 4

#: Items of a page that is known again, sessions in which one comes twice, and pages of such a walk.
_SEVERAL, _SESSIONS, _PAGES = 3, 3, 8

#: The longest page that is asked for where the definition names no maximum, and the items that there must be.
_LONGEST, _FEWEST = 50, 4


@dataclass(frozen=True)
class _Paged:
    """A call of a tool that answers in pages, where it was made: the number of the call in a trajectory."""

    tool: Tool
    trajectory: Trajectory
    at: int
    size: str  # '' where the server alone says how long a page is
    place: str
    by_texts: bool = False  # whether its items are known by all their texts, where they have no id of their own

    def begins(self, *, turned: int, items: int) -> int | None:
        """Where the page begins that comes after so many pages, or items; None where a cursor says it."""
        first = _first(self.place, self.tool.parameters["properties"][self.place])
        return None if first is None else first + (items if _OFFSET.fullmatch(self.place) else turned)

    @property
    def sizes(self) -> tuple[int, ...]:
        """The sizes that the definition allows, the largest first."""
        if not self.size:
            return ()
        largest = next(filter(self.allows, (_LONGEST, *range(_LONGEST - 1, max(_SIZES), -1))), 0)
        return (largest, *(size for size in _SIZES if self.allows(size))) if largest else ()

    def allows(self, size: int) -> bool:
        """Whether the definition does."""
        return admits({"properties": {self.size: self.tool.parameters["properties"][self.size]}}, {self.size: size})


@dataclass
class _Walk:
    """What a client finds that goes through all pages of one size: the names of each page's items, in their order."""

    pages: list[list[str]] = field(default_factory=list)
    whole: bool = False

    @property
    def names(self) -> list[str]:
        """Those of all pages."""
        return [name for page in self.pages for name in page]

    @property
    def again(self) -> list[str]:
        """The first page of several items that has come before; [] where none has."""
        several = [page for page in self.pages if len(page) >= _SEVERAL]
        return next((page for at, page in enumerate(several) if page in several[:at]), [])


@check(
    "repeat-pages",
    "The pages of a list SHOULD add up to the same list, whatever their size",
    why="a policy never sees what falls between two pages, and one that reads carefully is marked down for it.",
    needs=[RESOURCES_SERVER, TOOLS, SERVED_TOOLS],
    gentle=True,
)
async def repeat_pages(trial: Trial, _: object) -> None:
    """Goes through the pages of a list twice in one session, in large pages and in pages of two and of three items.

    This is done for tools that take a size and a cursor, an offset or a page's number, with calls that are known to mean
    something. The items must be the same, in the same order; they are recognised by their ids or names, or by all their
    texts. A list that ends early by more than a page counts as limited by design. Chance is excluded: two passes in large
    pages must agree. If a tool takes a cursor and no size, its cursors are followed: no page of three items or more may
    come again, in each of three sessions. Nor may a small page be as long as the large one, or the second small page the
    first one again although the list is longer, in each of three sessions: then the argument is not read. Nor may an item
    be on both.

    Our inference: no client goes through pages; policies do.
    """
    if not any(_places(tool) for row in trial.gym.rows for tool in row.tools):
        raise NotApplicable("no tool has an argument that says where a page begins")
    found = list(_paged(known(await knowledge_of(trial))))[:_TOOLS]
    walked = 0
    for paged in found:
        if not paged.size:
            walked += await _expect_no_page_again(trial, paged)
        elif paged.sizes[1:]:
            await _expect_read(trial, paged)
        way = paged
        for size in paged.sizes[1:]:
            if (lost := await _lost(trial, trial.channel, way, size)) is None and not way.by_texts:
                way = replace(paged, by_texts=True)
                lost = await _lost(trial, trial.channel, way, size)
            walked += lost is not None
            if lost and (lost := await _beyond_chance(trial, way, size)):
                raise Violation(
                    f"{paged.tool.name} answers the same items in pages of {size} and of {paged.sizes[0]}",
                    f"pages of {size} {lost}",
                    "An item is lost or repeated where a page ends: let the cursor hold the last item's whole sort key, "
                    "with what breaks ties, and begin the next page just after it.",
                )
    if not walked:
        raise NotApplicable(f"no list goes on, or is longer than {_FEWEST - 1} items, or its items have no names")
    trial.note = f"{walked} walks through the pages of {', '.join(dict.fromkeys(each.tool.name for each in found))}"


async def _expect_no_page_again(trial: Trial, paged: _Paged) -> bool:
    """Follow the cursors of a list; whether there were any to follow."""
    for session in range(_SESSIONS):
        trial.channel.exchanges.clear()
        walk = await _walk(*await _begun(trial, trial.channel, paged), _PAGES)
        if not (again := walk.again):
            return session > 0 or len(walk.pages) > 1
    raise Violation(
        f"another page of {paged.tool.name} for each {paged.place}",
        f"{', '.join(again)} come twice, in {_SESSIONS} of {_SESSIONS} sessions",
        "The server does not know a cursor that it gave out, and answers with the first page: is the cursor kept in the "
        "memory of another process?",
    )


async def _expect_read(trial: Trial, paged: _Paged) -> None:
    """Ask for the first two small pages of a list that is longer than they are, and for a large one: all must differ."""
    largest, size, *_ = paged.sizes
    ignored, told, both = "", "", list[str]()
    for _ in range(_SESSIONS):
        trial.channel.exchanges.clear()
        walking = await _begun(trial, trial.channel, paged)
        large, small = [(await _page(*walking, size=each))[1] for each in (largest, size)]
        if not large or not small or len(large) < max(_FEWEST, size + 1):
            return
        start = paged.begins(turned=1, items=size)
        following = None if start is None else (await _page(*walking, size=size, place=start))[1]
        ignored, both = _ignored(paged, size, (large, small, following)), _on_both(large, small, following or [])
        if not ignored and not both:
            return
        told = ", ".join(small)
    times = f"{_SESSIONS} of {_SESSIONS} sessions"
    if not ignored:
        raise Violation(
            f"each item of {paged.tool.name} on one page",
            f"{', '.join(both)} on the first page of {size} and on the second, in {times}",
            "A page has one item too many, or the next one begins too early.",
        )
    raise Violation(
        f"other items of {paged.tool.name} for another {ignored}",
        f"{told} each time, in {times}",
        f"The tool does not read {ignored}, or goes on as if it were not given.",
    )


def _on_both(large: list[str], small: list[str], following: list[str]) -> list[str]:
    """What is on two pages, though it is once in the list of which both are part; none of two different things of one name is."""
    return [name for name in small if name in following] if {*small, *following} <= {*large} else []


def _ignored(paged: _Paged, size: int, pages: tuple[list[str], list[str], list[str] | None]) -> str:
    """The argument that changes nothing, of a large page, a small one and the one after that; '' if each does."""
    large, small, following = pages
    if small == large:
        return paged.size
    return paged.place if following == small and len(small) == size else ""


async def _beyond_chance(trial: Trial, paged: _Paged, size: int) -> str | None:
    async def tried(channel: Channel) -> str | None:
        return await _lost(trial, channel, paged, size) or None

    async def control(channel: Channel) -> str | None:
        return await _lost(trial, channel, paged, paged.sizes[0]) or None

    return await beyond_chance(trial, tried, control, suspected=True)


async def _lost(trial: Trial, channel: Channel, paged: _Paged, size: int) -> str | None:
    """How a walk in pages of that size differs from one in large pages; '' if it does not, None where nothing can be said."""
    walking = await _begun(trial, channel, paged)
    largest = paged.sizes[0]
    large = await _walk(*walking, size=largest)
    if not large.whole or len(large.names) < _FEWEST:
        return None
    small, again = [await _walk(*walking, size=each) for each in (size, largest)]
    if not small.whole or large.names != again.names:
        return None
    if large.names == small.names:
        return ""
    missing = [name for name in large.names if name not in small.names]
    if small.names == large.names[: len(small.names)] and len(missing) > size:
        return None
    if not missing and small.names[: len(large.names)] == large.names:
        return None  # no page is as large as was asked
    twice = sorted({name for name in small.names if small.names.count(name) > large.names.count(name)})
    said = [f"leave out {', '.join(missing)}"] * bool(missing) + [f"repeat or add {', '.join(twice)}"] * bool(twice)
    return " and ".join(said) or "have another order"


async def _begun(trial: Trial, channel: Channel, paged: _Paged) -> tuple[Session, _Paged, Mapping[str, Any]]:
    """A session that has come to where the list is asked for, and the arguments there."""
    rollout = TrajectoryRun(trial.gym, channel, paged.trajectory)
    for _ in range(1 + paged.at):
        await rollout.step()
    return rollout.session, paged, rollout.arguments(paged.trajectory.calls[paged.at])


async def _walk(
    session: Session, paged: _Paged, arguments: Mapping[str, Any], most: int = _REQUESTS, *, size: int = 0
) -> _Walk:
    """Go through the pages, in so many requests at most; `size` 0 asks for pages of the server's own length."""
    walk, place = _Walk(), None
    for turned in range(most):
        said, items = await _page(session, paged, arguments, size=size, place=place)
        if items is None or (size and len(items) > size):
            return walk
        walk.pages.append(items)
        if (after := paged.begins(turned=turned + 1, items=len(walk.names))) is not None:
            following, told = after if len(items) == size else None, True
        else:
            following, told = _next(said)
        if not items or following is None:
            # A full first page without a word of a next one says nothing of how to go on.
            walk.whole = told or turned > 0 or len(items) < size
            return walk
        if following == place:
            return walk
        place = following
    return walk


async def _page(
    session: Session, paged: _Paged, arguments: Mapping[str, Any], *, size: int, place: Any = None
) -> tuple[Any, list[str] | None]:
    """One page: what is said, and the names of its items, however many; None where there are none."""
    asked = {**arguments} | ({paged.size: size} if size else {}) | ({} if place is None else {paged.place: place})
    reply = reply_of(await session.call(Call(paged.tool.name, asked)))
    return reply.said, _items(reply.said, by_texts=paged.by_texts) if is_success(reply.status) else None


def _items(said: Any, *, by_texts: bool) -> list[str] | None:
    """The names of the items in a reply's longest list; None where it has none, or they have no names of their own."""
    lists = [each for each in (said, *(said.values() if isinstance(said, dict) else ())) if isinstance(each, list)]
    items = max(lists, key=len, default=None)
    if not items:
        return items
    names = _names(items, by_texts=by_texts)
    return names if names and len(set(names)) == len(names) else None


def _names(items: list[Any], *, by_texts: bool) -> list[str]:
    """What the items are known by: themselves, what they all have under one of the usual names, or all their texts."""
    if all(isinstance(item, str | int) for item in items):
        return [str(item) for item in items]
    if not all(isinstance(item, dict) for item in items):
        return []
    if by_texts:
        return [json.dumps([each for each in item.values() if isinstance(each, str)]) for item in items]
    shared = [key for key in items[0] if all(isinstance(item.get(key), str | int) for item in items)]
    named = (key for name in _NAMES for key in shared if f"_{key.lower()}".endswith(f"_{name}"))
    key = next(named, None)
    return [] if key is None else [json.dumps(item[key]) for item in items]


def _next(said: Any) -> tuple[Any, bool]:
    """The cursor of the next page, None where there is none; and whether the reply speaks of one at all."""
    found = {key: value for key, value in said.items() if _NEXT.fullmatch(key)} if isinstance(said, dict) else {}
    own = [value for key, value in found.items() if "next" in key.lower()] or list(found.values())
    return next((value for value in own if value and (isinstance(value, str) or type(value) is int)), None), bool(own)


def _places(tool: Tool) -> tuple[str, str] | None:
    """The arguments that say how long a page is and where it begins; None where the tool does not answer in pages.

    A cursor alone is enough: pages have a length of their own then.
    """
    names = properties_of(tool.parameters)
    size = next(filter(_SIZE.fullmatch, names), None)
    cursor = next(filter(_CURSOR.fullmatch, names), "")
    counted = (name for name in names if _first(name, names[name]) is not None)
    place = cursor or next(counted, "")
    return (size or "", place) if place and (size or cursor) else None


def _first(name: str, schema: Any) -> int | None:
    """The number of the first page, or item, as far as the definition says; None where it does not, or no number is asked for.

    An offset, or what is skipped, begins with 0; what is called a start may as well begin with 1.
    """
    if not _OFFSET.fullmatch(name) and not _PAGE.fullmatch(name):
        return None
    said = [schema.get(word) for word in ("minimum", "default")] if isinstance(schema, dict) else []
    usual = 0 if _SKIPPED.fullmatch(name) else None
    return next((number for number in said if type(number) is int and number in (0, 1)), usual)


def _paged(found: Sequence[Trajectory]) -> Iterator[_Paged]:
    """Of each tool that answers in pages the first calls that are known."""
    calls: dict[str, list[Any]] = {}
    for trajectory in found:
        tools = {tool.name: (tool, places) for tool in trajectory.row.tools if (places := _places(tool))}
        for at, call in enumerate(trajectory.calls):
            if call.name not in tools or not isinstance(call.arguments, dict):
                continue
            tool, (size, place) = tools[call.name]
            asked = {key: value for key, value in call.arguments.items() if key not in (size, place)}
            if asked not in calls.setdefault(tool.name, []) and len(calls[tool.name]) < _TOOLS:
                calls[tool.name].append(asked)
                made = (*trajectory.calls[:at], Call(call.name, asked))
                yield _Paged(tool, replace(trajectory, calls=made), at, size, place)
