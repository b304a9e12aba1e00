"""How a policy may act in an episode, as prompts, observations and the row itself show it. Pure."""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, islice
from typing import Any, Final

from gym_conformance.contract.dataset_rows import Call, Row, Tool
from gym_conformance.contract.policy_output import Item, response
from gym_conformance.contract.verify_reply import is_number
from gym_conformance.grouping import round_robin
from gym_conformance.scouting.words import listed_in
from gym_conformance.trajectories.made_up import plain_arguments, some
from gym_conformance.trajectories.outcome import Outcome
from gym_conformance.trajectories.renaming import own
from gym_schemas import Way, admits, mapped, properties_of, scalars

#: What a prompt or an observation shows the policy to write: in a tag, in backquotes, in quotation marks or in brackets.
_SHOWN: Final = re.compile(
    r"<(\w+)>[^<>\n]{1,40}</\1>|<\w+ ?/>|`[^`\n]{1,40}`|\"[^\"\n]{1,40}\"|\[[^\]\n]{1,40}\]|\\boxed\{[^{}\n]{1,40}\}"
)

#: What is shown to be chosen from, as in `<move>left|right</move>`.
_CHOICE: Final = re.compile(r"\w+(?: ?\| ?\w+)+")

#: A form that words fill: what stands before them, the words that are shown, and what stands after.
_FORM: Final = re.compile(r"(<\w+>|\[|\\boxed\{)(.+)(</\w+>|[\]}])")

#: Marks around words that only quote them.
_QUOTES: Final = '`"'

#: What a prompt shows, as far as it is looked at, characters of a text that are searched, and words of one kind.
_LOOKED_AT, _SEARCHED, _WORDS = 100, 20_000, 12

#: What a form asks for, by the word that stands in it.
_LETTER: Final = re.compile(r"[A-Za-z]|(?:a )?letter", re.IGNORECASE)
_NUMBER: Final = re.compile(r"[-+]?\d+|(?:a )?number|index|column|digit", re.IGNORECASE)

#: Letters, the commonest of English first, and numbers of one digit.
_LETTERS: Final = "etaoinsrhldcumfpgwybvkxjqz"
_DIGITS: Final = "0123456789"

#: Words that mean nothing in any form.
_ODD: Final = ("Qzxvwkj", "", " ", "-1", "99999999999999999999", "0.5", "\u00e9\u6f22", "two words", "None", "z" * 300)

#: Characters of a row's own value that an action may consist of.
_SHORT: Final = 40

#: The number of the episode in which all is done that the policy is shown.
ALL_SHOWN: Final = 1

#: A policy's turn, as the agent hands it over.
Action = Mapping[str, Any]


@dataclass(frozen=True)
class Play:
    """What a policy does in an episode of a row."""

    row: Row
    actions: tuple[Action, ...]


@dataclass(frozen=True)
class Explored:
    """An episode that was found by trying.

    Attributes:
        play: what was done.
        outcome: what came of it.
        again: what came of the same when it was done again at once.
    """

    play: Play
    outcome: Outcome
    again: Outcome

    @property
    def earned(self) -> float:
        """What it earned the first time."""
        return earned_in(self.outcome)

    @property
    def told(self) -> int:
        """How many different things it was answered."""
        return len({repr(step.body) for step in self.outcome.steps})


@dataclass(frozen=True)
class ExploredRow:
    """What was found out about a row.

    Attributes:
        shown: what prompts and observations show the policy to write.
        episodes: those that were found by trying.
    """

    shown: Sequence[str]
    episodes: Sequence[Explored]


@dataclass(frozen=True)
class Exploration:
    """What was found out about how episodes begin and how to act in them.

    Attributes:
        began: when that was, in `time.monotonic`'s seconds.
        untouched: how episodes began, each many times, before any had been played.
        rows: what was found out about each row that was explored.
    """

    began: float
    untouched: Sequence[tuple[Play, Sequence[Outcome]]]
    rows: Mapping[Row, ExploredRow]

    @property
    def episodes(self) -> Iterator[Explored]:
        """Those that were found by trying, on all rows."""
        return chain.from_iterable(row.episodes for row in self.rows.values())

    @property
    def best(self) -> Sequence[Explored]:
        """Of each row, the episode that earned the most, or was told the most, and then the one in which all is done that is shown."""
        each_row = [row.episodes for row in self.rows.values()]
        best = [max(several, key=lambda each: (each.earned, each.told)) for several in each_row]
        return [
            *best,
            *(each for several in each_row for each in several[ALL_SHOWN : ALL_SHOWN + 1] if each not in best),
        ]


def earned_in(outcome: Outcome) -> float:
    """The sum of an episode's rewards."""
    bodies = (step.body for step in outcome.steps if isinstance(step.body, dict))
    return sum(reward for body in bodies if is_number(reward := body.get("reward")))


def shown_in(texts: Iterable[str]) -> list[str]:
    """What texts show the policy to write, each choice by itself: `<move>left</move>` for `<move>left|right</move>`."""
    found = (
        each for text in texts for match in _SHOWN.finditer(text[:_SEARCHED]) for each in _chosen(match.group().strip())
    )
    return list(dict.fromkeys(islice(found, _LOOKED_AT)))


def _chosen(shown: str) -> Iterator[str]:
    if choice := _CHOICE.search(shown):
        for word in re.findall(r"\w+", choice.group()):
            yield f"{shown[: choice.start()]}{word}{shown[choice.end() :]}"
    yield shown
    if shown[0] in _QUOTES:
        yield shown[1:-1]


