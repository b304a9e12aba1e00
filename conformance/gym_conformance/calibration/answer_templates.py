"""Templates of best-paid answers, with placeholders for a row's own fields, learned from rollouts. Pure."""

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from gym_conformance.calibration.given_answer import GivenAnswer
from gym_conformance.calibration.object_answers import ObjectTemplate, of_object
from gym_conformance.contract.dataset_rows import Call
from gym_conformance.contract.row_fields import (
    COMMON,
    Placeholder,
    chosen,
    dotted,
    fields_of,
    names_gold,
    separators_in,
    value_at,
    written,
)
from gym_conformance.grouping import first_of_each
from gym_schemas import Way, mapped

#: Characters of the frame beside a placeholder in its line.
_FRAME = 200

#: Characters of a text that are searched.
_WORDY = 100_000

#: Frames tried for one placeholder, and words before it that may belong to its frame.
_FRAMES, _WORDS = 4, 3

#: The key in arguments that marks a value taken from the row.
_FIELD: Final = "$field"


@dataclass(frozen=True)
class TextTemplate:
    """A final text with a placeholder; others may stand in the text around it, such as that of a number's unit."""

    before: str
    placeholder: Placeholder
    after: str
    beside: tuple[Placeholder, ...] = ()

    def __str__(self) -> str:
        return f"{self.before}{self.placeholder}{self.after}"

    @property
    def names_gold(self) -> bool:
        """Whether the field is named like an answer."""
        return self.placeholder.names_gold

    def fill(self, data: Mapping[str, Any]) -> GivenAnswer | None:
        """A message."""
        text, own = self.placeholder.text(data), self.within(data)
        return GivenAnswer.of((), own.write(text), (text,)) if text and own else None

    def within(self, data: Mapping[str, Any]) -> "TextTemplate | None":
        """The template with the row's own texts around the placeholder; None if the row has none."""
        before, after = self.before, self.after
        for one in self.beside:
            if (text := one.text(data)) is None:
                return None
            before, after = (frame.replace(str(one), text) for frame in (before, after))
        return TextTemplate(before, self.placeholder, after)

    def write(self, text: str) -> str:
        """The final text with `text` in the placeholder."""
        return f"{self.before}{text}{self.after}"


@dataclass(frozen=True)
class CallsTemplate:
    """The calls, or the message, that a field of the row holds ready to be made."""

    path: Way

    def __str__(self) -> str:
        return f"the calls in {dotted(self.path)}"

    @property
    def names_gold(self) -> bool:
        """Always: a field that holds calls ready to be made holds the right ones."""
        return True

    def fill(self, data: Mapping[str, Any]) -> GivenAnswer | None:
        """The calls; None for a row whose right answer is a message, or no call."""
        calls = calls_in(value_at(data, self.path))
        gold = tuple(f"{call.name} {json.dumps(call.arguments, sort_keys=True)}" for call in calls)
        return GivenAnswer.of(calls, "", gold) if calls else None


@dataclass(frozen=True)
class ScriptTemplate:
    """Calls with placeholders in their arguments, and the last message, which may have others."""

    calls: tuple[Call, ...] = field(hash=False)
    words: str
    placeholders: tuple[Placeholder, ...]
    said: tuple[Placeholder, ...] = ()

    def __str__(self) -> str:
        made = ", ".join(f"{call.name}({_shown(call.arguments)})" for call in self.calls)
        return f"{made}, {self.words}" if self.said else made

    @property
    def names_gold(self) -> bool:
        """Never: arguments may equal a part of the right answer by accident."""
        return False

    def fill(self, data: Mapping[str, Any]) -> GivenAnswer | None:
        """The calls and the message; numbers remain numbers."""
        values = {dotted(placeholder.path): value_at(data, placeholder.path) for placeholder in self.placeholders}
        texts = {str(one): one.text(data) for one in self.said}
        if None in (*values.values(), *texts.values()):
            return None
        calls = tuple(Call(call.name, _filled(call.arguments, values)) for call in self.calls)
        words = self.words
        for placeholder, text in texts.items():
            words = words.replace(placeholder, text or "")
        return GivenAnswer.of(calls, words, tuple(map(str, values.values())))


#: The form of an answer, for any row.
Template = TextTemplate | ObjectTemplate | CallsTemplate | ScriptTemplate


