"""Words that a row's tools know, such as an existing title, name or id, if no recorded rollout has any.

A made-up text reaches little of a server that looks things up. What a tool knows is mostly in the row, in its own
fields or in the user's message, or in what the tools without arguments list. A tool knows a word if it answers it
differently than words that nobody knows.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from http import HTTPStatus
from itertools import chain, combinations, islice, pairwise, permutations, repeat
from random import Random
from typing import Any, Final, TypeVar

from gym_conformance.contract.dataset_rows import Call, Row, Tool
from gym_conformance.contract.statuses import is_success
from gym_conformance.grouping import round_robin
from gym_conformance.gym_under_test import Gym
from gym_conformance.scouting.first_sessions import Noted
from gym_conformance.session.channel import Channel, NoRoom
from gym_conformance.session.exchange import reply_of
from gym_conformance.session.likeness import Answer, alike
from gym_conformance.session.refusals import grants
from gym_conformance.trajectories.execute import beside
from gym_conformance.trajectories.generate import may_read
from gym_conformance.trajectories.languages import asking_for, lists_of
from gym_conformance.trajectories.made_up import some
from gym_conformance.trajectories.renaming import own
from gym_conformance.trajectories.trajectory import FirstSession
from gym_schemas import NoValue, Way, admits, mapped, minimal, properties_of, rewrite, sampled, scalars
from gym_schemas.json_values import texts_in

T = TypeVar("T")

#: Words tried on a tool for each row, and calls kept for each tool.
_WORDS, _KEPT = 16, 4

#: Several words at once that are tried on a tool that knows none alone, and how many at once.
_TOGETHER, _MOST = 48, 3

#: Reads whose replies are looked at, and characters of a text in one.
_READS, _READ = 3, 2_000

#: A longer text is a sentence rather than a name.
_LONG: Final = 40

#: Words and numbers that no environment knows, and how many others are drawn if a schema asks for another format.
_UNKNOWN: Final = ("Qzxvwkj", "Wvkqjzx")
_UNKNOWN_NUMBERS: Final = ("98765431", "87654319")
_FORMED: Final = 20

#: Others, which are said where any word is taken, one in each of the calls that are kept.
_FREE: Final = tuple(_UNKNOWN[0][at:] + _UNKNOWN[0][:at] for at in range(1, 1 + _KEPT))

#: What stands between the members of a list that is written as text: `Here: rope, a torch`, `[3] link "Cart"`.
_BETWEEN: Final = re.compile(r"[^\w\s.'@/-]+|\s{2,}|[\r\n\t]|^[-.\s]+", re.MULTILINE)

_WORD: Final = re.compile(r"\w")

#: A longer member, in words, is a sentence.
_SPOKEN: Final = 3

#: Quoted text, and capitalized words in a row, as names are; addresses of mail, and words with a digit, as ids and dates are.
_NAMES: Final = re.compile(
    r"(?<!\w)[\"'`“]([^\"'`“”\n]{1,40})[\"'`”](?!\w)"
    r"|(?<!\w)([A-Z][\w-]+(?: [A-Z][\w-]+){0,3}|[\w.+-]{1,40}@[\w-]{1,40}(?:\.[\w-]{1,20}){1,4}"
    r"|(?=[#\w.:/-]{0,40}\d)[#\w][\w.:/-]{1,38}\w(?!\w))"
)

#: A number sign, which may belong to the id after it or not: `order #W12`.
_NUMBER_SIGN: Final = "#"


@dataclass(frozen=True)
class KnownWords:
    """What came of asking.

    Attributes:
        arguments: by tool, arguments with words that it knows; tools that know none are left out.
        sessions: those in which it was asked.
        asked: the tools that were asked.
    """

    arguments: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    sessions: tuple[FirstSession, ...] = ()
    asked: frozenset[str] = frozenset()

    def with_more(self, more: "KnownWords") -> "KnownWords":
        """The same, and what came of asking other tools."""
        arguments = {**self.arguments, **more.arguments}
        return KnownWords(arguments, (*self.sessions, *more.sessions), self.asked | more.asked)

    def calls(self, row: Row) -> list[Call]:
        """Calls of the row's tools with what they know, those first whose texts are the row's own."""
        found = [Call(tool.name, each) for tool in row.tools for each in self.arguments.get(tool.name, ())]
        return own_first(row, found, lambda call: call.arguments)


NOTHING_ASKED: Final = KnownWords()


def own_first(row: Row, several: Sequence[T], arguments: Callable[[T], Any]) -> list[T]:
    """The same, those first whose arguments have no text but the row's own, and free ones."""
    words = json.dumps(row.data, ensure_ascii=False) if len(several) > 1 else ""

    def is_strange(one: T) -> bool:
        texts = (text for text, _ in scalars(arguments(one)) if isinstance(text, str))
        return any(text not in words and text not in _FREE for text in texts)

    return sorted(several, key=is_strange)


async def known_arguments(gym: Gym, rows: Sequence[Row], asks: Callable[[Tool], bool] = lambda _: True) -> KnownWords:
    """Ask each tool, or each that `asks` selects, for the words of its row and of replies; none, if there is no room for that.

    Raises:
        ServerFault: the server does not answer.
    """
    try:
        return await _asked(gym, rows, asks)
    except NoRoom:
        return NOTHING_ASKED


