"""Answers that stop in their midst, as every policy gives them that reaches its limit of tokens."""

import re
from functools import partial
from typing import Final

from gym_conformance.contract.dataset_rows import Row
from gym_conformance.contract.policy_output import ENDLESS, ODD_PROGRAMS, UNFINISHED, message, response
from gym_conformance.contract.statuses import is_success
from gym_conformance.contract.verify_reply import is_number
from gym_conformance.grouping import round_robin
from gym_conformance.scouting.answers import asks_for_python
from gym_conformance.session.channel import Channel, PathHangs
from gym_conformance.session.server_fault import ServerFault
from gym_conformance.trajectories.damage import cut_off, cut_within, made_odd, with_other_types
from gym_conformance.trajectories.execute import beside, run
from gym_conformance.trajectories.generate import Knowledge
from gym_conformance.trajectories.trajectory import PLAIN_ANSWER, Trajectory
from gym_conformance.trials.check import check
from gym_conformance.trials.in_form import expect_number
from gym_conformance.trials.needs import RESOURCES_SERVER, SCORE
from gym_conformance.trials.property import knowledge_of
from gym_conformance.trials.suspicions import Patience
from gym_conformance.trials.trial import Trial, expect_success

#: Seconds, answers that are tried whatever the clock says, answers in all, and those with a value of another type.
_SECONDS: Final = 4.0
_LEAST, _MOST, _TYPED = 24, 160, 48

_READS_ON: Final = (
    "The scorer's parser reads past the end of the text, calls itself too deeply, or converts to a number what is none: an "
    "answer that cannot be parsed is a wrong one."
)


@check(
    "verify-unfinished",
    "verify MUST score answers that are cut off in the middle",
    why="long answers are cut off at the token limit, wherever that falls; each crash loses a rollout that was paid for.",
    needs=[RESOURCES_SERVER, SCORE],
)
async def verify_unfinished(trial: Trial, _: object) -> None:
    """Verifies answers to rows, cut off after each of their last words and punctuation marks, and a few texts that any parser takes for incomplete.

    The cut answers are also tried with the ending of the whole one, such as a code fence or a bracket, and whole ones
    with `²` or with 3,000 brackets within each other in place of the last word, with the letter of no option, with zeros
    for all numbers, with a day that does not exist, and with null, an empty list or a value of another type in their JSON
    object. Where the row asks for Python, a few programs are tried that exit, fail, or print bytes that are no UTF-8. A
    few texts are long and never close what they open; these must be answered in time.

    The answers are recorded ones, or what the rows say about theirs. Each must be scored with 200 and a finite number,
    as the whole answer is. If a slow server leaves no time for some of them, the note says how many.

    Source: `SimpleAgent.run` hands what was generated up to `max_output_tokens` to verify, and raises for any other
    status (0.4.0).
    """
    gym = trial.gym
    whole, answers = _unfinished(await knowledge_of(trial))
    typed = [(row, odd) for row, text in whole.items() for odd in with_other_types(text)]
    programs = ODD_PROGRAMS if asks_for_python(gym.row) else ()
    tried = [*[*((gym.row, text) for text in (*programs, *UNFINISHED)), *answers][:_MOST], *typed[:_TYPED]]
    patience = Patience(_SECONDS, _LEAST)

    async def is_scored(row: Row, text: str) -> bool:
        if not patience.allows():
            return True
        try:
            outcome = await run(gym, Channel(gym.endpoint), Trajectory(row, answer=text))
        except (ServerFault, PathHangs):
            return False
        return is_success(outcome.steps[-1].status) and is_number(outcome.reward)

    scored = await beside([partial(is_scored, row, text) for row, text in tried])
    for row, text in (each for each, fine in zip(tried, scored, strict=True) if not fine):
        if await is_scored(row, whole.get(row, PLAIN_ANSWER)):  # see verify-scores-rows
            reply = await trial.verify_fresh(response([message(text)]), row)
            expect_success(reply, _READS_ON)
            expect_number(reply)
    trial.channel.exchanges.clear()
    for text in ENDLESS.values():  # one at a time: where one of them hangs, all others would, too
        if patience.allows():
            await trial.verify_fresh(response([message(text)]))
            trial.channel.exchanges.clear()
    count = len(tried) + len(ENDLESS)
    trial.note = f"{count - patience.left_out} of {count} answers"


def _unfinished(knowledge: Knowledge) -> tuple[dict[Row, str], list[tuple[Row, str]]]:
    """Answers of rows, no two of one form, and each of them made odd and cut off, one of each in turn."""
    forms = {re.sub(r"\w+", "", texts[0]): (row, texts[0]) for row, texts in knowledge.answers.items() if texts}
    whole = dict(forms.values())
    ways = ([(row, cut) for cut in way(text)] for row, text in whole.items() for way in (made_odd, cut_off, cut_within))
    return whole, list(round_robin(ways))