def calls_in(value: Any) -> tuple[Call, ...]:
    """The calls in a field: one object or a list of them, with names and arguments; () for anything else."""
    found = []
    for each in value if isinstance(value, list) else [value]:
        if not isinstance(each, dict) or not isinstance(each.get("name"), str) or "arguments" not in each:
            return ()
        arguments = each["arguments"]
        if isinstance(arguments, str):
            try:
                arguments = json.loads(arguments)
            except ValueError:
                return ()
        if not isinstance(arguments, dict):
            return ()
        found.append(Call(each["name"], arguments))
    return tuple(found)


@dataclass(frozen=True)
class Sample:
    """A rollout that earned the most: its row's fields, the policy's calls and its last message."""

    data: Mapping[str, Any] = field(repr=False)
    calls: tuple[Call, ...]
    words: str


@dataclass(frozen=True)
class Candidate:
    """A template that is not trusted yet, and the fields of the row that it was first learned from."""

    template: Template
    learned_from: Mapping[str, Any] = field(repr=False)


def learn(samples: Sequence[Sample]) -> list[Candidate]:
    """Candidate templates, the likeliest first.

    Fields named like an answer come first, and fields come before their parts. Of the frames around one placeholder,
    only the few that most rollouts share are kept, the widest first, and in the end one with other fields in it.
    """
    learned: dict[Template, list[int]] = defaultdict(list)
    for number, sample in enumerate(samples):
        for template in dict.fromkeys((*_of_calls(sample), *_of_object(sample), *_of_text(sample))):
            learned[template].append(number)

    def by_name(templates: Iterable[Template]) -> list[Template]:
        return sorted(templates, key=lambda template: not template.names_gold)

    def framed(template: TextTemplate) -> tuple[Any, ...]:
        often, around = len(learned[template]), len(template.before + template.after)
        return (-often, around > _FRAME, around if often == 1 else -around)

    frames: dict[Placeholder, list[TextTemplate]] = defaultdict(list)
    for template in learned:
        if isinstance(template, TextTemplate):
            frames[template.placeholder].append(template)
    placeholders = sorted(
        frames,
        key=lambda placeholder: (
            not placeholder.names_gold,
            len(placeholder.path),
            -len(learned[min(frames[placeholder], key=framed)]),
        ),
    )

    def likely(most: int, *, mixed: bool) -> Iterator[TextTemplate]:
        for placeholder in placeholders:
            yield from sorted((one for one in frames[placeholder] if bool(one.beside) is mixed), key=framed)[:most]

    texts = (*likely(_FRAMES, mixed=False), *likely(1, mixed=True))
    objects = [template for template in learned if isinstance(template, ObjectTemplate)]
    calls = [template for template in learned if not isinstance(template, TextTemplate | ObjectTemplate)]
    likeliest = (*by_name(calls), *by_name((*objects, *texts)))
    return [Candidate(template, samples[learned[template][0]].data) for template in likeliest]


def _of_calls(sample: Sample) -> Iterator[Template]:
    if not sample.calls:
        return
    for path, value in fields_of(sample.data):
        if calls_in(value):
            yield CallsTemplate(path)
    named = sorted(fields_of(sample.data), key=lambda found: not names_gold(found[0]))
    known = [(path, value) for path, value in named if value not in COMMON and not isinstance(value, list | dict)]
    placeholders: dict[Placeholder, None] = {}
    calls = tuple(Call(call.name, _with_placeholders(call.arguments, known, placeholders)) for call in sample.calls)
    if placeholders:
        yield ScriptTemplate(calls, sample.words, tuple(placeholders))
        (words,), said = _with_fields([sample.words[-_FRAME:]], sorted(known, key=lambda found: len(found[0])))
        if said:
            yield ScriptTemplate(calls, words, tuple(placeholders), said)


def _with_placeholders(arguments: Any, known: Sequence[tuple[Way, Any]], placeholders: dict[Placeholder, None]) -> Any:
    def placeholder(argument: Any, _: Way) -> Any:
        path = next((path for path, value in known if type(value) is type(argument) and value == argument), None)
        if path is None:
            return argument
        placeholders[Placeholder(path)] = None
        return {_FIELD: dotted(path)}

    return mapped(arguments, placeholder)


def _is_placeholder(value: Any) -> bool:
    return isinstance(value, dict) and value.keys() == {_FIELD}


def _filled(arguments: Any, values: Mapping[str, Any]) -> Any:
    return mapped(
        arguments, lambda each, _: values[each[_FIELD]] if _is_placeholder(each) else each, leaf=_is_placeholder
    )


