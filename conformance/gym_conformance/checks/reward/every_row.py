"""Whole datasets: every row of the files is asked what calibration asks of a few, streamed, many at once."""

import asyncio
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from gym_conformance.calibration.reward_counts import VERDICTS, RewardCounts
from gym_conformance.calibration.row_plan import RowPlan
from gym_conformance.calibration.row_scores import ASKED, AnswerScore, Calibration, Counting, Hit, Question, RowScores
from gym_conformance.checks.reward.calibrated import calibrated, hint_of, reproduce, said
from gym_conformance.contract.dataset_rows import Row, Source
from gym_conformance.contract.verify_reply import is_number
from gym_conformance.dataset import BadData, read
from gym_conformance.documents import append_line, parse_json, read_lines, write_whole, writing_whole
from gym_conformance.trials.calibrating import Calibrating
from gym_conformance.trials.check import check
from gym_conformance.trials.ending import NotExamined, Untestable, Violation
from gym_conformance.trials.needs import RESOURCES_SERVER, SCORE
from gym_conformance.trials.scoring import Scoring
from gym_conformance.trials.trial import Trial

#: Rows at once, each with one request under way.
AT_ONCE: Final = 64

#: Lines that are written together.
_LINES: Final = 256

#: What is known of a line.
_ASKED_ALREADY: Final = 1
_HOLDS: Final = 2

_SCHEMA: Final = "gym-conformance-rows/1"


@check(
    "calibration-every-row",
    "Every row SHOULD reward its own answer and no other",
    why="rows that reward something else teach it; they can be left out before training.",
    needs=[RESOURCES_SERVER, SCORE],
)
async def calibration_every_row(trial: Trial, _: object) -> None:
    """With `--gym-rows N` or `all`, asks N rows, or all of them, what calibration-gold, -floor and -swap ask of a few.

    Each row is asked once for its own answer, nothing, a refusal, the prompt and the answer of one other row; what
    looks suspicious is tried again. `--gym-report FILE.jsonl` has a line for each row, and `--gym-rows-keep FILE` gets
    the rows that pass, byte for byte. The rules for a violation are those of the other checks.

    Our inference.
    """
    plan = trial.settings.rows
    if plan is None:
        raise NotExamined("the whole dataset was not asked for (--gym-rows)")
    found = await calibrated(trial)
    if found.replayed:
        raise Untestable("a template or an oracle: answers are known only for the few rows with recorded rollouts")
    asked = _EveryRow(trial, found, plan)
    await asked.run()
    tallies = {question: asked.counts[question].tally(question) for question in ASKED}
    telling = {question: tally for question, tally in tallies.items() if tally.telling}
    if telling:
        first, tally = next(iter(telling.items()))
        reproduce(trial, tally.hits[0])
        told = "; ".join(f"{question}: {said(tally)}" for question, tally in telling.items())
        raise Violation(f"{found.top:g} for each row's own answer alone, as {found.words}", told, hint_of(first))
    trial.note = "; ".join(f"{question}: {said(tally)}" for question, tally in tallies.items())


