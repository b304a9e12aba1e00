"""Asks the live server what rows' own answers earn, and what others earn in their place; once for a gym, in bounds."""

import asyncio
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final

from gym_conformance.calibration.moulds import Candidate, GivenAnswer, Mould, Sample, TextMould, learn
from gym_conformance.calibration.probe_answers import changed_calls, fair_forms, other_deeds, pressed
from gym_conformance.calibration.rates import Rate
from gym_conformance.calibration.row_scores import (
    AnswerScore,
    Attempt,
    Calibration,
    Question,
    RowScores,
    surely_wrong,
    usual_top,
)
from gym_conformance.checks.ending import Untestable
from gym_conformance.checks.trial import Trial
from gym_conformance.checks.verify import is_number
from gym_conformance.contract.dataset_rows import Call, Rollout, Row, Source, prompt_of
from gym_conformance.contract.openapi import ServerKind
from gym_conformance.contract.policy_output import Item, function_call, function_call_output, response
from gym_conformance.oracle import items_of
from gym_conformance.session.channel import Channel, NotSent
from gym_conformance.session.contracts import Session
from gym_conformance.session.exchange import reply_of
from gym_conformance.session.server_fault import ServerFault
from gym_conformance.trajectories.followed import followed
from gym_conformance.trajectories.outcome import StepOutcome
from gym_conformance.trajectories.trajectory import resolve

#: Of the default choice: rows, and seconds after which no further row is begun: generous, for a verdict must not depend
#: on the machine's load, but few where a single score takes long.
_ROWS: Final = 16
_SECONDS: Final = 60.0
_SLOW: Final = 1.0
_SECONDS_OF_SLOW: Final = 6.0

#: Rollouts that are learned from, moulds that are tried, rows that each is tried on, and those that it must earn the top on.
_SAMPLES, _MOULDS, _TESTS, _TRUSTED = 8, 32, 6, 2

#: Rows that probes are made of.
_PROBED: Final = 8

#: Rows at once, and other rows whose answers are tried in a row.
_AT_ONCE, _OTHERS = 8, 2

#: Runs more that a suspicion must survive: the first few many, for noise must not look like a rule, and others a few. Where
#: time is up, the first few must survive so many.
_AGAIN, _FEW, _AGAIN_OF_FEW, _AT_LEAST = 2, 3, 24, 8

_NOTHING: Final = GivenAnswer(())
_REFUSAL: Final = "I'm sorry, but I can't help with that."
_JUDGED: Final = "its reward is the opinion of a judge model, which is a mock here"
_VARIES: Final = "its reward is not the same each time"
_UNRECORDED: Final = (
    "no rollout is recorded that shows how answers look (example_rollouts.jsonl beside the data, or --gym-oracle)"
)
_UNLEARNED: Final = "no field of the rows, put where it stands in recorded answers, earns the top in other rows"
_WORTHLESS: Final = "no recorded rollout earned more than doing nothing does"
_TOO_SLOW: Final = "the verifier is too slow to try more by default"

#: What says that a reward is none (nemo-gym 0.5.0 and 0.7.0 on).
_MASKS: Final = ("_ng_failure_class", "mask_sample", "failure_kind")


async def calibration_of(trial: Trial) -> Calibration:
    """What is known of the rows' rewards; found out the first time."""
    if trial.learned.calibration is None:
        trial.learned.calibration = await Calibrating(trial).run()
    return trial.learned.calibration


async def probes_of(trial: Trial) -> tuple[RowScores, ...]:
    """The rows whose own answers earn the top, with what probes earn in them; found out the first time."""
    if trial.learned.probed is None:
        found = await calibration_of(trial)
        trial.learned.probed = await Calibrating(
            trial, noisy=found.noisy, seconds=_SECONDS_OF_SLOW if found.slow else _SECONDS
        ).probe(found)
    return trial.learned.probed