def _shown(arguments: Any) -> str:
    if isinstance(arguments, dict):
        if arguments.keys() == {_FIELD}:
            return f"{{{arguments[_FIELD]}}}"
        return ", ".join(f"{key}={_shown(value)}" for key, value in arguments.items())
    return json.dumps(arguments, ensure_ascii=False)


def _of_object(sample: Sample) -> Iterator[ObjectTemplate]:
    if not sample.calls and len(sample.words) <= _WORDY:
        yield from of_object(sample.words, sample.data)


def _of_text(sample: Sample) -> Iterator[TextTemplate]:
    """Frames around the last occurrence of a field's value in the final text, of increasing width."""
    if sample.calls or not sample.words.strip() or len(sample.words) > _WORDY:
        return
    folded = sample.words.casefold()
    for path, value, key in _values(sample.data):
        ways = [(Placeholder(path, name, key), text) for name, text in written(value)]
        joined = (Placeholder(path, key=key, separator=by) for by in separators_in(value, sample.words))
        ways += [(one, text) for one in joined if (text := one.text(sample.data))]
        for placeholder, text in first_of_each(lambda way: way[1], ways).values():
            if text.casefold() in folded and (found := _last(text, sample.words)) is not None:
                for start, end in _around(sample.words, *found):
                    template = TextTemplate(sample.words[start : found[0]], placeholder, sample.words[found[1] : end])
                    yield from (template, *_with_others(template, sample.data))


def _with_others(template: TextTemplate, data: Mapping[str, Any]) -> Iterator[TextTemplate]:
    """The template with placeholders for other fields of the row whose texts stand around its own."""
    if 0 < len(template.before + template.after) <= _FRAME:
        others = [(path, value) for path, value in fields_of(data) if path != template.placeholder.path]
        (before, after), beside = _with_fields([template.before, template.after], others)
        if beside:
            yield TextTemplate(before, template.placeholder, after, beside)


def _with_fields(frames: Sequence[str], fields: Iterable[tuple[Way, Any]]) -> tuple[list[str], tuple[Placeholder, ...]]:
    """The texts with placeholders for fields whose values stand in them, and these."""
    found, put = list(frames), dict[Placeholder, None]()
    for path, value in fields:
        own = Placeholder(path)
        text = None if value in COMMON else own.render(value)
        for at, frame in enumerate(found):
            if text and (span := _last(text, frame)):
                found[at] = f"{frame[: span[0]]}{own}{frame[span[1] :]}"
                put[own] = None
    return found, tuple(put)


def _values(data: Mapping[str, Any]) -> Iterator[tuple[Way, Any, Way]]:
    """The fields' values; for choices, the chosen one with the path of the field that names it."""
    fields = list(fields_of(data))
    keys = [(path, value) for path, value in fields if isinstance(value, str) and names_gold(path)]
    for path, value in fields:
        yield path, value, ()
        for key, name in keys if isinstance(value, list | dict) else ():
            if (choice := chosen(value, name)) is not None:
                yield path, choice, key


def _last(text: str, words: str) -> tuple[int, int] | None:
    """The last occurrence of a text in the words as a span, ignoring case, and not within another word."""
    left, right = (r"(?<!\w)" if text[0].isalnum() else ""), (r"(?!\w)" if text[-1].isalnum() else "")
    found = list(re.finditer(left + re.escape(text) + right, words, re.IGNORECASE))
    return found[-1].span() if found else None


def _around(words: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Spans of increasing width: the value, attached characters, up to three words before, lines, neighbors, all."""
    yield start, end
    left, right = start, end
    while left > 0 and start - left < _FRAME and not words[left - 1].isspace():
        left -= 1
    while right < len(words) and right - end < _FRAME and not words[right].isspace():
        right += 1
    yield left, right
    first, last = words.rfind("\n", 0, start) + 1, words.find("\n", end)
    last = len(words) if last < 0 else last
    for _word in range(_WORDS):
        left = words.rfind(" ", first, max(left - 1, first)) + 1
        if not first <= left < start or start - left > _FRAME:
            break
        yield left, right
    if start - first <= _FRAME and last - end <= _FRAME:
        yield first, last
        before, after = words.rfind("\n", 0, max(first - 1, 0)) + 1, words.find("\n", min(last + 1, len(words)))
        yield before, len(words) if after < 0 else after
    yield 0, len(words)