def _forms_in(shown: Iterable[str]) -> dict[tuple[str, str], list[str]]:
    """The forms of what is shown, as what stands before and after, each with the words that are shown in it."""
    forms: dict[tuple[str, str], list[str]] = {}
    for match in filter(None, map(_FORM.fullmatch, shown)):
        forms.setdefault((match[1], match[3]), []).append(match[2])
    return forms


def texts_to_write(row: Row, shown: Iterable[str], latest: str) -> list[str]:
    """What a policy may write that was shown this, and told this latest.

    That is what is shown, then the same forms with what the latest text lists, with the row's own words and numbers,
    and with letters or digits where one is shown; words that a text lists, if no form is shown.
    """
    shown = [*shown]
    listed, its_own = _listed(latest), own_words(row)
    filled = [
        [f"{before}{word}{after}" for word in _words_for(words, listed, its_own)]
        for (before, after), words in _forms_in(shown).items()
    ]
    bare = chain(listed, its_own) if not filled else ()
    return list(dict.fromkeys(chain(shown, round_robin(filled), bare)))


def _listed(text: str) -> list[str]:
    return list(dict.fromkeys(listed_in(text)))[:_WORDS]


def _words_for(words: Sequence[str], listed: Sequence[str], its_own: Sequence[str]) -> Iterator[str]:
    """What else a form may be filled with: numbers where one is shown, else letters where one is, and words."""
    if any(map(_NUMBER.fullmatch, words)):
        return round_robin((_DIGITS, filter(_NUMBER.fullmatch, its_own), filter(_NUMBER.fullmatch, listed)))
    return round_robin((_LETTERS if any(map(_LETTER.fullmatch, words)) else "", listed, its_own))


def own_words(row: Row) -> list[str]:
    """The row's own short texts and numbers, as an answer would write them."""
    values = (value for value, _ in scalars(own(row)) if isinstance(value, str | int) and not isinstance(value, bool))
    return list(dict.fromkeys(text for text in map(str, values) if 0 < len(text) <= _SHORT))[:_WORDS]


def own_texts(row: Row, shown: Iterable[str]) -> list[str]:
    """Each form of what is shown with the row's own words; the words alone, if no form is shown."""
    return _in_each_form(shown, words := own_words(row)) or words


def odd_texts(shown: Iterable[str]) -> list[str]:
    """Each form of what is shown with words that mean nothing in it."""
    return _in_each_form(shown, _ODD)


def _in_each_form(shown: Iterable[str], words: Sequence[str]) -> list[str]:
    return [f"{before}{word}{after}" for before, after in _forms_in(shown) for word in words]


def calls_to_make(row: Row, latest: str) -> list[Call]:
    """Calls of the row's tools: plain ones, and with one argument as its enum, the row or the latest text has it."""
    words = [*own_words(row), *_listed(latest)][:_WORDS]
    calls = {}
    for tool in row.tools:
        plain = plain_arguments(tool)
        for arguments in () if plain is None else (plain, some(plain), *_varied(tool, plain, words)):
            if admits(tool.parameters, arguments):
                calls[f"{tool.name} {arguments}"] = Call(tool.name, arguments)
    return list(calls.values())


def _varied(tool: Tool, plain: dict[str, Any], words: Sequence[str]) -> Iterator[dict[str, Any]]:
    for key, schema in properties_of(tool.parameters).items():
        members = schema.get("enum", ()) if isinstance(schema, dict) else ()
        numbers = [int(word) for word in (*_DIGITS, *words) if word.removeprefix("-").isdecimal()]
        for value in members or (numbers if type(plain.get(key)) is int else words):
            yield {**plain, key: value}


def with_word(play: Play, word: str) -> Iterator[Play]:
    """The same with this word in place of what fills its forms, and of each free text of its calls, one after the other."""
    turns = [json.dumps(action["output"]) for action in play.actions]
    yield from _changed(play, turns, lambda turn: _in_forms(turn, word))
    for tool in play.row.tools:
        for key, schema in properties_of(tool.parameters).items():
            if admits(schema, word):
                yield from _changed(play, turns, partial(_in_call, tool.name, key, word))


def _changed(play: Play, turns: Sequence[str], change: Callable[[Any], Any]) -> Iterator[Play]:
    """The play with each turn changed, unless none is."""
    changed = [change(json.loads(turn)) for turn in turns]
    if any(json.dumps(one) != turn for one, turn in zip(changed, turns, strict=True)):
        yield replace(play, actions=tuple(response(output) for output in changed))


def _in_forms(output: list[Item], word: str) -> list[Item]:
    def filled(text: Any, _: Way) -> Any:
        form = _FORM.fullmatch(text) if isinstance(text, str) else None
        return f"{form[1]}{word}{form[3]}" if form else text

    return [mapped(item, filled) if item.get("type") == "message" else item for item in output]


def _in_call(tool: str, key: str, word: str, output: list[Item]) -> list[Item]:
    def told(item: Item) -> Item:
        given: Any = None
        if item.get("type") == "function_call" and item.get("name") == tool:
            with suppress(ValueError, TypeError):  # what was recorded need not be JSON
                given = json.loads(item["arguments"])
        has_it = isinstance(given, dict) and key in given
        return {**item, "arguments": json.dumps({**given, key: word})} if has_it else item

    return [told(item) for item in output]