def _reason(found: Sequence[RowScores], *, judged: bool) -> str:
    """Why no row's own answer earns the top; '' where one does."""
    if any(scores.is_top for scores in found):
        return ""
    return _JUDGED if judged or any(scores.gold.why == _JUDGED for scores in found) else _UNLEARNED


class Calibrating:
    """One run of questions: `executes` says whether the server makes calls, so that an answer is played first."""

    def __init__(
        self, trial: Trial, *, noisy: bool = False, at_once: int = _AT_ONCE, seconds: float = _SECONDS
    ) -> None:
        self.trial = trial
        self.gym = trial.gym
        self.executes = self.gym.kind is not ServerKind.SINGLE_TURN
        models = trial.launched.judge_models
        self.judge = models.model if models and models.names else None
        self.end = time.monotonic() + seconds
        self.suspicions = 0
        # one suspicion after the other, so that noise that one of them shows is known to all that come later
        self.suspecting = asyncio.Lock()
        self.noisy = noisy
        # one at a time where a judge model is asked, to know for which output
        self.free = asyncio.Semaphore(1 if self.judge else at_once)

    async def run(self) -> Calibration:
        """Learn, try out, and ask each row."""
        rows = self.gym.rows[:_ROWS]
        oracle = self._asked_oracle(rows)
        recorded = tuple(rollout.reward for rollout in self.gym.rollouts if is_number(rollout.reward))
        top, why = usual_top(recorded), ""
        if top is None and oracle:
            top, why = await self._top_of(oracle)
        if top is None or not rows:
            return Calibration(reason=why or _UNRECORDED, missing=not why)
        began = time.monotonic()
        nothing = await self._score(rows[0], _NOTHING)
        slow = time.monotonic() - began > _SLOW
        self.end = min(self.end, began + _SECONDS_OF_SLOW) if slow else self.end
        if top <= 0 and nothing.reaches(top):
            scores = (RowScores(rows[0], top, gold=nothing),)
            return Calibration(scores, top, reason=_WORTHLESS, recorded=recorded)
        samples = [Sample(row.data, one.calls, _words(one)) for row, one in oracle.items()] or self._samples(top)
        mould, judged = await self._trusted(samples, rows, top)
        answers = {row: oracle.get(row) if oracle else self._own(row, mould, top) for row in rows}
        found = await self._ask(answers, top)
        again = [scores for scores in found if mould and self._best(scores.row, top)]
        how = f"`{mould}`" if mould else "its recorded rollout as it is"
        return Calibration(
            tuple(found),
            top,
            "the oracle gives them" if oracle else how,
            mould,
            bool(oracle) or (mould is not None and mould.names_gold),
            _reason(found, judged=judged),
            earned_again=Rate(sum(scores.is_top for scores in again), len(again)),
            recorded=recorded,
            noisy=self.noisy,
            slow=slow,
        )

    async def _top_of(self, oracle: Mapping[Row, GivenAnswer]) -> tuple[float | None, str]:
        """What the oracle's answers usually earn; None, and why, where none of them is scored."""
        earned = await asyncio.gather(*(self._score(row, answer) for row, answer in oracle.items()))
        top = usual_top(score.reward for score in earned if score.reward is not None)
        return top, earned[0].why if top is None else ""

    async def row(self, row: Row, found: Calibration, known: Sequence[RowScores]) -> RowScores:
        """What one row of many earns, for its own answer and for no answer, and for that of one of the known rows."""
        answer = self._asked_oracle([row]).get(row) if self.trial.settings.oracle else None
        if found.mould and not answer:
            answer = found.mould.fill(row.data)
        scores = await self._gold(row, answer, found.top)
        at = row.source.line % max(1, len(known))
        return await self._compared(scores, (*known[at:], *known[:at]), 1)

    async def probe(self, found: Calibration) -> tuple[RowScores, ...]:
        """Hand in what a policy finds under pressure, and its opposites, in rows whose own answer earns the top."""
        rows = [scores for scores in found.rows if scores.is_top]
        return tuple(await asyncio.gather(*(self._probed(scores, found.mould, rows) for scores in rows[:_PROBED])))

    async def _probed(self, scores: RowScores, mould: Mould | None, rows: Sequence[RowScores]) -> RowScores:
        """The same row with what each probe that can be made of it earns."""
        attempts = []
        for question, name, answer in _probes(scores, mould, rows):
            score = await self._steady(scores, answer) if question is not Question.FAIR else None
            if score is None:
                score = (await self._gold(scores.row, answer, scores.top)).gold
            attempts.append(Attempt(question, name, score))
        return replace(scores, attempts=tuple(attempts))

    def _own(self, row: Row, mould: Mould | None, top: float) -> GivenAnswer | None:
        """A row's own answer: as the mould has it, or, where calls are made, as it was recorded where there is no mould.

        A recorded text says nothing of others: many texts may be right.
        """
        if mould:
            return mould.fill(row.data)
        best = self._best(row, top)
        return _replay(row, best) if best and best.calls and self.executes else None

    def _best(self, row: Row, top: float) -> Rollout | None:
        """A recorded rollout of the row that earned the top."""
        return next((one for one in self.gym.recorded.get(row, ()) if _earned(one, top)), None)

    def _asked_oracle(self, rows: Sequence[Row]) -> dict[Row, GivenAnswer]:
        """The answers that the user's oracle gives; a row for which it fails has none.

        Raises:
            Untestable: it fails for all of them.
        """
        oracle, found, failed = self.trial.settings.oracle, dict[Row, GivenAnswer](), ""
        for row in rows if oracle else ():
            try:
                given = oracle(row) if oracle else None
                if given is not None:
                    found[row] = _answer_of(items_of(given))
            except Exception as error:  # noqa: BLE001 - the user's function may raise anything
                failed = failed or f"{type(error).__name__}: {error}, for {row}"
        if failed and not found:
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

    async def _trusted(self, samples: Sequence[Sample], rows: Sequence[Row], top: float) -> tuple[Mould | None, bool]:
        """The first mould that earns the top on rows that it was not learned from; whether a judge model was asked."""
        judged = False
        for candidate in learn(samples[:_SAMPLES])[:_MOULDS]:
            if time.monotonic() > self.end:
                break
            scores = await self._tried(candidate, rows, top)
            judged |= any(score.why == _JUDGED for score in scores)
            hits = sum(score.reaches(top) for score in scores)
            # one that no name speaks for may be right by accident here and there
            if hits >= _TRUSTED and (2 * hits >= len(scores) if candidate.mould.names_gold else hits == len(scores)):
                return candidate.mould, judged
        return None, judged

    async def _tried(self, candidate: Candidate, rows: Sequence[Row], top: float) -> list[AnswerScore]:
        """What a mould earns on rows whose answer is another one than that it was learned from; the first two decide."""
        learned = candidate.mould.fill(candidate.learned_from)
        others: dict[tuple[str, ...], tuple[Row, GivenAnswer]] = {}
        for row in rows:
            answer = candidate.mould.fill(row.data)
            if answer and (learned is None or answer.gold != learned.gold):
                others.setdefault(answer.gold, (row, answer))
        scores: list[AnswerScore] = []
        tests = list(others.values())[:_TESTS]
        for batch in (tests[:_TRUSTED], tests[_TRUSTED:]) if len(tests) >= _TRUSTED else ():
            scores += await asyncio.gather(*(self._score(row, answer) for row, answer in batch))
            if not any(score.reaches(top) for score in scores):
                break
        return scores

    async def _ask(self, answers: Mapping[Row, GivenAnswer | None], top: float) -> list[RowScores]:
        """Ask every row, several at once, until time is up."""
        first = await asyncio.gather(*(self._gold(row, answer, top) for row, answer in answers.items()))
        known = [scores for scores in first if scores.is_top]
        return list(await asyncio.gather(*(self._compared(scores, known) for scores in first)))

    async def _gold(self, row: Row, answer: GivenAnswer | None, top: float) -> RowScores:
        if answer is None:
            return RowScores(row, top, unchecked="no answer of it is known")
        if time.monotonic() > self.end:
            return RowScores(row, top, answer, unchecked=_TOO_SLOW)
        score = await self._score(row, answer)
        if score.reward is None or score.reaches(top):
            return RowScores(row, top, answer, score)
        async with self.suspecting:
            for _again in self._again():
                again = await self._score(row, answer)
                self.noisy |= again.reward != score.reward
                if again.reaches(top):
                    return RowScores(row, top, answer, again)
                score = score if again.reward == score.reward else AnswerScore(None, _VARIES)
        return RowScores(row, top, answer, score)

    async def _compared(self, scores: RowScores, known: Sequence[RowScores], others: int = _OTHERS) -> RowScores:
        """The same with what nothing, a refusal, the prompt and other rows' answers earn in this row."""
        if not scores.is_top or scores.answer is None:
            return scores
        wrong = _wrong(scores, scores.answer, known, others)
        tried = [(Question.FLOOR, *floor) for floor in _floors(scores.row)]
        tried += [(Question.SWAP, f"the answer of {row}", answer) for row, answer in wrong]
        attempts = [Attempt(asked, name, await self._steady(scores, answer)) for asked, name, answer in tried]
        return replace(scores, attempts=tuple(attempts))

    async def _steady(self, scores: RowScores, answer: GivenAnswer) -> AnswerScore:
        """What an answer earns; what reaches the top only now and then says nothing."""
        if time.monotonic() > self.end:
            return AnswerScore(None, _TOO_SLOW)
        score = await self._score(scores.row, answer)
        if not score.reaches(scores.bar):
            return score
        async with self.suspecting:
            for _again in self._again():
                if not (await self._score(scores.row, answer)).reaches(scores.bar):
                    self.noisy = True
                    return AnswerScore(None, _VARIES)
        return score

    def _again(self) -> Iterator[int]:
        """The runs that a new suspicion must survive: many, too, where rewards were seen to vary."""
        self.suspicions += 1
        few = self.suspicions <= _FEW
        for number in range(_AGAIN_OF_FEW):
            if number >= _AGAIN and not few and not self.noisy:
                return
            if number >= _AT_LEAST and time.monotonic() > self.end:
                return
            yield number

    async def _score(self, row: Row, answer: GivenAnswer) -> AnswerScore:
        """What verify gives for an answer, with its calls made first where the server makes them."""
        async with self.free:
            asked = self.judge.asked if self.judge else 0
            channel = Channel(self.gym.endpoint)
            try:
                session = await self.trial.open(row, channel=channel)
                output = await _played(session, answer) if self.executes and answer.calls else answer.items
                reply = reply_of(await session.verify(response(output)))
                await session.close()
            except (Untestable, ServerFault, NotSent) as missing:
                return AnswerScore(None, f"it is not scored: {missing}")
            body = reply.json() if reply.status == HTTPStatus.OK and reply.is_json else None
            reward = body.get("reward") if isinstance(body, dict) else None
            if not isinstance(body, dict) or not is_number(reward):
                return AnswerScore(None, f"/verify answers {reply.status} without a reward")
            if self.judge and self.judge.asked > asked:
                return AnswerScore(None, _JUDGED)
            if any(body.get(mask) for mask in _MASKS):
                return AnswerScore(None, "the server says that its reward is not to be trained on")
            return AnswerScore(reward, exchanges=tuple(channel.exchanges))


