"""What each row's own answer earned, what others earned in its place, and the conclusions. Pure."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import Any, Final

from gym_conformance.calibration.answer_templates import Template
from gym_conformance.calibration.given_answer import GivenAnswer
from gym_conformance.calibration.rates import Rate
from gym_conformance.contract.dataset_rows import Row
from gym_conformance.contract.endpoints import RESERVED
from gym_conformance.contract.row_fields import fields_of, may_be_the_same, names_gold, value_at
from gym_conformance.contract.statuses import is_error
from gym_conformance.printable import counted
from gym_conformance.session.exchange import Exchange
from gym_conformance.session.refusals import says_error
from gym_schemas import Way

#: The least number of rows for a finding: a single odd row is a note, as is a share that is not significant.
_ROWS: Final = 2
_SHARE: Final = 0.02

#: Hits kept for each question.
_KEPT: Final = 50

#: The share that guessing earns if answers are letters, as for four choices.
_CHOICE: Final = 0.25

#: Rewards that differ by less are equal.
_EPSILON: Final = 1e-6


class Question(StrEnum):
    """What is asked about a row."""

    GOLD = "its own answer"
    FLOOR = "no answer"
    SWAP = "another row's answer"
    PRESSED = "what no reader takes for its answer"
    FAIR = "its own answer in another fair form"
    DEEDS = "its words without its calls, or other calls than its own"
    EITHER = "what a fair verifier may pay or refuse"


#: What is asked about every row.
ASKED: Final = (Question.GOLD, Question.FLOOR, Question.SWAP)


@dataclass(frozen=True)
class AnswerScore:
    """The result of a verify; `reward` is None if there is no usable one, and `why` says why.

    `failed` has the exchanges instead if verify broke down over the answer: it crashed, or answered without a number.
    """

    reward: float | None
    why: str = ""
    exchanges: tuple[Exchange, ...] = field(default=(), repr=False)
    failed: tuple[Exchange, ...] = field(default=(), repr=False)

    @property
    def calls(self) -> list[Exchange]:
        """The tool calls that were made over HTTP."""
        return [one for one in self.exchanges if one.request.path.lstrip("/") not in RESERVED]

    def reaches(self, top: float) -> bool:
        """Whether the reward is at least `top`."""
        return self.reward is not None and self.reward >= top - _EPSILON * max(1.0, abs(top))


@dataclass(frozen=True)
class Attempt:
    """Something else that was handed in for a row: its name, and what it earned."""

    question: Question
    name: str
    score: AnswerScore


@dataclass(frozen=True)
class RowScores:
    """One row: its own answer, what that earned, the best reward `top`, and what else was tried."""

    row: Row
    top: float
    answer: GivenAnswer | None = None
    gold: AnswerScore = field(default_factory=lambda: AnswerScore(None))
    attempts: tuple[Attempt, ...] = ()
    unchecked: str = ""

    @property
    def is_top(self) -> bool:
        """Whether its own answer earned the top reward, without which nothing else can be judged."""
        return self.gold.reaches(self.top)

    @property
    def bar(self) -> float:
        """What its own answer earned, or the top if that is more; nothing else should reach this."""
        return self.top if self.gold.reward is None else max(self.top, self.gold.reward)

    @property
    def deeds(self) -> frozenset[str]:
        """The tools that its own answer calls; if they are called over HTTP, those that accepted every call."""
        made = self.gold.calls
        if not made:
            return frozenset(call.name for call in self.answer.calls) if self.answer else frozenset()
        taken = ((one, one.reply) for one in made)
        return frozenset(
            one.request.path for one, reply in taken if reply and not is_error(reply.status) and not says_error(reply)
        )

    @property
    def scores(self) -> tuple[AnswerScore, ...]:
        """The scores of everything handed in for the row."""
        given = () if self.unchecked else (self.gold,)
        return (*given, *(attempt.score for attempt in self.attempts))


@dataclass(frozen=True)
class Hit:
    """A row in which something earned what it should not, or did not earn what it should."""

    row: Row
    name: str
    score: AnswerScore

    def __str__(self) -> str:
        return f"{self.row} {self.score.reward:g}" + (f" for {self.name}" if self.name else "")


@dataclass(frozen=True)
class RowTally:
    """The result of one question over all rows, with at most one hit for each; `chance` is what guessing earns.

    `hit` counts all hits; `hits` has the first of them.
    """

    hits: tuple[Hit, ...]
    checked: int
    unchecked: Mapping[str, int]
    chance: float = 0.0
    hit: int = 0

    @property
    def rate(self) -> Rate:
        """How many rows were hit."""
        return Rate(self.hit, self.checked)

    @property
    def telling(self) -> bool:
        """Whether it is more than a single odd row, and more than chance."""
        return self.hit >= _ROWS and self.rate.interval[0] > max(_SHARE, self.chance)

    @property
    def odd(self) -> bool:
        """Whether it is less than a finding but not explained by guessing, which earns something here and there."""
        return bool(self.hits) and not self.telling and self.rate.hits / self.checked > 2 * self.chance

    @property
    def account(self) -> str:
        """How many rows were checked, and why the others were not."""
        left = "; ".join(f"{count} unchecked: {why}" for why, count in self.unchecked.items())
        return f"{counted(self.checked, 'row')} checked" + (f"; {left}" if left else "")


@dataclass
class Counting:
    """Counts the outcomes of one question, row by row, and keeps the first hits."""

    chance: float
    hits: list[Hit] = field(default_factory=list)
    hit: int = 0
    checked: int = 0
    unchecked: Counter[str] = field(default_factory=Counter)

    def add(self, outcome: Hit | str | None) -> None:
        """Add a row."""
        if isinstance(outcome, str):
            self.unchecked[outcome] += 1
            return
        self.checked += 1
        if outcome:
            self.hit += 1
            self.hits += [outcome][: _KEPT - len(self.hits)]

    def tally(self, question: Question) -> RowTally:
        """The tally; if most rows' own answers earn less, their right answers are not known."""
        if question is Question.GOLD and 2 * self.hit > self.checked:
            left = self.unchecked + Counter({"what was learned is not how these rows are answered": self.checked})
            return RowTally((), 0, left)
        sign = 1 if question is Question.GOLD else -1
        worst = sorted(self.hits, key=lambda hit: ((hit.score.reward or 0.0) * sign, hit.row.source.line))
        return RowTally(tuple(worst), self.checked, self.unchecked, self.chance, self.hit)