async def _asked(gym: Gym, rows: Sequence[Row], asks: Callable[[Tool], bool]) -> KnownWords:
    words = await beside((partial(_words, gym, row) for row in rows), endpoint=gym.endpoint)
    asked = [(tool, row, of_row) for row, of_row in zip(rows, words, strict=True) for tool in row.tools if asks(tool)]
    found: dict[str, list[Any]] = {}
    asking = (partial(_known, gym, tool, row, of_row) for tool, row, of_row in asked)
    answered = await beside(asking, endpoint=gym.endpoint)
    sessions = list[FirstSession]()
    for (tool, *_), (known, session) in zip(asked, answered, strict=True):
        found.setdefault(tool.name, []).extend(known)
        sessions += [session] if known and session else []
    arguments = {name: tuple(known) for name, known in found.items() if known}
    return KnownWords(arguments, tuple(sessions), frozenset(tool.name for tool, *_ in asked))


async def _words(gym: Gym, row: Row) -> tuple[str, ...]:
    """The row's words, in turn with those that its reads without arguments list."""
    shown: list[str] = []
    reads = [tool for tool in row.tools if may_read(tool) and not properties_of(tool.parameters)]
    if reads:
        session = gym.contract.session(Channel(gym.endpoint), row)
        await session.seed()
        for read in reads[:_READS]:
            reply = reply_of(await session.call(Call(read.name, {})))
            shown += listed_in(reply.said) if is_success(reply.status) else []
        await session.close()
    return tuple(dict.fromkeys(round_robin((words_of(row), shown))))[:_WORDS]


async def _listed(session: Noted, tool: Tool, asking: Mapping[str, Any]) -> list[str]:
    """What a tool lists that is asked for the names of what is there; nothing if it refuses that."""
    call = Call(tool.name, {**_least(tool), **asking})
    reply = await session.call(call)
    return [name.strip("'") for name in listed_in(reply.said)] if grants(reply, call.arguments) else []


def listed_in(said: Any) -> list[str]:
    """The short members of the lists in a reply."""
    each = (part.strip() for text in texts_in(said) for part in _BETWEEN.split(text[:_READ]))
    return [part for part in each if len(part) <= _LONG and len(part.split()) <= _SPOKEN and _WORD.search(part)]


async def _known(gym: Gym, tool: Tool, row: Row, words_here: Sequence[str]) -> tuple[list[Any], FirstSession | None]:
    """Arguments with words that the tool knows, and the session in which it was asked, if any."""
    lists = lists_of(tool)
    if not (lists or any(_arguments_with(tool, word) for word in words_here)):
        return [], None
    session = Noted(gym.contract.session(Channel(gym.endpoint), row), row)
    await session.seed()
    listed = [name for each in lists for name in await _listed(session, tool, each)]
    words = [word for word in dict.fromkeys((*listed, *words_here)) if _arguments_with(tool, word)][:_WORDS]
    if not words:
        return [], None
    unknown = [answer for word in _unknown(tool, words) if (answer := await _answer(session, tool, word))]
    if len(unknown) < len(_UNKNOWN):
        return [], None
    for asked in ([(word,) for word in words], _together(tool, row, words)):
        known = list[dict[str, Any]]()
        for each in asked:
            arguments = _arguments_with(tool, *each)
            answer = await _answer(session, tool, *each)
            if arguments and answer and answer.reply.status < HTTPStatus.BAD_REQUEST and not alike(answer, *unknown):
                known.append(arguments)
        if known:
            free = await _free_places(gym, tool, row, known[0], unknown)
            named = zip(known, _FREE, strict=False)
            return [_with(each, dict.fromkeys(free, own_word)) for each, own_word in named], session.first_session
    return [], None


async def _free_places(gym: Gym, tool: Tool, row: Row, known: Any, unknown: Sequence[Answer]) -> list[Way]:
    """The places of known arguments that take a word of no meaning as well, while another has the word that is known.

    A dish is known, and what is noted beside it may be anything: there each call can leave a word of its own.
    """
    free, texts = list[Way](), [(text, way) for text, way in scalars(known) if isinstance(text, str)]
    if len(texts) == len({text for text, _ in texts}):
        return free
    session = gym.contract.session(Channel(gym.endpoint), row)  # in the first one, what is known may have been taken
    await session.seed()
    for text, way in texts:
        another = _with(known, dict.fromkeys((*free, way), _FREE[0]))
        if text in _texts_of(another) and admits(tool.parameters, another):
            answer = Answer(reply_of(await session.call(Call(tool.name, another))), (text, _FREE[0]))
            if grants(answer.reply, another) and not alike(answer, *unknown):
                free.append(way)
    await session.close()
    return free


