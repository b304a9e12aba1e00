"""Learns how rows are answered, and asks the live server what their own answers earn, and what others do; once for a gym."""

import asyncio
import json
import re
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Final

from gym_conformance.calibration.answer_templates import (
    Candidate,
    Sample,
    ScriptTemplate,
    Template,
    TextTemplate,
    learn,
)
from gym_conformance.calibration.given_answer import GivenAnswer
from gym_conformance.calibration.handed_in import (
    NOTHING,
    Probe,
    floors,
    in_their_midst,
    probes,
    said_otherwise,
    with_other_words,
    wrong_answers,
)
from gym_conformance.calibration.rates import Rate
from gym_conformance.calibration.reward_counts import SWAPPED
from gym_conformance.calibration.row_scores import (
    AnswerScore,
    Attempt,
    Calibration,
    Question,
    RowScores,
    say_gold,
    usual_top,
)
from gym_conformance.contract.dataset_rows import Call, Rollout, Row, Source, prompt_of
from gym_conformance.contract.endpoints import SEED_SESSION, VERIFY
from gym_conformance.contract.policy_output import Item
from gym_conformance.contract.row_fields import fields_of, may_be_the_same
from gym_conformance.contract.verify_reply import is_number
from gym_conformance.oracle import OracleHangs, items_of
from gym_conformance.scouting.answers import hands_in
from gym_conformance.session.exchange import Exchange, reply_of
from gym_conformance.session.refusals import says_yes
from gym_conformance.trajectories.followed import followed
from gym_conformance.trajectories.programs import defined_in
from gym_conformance.trials.ending import Untestable
from gym_conformance.trials.launched import MOCKED
from gym_conformance.trials.property import knowledge_of
from gym_conformance.trials.scoring import Scoring
from gym_conformance.trials.trial import Trial
from gym_schemas import scalars

#: Of the default choice: rows, and seconds after which no further row is begun: generous, for a verdict must not depend
#: on the machine's load, but few where a single score takes long.
_ROWS: Final = 16
_SECONDS: Final = 60.0
_SLOW: Final = 1.0
_SECONDS_OF_SLOW: Final = 6.0

#: Rollouts that are learned from, templates that are tried, rows that each is tried on, and those that it must earn the top on.
_SAMPLES, _TEMPLATES, _TESTS, _TRUSTED = 8, 32, 6, 2

#: The least that is surely no part of a reward, where nobody recorded what the most is.
_WHOLE: Final = 1.0

#: Rows that probes are made of, and of these the ones whose last words are replaced after their calls.
_PROBED: Final = 8
_WORDED: Final = 4

#: Other rows whose answers are tried in a row.
_OTHERS: Final = 2

_UNRECORDED: Final = (
    "no rollout is recorded that shows how answers look (NAME_rollouts.jsonl beside NAME.jsonl, or --gym-oracle)"
)
_UNLEARNED: Final = "no field of the rows, put where it stands in recorded answers, earns the top in other rows"
_WORTHLESS: Final = "no recorded rollout earned more than doing nothing does"


async def calibration_of(trial: Trial) -> Calibration:
    """What is known of the rows' rewards; found out the first time."""
    if trial.learned.calibration is None:
        trial.learned.calibration = await Calibrating(trial, Scoring(trial, seconds=_SECONDS)).run()
    return trial.learned.calibration


async def probes_of(trial: Trial) -> tuple[RowScores, ...]:
    """The rows whose own answers earn the top, with what probes earn in them; found out the first time."""
    if trial.learned.probed is None:
        found = await calibration_of(trial)
        seconds = _SECONDS_OF_SLOW if found.slow else _SECONDS
        scoring = Scoring(trial, noisy=found.noisy, seconds=seconds)
        trial.learned.probed = await Calibrating(trial, scoring).probe(found)
    return trial.learned.probed