@dataclass(frozen=True)
class Calibration:
    """What was learned about the rewards of all rows that were tried.

    Attributes:
        rows: what each earned.
        top: the usual best reward.
        words: the form of their answers.
        says_gold: whether calls are made, and recorded rollouts with the top reward end by saying what a field named
            like an answer holds.
        is_gold: whether the field is known to hold the right answer, by its name or because the user said so.
        template: the form of their answers, if it was learned.
        reason: why no row could be calibrated; '' if some were.
        missing: whether a file or an option would have helped.
        earned_again: of the rows whose recorded rollout earned the top, those whose answer does so again.
        recorded: the rewards of all recorded rollouts.
        noisy: whether the same answer earned something else another time.
        slow: whether a single verify takes long.
    """

    rows: tuple[RowScores, ...] = ()
    top: float = 0.0
    words: str = ""
    template: Template | None = None
    is_gold: bool = False
    says_gold: bool = False
    reason: str = ""
    missing: bool = False
    earned_again: Rate = field(default_factory=lambda: Rate(0, 0))
    recorded: tuple[float, ...] = ()
    noisy: bool = False
    slow: bool = False

    @property
    def replayed(self) -> bool:
        """Whether the answers are just recorded rollouts, so that nothing is known about others."""
        return self.template is None and not self.is_gold

    @cached_property
    def about_answers(self) -> bool:
        """Whether the reward is known to depend on what fills the template: named so, or others mostly earn less."""
        swaps = [one for scores in self.rows for one in _worst(scores, Question.SWAP) if scores.is_top]
        wrong = sum(one.score.reaches(scores.bar) for scores in self.rows for one in _worst(scores, Question.SWAP))
        return self.is_gold or self.says_gold or (bool(swaps) and 2 * wrong < len(swaps))

    @cached_property
    def _forms(self) -> frozenset[str]:
        """The kinds of text that were tried."""
        answers = (scores.answer for scores in self.rows if scores.is_top and scores.answer)
        return frozenset(form for answer in answers for form in _shapes(answer))

    @cached_property
    def _kinds(self) -> Mapping[Way, frozenset[object]]:
        """The fields that divide rows into a few kinds, with their values in rows whose own answers earn the top."""
        top = [scores.row.data for scores in self.rows if scores.is_top]
        values: dict[Way, list[object]] = defaultdict(list)
        for data in top:
            for path, value in fields_of(data):
                if isinstance(value, str | int | float) and not names_gold(path):
                    values[path].append(value)
        few = {path: frozenset(found) for path, found in values.items() if len(found) == len(top)}
        return {path: found for path, found in few.items() if 2 * len(found) <= len(top)}

    def _is_of_another_kind(self, data: Mapping[str, Any]) -> bool:
        """Whether a field marks the row as another kind, such as one that asks for another form of answer."""
        found = ((value_at(data, path), values) for path, values in self._kinds.items())
        return any(not isinstance(value, str | int | float) or value not in values for value, values in found)

    def outcome(self, scores: RowScores, question: Question) -> Hit | str | None:
        """The outcome of a question in a row: a hit, the reason why it is unchecked, or None if all is well."""
        if question is not Question.GOLD:
            return self._other_outcome(scores, question)
        if self.replayed:
            return "its answer is only known from its own recorded rollout"
        if scores.answer is None or scores.gold.reward is None:
            return scores.unchecked or scores.gold.why
        if scores.is_top:
            return None
        return self._doubt(scores.row.data, scores.answer) or Hit(scores.row, "", scores.gold)

    def _doubt(self, data: Mapping[str, Any], answer: GivenAnswer) -> str:
        """Why an answer that earns less is not known to be right; '' if it is."""
        if not self.is_gold:
            return "no field is known to be the answer, so that what earns the top in other rows may not be right in this one"
        if not self._forms.issuperset(_shapes(answer)):
            return "its answer has another form than those that were tried out"
        if self._is_of_another_kind(data):
            return "it is of another kind than all rows whose answers earn the top, by a field of it"
        return ""

    def _other_outcome(self, scores: RowScores, question: Question) -> Hit | str | None:
        if not self.about_answers:
            return (
                "another row's answer mostly earns as much, or none is surely wrong, and no field is called an answer: "
                "the task may be another"
            )
        if scores.answer is None or not scores.is_top:
            return scores.unchecked or scores.gold.why or "its own answer does not earn the top"
        worst = next(_worst(scores, question), None)
        if worst is None or worst.score.reward is None:
            tried = next((one.score.why for one in scores.attempts if one.question is question), "")
            return tried or "no other row has an answer that is surely wrong here"
        if not worst.score.reaches(scores.bar):
            return None
        if self._abstains(scores):
            return "its own answer only does what comes before other rows' deeds: to abstain may be what it asks for"
        return Hit(scores.row, worst.name, worst.score)

    @cached_property
    def _acting(self) -> tuple[frozenset[str], ...]:
        """The tools that accepted calls of each row's own answer, if nothing but such an answer earns the top."""
        paid = (Question.FLOOR, Question.SWAP)
        return tuple(
            scores.deeds
            for scores in self.rows
            if scores.is_top
            and not any(one.score.reaches(scores.bar) for asked in paid for one in _worst(scores, asked))
        )

    def _abstains(self, scores: RowScores) -> bool:
        """Whether the row's answer leaves out what all others do, so that doing nothing is as good."""
        done = scores.deeds
        return (
            bool(self._acting)
            and done <= frozenset().union(*self._acting)
            and not any(map(done.issuperset, self._acting))
        )

    def outcomes(self, scores: RowScores) -> "dict[Question, Hit | str | None]":
        """The outcomes of the three questions in a row."""
        return {question: self.outcome(scores, question) for question in ASKED}

    def tally(self, question: Question) -> RowTally:
        """The tally of a question over the rows."""
        counted = Counting(self.chance(question))
        for scores in self.rows:
            counted.add(self.outcome(scores, question))
        return counted.tally(question)

    def chance(self, question: Question) -> float:
        """The share of rows in which guessing is rewarded."""
        return self.guessed if question is Question.FLOOR else 0.0

    @cached_property
    def guessed(self) -> float:
        """The share of rows that reward always giving the commonest answer; 0 if no two rows share one."""
        top = (scores.answer.gold for scores in self.rows if scores.answer and scores.is_top)
        golds = Counter(gold for gold in top if gold)  # of recorded rollouts that are just repeated, none is known
        letters = all(len(text) == 1 and text.isalpha() for gold in golds for text in gold)
        often = max(golds.values(), default=0)
        return max(often / golds.total(), _CHOICE if letters else 0.0) if often > 1 or (golds and letters) else 0.0