def _answer_of(items: Sequence[Item]) -> GivenAnswer:
    """An answer of an oracle's items, with the calls among them."""
    made = Rollout({"response": {"output": list(items)}}, Source(Path(), 0))
    calls = tuple(made.calls)
    return GivenAnswer(
        tuple(items), calls, (json.dumps([[call.name, call.arguments] for call in calls]), made.last_text)[not calls :]
    )


def _words(answer: GivenAnswer) -> str:
    """The last message of an answer."""
    return Rollout({"response": {"output": list(answer.items)}}, Source(Path(), 0)).last_text


def _replay(row: Row, rollout: Rollout) -> GivenAnswer:
    """A recorded rollout's calls, with what they take from earlier replies, and its last words."""
    made = json.dumps([[call.name, call.arguments] for call in rollout.calls], sort_keys=True)
    items = tuple(item for item in rollout.output if isinstance(item, dict))
    return GivenAnswer(items, followed(row, rollout).calls, (made, rollout.last_text))


def _earned(rollout: Rollout, top: float) -> bool:
    return is_number(rollout.reward) and AnswerScore(rollout.reward).reaches(top)


async def _played(session: Session, answer: GivenAnswer) -> list[Item]:
    """The output of an answer whose calls are made; what earlier replies gave is put into later calls."""
    replies: list[Any] = []
    items: list[Item] = []
    for at, call in enumerate(answer.calls):
        made = Call(call.name, resolve(call.arguments, replies))
        reply = reply_of(await session.call(made))
        replies.append(StepOutcome.of_call(made, reply).body)
        call_id = f"call_{at}"
        items += [
            function_call(made.name, json.dumps(made.arguments), call_id),
            function_call_output(reply.text, call_id),
        ]
    return [*items, *(item for item in answer.items if item.get("type") == "message")]


