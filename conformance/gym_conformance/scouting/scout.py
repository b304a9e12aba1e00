"""Calls that tools accept, found by trying, for tools that no recorded rollout calls.

Calls that are merely valid reach little of a server that looks things up, since an empty id or cursor is unknown. A
session is explored as a careful policy would: nullable arguments are null, ids come from earlier replies, names come
from the row, and reads come first. The first accepted call of each tool is kept.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice, permutations
from typing import Any, Final

from gym_conformance.contract.dataset_rows import Call, Row, Tool
from gym_conformance.contract.statuses import is_crash
from gym_conformance.grouping import first_of_each, round_robin
from gym_conformance.gym_under_test import Gym
from gym_conformance.scouting.first_sessions import Noted
from gym_conformance.scouting.words import listed_in, own_first
from gym_conformance.session.channel import Channel
from gym_conformance.session.refusals import grants
from gym_conformance.trajectories.generate import is_read, is_reading, may_read, named_alike, named_values
from gym_conformance.trajectories.languages import script_for
from gym_conformance.trajectories.made_up import plain_arguments, some
from gym_conformance.trajectories.outcome import StepOutcome
from gym_conformance.trajectories.renaming import is_named_like_id, own, takes_any_word
from gym_conformance.trajectories.returned import CALLED, Returned, located, returned, words_with_digits
from gym_conformance.trajectories.trajectory import FirstSession, Reference, Trajectory, is_reference, passed, resolve
from gym_schemas import Document, NoValue, admits, minimal, name_of, properties_of, rewrite, scalars
from gym_schemas.json_values import texts_in

#: Tools explored, calls tried for each, and values of a reply that later calls may use.
_TOOLS, _TRIES, _SEEN = 16, 6, 200

#: Further returned values to which a tool does what it did to the first, and seconds after which no more are tried.
_FURTHER: Final = 4
_PATIENCE: Final = 3.0

#: Characters of a text in a reply that are searched for words of a form.
_READ = 2_000

#: Pairs of known words, other returned values, ids whatever they are called, members of enums, and members of lists in
#: replies, tried for a tool that took none of these calls.
_OTHERS, _RETURNED, _IDS, _MEMBERS, _LISTED = 4, 8, 2, 16, 8

#: Tools whose names begin like this are assumed to remove something, or to end the episode.
_TAKES_AWAY: Final = ("cancel", "clear", "delete", "drop", "remove", "reset", "revoke", "undo", "withdraw")
_ENDS: Final = ("close", "conclude", "end", "finish", "submit")

#: The value of a free text.
_TEXT: Final = "text"


@dataclass(frozen=True)
class Scouted:
    """What was found in one session.

    Attributes:
        taken: accepted calls.
        session: all calls, as they were made.
        ended: the accepted calls, followed by those that sound like ending the episode, if there are any.
        crashing: sessions whose last call crashed the server.
    """

    taken: Trajectory
    session: FirstSession
    ended: tuple[Trajectory, ...] = ()
    crashing: tuple[Trajectory, ...] = ()

    @property
    def tools(self) -> frozenset[str]:
        """The tools that took a call."""
        return frozenset(call.name for each in (self.taken, *self.ended) for call in each.calls)


async def scouted(gym: Gym, row: Row, tools: Sequence[Tool], words: Mapping[str, Sequence[Any]]) -> Scouted:
    """Find calls that the tools accept, with references to earlier replies; `words` are known arguments by tool.

    Raises:
        ServerFault: the server does not answer.
    """
    session = Noted(gym.contract.session(Channel(gym.endpoint), row), row)
    await session.seed()
    scout = _Scout(session, row, words)
    reads = [tool for tool in tools[:_TOOLS] if may_read(tool)]
    endings = [tool for tool in tools[:_TOOLS] if tool.name.lower().startswith(_ENDS)]
    writes = sorted((tool for tool in tools[:_TOOLS] if tool not in (*reads, *endings)), key=_adds)
    removals = [tool for tool in writes if not _adds(tool)]
    await scout.find_all((*reads, *removals))
    for tool in filter(_adds, writes):
        # at once, since a later call may take all that was added, as a checkout does
        if await scout.find_all([tool]) and await scout.find_all(removals, briefly=True):
            await scout.repeat([tool])
    # retry removals that had nothing to remove before something was added, and leave something behind afterwards
    if await scout.find_all(removals):
        await scout.repeat(writes)
        if await scout.find_all(writes):  # a removal may have taken what another tool needs
            await scout.repeat(writes)
    await scout.try_further([tool for tool in writes if _adds(tool)])
    await scout.act_on_it(writes)
    await scout.say_in_language(tools[:_TOOLS])
    await scout.find_all(reads)  # a read may need what a write has created
    await scout.ask_for_created(reads)
    for tool in reads:
        await scout.go_on(tool)
    taken = Trajectory(row, (*scout.calls, *scout.reads_since_written(reads)))
    ending = await scout.find_all(endings)
    ended = (replace(taken, calls=(*taken.calls, *ending)),) if ending else ()
    return Scouted(taken, session.first_session, ended, tuple(scout.crashing))


def _adds(tool: Tool) -> bool:
    """Whether the tool sounds like adding something. Removals come before additions, so that something is left."""
    return bool(properties_of(tool.parameters)) and not _takes_away(tool)


def _takes_away(tool: Tool) -> bool:
    return tool.name.lower().startswith(_TAKES_AWAY)


class _Scout:
    """One session, and its accepted calls so far."""

    def __init__(self, session: Noted, row: Row, words: Mapping[str, Sequence[Any]]) -> None:
        self.calls: list[Call] = []
        self.taken: dict[str, Call] = {}
        self.crashing: list[Trajectory] = []
        self._session = session
        self._row = row
        self._words = {name: own_first(row, known, lambda arguments: arguments) for name, known in words.items()}
        counts = Counter(
            (key, text) for known in self._words.values() for key, text in known[0].items() if isinstance(text, str)
        )
        # the value that most tools know under that name
        self._usual = {key: text for (key, text), _ in reversed(counts.most_common())}
        self._own = [*named_values(own(row)), *_members(own(row))]
        self._replies: list[Any] = []
        self._returns: list[list[Returned]] = []  # of each reply, for every argument of every tool
        self._refused: dict[str, list[tuple[Any, Any]]] = {}
        self._in_vain: dict[str, tuple[Tool, Any]] = {}  # the first refused call of each read

    async def find_all(self, tools: Sequence[Tool], *, briefly: bool = False) -> Sequence[Call]:
        """Find a call of each tool that has none yet, by a few tries alone if `briefly`, and return the accepted ones."""
        made = len(self.calls)
        for tool in tools:
            before = len(self.calls)
            await self._find(tool, briefly=briefly)
            if len(self.calls) > before and not is_read(tool.name):
                await self._look_again()
        return self.calls[made:]

    async def _look_again(self) -> None:
        """Make the reads that took another call once more as they were refused first: a draft is shown only while it is open."""
        for name, (tool, arguments) in list(self._in_vain.items()):
            if name in self.taken and await self._is_taken(tool, arguments):
                del self._in_vain[name]
                self.taken[name] = self.calls[-1]

    def reads_since_written(self, reads: Sequence[Tool]) -> Sequence[Call]:
        """Accepted calls of these reads not made since the last write, so that they show what was written."""
        names = {tool.name for tool in reads}
        since = next((at for at in reversed(range(len(self.calls))) if self.calls[at].name not in names), -1) + 1
        known = [self.taken[tool.name] for tool in reads if tool.name in self.taken]
        return [call for call in known if since and call not in self.calls[since:]]

    async def _find(self, tool: Tool, *, briefly: bool) -> None:
        """Keep the first accepted one of a few calls, then of a few with other words, or members of an enum or a list, unless the tool has one."""
        asked: list[Any] = []
        ways = (
            (self._candidates, _TRIES),
            (self._with_another, _OTHERS),
            (self._with_others_returned, _RETURNED),
            (self._with_ids, _IDS),
            (self._with_members, _MEMBERS),
            (self._with_listed, _LISTED),
        )
        most = 0
        for candidates, more in ways[: 1 if briefly else None]:
            most += more
            for arguments in candidates(tool) if tool.name not in self.taken else ():
                if len(asked) < most and arguments not in asked:
                    asked.append(arguments)
                    if await self._is_taken(tool, arguments):
                        return

    def _with_another(self, tool: Tool) -> Iterator[Any]:
        """Known words with another one in a place after the first: nothing is moved from an account to itself."""
        for one, other in permutations(self._words.get(tool.name, ()), 2):
            texts = [key for key, text in one.items() if isinstance(text, str) and text != other.get(key, text)]
            yield from (some({**one, key: other[key]}) for key in texts[1:])

    def _with_others_returned(self, tool: Tool) -> Iterator[Any]:
        """Usual arguments with a further value of earlier replies in one place: of what a page lists, not all can be typed into."""
        forms = (_with_all_within(tool), tool)
        yield from round_robin(self._further(tool, self._with_own(tool, plain_arguments(form))) for form in forms)

    def _further(self, tool: Tool, usual: Any) -> Iterator[Any]:
        """These arguments with another value in one place: one that was returned, if it was, or another member of an enum."""
        known, replies = properties_of(tool.parameters), self._replies

        def others(key: str, value: Any) -> Iterator[Any]:
            now, schema = resolve(value, replies), known[key]
            fitting = self._fitting(key, type(now), schema) if is_reference(value) and _chooses(value) else ()
            members = schema.get("enum", ()) if isinstance(schema, dict) else ()
            return ({**usual, key: each} for each in (*members, *fitting) if resolve(each, replies) != now)

        keys = usual.keys() & known.keys() if isinstance(usual, dict) else ()
        yield from round_robin(others(key, usual[key]) for key in sorted(keys))

    def _with_ids(self, tool: Tool) -> Iterator[Any]:
        """Usual arguments with an id that was returned in place of each number and free text, another one in each: `keep`, `drop`."""
        usual = self._with_own(tool, plain_arguments(tool))
        for order in (1, -1):
            left: dict[str, list[Any]] = {kind.__name__: [*self._ids(kind)][::order] for kind in (int, str)}
            if any(left.values()):
                yield _each(usual, tool.parameters, partial(_next_of, left))

    def _ids(self, kind: type) -> Iterator[Any]:
        """References to the first returned values of this type that are called ids."""
        found = self._named(kind, lambda names: any(map(is_named_like_id, names[:1])))
        for call, one in islice(first_of_each(lambda each: each[1].value, found).values(), _FURTHER):
            yield one.reference(call).as_json()

    def _named(self, kind: type, fits: Callable[[Sequence[str]], bool]) -> list[tuple[int, Returned]]:
        """Returned values of this type whose names fit, each with the number of the call that returned it."""
        return [
            (call, one)
            for call, reply in enumerate(self._returns)
            for one in reply
            if type(one.value) is kind and one.value and fits(one.names)
        ]

    def _with_members(self, tool: Tool) -> Iterator[Any]:
        """Usual arguments with each member of their enums: what is allowed may depend on the state, as the rules of a proof."""
        usual = [some(self._with_own(tool, plain_arguments(each))) for each in (tool, _with_all_required(tool))]
        for key, schema in properties_of(tool.parameters).items():
            for member in schema.get("enum", ()) if isinstance(schema, dict) else ():
                yield from ({**each, key: member} for each in usual if isinstance(each, dict) and key in each)

    def _with_listed(self, tool: Tool) -> Iterator[Any]:
        """The refused arguments with what a reply lists in place of each free text, as the columns of a table that was opened."""
        for arguments, said in self._refused.pop(tool.name, []):
            if _TEXT in (value for value, _ in scalars(arguments)):
                for word in islice(self._listed(said), _LISTED):
                    yield _each(arguments, True, partial(_in_texts, word))

    def _listed(self, said: Any) -> Iterator[Any]:
        """Members of lists in earlier replies that the refusal names, then its own, then the others."""
        told = " ".join(texts_in(said))
        shown = [
            (value in told, Reference(call, path, value).as_json())
            for call, reply in enumerate(self._replies)
            for value, path in islice(scalars(reply), _SEEN)
            if isinstance(value, str) and value and path and type(path[-1]) is int
        ]
        yield from (member for named, member in shown if named)
        yield from listed_in(said)
        yield from (member for named, member in shown if not named)

    async def repeat(self, tools: Sequence[Tool]) -> None:
        """Repeat the accepted calls of tools that add something."""
        for tool in tools:
            if _adds(tool) and tool.name in self.taken:
                await self._is_taken(tool, self.taken[tool.name].arguments)

    async def try_further(self, tools: Sequence[Tool]) -> None:
        """Do the same to a few more of what was returned: a page has a button besides the first, and a box to be ticked."""
        end = time.monotonic() + _PATIENCE
        for tool in tools:
            more, taken = _FURTHER, self.taken.get(tool.name)
            for arguments in islice(self._further(tool, taken.arguments), _RETURNED) if taken else ():
                if more and time.monotonic() < end:
                    more -= await self._is_taken(tool, arguments)

    async def ask_for_created(self, reads: Sequence[Tool]) -> None:
        """Ask reads for what a write has returned an id of, and nothing before it has."""
        written = next((at for at, call in enumerate(self.calls) if not is_reading(call)), len(self.calls))
        shown = {one.value for reply in self._returns[:written] for one in reply}
        for tool in reads:
            known, taken = properties_of(tool.parameters), self.taken.get(tool.name)
            asked = taken.arguments if taken and isinstance(taken.arguments, dict) else {}
            for key in filter(is_named_like_id, asked.keys() & known.keys()):
                kind = type(resolve(asked[key], self._replies))
                returned_ids = self._fitting(key, kind, known[key])
                created = (each for each in returned_ids if resolve(each, self._replies) not in shown)
                for each in islice(created, 1):
                    await self._is_taken(tool, {**asked, key: each})

    async def act_on_it(self, tools: Sequence[Tool]) -> None:
        """Repeat the accepted calls without arguments that act on what was added, such as a checkout, where more was added since."""
        for tool in tools:
            if properties_of(tool.parameters) or _takes_away(tool) or tool.name not in self.taken:
                continue
            made = max(at for at, call in enumerate(self.calls) if call.name == tool.name)
            if any(not is_reading(call) for call in self.calls[made + 1 :]):
                await self._is_taken(tool, self.taken[tool.name].arguments)

    async def say_in_language(self, tools: Sequence[Tool]) -> None:
        """Say what leaves something behind, and what asks for it, to tools that take a language; nothing that is there is changed."""
        for tool in tools:
            plain = plain_arguments(tool) or {}
            for arguments in script_for(tool):
                await self._is_taken(tool, {**plain, **arguments})

    async def go_on(self, tool: Tool) -> None:
        """Call a tool again with null arguments taken from earlier replies: the next page, by its cursor."""
        call = self.taken.get(tool.name)
        if call is None or not isinstance(call.arguments, dict):
            return
        for key, schema in properties_of(tool.parameters).items():
            found = self._returned(key, str, schema) if call.arguments.get(key) is None else None
            if found:
                await self._is_taken(tool, {**call.arguments, key: found})

    async def _is_taken(self, tool: Tool, arguments: Any) -> bool:
        sent = Call(tool.name, resolve(arguments, self._replies))
        if not admits(tool.parameters, sent.arguments):
            return False
        reply = await self._session.call(sent)
        call = Call(tool.name, arguments)
        if is_crash(reply.status):
            self.crashing.append(Trajectory(self._row, (*self.calls, call)))
        if not grants(reply, sent.arguments):
            self._refused.setdefault(tool.name, []).append((arguments, reply.said))
            if is_read(tool.name):
                self._in_vain.setdefault(tool.name, (tool, arguments))
            return False
        self.calls.append(call)
        self.taken.setdefault(tool.name, call)
        self._replies.append(StepOutcome.of_call(sent, reply).body)
        self._returns.append([*returned(self._replies[-1], _SEEN)])
        return True

    def _candidates(self, tool: Tool) -> Iterator[Any]:
        """Arguments with known words or similar row values, then what was sent before, then ones from replies and the row.

        Then minimal ones, then all: definitions written by hand often do not say which arguments are required.
        """
        plain = plain_arguments(tool)
        if plain is None:
            return
        for known in islice(self._words.get(tool.name, ()), 1):
            usual = {key: self._usual.get(key, value) for key, value in known.items()}
            named = (_each(usual, tool.parameters, self._of_row), known)
            yield from (map(some, named) if not may_read(tool) else ())
            yield from named
            yield some(known)
        yield from self._as_sent(tool, plain)
        of_row = self._with_own(tool, plain)
        if not may_read(tool) and (inner := plain_arguments(_with_all_within(tool))) != plain:
            yield some(self._with_own(tool, inner))
        # a page or an index of 1 may well be none
        least = (self._with_returned(tool, plain), of_row)
        yield from (map(some, least) if not may_read(tool) else ())
        yield from least
        yield some(of_row)
        yield plain
        yield self._with_own(tool, plain_arguments(_with_all_required(tool)))

    def _as_sent(self, tool: Tool, plain: dict[str, Any]) -> Iterator[Any]:
        """The arguments of the last write that was accepted, if it has all that are texts: what was added is taken away by these."""
        sent = next((call.arguments for call in reversed(self.calls) if not is_reading(call)), None)
        texts = {key for key, value in plain.items() if isinstance(value, str)}
        if not may_read(tool) and isinstance(sent, dict) and texts and texts <= sent.keys():
            yield {key: sent.get(key, value) for key, value in plain.items()}

    def _with_returned(self, tool: Tool, arguments: Any) -> Any:
        return _each(arguments, tool.parameters, self._filled)

    def _with_own(self, tool: Tool, arguments: Any) -> Any:
        return _each(self._with_returned(tool, arguments), tool.parameters, self._of_row)

    def _filled(self, key: str, value: Any, schema: Any) -> Any:
        """The value for an argument: one from an earlier reply, or a text where any is accepted."""
        if isinstance(value, list) and not value and isinstance(schema, dict):
            document = Document(schema)
            items = document.alone(document.resolve(schema.get("items", True)))
            if properties_of(items):
                return [_each(least, items, self._filled) for least in _least(items)]
            found, least = self._returned(key, str, items), [*_least(items)]
            return [found] if found else value if least in ([""], [None]) else least
        if type(value) not in (str, int):
            return value
        found = self._returned(key, type(value), schema)
        return found or (_TEXT if takes_any_word(schema) else value)

    def _of_row(self, key: str, value: Any, schema: Any) -> Any:
        found = (
            candidate for name, candidate in self._own if named_alike(key, name) and type(candidate) is type(value)
        )
        return next((candidate for candidate in found if _allows(schema, candidate)), value)

    def _returned(self, key: str, kind: type, schema: Any) -> Any:
        """A reference to the first returned value that fits in type, schema and name; the same name is preferred."""
        return next(self._fitting(key, kind, schema), None) or (self._formed(schema) if kind is str else None)

    def _fitting(self, key: str, kind: type, schema: Any) -> Iterator[Any]:
        """References to returned values that fit, each value once, those first that have the same name."""
        found = self._named(kind, lambda names: any(named_alike(key, name) for name in names))
        found.sort(key=lambda each: key not in each[1].names)
        for call, one in first_of_each(lambda each: each[1].value, found).values():
            if _allows(schema, one.value):
                yield one.reference(call).as_json()

    def _formed(self, schema: Any) -> Any:
        """A reference to the first word of a reply that has the form which the schema asks for, such as `^T[0-9]+$`."""
        if not isinstance(schema, dict) or "pattern" not in schema or admits(schema, _TEXT):
            return None
        for call, reply in enumerate(self._replies):
            for value, path in islice(scalars(reply), _SEEN):
                for word in words_with_digits(value[:_READ]) if isinstance(value, str) else ():
                    if admits(schema, word[0]):
                        return Reference(call, path, word[0], word=located(word)).as_json()
        return None


def _each(value: Any, schema: Any, fill: Callable[[str, Any, Any], Any]) -> Any:
    """The value with each scalar, at any depth, replaced by `fill` of its name, value and schema."""
    document = Document(schema)

    def each(value: Any, schema: Any, name: str) -> Any:
        schema = document.resolve(schema)
        if isinstance(value, dict) and not is_reference(value):
            known = properties_of(schema)
            return {key: each(inner, known.get(key, True), key) for key, inner in value.items()}
        if isinstance(value, list) and value:
            items = schema.get("items", True) if isinstance(schema, dict) else True
            return [each(inner, items, name) for inner in value]
        return fill(name, value, document.alone(schema))

    return each(value, document.root, "")


def _next_of(left: Mapping[str, list[Any]], _: str, value: Any, schema: Any) -> Any:
    several = left.get(type(value).__name__, ()) if isinstance(schema, dict) and "enum" not in schema else ()
    return several.pop(0) if isinstance(several, list) and several else value


def _in_texts(word: Any, _: str, value: Any, __: Any) -> Any:
    return word if value == _TEXT else value


def _with_all_required(tool: Tool) -> Tool:
    return replace(tool, parameters={**tool.parameters, "required": [*properties_of(tool.parameters)]})


def _with_all_within(tool: Tool) -> Tool:
    """The tool with all properties required of the objects within its arguments, if none is: a change of nothing shows nothing."""

    def whole(schema: dict[str, Any]) -> dict[str, Any]:
        known = properties_of(schema)
        return {**schema, "required": [*known]} if known and not schema.get("required") else schema

    with suppress(RecursionError):
        within = {key: rewrite(schema, whole) for key, schema in properties_of(tool.parameters).items()}
        return replace(tool, parameters={**tool.parameters, "properties": within}) if within else tool
    return tool


def _chooses(value: Any) -> bool:
    """Whether a returned value says which of several things is meant: an id, or a member of a list."""
    [(_, path)] = passed(value)
    return any(type(key) is int for key in path[-1:]) or is_named_like_id(name_of(path))


def _allows(schema: Any, value: Any) -> bool:
    return admits(schema, value) if isinstance(schema, dict) else schema is not False


def _least(schema: Any) -> Iterator[Any]:
    with suppress(NoValue):
        yield minimal(schema)


def _members(value: Any) -> Iterator[tuple[str, Any]]:
    """The identifiers of the things in each list, with the list's name: each of `items` is an `item`."""
    for key, inner in value.items() if isinstance(value, dict) else ():
        for thing in inner if isinstance(inner, list) else ():
            if isinstance(thing, dict) and (name := next((field for field in CALLED if field in thing), None)):
                yield key, thing[name]
        yield from _members(inner)