def _worst(scores: RowScores, question: Question) -> Iterator[Attempt]:
    """The attempt that earned the most, if any was scored."""
    tried = [one for one in scores.attempts if one.question is question and one.score.reward is not None]
    if tried:
        yield max(tried, key=lambda one: one.score.reward or 0.0)


def _shapes(answer: GivenAnswer) -> Iterator[str]:
    """The kind of text of each part of an answer."""
    for text in answer.gold:
        lines = "lines" if "\n" in text else "words" if len(text.split()) > 1 else "a word"
        yield "a number" if text.replace(".", "", 1).lstrip("-").isdigit() else lines


@dataclass(frozen=True)
class ProbeTally:
    """What one probe earned over all rows."""

    name: str
    hits: tuple[Hit, ...]
    checked: int
    chance: float = 0.0

    @property
    def rate(self) -> Rate:
        """In how many rows it was rewarded, or, for a fair variant, was not."""
        return Rate(len(self.hits), self.checked)

    @property
    def telling(self) -> bool:
        """Whether it is more than a single odd row, and more than chance."""
        return len(self.hits) >= _ROWS and self.rate.interval[0] > max(_SHARE, self.chance)

    def __str__(self) -> str:
        return f"{self.name}: {self.rate}"


def probe_tallies(probed: Iterable[RowScores], question: Question, chance: float = 0.0) -> list[ProbeTally]:
    """A tally for each probe of a kind, those with most hits first; a fair variant is hit if it earns nothing."""
    hits: dict[str, list[Hit]] = defaultdict(list)
    checked = Counter[str]()
    for scores in probed:
        for attempt in scores.attempts:
            if attempt.question is question and attempt.score.reward is not None:
                checked[attempt.name] += 1
                fair = question is Question.FAIR
                if attempt.score.reaches(scores.top if fair else scores.bar) is not fair:
                    hits[attempt.name].append(Hit(scores.row, attempt.name, attempt.score))
    tallies = [ProbeTally(name, tuple(hits[name]), count, chance) for name, count in checked.items()]
    return sorted(tallies, key=lambda tally: -tally.rate.interval[0])