class Calibrating:
    """One run of questions to a gym."""

    def __init__(self, trial: Trial, scoring: Scoring) -> None:
        self.trial = trial
        self.gym = trial.gym
        self.scoring = scoring

    async def run(self) -> Calibration:
        """Learn, try out, and ask each row."""
        rows = self.gym.rows[:_ROWS]
        oracle = await self._asked_oracle(rows)
        recorded = tuple(rollout.reward for rollout in self.gym.rollouts if is_number(rollout.reward))
        guessed = {} if recorded or oracle else await self._guessed()
        given = oracle or guessed
        top, why = await self._top_of(recorded, given)
        if top is None or not rows:
            return Calibration(reason=why or _UNRECORDED, missing=not why)
        nothing, slow = await self._first_score(rows[0])
        if top <= 0 and nothing.reaches(top):
            scores = (RowScores(rows[0], top, gold=nothing),)
            return Calibration(scores, top, reason=_WORTHLESS, recorded=recorded)
        samples = [Sample(row.data, one.calls, one.words) for row, one in given.items()] or self._samples(top)
        template, mocked = await self._trusted(samples, rows, top)
        if guessed and not (_is_answer(template) and top >= _WHOLE):
            return Calibration(reason=_UNRECORDED, missing=True)
        found = await self._ask(
            {row: oracle.get(row) if oracle else self._own(row, template, top) for row in rows}, top
        )
        best = [(one.last_text, row.data) for row in rows if (one := self._best(row, top))]
        return Calibration(
            tuple(found),
            top,
            _how(template, oracle),
            template,
            bool(oracle) or (template is not None and template.names_gold and not guessed),
            self.scoring.executes and (say_gold(best) or (bool(guessed) and _hands_in(template))),
            _reason(found, mocked),
            earned_again=self._earned_again(found, template, top),
            recorded=recorded,
            noisy=self.scoring.noisy,
            slow=slow,
        )

    async def _guessed(self) -> dict[Row, GivenAnswer]:
        """What earns more than nothing does, in a form that prompts ask for, where nothing is recorded.

        It may earn a part of the top only, or stand in a field that merely sounds like an answer. So only a whole reward
        counts, and, since `is_gold` is not known, only where other rows' answers mostly earn less.
        """
        knowledge = await knowledge_of(self.trial)
        return {row: GivenAnswer.of(one.calls, "" if one.calls else one.answer) for row, one in knowledge.paid.items()}

    async def _first_score(self, row: Row) -> tuple[AnswerScore, bool]:
        """What doing nothing earns, and whether a score takes so long that fewer are to be had."""
        began = time.monotonic()
        nothing = await self.scoring.score(row, NOTHING)
        slow = time.monotonic() - began > _SLOW
        if slow:
            self.scoring.end = min(self.scoring.end, began + _SECONDS_OF_SLOW)
        return nothing, slow

    def _earned_again(self, found: Sequence[RowScores], template: Template | None, top: float) -> Rate:
        """Of the rows whose recorded rollout earned the top, those whose answer by the template does again."""
        again = [scores for scores in found if template and self._best(scores.row, top)]
        return Rate(sum(scores.is_top for scores in again), len(again))

    async def _top_of(self, recorded: Sequence[float], oracle: Mapping[Row, GivenAnswer]) -> tuple[float | None, str]:
        """What recorded rollouts, or else the oracle's answers, usually earn; None, and why, where none of these is scored."""
        top = usual_top(recorded)
        if top is not None or not oracle:
            return top, ""
        earned = await asyncio.gather(*(self.scoring.score(row, answer) for row, answer in oracle.items()))
        top = usual_top(score.reward for score in earned if score.reward is not None)
        return top, earned[0].why if top is None else ""

    async def row(self, row: Row, found: Calibration, known: Sequence[RowScores]) -> RowScores:
        """What one row of many earns, for its own answer and for no answer, and for that of one of the known rows."""
        answer = (await self._asked_oracle([row], some=False)).get(row)
        if found.template and not answer:
            answer = found.template.fill(row.data)
        scores = await self.scoring.gold(row, answer, found.top)
        at = row.source.line % max(1, len(known))
        return _but_for_alike(await self._compared(scores, (*known[at:], *known[:at]), 1), _telling(found.rows))

    async def probe(self, found: Calibration) -> tuple[RowScores, ...]:
        """Hand in what a policy finds under pressure, and its opposites, in rows whose own answer earns the top."""
        rows = [scores for scores in found.rows if scores.is_top]
        probed = rows[:_PROBED]
        words = await asyncio.gather(*(self._last_words(scores, rows) for scores in probed))
        return tuple(
            await asyncio.gather(
                *(
                    self._probed(scores, found.template, rows, attempts)
                    for scores, attempts in zip(probed, await self._in_midst(probed, words), strict=True)
                )
            )
        )

    async def _probed(
        self, scores: RowScores, template: Template | None, rows: Sequence[RowScores], words: Sequence[Attempt]
    ) -> RowScores:
        """The same row with what each probe that can be made of it earns, beside these of its last words."""
        attempts = await self._attempts(scores, probes(scores, template, rows))
        return replace(scores, attempts=(*attempts, *words))

    async def _attempts(self, scores: RowScores, made: Iterable[Probe]) -> list[Attempt]:
        """What these probes earn in a row, but for those whose control earns as much."""
        attempts = []
        for question, name, answer, control in made:
            match question:
                case Question.FAIR:
                    score = (await self.scoring.gold(scores.row, answer, scores.top)).gold
                case Question.EITHER:
                    score = await self.scoring.score(scores.row, answer)
                case _:
                    score = await self.scoring.steady(scores, answer)
            paid = control and score.reaches(scores.bar) and await self.scoring.steady(scores, control)
            if not paid or not paid.reaches(scores.bar):
                attempts.append(Attempt(question, name, score))
        return attempts

    async def _last_words(self, scores: RowScores, rows: Sequence[RowScores]) -> list[AnswerScore]:
        """What a row's calls earn with other rows' last words."""
        return [await self.scoring.steady(scores, answer) for answer in with_other_words(scores.answer, rows)]

    async def _in_midst(
        self, rows: Sequence[RowScores], others: Sequence[Sequence[AnswerScore]]
    ) -> list[list[Attempt]]:
        """What rows' calls earn with others' last words, and, where all of these earn less, with their own amidst such.

        Words such as "Done.", in the place of which others earn as much, are no answer, and take none back. Where a field of
        each row holds what its last words say, what may replace that is tried as in an answer without calls.
        """
        telling = [
            scores
            for scores, earned in zip(rows, others, strict=True)
            if earned and all(each.reward is not None and not each.reaches(scores.bar) for each in earned)
        ]
        template = await self._in_words(telling)

        async def amidst(scores: RowScores, earned: Sequence[AnswerScore]) -> list[Attempt]:
            attempts = [
                Attempt(Question.EITHER, "its calls with another row's last words", each) for each in earned[:1]
            ]
            if scores in telling and (midst := in_their_midst(scores.answer, telling)):
                score = await self.scoring.steady(scores, midst)
                attempts.append(Attempt(Question.PRESSED, "several rows' last words, its own in the middle", score))
            if scores in telling[:_WORDED] and template:
                attempts += await self._attempts(scores, said_otherwise(scores, template, telling))
            return attempts

        return await asyncio.gather(*map(amidst, rows, others))

    async def _in_words(self, rows: Sequence[RowScores]) -> TextTemplate | None:
        """The form of last messages that, after each row's calls, earns what its own does; None if there is none."""
        samples = [Sample(scores.row.data, (), scores.answer.words) for scores in rows if scores.answer]
        for template in (candidate.template for candidate in learn(samples)[:_TEMPLATES]):
            if self.scoring.is_over:
                break
            if not isinstance(template, TextTemplate) or not template.names_gold:
                continue
            filled = [(one, template.fill(one.row.data)) for one in rows]
            said = [(one, one.answer.saying(text.words)) for one, text in filled if one.answer and text]
            scores = await asyncio.gather(*(self.scoring.score(one.row, answer) for one, answer in said))
            if len(scores) >= _TRUSTED and all(
                each.reaches(one.bar) for (one, _), each in zip(said, scores, strict=True)
            ):
                return template
        return None

    def _own(self, row: Row, template: Template | None, top: float) -> GivenAnswer | None:
        """A row's own answer: as the template has it, or, where calls are made, as it was recorded where there is no template.

        A recorded text says nothing of others: many texts may be right.
        """
        if template:
            return template.fill(row.data)
        best = self._best(row, top)
        return _replay(row, best) if best and best.calls and self.scoring.executes else None

    def _best(self, row: Row, top: float) -> Rollout | None:
        """A recorded rollout of the row that earned the top."""
        return next((one for one in self.gym.recorded.get(row, ()) if _earned(one, top)), None)

    async def _asked_oracle(self, rows: Sequence[Row], *, some: bool = True) -> dict[Row, GivenAnswer]:
        """The answers that the user's oracle gives; a row for which it fails has none.

        Raises:
            Untestable: it hangs, or fails for all of them where there are to be some.
        """
        oracle, found, failed = self.trial.settings.oracle, dict[Row, GivenAnswer](), ""
        for row in rows if oracle else ():
            self.gym.endpoint.ensure_time()
            try:
                given = await oracle.answer(row) if oracle else None
                if given is not None:
                    found[row] = _answer_of(items_of(given))
            except OracleHangs as hangs:
                raise Untestable(f"an oracle that answers (--gym-oracle): {hangs}") from None
            except (Exception, SystemExit) as error:  # noqa: BLE001 - the user's function may raise anything
                failed = failed or f"{type(error).__name__}: {error}, for {row}"
        if failed and not found and some:
            raise Untestable(f"an oracle that answers (--gym-oracle): {failed}")
        return found

    def _samples(self, top: float) -> list[Sample]:
        """The rollouts that earned the top; of one whose row is not here, its own fields that rows have, too."""
        rows = {id(one): row for row, rollouts in self.gym.recorded.items() for one in rollouts}
        known = {key for row in self.gym.rows for key in row.data}
        found = []
        for rollout in self.gym.rollouts:
            if _earned(rollout, top):
                row = rows.get(id(rollout))
                own = {key: value for key, value in rollout.data.items() if key in known}
                found.append(Sample(row.data if row else own, tuple(rollout.calls), rollout.last_text))
        return found

    async def _trusted(self, samples: Sequence[Sample], rows: Sequence[Row], top: float) -> tuple[Template | None, str]:
        """The template that earns the top most often on rows that it was not learned from; what of ours scored, if any did.

        The first that always does is taken: one of several accepted answers is also their list, where a row has but one.
        Fields that are named like an answer go before others.
        """
        mocked, best, most = "", None, (False, 0.0)
        for candidate in learn(samples[:_SAMPLES])[:_TEMPLATES]:
            if self.scoring.is_over:
                break
            scores = await self._tried(candidate, rows, top)
            mocked = mocked or next((score.why for score in scores if score.why in MOCKED), "")
            hits = sum(score.reaches(top) for score in scores)
            named = candidate.template.names_gold
            # one that no name speaks for may be right by accident here and there
            if hits < _TRUSTED or 2 * hits < len(scores) or (hits < len(scores) and not named):
                continue
            if (worth := (named, hits / len(scores))) > most:
                best, most = candidate.template, worth
            if hits == len(scores):
                break
        return best, mocked

    async def _tried(self, candidate: Candidate, rows: Sequence[Row], top: float) -> list[AnswerScore]:
        """What a template earns on rows whose answer is another one than that it was learned from; the first two decide."""
        learned = candidate.template.fill(candidate.learned_from)
        others: dict[tuple[str, ...], tuple[Row, GivenAnswer]] = {}
        for row in rows:
            answer = candidate.template.fill(row.data)
            if answer and (learned is None or answer.gold != learned.gold):
                others.setdefault(answer.gold, (row, answer))
        scores: list[AnswerScore] = []
        tests = list(others.values())[:_TESTS]
        for batch in (tests[:_TRUSTED], tests[_TRUSTED:]) if len(tests) >= _TRUSTED else ():
            scores += await asyncio.gather(*(self.scoring.score(row, answer) for row, answer in batch))
            if not any(score.reaches(top) for score in scores):
                break
        return scores

    async def _ask(self, answers: Mapping[Row, GivenAnswer | None], top: float) -> list[RowScores]:
        """Ask every row, several at once, until time is up."""
        first = await asyncio.gather(*(self.scoring.gold(row, answer, top) for row, answer in answers.items()))
        known = [scores for scores in first if scores.is_top]
        found = await asyncio.gather(*(self._compared(scores, known) for scores in first))
        telling = _telling(found)
        return [_but_for_alike(scores, telling) for scores in found]

    async def _compared(self, scores: RowScores, known: Sequence[RowScores], others: int = _OTHERS) -> RowScores:
        """The same with what nothing, a refusal, the prompt and other rows' answers earn in this row."""
        if not scores.is_top or scores.answer is None:
            return scores
        wrong = wrong_answers(scores, scores.answer, known, others)
        tried = [(Question.FLOOR, *floor) for floor in floors(scores.row)]
        tried += [(Question.SWAP, f"{SWAPPED}{row}", answer) for row, answer in wrong]
        attempts = [Attempt(asked, name, await self.scoring.steady(scores, answer)) for asked, name, answer in tried]
        other = (each for each in attempts if each.question is not Question.SWAP or not _same(each.score, scores.gold))
        return replace(scores, attempts=tuple(other))


