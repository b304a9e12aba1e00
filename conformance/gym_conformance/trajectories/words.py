"""Words that a row's tools know, such as an existing title, name or id, if no recorded rollout has any.

A made-up text reaches little of a server that looks things up. What a tool knows is mostly in the row, in its own
fields or in the user's message, or in what the tools without arguments list. A tool knows a word if it answers it
differently than words that nobody knows.
"""

import re
from collections.abc import Collection, Sequence
from functools import partial
from http import HTTPStatus
from itertools import pairwise
from random import Random
from typing import Any, Final

from gym_conformance.contract.dataset_rows import Call, Row, Tool
from gym_conformance.contract.statuses import is_success
from gym_conformance.grouping import round_robin
from gym_conformance.gym_under_test import Gym
from gym_conformance.session.channel import Channel
from gym_conformance.session.contracts import Session
from gym_conformance.session.exchange import reply_of
from gym_conformance.session.likeness import Answer, alike
from gym_conformance.trajectories.execute import beside
from gym_conformance.trajectories.generate import may_read
from gym_schemas import NoValue, Way, admits, mapped, minimal, properties_of, rewrite, sampled, scalars
from gym_schemas.json_values import texts_in

#: Words tried on a tool for each row, and calls kept for each tool.
_WORDS, _KEPT = 16, 4

#: Reads whose replies are looked at, and characters of a text in one.
_READS, _READ = 3, 2_000

#: A longer text is a sentence rather than a name.
_LONG: Final = 40

#: Words that no environment knows, and how many others are drawn if a schema asks for another format.
_UNKNOWN: Final = ("Qzxvwkj", "Wvkqjzx")
_FORMED: Final = 20

#: What stands between the members of a list that is written as text: `Here: rope, a torch`, `[3] link "Cart"`.
_BETWEEN: Final = re.compile(r"[^\w\s.'@/-]+|\s{2,}|[\r\n\t]|^[-.\s]+", re.MULTILINE)

_WORD: Final = re.compile(r"\w")

#: A longer member, in words, is a sentence.
_SPOKEN: Final = 3

#: Quoted text, and capitalized words, as names are.
_NAMES: Final = re.compile(r"[\"'`“]([^\"'`“”\n]{1,40})[\"'`”]|\b([A-Z][\w-]+)")


async def known_arguments(gym: Gym, rows: Sequence[Row]) -> dict[str, tuple[Any, ...]]:
    """Arguments with words that a tool knows, by tool, of the rows and of replies; tools that know none are left out.

    Raises:
        ServerFault: the server does not answer.
    """
    words = await beside((partial(_words, gym, row) for row in rows), endpoint=gym.endpoint)
    asked = [(tool, row, of_row) for row, of_row in zip(rows, words, strict=True) for tool in row.tools]
    found: dict[str, list[Any]] = {}
    asking = (partial(_known, gym, tool, row, of_row) for tool, row, of_row in asked)
    answered = await beside(asking, endpoint=gym.endpoint)
    for (tool, *_), known in zip(asked, answered, strict=True):
        found.setdefault(tool.name, []).extend(known)
    return {name: tuple(known) for name, known in found.items() if known}


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


def listed_in(said: Any) -> list[str]:
    """The short members of the lists in a reply."""
    each = (part.strip() for text in texts_in(said) for part in _BETWEEN.split(text[:_READ]))
    return [part for part in each if len(part) <= _LONG and len(part.split()) <= _SPOKEN and _WORD.search(part)]


async def _known(gym: Gym, tool: Tool, row: Row, words_here: Sequence[str]) -> list[Any]:
    words = [word for word in words_here if _arguments_with(tool, word)]
    if not words:
        return []
    session = gym.contract.session(Channel(gym.endpoint), row)
    await session.seed()
    unknown = [answer for word in _unknown(tool, words) if (answer := await _answer(session, tool, word))]
    if len(unknown) < len(_UNKNOWN):
        return []
    known = []
    for word in words:
        answer = await _answer(session, tool, word)
        if answer and answer.reply.status < HTTPStatus.BAD_REQUEST and not alike(answer, *unknown):
            known.append(_arguments_with(tool, word))
    return known[:_KEPT]


def _unknown(tool: Tool, known: Sequence[str]) -> list[str]:
    """Meaningless texts in the format that the tool's schema asks for."""
    if _arguments_with(tool, _UNKNOWN[0]):
        return list(_UNKNOWN)
    draw = Random(_FORMED)
    made = (text for _ in range(_FORMED) for text in _texts_of(sampled(tool.parameters, draw)) if text not in known)
    return [text for text in dict.fromkeys(made) if _arguments_with(tool, text)][: len(_UNKNOWN)]


def _texts_of(arguments: Any) -> list[str]:
    return [each for each, _ in scalars(arguments) if isinstance(each, str)]


async def _answer(session: Session, tool: Tool, word: str) -> Answer | None:
    arguments = _arguments_with(tool, word)
    return Answer(reply_of(await session.call(Call(tool.name, arguments))), (word,)) if arguments else None


def _arguments_with(tool: Tool, word: str) -> dict[str, Any] | None:
    """The minimal arguments of the tool with the word as each free text; None if it has no free text."""
    try:
        least = minimal(rewrite(tool.parameters, _with_an_item))
    except (NoValue, RecursionError):
        return None
    if not isinstance(least, dict):  # the parameters do not describe an object
        return None
    texts = [way for value, way in scalars(least) if isinstance(value, str)]
    ways = [way for way in texts if admits(tool.parameters, _with(least, word, [way]))]
    return _with(least, word, ways) if ways else None


def _with_an_item(schema: dict[str, Any]) -> dict[str, Any]:
    """A list's schema with at least one item, unless it says otherwise."""
    open_ended = schema.get("type") == "array" and schema.get("maxItems") != 0
    return {**schema, "minItems": schema.get("minItems") or 1} if open_ended else schema


def _with(arguments: dict[str, Any], word: str, ways: Collection[Way]) -> dict[str, Any]:
    """The arguments with the word at these paths, at any depth."""
    replaced: dict[str, Any] = mapped(arguments, lambda value, way: word if way in ways else value)
    return replaced


def words_of(row: Row) -> tuple[str, ...]:
    """Names in the row: its own fields' short texts and keys, in turn with quoted and capitalized words of its messages.

    What the objects in a list call their properties comes last: these are no names of things, as other keys may be.
    """
    own = [value for key, value in row.data.items() if key != "responses_create_params"]
    spoken = row.data["responses_create_params"].get("input")
    properties = dict.fromkeys(
        name
        for value in own
        for _, way in scalars(value)
        for at, name in pairwise(way)
        if type(at) is int and type(name) is str
    )
    fields = round_robin(
        [text for text in texts_in(value) if len(text) <= _LONG and text not in properties] for value in own
    )
    named = round_robin([quoted or capital for quoted, capital in _NAMES.findall(text)] for text in texts_in(spoken))
    words = (word for word in (*round_robin((fields, named)), *properties) if word.strip())
    return tuple(dict.fromkeys(words))[:_WORDS]