def usual_top(rewards: Iterable[float]) -> float | None:
    """The most common reward in the upper half, the greatest of equally common ones; None for no rewards."""
    given = sorted(rewards, reverse=True)
    if not given:
        return None
    middle = (given[0] + given[-1]) / 2
    upper = Counter(reward for reward in given if reward >= middle)
    return max(upper, key=lambda reward: (upper[reward], reward))


def surely_wrong(answer: GivenAnswer, row: Mapping[str, Any], own: GivenAnswer) -> bool:
    """Whether another row's answer is wrong in this row, as far as the row shows.

    Other calls are wrong, unless the message after them may be right. A text is wrong only if no part of it may be
    right here: any field named like an answer may hold a right one.
    """
    if own.calls or answer.calls:
        return (
            bool(answer.gold)
            and answer.gold != own.gold
            and not any(may_be_the_same(right, answer.words) for right in _right(row))
        )
    right = [*own.gold, *_right(row)]
    return bool(answer.gold) and not any(may_be_the_same(theirs, ours) for theirs in answer.gold for ours in right)


def say_gold(texts: Iterable[tuple[str, Mapping[str, Any]]]) -> bool:
    """Whether each text says what a field named like an answer holds in its row; False if they may all say the same.

    Args:
        texts: the final texts, with their rows' fields.
    """
    matches = [{right for right in _right(row) if right and may_be_the_same(right, text)} for text, row in texts]
    return len(matches) >= _ROWS and all(matches) and not set.intersection(*matches)


def _right(row: Mapping[str, Any]) -> list[str]:
    """The values of the row's fields that are named like an answer."""
    return [str(value) for path, value in fields_of(row) if names_gold(path) and _is_plain(value)]


def _is_plain(value: object) -> bool:
    return isinstance(value, str | int | float) and not isinstance(value, bool)
