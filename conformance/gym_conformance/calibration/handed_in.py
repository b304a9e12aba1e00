"""What is handed in for a row besides its own answer: nothing, other rows' answers, and probes. Pure."""

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from typing import Final, NamedTuple

from gym_conformance.calibration.answer_templates import CallsTemplate, Template, TextTemplate
from gym_conformance.calibration.given_answer import GivenAnswer
from gym_conformance.calibration.object_answers import ObjectTemplate
from gym_conformance.calibration.object_probes import of_values, swapped_values
from gym_conformance.calibration.probe_answers import (
    altered_calls,
    changed_calls,
    cut_off,
    ended_programs,
    fair_calls,
    fair_forms,
    fair_objects,
    look_alikes,
    of_several,
    other_deeds,
    other_order,
    other_turns,
    pressed,
    several,
    without_programs,
)
from gym_conformance.calibration.row_scores import Question, RowScores, surely_wrong
from gym_conformance.contract.dataset_rows import Row, prompt_of
from gym_conformance.contract.row_fields import may_be_the_same

NOTHING: Final = GivenAnswer(())

#: The most other rows' last messages around a row's own.
_SEVERAL: Final = 2

#: Where objects may begin in a text, and how many are parsed.
_BRACE: Final = re.compile(r"\{")
_OBJECTS: Final = 16

_REFUSAL: Final = "I'm sorry, but I can't help with that."


def floors(row: Row) -> Iterator[tuple[str, GivenAnswer]]:
    """Non-answers: nothing, a refusal, and the prompt itself."""
    yield "an empty output", NOTHING
    yield "a refusal", GivenAnswer.of((), _REFUSAL)
    if prompt := prompt_of(row):
        yield "the prompt, echoed", GivenAnswer.of((), prompt)


def wrong_answers(
    scores: RowScores, own: GivenAnswer, known: Sequence[RowScores], most: int | None = None
) -> list[tuple[Row, GivenAnswer]]:
    """Answers of other rows that are surely wrong in this one, without duplicates, the next row's first.

    Args:
        scores: the row.
        own: its own answer.
        known: the other rows.
        most: how many at most; None for all.
    """
    at = known.index(scores) if scores in known else -1
    wrong: dict[tuple[str, ...], tuple[Row, GivenAnswer]] = {}
    for other in (*known[at + 1 :], *known[: max(at, 0)]):
        if most is not None and len(wrong) >= most:
            break
        if other.answer and surely_wrong(other.answer, scores.row.data, own):
            wrong.setdefault(other.answer.gold, (other.row, other.answer))
    return list(wrong.values())


class Probe(NamedTuple):
    """What to hand in for a row besides its own answer; it says nothing where the `control` earns as much."""

    question: Question
    name: str
    answer: GivenAnswer
    control: GivenAnswer | None = None


def probes(scores: RowScores, template: Template | None, rows: Sequence[RowScores]) -> Iterator[Probe]:
    """What to hand in for a row besides its own answer."""
    if scores.answer is None:
        return
    if isinstance(template, ObjectTemplate):
        yield from _of_object(template, scores, rows)
    elif isinstance(template, TextTemplate) and (right := template.placeholder.text(scores.row.data)):
        yield from _of_text(template, right, scores, rows)
    elif template:
        yield from (Probe(Question.PRESSED, *probe) for probe in changed_calls(scores.answer))
    # where the other calls earn as much, a program only tries something out
    others_alone = without_programs(scores.answer)
    yield from (Probe(Question.PRESSED, *probe, others_alone) for probe in ended_programs(scores.answer))
    others = [answer for _, answer in wrong_answers(scores, scores.answer, rows)]
    yield from (Probe(Question.DEEDS, *probe) for probe in other_deeds(scores.answer, others))
    # actions may be repeated, and need not all be right, but a list of expected calls is exact
    exact = Question.DEEDS if isinstance(template, CallsTemplate) else Question.EITHER
    yield from (Probe(exact, *probe) for probe in altered_calls(scores.answer, scores.row.source.line))
    yield from (Probe(Question.FAIR, *form) for form in fair_calls(scores.answer))
    yield from (Probe(Question.EITHER, *form) for form in other_order(scores.answer))


def said_otherwise(scores: RowScores, template: TextTemplate, rows: Sequence[RowScores]) -> Iterator[Probe]:
    """The row's calls with what may replace the right text in its last message."""
    right = template.placeholder.text(scores.row.data)
    for probe in _of_text(template, right, scores, rows) if right else ():
        if scores.answer and [item.get("type") for item in probe.answer.items] == ["message"]:
            yield probe._replace(answer=scores.answer.saying(probe.answer.words))


