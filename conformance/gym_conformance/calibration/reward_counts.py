"""The rewards of all rows at a glance: their distribution, and the worst rows, in bounded memory. Pure."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from gym_conformance.calibration.row_scores import ASKED, Calibration, Hit, Question, RowScores
from gym_conformance.findings import RewardSpread, RowPay
from gym_conformance.session.exchange import Exchange

#: The name prefix of another row's answer.
SWAPPED: Final = "the answer of "

#: Bins from the least reward to the highest.
_STEPS: Final = 40

#: Rows that are kept, the worst first; how many of them are shown with a reproduction, and its maximum length in
#: characters.
_KEPT, _SCRIPTS, _LONGEST = 50, 10, 20_000

#: The verdicts of a row, the worst first.
VERDICTS: Final = ("fails", "unchecked", "holds")


class RewardCounts:
    """Counts the rewards of rows, one after the other, and keeps the worst rows."""

    def __init__(self, found: Calibration) -> None:
        known = [score.reward for row in found.rows for score in row.scores if score.reward is not None]
        self.found = found
        self.low = min(0.0, *known, *found.recorded, found.top)
        self.high = max(*known, *found.recorded, found.top, self.low + 1e-9)
        self.verdicts = Counter[str]()
        self.counts = {question: [0] * _STEPS for question in ASKED}
        self._refused = 0
        self._kept: list[tuple[tuple[int, float, int], RowPay, tuple[Exchange, ...]]] = []

    def add(self, scores: RowScores, outcomes: dict[Question, Hit | str | None]) -> str:
        """Count a row and return its verdict."""
        hits = {question: hit for question, hit in outcomes.items() if isinstance(hit, Hit)}
        silent = [isinstance(outcome, str) for outcome in outcomes.values()]
        unchecked = all(silent) or (isinstance(outcomes[Question.GOLD], str) and not self.found.replayed)
        verdict = "fails" if hits else "unchecked" if unchecked else "holds"
        for handed_in, reward in (
            (Question.GOLD, scores.gold.reward),
            *((each.question, each.score.reward) for each in scores.attempts),
        ):
            self._count(handed_in, reward)
        question, hit = next(iter(hits.items()), (None, None))
        gap = max((_gap(asked, one, scores.bar) for asked, one in hits.items()), default=0.0)
        others = {one.name: one.score.reward for one in scores.attempts if one.score.reward is not None}
        pay = RowPay(str(scores.row), verdict, scores.gold.reward, others, (hit.name or str(question)) if hit else "")
        self._keep(pay, gap, hit.score.exchanges if hit else ())
        return verdict

    def add_again(self, place: str, verdict: str, rewards: Mapping[str, float | None], amiss: str) -> None:
        """Count a row from the report of an earlier run, whose requests are unknown."""
        given = {name: reward for name, reward in rewards.items() if reward is not None}
        own = given.pop(Question.GOLD.value, None)
        self._count(Question.GOLD, own)
        for name, reward in given.items():
            self._count(Question.SWAP if name.startswith(SWAPPED) else Question.FLOOR, reward)
        self._keep(RowPay(place, verdict, own, given, amiss), 0.0, ())

    def _keep(self, pay: RowPay, gap: float, exchanges: tuple[Exchange, ...]) -> None:
        self.verdicts[pay.verdict] += 1
        self._refused += pay.verdict == "fails" and pay.amiss == Question.GOLD.value
        self._kept.append(((VERDICTS.index(pay.verdict), -gap, self.verdicts.total()), pay, exchanges))
        if len(self._kept) > 2 * _KEPT:
            self._prune()

    def _count(self, question: Question, reward: float | None) -> None:
        if reward is not None and question in self.counts:
            step = int((reward - self.low) / (self.high - self.low) * _STEPS)
            self.counts[question][min(max(step, 0), _STEPS - 1)] += 1

    def _prune(self) -> None:
        self._kept.sort(key=lambda kept: kept[0])
        del self._kept[_KEPT:]

    def spread(self, script: Callable[[Sequence[Exchange]], Sequence[str]], show: Callable[[str], str]) -> RewardSpread:
        """The result for reports: `script` makes commands from exchanges, and `show` removes secrets from a text."""
        self._prune()
        verdicts, amiss, rows = dict.fromkeys(VERDICTS, 0) | self.verdicts, "", []
        if 2 * self._refused > verdicts["fails"] + verdicts["holds"]:  # the right answers to these rows are unknown
            verdicts |= {"fails": verdicts["fails"] - self._refused, "unchecked": verdicts["unchecked"] + self._refused}
            amiss = Question.GOLD.value
        for number, (_, pay, exchanges) in enumerate(self._kept):
            commands = tuple(script(exchanges)) if exchanges and number < _SCRIPTS else ()
            short = sum(map(len, commands)) <= _LONGEST
            others = {show(name): reward for name, reward in pay.others.items()}
            verdict = "unchecked" if amiss and pay.amiss == amiss else pay.verdict
            rows.append(RowPay(show(pay.place), verdict, pay.own, others, show(pay.amiss), commands if short else ()))
        return RewardSpread(
            show(self.found.words),
            self.found.top,
            self.low,
            self.high,
            verdicts,
            {question.value: tuple(counts) for question, counts in self.counts.items()},
            tuple(rows),
        )


def _gap(question: Question, hit: Hit, bar: float) -> float:
    """How far a reward is from what it should be."""
    reward = hit.score.reward or 0.0
    return bar - reward if question is Question.GOLD else reward