def _is_answer(template: Template | None) -> bool:
    """Whether what was only found by asking may be held to be the answer: of several values each may be asked to occur."""
    if isinstance(template, ScriptTemplate):
        return all(placeholder.names_gold for placeholder in template.placeholders)
    return isinstance(template, TextTemplate) and template.names_gold and not template.placeholder.joins


def _hands_in(template: Template | None) -> bool:
    """Whether it is a call that hands in an answer: what takes that is about it, whatever it pays."""
    return isinstance(template, ScriptTemplate) and all(hands_in(call.name) for call in template.calls)


def _same(score: AnswerScore, own: AnswerScore) -> bool:
    """Whether the same was done, in whatever order, and said: what a call takes from earlier replies is the row's own.

    Another row's calls, such as to take the third and the fifth of what is listed, may come to this row's answer. So may
    the same calls in another number: whoever rolls the dice until there are thirty points has twenty, too.
    """
    if not score.exchanges:
        return False
    (theirs, words), (ours, own_words) = _done(score), _done(own)
    return set(theirs) == set(ours) and (theirs != ours or may_be_the_same(words, own_words))


def _but_for_alike(scores: RowScores, telling: frozenset[str]) -> RowScores:
    """Without other rows' answers that the tools answer just as the row's own, where what they say is `telling`.

    `=MAX(B1:B9)` is right wherever there is nothing below what the row's own answer names.
    """

    def alike(attempt: Attempt) -> bool:
        both = _beside(attempt.score, scores.gold) if attempt.question is Question.SWAP else []
        return (
            bool(both)
            and all(reply_of(one).said == reply_of(two).said for one, two in both)
            and telling.issuperset(one.request.path for one, two in both if one.request.body != two.request.body)
            and may_be_the_same(_done(attempt.score)[1], _done(scores.gold)[1])
        )

    return replace(scores, attempts=tuple(each for each in scores.attempts if not alike(each)))