class _EveryRow:
    """One pass over the rows; of each line no more is kept than a byte."""

    def __init__(self, trial: Trial, found: Calibration, plan: RowPlan) -> None:
        self.trial = trial
        self.found = found
        self.plan = plan
        self.work = Calibrating(trial, Scoring(trial, at_once=AT_ONCE, seconds=float("inf"), noisy=found.noisy))
        self.known = [scores for scores in found.rows if scores.is_top]
        self.counts = {question: Counting(found.chance(question)) for question in ASKED}
        self.rewards = trial.rewards = RewardCounts(found)
        #: Bytes of each file: it has no line of a higher number.
        self.sizes: dict[str, int] = {}
        self.done: dict[str, bytearray] = {}
        self.lines: list[str] = []

    async def run(self) -> None:
        """Ask the rows, and write what is asked for.

        Raises:
            Untestable: the report of an earlier run cannot be continued, or a file cannot be read or written.
        """
        try:
            await self._run()
        except (BadData, OSError) as bad:
            raise Untestable(f"files that can be read and written: {bad}") from None

    async def _run(self) -> None:
        self.sizes = {str(file): file.stat().st_size for file in self.plan.files}
        self._head()
        rows = self._rows()
        workers = [asyncio.create_task(self._ask(rows)) for _ in range(AT_ONCE)]
        try:
            await asyncio.gather(*workers)
        finally:
            for worker in workers:
                worker.cancel()
            await asyncio.gather(*workers, return_exceptions=True)
            self._write()
        self._keep()

    def _head(self) -> None:
        """Begin the report, or take over what an interrupted run wrote of the same answers."""
        head = {"schema": _SCHEMA, "answers": self.found.words, "top": self.found.top}
        report = self.plan.report
        if report is None:
            return
        if self.plan.resume and report.is_file() and not report.is_symlink() and self._resumed(report, head):
            return
        write_whole(report, json.dumps(head) + "\n")

    def _resumed(self, report: Path, head: dict[str, Any]) -> bool:
        """Take over an earlier run's lines, where it asked the same; a line that was cut off is dropped."""
        whole = 0
        for number, line in enumerate(read_lines(report)):
            try:
                told = parse_json(line.decode()) if line.endswith(b"\n") else None
            except ValueError:
                raise Untestable(f"a report of rows to continue: {report}, line {number + 1}, is not JSON") from None
            if number == 0 and told != head:
                return False
            if told is not None:
                whole += len(line)
                if number:
                    self._take(told)
        os.truncate(report, whole)
        return True

    def _take(self, line: Any) -> None:
        """Count a row of an earlier run.

        Raises:
            Untestable: no run of ours wrote this.
        """
        if not _is_told(line) or line["line"] > self.sizes.get(line["file"], line["line"]):
            raise Untestable(f"a report of rows to continue: {self.plan.report} has a line that is none")
        source = Source(Path(line["file"]), line["line"])
        self._mark(line["file"], line["line"], holds=line["verdict"] == "holds")
        refused = Question.GOLD.value if line["outcomes"].get("gold") == "hit" else ""
        self.rewards.add_again(str(source), line["verdict"], line["rewards"], line["for"] or refused)
        for question in ASKED:
            why = line["outcomes"].get(question.name.lower())
            row = Row({"responses_create_params": {}}, source)
            hit = Hit(row, line["for"], AnswerScore(line["reward"])) if why == "hit" else why
            self.counts[question].add(hit)

    def _mark(self, file: str, number: int, *, holds: bool) -> None:
        if file not in self.sizes:  # of an earlier run, which had other files, too
            return
        marks = self.done.setdefault(file, bytearray())
        marks.extend(bytes(max(0, number + 1 - len(marks))))
        marks[number] = _HOLDS if holds else _ASKED_ALREADY

    def _rows(self) -> Iterator[Row]:
        """The rows that were not asked yet, lazily."""
        left = self.plan.most
        for file in self.plan.files:
            marks = self.done.get(str(file), b"")
            for row in read(file):
                if left == 0:
                    return
                if not isinstance(row, Row):
                    continue
                left = left - 1 if left else left
                if not (row.source.line < len(marks) and marks[row.source.line]):
                    yield row

    async def _ask(self, rows: Iterator[Row]) -> None:
        for row in rows:
            self.trial.gym.endpoint.ensure_time()
            self._took(await self.work.row(row, self.found, self.known))
            self.trial.tried.trials += 1

    def _took(self, scores: RowScores) -> None:
        """Count a row, and write its line soon."""
        outcomes = self.found.outcomes(scores)
        hits = [each for each in outcomes.values() if isinstance(each, Hit)]
        for question, outcome in outcomes.items():
            self.counts[question].add(outcome)
        verdict = self.rewards.add(scores, outcomes)
        source = scores.row.source
        self._mark(str(source.path), source.line, holds=verdict == "holds")
        rewards = {"its own answer": scores.gold.reward}
        rewards |= {attempt.name: attempt.score.reward for attempt in scores.attempts}
        told = {
            "file": str(source.path),
            "line": source.line,
            "verdict": verdict,
            "rewards": rewards,
            "outcomes": {
                question.name.lower(): "hit" if isinstance(outcome, Hit) else outcome
                for question, outcome in outcomes.items()
            },
            "for": hits[0].name if hits else "",
            "reward": hits[0].score.reward if hits else None,
        }
        self.lines.append(json.dumps(told))
        if len(self.lines) >= _LINES:
            self._write()

    def _write(self) -> None:
        if self.plan.report and self.lines:
            append_line(self.plan.report, "\n".join(self.lines))
        self.lines.clear()

    def _keep(self) -> None:
        """Copy the rows that hold."""
        if self.plan.keep is None:
            return
        with writing_whole(self.plan.keep) as kept:
            for file in self.plan.files:
                marks = self.done.get(str(file), b"")
                for number, line in enumerate(read_lines(file), 1):
                    if number < len(marks) and marks[number] == _HOLDS:
                        kept.write(line)


def _is_told(line: Any) -> bool:
    """Whether it is a line of such a report, which anybody may have changed."""
    if not isinstance(line, dict):
        return False
    rewards, outcomes = line.get("rewards"), line.get("outcomes")
    return (
        isinstance(line.get("file"), str)
        and type(line.get("line")) is int
        and line["line"] > 0
        and line.get("verdict") in VERDICTS
        and isinstance(line.get("for"), str)
        and isinstance(rewards, dict)
        and isinstance(outcomes, dict)
        and all(reward is None or is_number(reward) for reward in (*rewards.values(), line.get("reward")))
        and all(why is None or isinstance(why, str) for why in outcomes.values())
        and ("hit" not in outcomes.values() or is_number(line.get("reward")))
    )