def _together(tool: Tool, row: Row, words: Sequence[str]) -> list[tuple[str, ...]]:
    """As many words as the tool has free texts, in any order, those first that are said close to each other.

    `Book a flight from Rome to Oslo`: an origin alone, or one that is the destination too, is not known. A person may be
    known by a whole name and a code, or by two names.
    """
    said = _spoken(row)
    whole = [each[0] for each in said]
    in_parts = [word for each in said for word in each[1:] or each]
    many = min(_MOST, len(_places(tool, _least(tool), words[0])))

    def near(spoken: Sequence[str]) -> Iterator[tuple[str, ...]]:
        known = list(dict.fromkeys((*(word for word in spoken if word in words), *words)))
        chosen = sorted(combinations(range(len(known)), many), key=lambda places: places[-1] - places[0])
        return (tuple(known[place] for place in places) for each in chosen for places in permutations(each))

    return list(islice(dict.fromkeys(round_robin((near(whole), near(in_parts)))), _TOGETHER)) if many > 1 else []


def _unknown(tool: Tool, known: Sequence[str]) -> list[str]:
    """Meaningless texts in the format that the tool's schema asks for, or numbers."""
    for unknown in (_UNKNOWN, _UNKNOWN_NUMBERS):
        if all(_arguments_with(tool, each) for each in unknown):
            return list(unknown)
    draw = Random(_FORMED)
    made = (text for _ in range(_FORMED) for text in _texts_of(sampled(tool.parameters, draw)) if text not in known)
    return [text for text in dict.fromkeys(made) if _arguments_with(tool, text)][: len(_UNKNOWN)]


def _texts_of(arguments: Any) -> list[str]:
    return [each for each, _ in scalars(arguments) if isinstance(each, str)]


async def _answer(session: Noted, tool: Tool, *words: str) -> Answer | None:
    arguments = _arguments_with(tool, *words)
    return Answer(await session.call(Call(tool.name, arguments)), words) if arguments else None


def _arguments_with(tool: Tool, word: str, *others: str) -> dict[str, Any] | None:
    """The minimal arguments of the tool with these words in their places, the last one in all that are left; None if it has none."""
    least = _least(tool)
    ways = _places(tool, least, word)
    said = (asking_for(tool, each) for each in chain((word, *others), repeat((word, *others)[-1])))
    return _with(least, dict(zip(ways, said, strict=False))) if ways else None


def _places(tool: Tool, least: dict[str, Any], word: str) -> list[Way]:
    """Where the tool's `least` arguments may have this word, or the number that it is: only a read that takes no text.

    What a number makes another tool do may take as long, as of a wait.
    """
    of_type = {kind: [way for value, way in scalars(least) if type(value) is kind] for kind in (str, int)}
    numbers = of_type[int] if may_read(tool) and word.isdecimal() else []
    return [way for way in of_type[str] or numbers if admits(tool.parameters, _with(least, {way: word}))]


def _least(tool: Tool) -> dict[str, Any]:
    """The tool's minimal arguments, with a member in each list; {} if there are none, or its parameters describe no object.

    A tool that does something is asked for one of it rather than none.
    """
    try:
        least = minimal(rewrite(tool.parameters, _with_an_item))
    except (NoValue, RecursionError):
        return {}
    more = least if may_read(tool) else some(least)
    found = more if admits(tool.parameters, more) else least
    return found if isinstance(found, dict) else {}


def _with_an_item(schema: dict[str, Any]) -> dict[str, Any]:
    """A list's schema with at least one item, unless it says otherwise."""
    open_ended = schema.get("type") == "array" and schema.get("maxItems") != 0
    return {**schema, "minItems": schema.get("minItems") or 1} if open_ended else schema


def _with(arguments: dict[str, Any], words: Mapping[Way, str]) -> dict[str, Any]:
    """The arguments with the words at these paths, at any depth, as numbers where there were any."""

    def said(value: Any, way: Way) -> Any:
        return type(value)(words[way]) if way in words else value

    replaced: dict[str, Any] = mapped(arguments, said)
    return replaced


def words_of(row: Row) -> tuple[str, ...]:
    """Names in the row: its own fields' short texts and keys, in turn with quoted and capitalized words of its messages.

    What the objects in a list call their properties comes last: these are no names of things, as other keys may be.
    """
    values = own(row).values()
    properties = dict.fromkeys(
        name
        for value in values
        for _, way in scalars(value)
        for at, name in pairwise(way)
        if type(at) is int and type(name) is str
    )
    fields = round_robin(
        [text for text in texts_in(value) if len(text) <= _LONG and text not in properties] for value in values
    )
    words = (word for word in (*round_robin((fields, chain(*_spoken(row)))), *properties) if word.strip())
    return tuple(dict.fromkeys(words))[:_WORDS]


def _spoken(row: Row) -> list[list[str]]:
    """Names, ids and dates in the row's messages, in turn, each with how else it may be said: `Nora Blum`, then `Nora`, then `Blum`."""
    spoken = row.data["responses_create_params"].get("input")
    found = (_NAMES.findall(text) for text in texts_in(spoken))
    return list(round_robin([_said(*groups) for groups in each] for each in found))


def _said(quoted: str, name: str) -> list[str]:
    return [quoted] if quoted else [*dict.fromkeys((name, name.removeprefix(_NUMBER_SIGN), *name.split(" ")))]