def with_other_words(own: GivenAnswer | None, rows: Sequence[RowScores]) -> list[GivenAnswer]:
    """The row's calls with other rows' last messages; none if it has no such message.

    Only for answers that make calls and then say something: there are better probes for plain text.
    """
    return [own.saying(text) for text in _other_words(own, rows)] if own else []


def in_their_midst(own: GivenAnswer | None, rows: Sequence[RowScores]) -> GivenAnswer | None:
    """The row's calls with its own last message between those of these rows.

    If it contains a JSON object, theirs must share a key with it: a verifier that looks for these keys skips objects
    without them.
    """
    ours = _keys_in(own.words) if own else frozenset()
    others = [text for text in _other_words(own, rows) if not ours or ours & _keys_in(text)]
    return own.saying("\n".join((others[0], own.words, others[-1]))) if own and others else None


def _other_words(own: GivenAnswer | None, rows: Sequence[RowScores]) -> list[str]:
    if not own or not own.calls or not own.words:
        return []
    others = dict.fromkeys(each.answer.words for each in rows if each.answer and each.answer.words)
    return [text for text in others if not may_be_the_same(text, own.words)][:_SEVERAL]


def _keys_in(words: str) -> frozenset[str]:
    """The keys of the JSON objects in a text."""
    keys = set[str]()
    for brace in islice(_BRACE.finditer(words), _OBJECTS):
        with suppress(ValueError, RecursionError):
            keys |= json.JSONDecoder().raw_decode(words, brace.start())[0].keys()
    return frozenset(keys)


def _of_text(template: TextTemplate, right: str, scores: RowScores, rows: Sequence[RowScores]) -> Iterator[Probe]:
    """What may replace the right text."""
    wrong = _wrong_texts(template, right, scores, rows)
    template = template.within(scores.row.data) or template
    if len(wrong) > 1:
        yield from (Probe(Question.PRESSED, *probe) for probe in pressed(template, right, wrong))
    elements = template.placeholder.elements(scores.row.data)
    if len(elements) > 1:
        yield from (Probe(Question.PRESSED, *probe) for probe in of_several(template, elements))
        yield from (Probe(Question.EITHER, *form) for form in other_turns(template, elements))
    own = GivenAnswer((), gold=(right,))
    for name, left, answer in cut_off(template, right):
        if surely_wrong(GivenAnswer((), gold=(left,)), scores.row.data, own):
            yield Probe(Question.PRESSED, name, answer)
    yield from (Probe(Question.FAIR, *form) for form in fair_forms(template, right))
    yield from (Probe(Question.EITHER, *form) for form in look_alikes(template, right))


def _of_object(template: ObjectTemplate, scores: RowScores, rows: Sequence[RowScores]) -> Iterator[Probe]:
    """What may replace the right object, and the values in it."""
    data = scores.row.data
    others = [other.row.data for other in _after(scores, rows)]
    right = template.written(template.values(data))
    own = GivenAnswer((), gold=(right,))
    filled = (one for other in others if (one := template.fill(other)) and surely_wrong(one, data, own))
    wrong = list(dict.fromkeys(text for one in filled for text in one.gold))
    if len(wrong) > 1:
        yield from (Probe(Question.PRESSED, *probe) for probe in pressed(template, right, wrong))
        if not template.before:
            named = several(replace(template, before="```json\n", after="\n```"), right, wrong)
            yield from (Probe(Question.PRESSED, f"{name}, each in a fence", answer) for name, answer in named)
    yield from (Probe(Question.PRESSED, *probe) for probe in of_values(template, data, others))
    yield from (Probe(Question.EITHER, *probe) for probe in swapped_values(template, data, others))
    yield from (Probe(Question.FAIR, *form) for form in fair_objects(template, right))


def _after(scores: RowScores, rows: Sequence[RowScores]) -> list[RowScores]:
    """The other rows, the next one first."""
    at = rows.index(scores)
    return [*rows[at + 1 :], *rows[:at]]


def _wrong_texts(template: TextTemplate, right: str, scores: RowScores, rows: Sequence[RowScores]) -> list[str]:
    """Texts that are surely wrong in this row: its own other choices, or else the texts of other rows.

    Another row's choices are not choices here, and a verifier that ignores one has not taken it for an answer.
    """
    if template.placeholder.key:
        return template.placeholder.others(scores.row.data)
    own = GivenAnswer((), gold=(right,))
    filled = (template.fill(other.row.data) for other in _after(scores, rows))
    wrong = (one for one in filled if one and surely_wrong(one, scores.row.data, own))
    return list(dict.fromkeys(text for one in wrong for text in one.gold))