def _wrong(
    scores: RowScores, own: GivenAnswer, known: Sequence[RowScores], most: int | None = None
) -> list[tuple[Row, GivenAnswer]]:
    """The answers of other rows that are surely wrong in this one, each once, the next row's first; so many at most."""
    at = known.index(scores) if scores in known else -1
    wrong: dict[tuple[str, ...], tuple[Row, GivenAnswer]] = {}
    for other in (*known[at + 1 :], *known[: max(at, 0)]):
        if most is not None and len(wrong) >= most:
            break
        if other.answer and surely_wrong(other.answer, scores.row.data, own):
            wrong.setdefault(other.answer.gold, (other.row, other.answer))
    return list(wrong.values())


def _probes(
    scores: RowScores, mould: Mould | None, rows: Sequence[RowScores]
) -> Iterator[tuple[Question, str, GivenAnswer]]:
    """What to hand in for a row beside its own answer."""
    if scores.answer is None:
        return
    if isinstance(mould, TextMould) and (right := mould.hole.text(scores.row.data)):
        wrong = _wrong_texts(mould, right, scores, rows)
        if len(wrong) > 1:
            yield from ((Question.PRESSED, *probe) for probe in pressed(mould, right, wrong))
        yield from ((Question.FAIR, *form) for form in fair_forms(mould, right))
    elif mould:
        yield from ((Question.PRESSED, *probe) for probe in changed_calls(scores.answer))
    others = [answer for _, answer in _wrong(scores, scores.answer, rows)]
    yield from ((Question.DEEDS, *probe) for probe in other_deeds(scores.answer, others))


def _wrong_texts(mould: TextMould, right: str, scores: RowScores, rows: Sequence[RowScores]) -> list[str]:
    """What fills the mould in other rows and is surely wrong in this one, beginning with the next row."""
    at = rows.index(scores)
    own = GivenAnswer((), gold=(right,))
    filled = (mould.fill(other.row.data) for other in (*rows[at + 1 :], *rows[:at]))
    wrong = (one for one in filled if one and surely_wrong(one, scores.row.data, own))
    return list(dict.fromkeys(text for one in wrong for text in one.gold))


def _floors(row: Row) -> Iterator[tuple[str, GivenAnswer]]:
    """What no answer looks like: nothing, a refusal, and the prompt itself."""
    yield "an empty output", _NOTHING
    yield "a refusal", GivenAnswer.of((), _REFUSAL)
    if prompt := prompt_of(row):
        yield "the prompt, echoed", GivenAnswer.of((), prompt)