def _telling(rows: Sequence[RowScores]) -> frozenset[str]:
    """The tools that took another row's call in the place of a row's own, and said something else."""
    swapped = [_beside(one.score, scores.gold) for scores in rows for one in scores.attempts]
    return frozenset(
        one.request.path
        for one, two in chain.from_iterable(swapped)
        if reply_of(one).said != reply_of(two).said and says_yes(reply_of(one)) and says_yes(reply_of(two))
    )


def _beside(score: AnswerScore, own: AnswerScore) -> list[tuple[Exchange, Exchange]]:
    """The calls beside the row's own, one by one; none unless the tools are the same, in order."""
    alike = [one.request.path for one in score.calls] == [one.request.path for one in own.calls]
    return list(zip(score.calls, own.calls, strict=True)) if alike else []


def _done(score: AnswerScore) -> tuple[list[tuple[str, str]], str]:
    """The requests between the seed and the verify, sorted, and the last words; a typed session is closed after it."""
    made = [exchange.request for exchange in score.exchanges if exchange.request.path != SEED_SESSION]
    verify = next(at for at, each in enumerate(made) if each.path == VERIFY)
    words = json.loads(made[verify].body or b"{}")
    calls = [(each.path, json.dumps(json.loads(each.body or b"{}"), sort_keys=True)) for each in made[:verify]]
    return sorted(calls), Rollout(words, Source(Path(), 0)).last_text


