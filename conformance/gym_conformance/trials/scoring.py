"""What the live server gives for an answer, and whether it gives the same again; in bounds."""

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Final

from gym_conformance.calibration.given_answer import GivenAnswer
from gym_conformance.calibration.row_scores import AnswerScore, RowScores
from gym_conformance.contract.dataset_rows import Row
from gym_conformance.contract.openapi import ServerKind
from gym_conformance.contract.policy_output import response
from gym_conformance.contract.statuses import is_crash, is_success
from gym_conformance.contract.verify_reply import is_masked, is_number
from gym_conformance.session.channel import Channel
from gym_conformance.session.exchange import Reply, reply_of
from gym_conformance.session.server_fault import NotSent, ServerFault
from gym_conformance.trajectories.execute import TrajectoryRun
from gym_conformance.trajectories.trajectory import Trajectory
from gym_conformance.trials.ending import Untestable
from gym_conformance.trials.trial import Trial

#: Rows at once.
_AT_ONCE: Final = 8

#: Runs more that a suspicion must survive, round by round: the first few suspicions all of them, for noise must not look
#: like a rule, unless time is up before the last round; others the first.
_AGAIN, _FEW = (2, 6, 16), 3

_VARIES: Final = "its reward is not the same each time"
_TOO_SLOW: Final = "the verifier is too slow to try more by default"


class Scoring:
    """Has answers scored: `executes` says whether the server makes calls, so that an answer is played first.

    `end` is when no further score is begun, in time.monotonic()'s seconds; `noisy` says whether the same answer earned
    something else another time.
    """

    def __init__(self, trial: Trial, *, noisy: bool = False, at_once: int = _AT_ONCE, seconds: float) -> None:
        self.trial = trial
        self.executes = trial.gym.kind is not ServerKind.SINGLE_TURN
        models = trial.launched.judge_models
        judged = models is not None and bool(models.names)
        self.end = time.monotonic() + seconds
        self.noisy = noisy
        self._suspicions = 0
        # one suspicion after the other, so that noise that one of them shows is known to all that come later
        self._suspecting = asyncio.Lock()
        # one at a time where a judge model is asked, to know for which output
        self._free = asyncio.Semaphore(1 if judged else at_once)

    @property
    def is_over(self) -> bool:
        """Whether time is up."""
        return time.monotonic() > self.end

    async def gold(self, row: Row, answer: GivenAnswer | None, top: float) -> RowScores:
        """What a row's own answer earns; what earns the top now and then earns it."""
        if answer is None:
            return RowScores(row, top, unchecked="no answer of it is known")
        if self.is_over:
            return RowScores(row, top, answer, unchecked=_TOO_SLOW)
        score = await self.score(row, answer)
        if score.reward is None or score.reaches(top):
            return RowScores(row, top, answer, score)
        async with self._suspecting:
            if self._doubts_enough:
                return RowScores(row, top, answer, unchecked=_TOO_SLOW)
            async for again in self._again(row, answer):
                self.noisy |= again.reward != score.reward
                if again.reaches(top):
                    return RowScores(row, top, answer, again)
                score = score if again.reward == score.reward else AnswerScore(None, _VARIES)
        return RowScores(row, top, answer, score)

    async def steady(self, scores: RowScores, answer: GivenAnswer) -> AnswerScore:
        """What an answer earns; what reaches the top only now and then says nothing."""
        if self.is_over:
            return AnswerScore(None, _TOO_SLOW)
        score = await self.score(scores.row, answer)
        if not score.reaches(scores.bar):
            return score
        async with self._suspecting:
            if self._doubts_enough:
                return AnswerScore(None, _TOO_SLOW)
            async for again in self._again(scores.row, answer):
                if not again.reaches(scores.bar):
                    self.noisy = True
                    return AnswerScore(None, _VARIES)
        return score

    @property
    def _doubts_enough(self) -> bool:
        """Whether time is up, and the first few suspicions were looked into."""
        return self.is_over and self._suspicions >= _FEW

    async def _again(self, row: Row, answer: GivenAnswer) -> AsyncIterator[AnswerScore]:
        """The runs that a new suspicion must survive: many, too, where rewards were seen to vary."""
        self._suspicions += 1
        few = self._suspicions <= _FEW
        for round_, count in enumerate(_AGAIN):
            if (round_ and not few and not self.noisy) or (round_ > 1 and self.is_over):
                return
            for score in await asyncio.gather(*(self.score(row, answer) for _ in range(count))):
                yield score

    async def score(self, row: Row, answer: GivenAnswer) -> AnswerScore:
        """What verify gives for an answer, with its calls made first where the server makes them."""
        async with self._free:
            asked = self.trial.launched.asked
            channel = Channel(self.trial.gym.endpoint)
            try:
                session = await self.trial.open(row, channel=channel)
                played = TrajectoryRun(self.trial.gym, channel, Trajectory(row, answer.calls), session=session)
                await played.make_calls()
                messages = [item for item in answer.items if item.get("type") == "message"]
                output = [*played.output, *messages] if played.replies else answer.items
                reply = reply_of(await session.verify(response(output)))
                await session.close()
            except (Untestable, ServerFault, NotSent) as missing:
                return AnswerScore(None, f"it is not scored: {missing}")
            reward, why = _reward(reply)
            made = tuple(exchange.light() for exchange in channel.exchanges)
            if mocked := self.trial.launched.asked.since(asked).mocked:
                return AnswerScore(None, mocked)
            if why:
                return AnswerScore(None, why, failed=made if _is_broken(reply) else ())
            return AnswerScore(reward, exchanges=made)


def _is_broken(reply: Reply) -> bool:
    """Whether verify crashed, or took the answer and found no number for it."""
    return is_crash(reply.status) or (is_success(reply.status) and not is_masked(reply.said))


def _reward(reply: Reply) -> tuple[float | None, str]:
    """The reward of a reply that is to be trained on, or why there is none."""
    reward = reply.fields.get("reward") if is_success(reply.status) else None
    if not is_number(reward):
        return None, f"/verify answers {reply.status} without a reward"
    if is_masked(reply.said):
        return None, "the server says that its reward is not to be trained on"
    return reward, ""