def _how(template: Template | None, oracle: Mapping[Row, GivenAnswer]) -> str:
    """How rows are answered, in a few words."""
    if oracle:
        return "the oracle gives them"
    return f"`{template}`" if template else "recorded rollouts have them"


def _reason(found: Sequence[RowScores], mocked: str) -> str:
    """Why no row's own answer earns the top; '' where one does."""
    if any(scores.is_top for scores in found):
        return ""
    return mocked or next((scores.gold.why for scores in found if scores.gold.why in MOCKED), _UNLEARNED)


def _answer_of(items: Sequence[Item]) -> GivenAnswer:
    """An answer of an oracle's items, with the calls among them."""
    made = Rollout({"response": {"output": list(items)}}, Source(Path(), 0))
    calls = tuple(made.calls)
    return GivenAnswer(
        tuple(items), calls, (json.dumps([[call.name, call.arguments] for call in calls]), made.last_text)[not calls :]
    )


def _replay(row: Row, rollout: Rollout) -> GivenAnswer:
    """A recorded rollout's calls, with what they take from earlier replies, and its last words.

    Calls that name nothing of their row are moves in a world, and may be right in any row.
    """
    made = json.dumps([[call.name, call.arguments] for call in rollout.calls], sort_keys=True)
    items = tuple(item for item in rollout.output if isinstance(item, dict))
    gold = (made, rollout.last_text) if _name_of_it(row, rollout.calls) else ()
    return GivenAnswer(items, followed(row, rollout).calls, gold)


def _name_of_it(row: Row, calls: Sequence[Call]) -> bool:
    """Whether calls say a text or number that the row holds beside its tools, or a program in them defines what has such a name.

    A single character or digit is said by accident.
    """
    held = json.dumps((prompt_of(row), [value for _, value in fields_of(row.data)]), ensure_ascii=False)
    said = {str(value) for call in calls for value, _ in scalars(call.arguments) if type(value) in (str, int, float)}
    said |= {name for text in said for name in defined_in(text)}
    return any(len(each) > 1 and re.search(rf"(?<!\w){re.escape(each)}(?!\w)", held) for each in said)


def _earned(rollout: Rollout, top: float) -> bool:
    return is_number(rollout.reward) and AnswerScore(rollout.reward).reaches(top)
