"""Whether the reward measures the task: what each row's own answer earns, and what is paid in its place.

Our inference throughout. What a right answer looks like is learned from recorded rollouts that earned the most: text or
calls with a placeholder, and the field of the row that fills it. Such a template is trusted once it has earned the top reward on
two rows that it was not learned from. A row that cannot be tried is unchecked, with the reason, and counted.
"""

from collections.abc import Sequence
from typing import Final

from gym_conformance.calibration.object_probes import AS, EMPTY, MISSING
from gym_conformance.calibration.probe_answers import ENDS_EARLY, OTHER_NUMBERS, TESTED_AFTER, UNREADABLE
from gym_conformance.calibration.reward_counts import RewardCounts
from gym_conformance.calibration.row_scores import (
    AnswerScore,
    Calibration,
    Hit,
    ProbeTally,
    Question,
    RowScores,
    RowTally,
    probe_tallies,
)
from gym_conformance.contract.dataset_rows import Row
from gym_conformance.contract.endpoints import CLOSE_SESSION, SEED_SESSION
from gym_conformance.contract.policy_output import response
from gym_conformance.contract.statuses import is_crash, is_success
from gym_conformance.contract.verify_reply import is_masked, is_number
from gym_conformance.session.channel import Channel
from gym_conformance.session.exchange import reply_of
from gym_conformance.trials.calibrating import calibration_of, probes_of
from gym_conformance.trials.check import check
from gym_conformance.trials.ending import NotApplicable, NotExamined, Violation
from gym_conformance.trials.in_form import expect_number
from gym_conformance.trials.needs import RESOURCES_SERVER, SCORE
from gym_conformance.trials.trial import Trial, expect_no_crash

#: Rows that a finding names, the worst first.
_NAMED: Final = 6

#: Sessions in which a scorer that broke down over an answer is asked again.
_MORE: Final = 2

_BROKEN: Final = "The scorer takes for granted what this answer, or this row, does not have: a number that is not 0, a text that parses."

#: Rewards that must be equal before that says anything.
_REWARDS: Final = 6

_HINTS: Final = {
    Question.GOLD: "The row's answer is wrong or in a form that the verifier does not read, or the verifier refuses a right one.",
    Question.FLOOR: "The scorer finds an answer where none was given: in the prompt, or in what stands for no answer.",
    Question.SWAP: "The scorer takes any answer of the right form, or looks for the right one anywhere in a long text.",
}

_ANYWHERE: Final = "The scorer looks for the right answer anywhere; let it read one final answer, and compare it whole."
_PRESSED_HINTS: Final = {
    **dict.fromkeys(
        OTHER_NUMBERS,
        "The scorer strips signs and points with what stands around a number, or NaN is beyond no tolerance.",
    ),
    **dict.fromkeys(EMPTY, "Nothing is a part of everything: compare what was given with all that was wanted."),
    **dict.fromkeys(MISSING, "Only the values that are given are scored: count those that are missing as wrong."),
    UNREADABLE: "Where the scorer fails, what it could not read counts as right: an error of its own must not earn the top.",
    ENDS_EARLY: TESTED_AFTER,
}


async def calibrated(trial: Trial) -> Calibration:
    """The calibration of the rows.

    Raises:
        NotApplicable: none of them could be calibrated.
    """
    found = await calibration_of(trial)
    if found.reason:
        raise (NotExamined if found.missing else NotApplicable)(found.reason)
    return found


def counted(found: Calibration) -> RewardCounts:
    """What the rows that were tried pay."""
    counts = RewardCounts(found)
    for scores in found.rows:
        counts.add(scores, found.outcomes(scores))
    return counts


async def _ask(trial: Trial, question: Question, expected: str) -> None:
    """Tell what came of a question, where it is more than a single odd row."""
    found = await calibrated(trial)
    tally = found.tally(question)
    if tally.telling:
        reproduce(trial, tally.hits[0])
        raise Violation(expected.format(top=f"{found.top:g}", words=found.words), said(tally), hint_of(question))
    if not tally.checked:
        raise NotApplicable(tally.account)
    trial.note = f"{tally.account}; answers as {found.words}"


def hint_of(question: Question) -> str:
    """The likely cause of what is amiss."""
    return _HINTS[question]


def said(tally: RowTally) -> str:
    """What came of a question: rows, counts and a rate, and how many were not checked, and why."""
    if not tally.hits:
        return tally.account
    named = ", ".join(map(str, tally.hits[:_NAMED]))
    more = f" and {tally.hit - _NAMED} more" if tally.hit > _NAMED else ""
    return f"otherwise in {tally.rate}: {named}{more}; {tally.account}"


def reproduce(trial: Trial, hit: Hit) -> None:
    """Let the requests of a row be the finding's reproduction."""
    for exchange in hit.score.exchanges:
        trial.channel.adopt(exchange)


@check(
    "calibration-gold",
    "A row's own answer SHOULD earn the top reward",
    why="a right answer that goes unrewarded teaches the policy to give another; a low pass rate may be the verifier's fault.",
    needs=[RESOURCES_SERVER, SCORE],
)
async def calibration_gold(trial: Trial, _: object) -> None:
    """Scores each row's own answer, written as in the recorded rollouts that earned the most.

    It is a violation if this earns less than the top in two rows or more, each time it is tried again, and the share of
    such rows is certainly above 2 %. Rows whose answer has a form that was not tried out are left out, and nothing can
    be said if most rows earn less, because then it is not known how they are answered.

    Our inference.
    """
    trial.rewards = counted(await calibrated(trial))
    await _ask(trial, Question.GOLD, "a reward of {top} for each row's own answer ({words})")
    again = (await calibrated(trial)).earned_again
    trial.note += f"; what was recorded at the top is earned again in {again}" if again.of else ""


@check(
    "calibration-scored",
    "What is handed in as an answer MUST be scored with a finite number",
    why="an answer that breaks the scorer costs a rollout, and a reward of null or NaN poisons the advantages of the whole batch.",
    needs=[RESOURCES_SERVER, SCORE],
)
async def calibration_scored(trial: Trial, _: object) -> None:
    """Looks at what verify answers to each row's own answer, and to all else that calibration hands in.

    That must be neither a 5xx nor a success without a number, unless the sample is masked. What fails is handed in twice
    more, and does not count where verify does not score the row's empty output either.

    Source: `BaseVerifyResponse.reward: float` (every version); NaN leaves FastAPI as null.
    """
    found = await calibration_of(trial)
    if found.missing:
        raise NotExamined(found.reason)
    rows = (*found.rows, *await probes_of(trial))
    own = [(scores.row, Question.GOLD.value, scores.gold) for scores in found.rows if not scores.unchecked]
    others = [(scores.row, each.name, each.score) for scores in rows for each in scores.attempts]
    for row, name, score in (*own, *others):
        if score.failed and await _scores_an_empty_output(trial, row):
            await _expect_scored(trial, row, f"{name} in {row}", score)
    if not any(score.reward is not None for *_, score in (*own, *others)):
        raise NotApplicable(found.reason or "none of what was handed in is scored")
    trial.note = f"{len(own) + len(others)} answers handed in"


async def _scores_an_empty_output(trial: Trial, row: Row) -> bool:
    """Whether an empty output of the row is scored: if not, it is not for the answer that verify fails."""
    session = await trial.open(row, channel=Channel(trial.gym.endpoint))
    reply = reply_of(await session.verify(response([])))
    return is_success(reply.status) and is_number(reply.fields.get("reward"))


async def _expect_scored(trial: Trial, row: Row, name: str, score: AnswerScore) -> None:
    """Make the same requests in further sessions; verify must score one of them."""
    made = [one.request for one in score.failed if one.request.path not in (SEED_SESSION, CLOSE_SESSION)]
    for _ in range(_MORE):
        trial.channel.exchanges.clear()
        session = await trial.open(row)
        *_, reply = [reply_of(await session.send(request)) for request in made]
        if is_masked(reply.said) or not (is_crash(reply.status) or is_success(reply.status)):
            return
        if is_number(reply.fields.get("reward")):
            return
    expect_no_crash(reply, _BROKEN, name)
    expect_number(reply, name)


@check(
    "calibration-floor",
    "Nothing, a refusal and the echoed prompt SHOULD NOT earn the top reward",
    why="the policy learns the shortest way to a reward, which is to say nothing, to refuse, or to repeat the question.",
    needs=[RESOURCES_SERVER, SCORE],
)
async def calibration_floor(trial: Trial, _: object) -> None:
    """Scores an empty output, a refusal and the user's own prompt in each row whose own answer earns the top reward.

    It is a violation if one of them earns as much in two rows or more, each time it is tried again, and in more rows
    than the commonest answer would be right in. Less than the top may be rewarded by design, such as for abstention.

    Our inference.
    """
    await _ask(trial, Question.FLOOR, "less than {top}, which each row's own answer earns, for no answer")


@check(
    "calibration-swap",
    "Another row's answer SHOULD NOT earn the top reward",
    why="a wrong answer that earns as much as the right one cannot be unlearned.",
    needs=[RESOURCES_SERVER, SCORE],
)
async def calibration_swap(trial: Trial, _: object) -> None:
    """Scores the answers of two other rows in each row whose own answer earns the top reward.

    Only answers that are certainly wrong are tried: none that is equal but for its form or the order of its words,
    part of the row's own, or a close number; none that stands in a field that is called an answer; no calls that
    differ only in their number, or that the tools answer just as the row's own, though they answer others otherwise;
    and no recorded calls that name nothing of their row, since what wins one game may win another. It is a violation
    if one earns as much in two rows or more, each time it is tried again, and the share of such rows is certainly above
    2 %. If most rows reward it, it counts only if the field is called an answer, because otherwise the task may be
    another one, such as to write in a certain form.

    Our inference.
    """
    await _ask(
        trial, Question.SWAP, "less than {top}, which a row's own answer earns, for another row's answer ({words})"
    )


@check(
    "calibration-pressed",
    "An output that no reader would accept as the right answer SHOULD NOT earn the top reward",
    why="a policy under pressure finds such outputs: all candidates at once, an answer taken back, one in its reasoning.",
    needs=[RESOURCES_SERVER, SCORE],
)
async def calibration_pressed(trial: Trial, _: object) -> None:
    """Scores outputs made of a row's own answer and of other rows' answers, in rows whose own answer earns the top reward.

    They are a list of up to fifty candidates with the right one among them; several answers with the right one in the
    middle; the right one taken back, in the same message or in the next; a denial; `(?`, which no parser reads; the right one in the reasoning
    alone; and the right one cut off in the middle of a word. For a number, they are also `NaN`, the same digits without
    the sign, and with the decimal point elsewhere. For calls, they are the right ones with every argument changed, and
    with what other rows say at the end before and after the right words, if that alone earns less. For a Python program,
    it is one that exits with status 0 at once, unless the row's other calls earn as much without it. For a JSON object, one
    value at a time is an empty list or text, all rows' members, candidates, `NaN` or another day of the year, or all but one
    are left out or null, where a wrong value in their place earns less; for a list, none of it or its first element is
    handed in, where its last earns less.

    The right answer is neither the first nor the last of several, since taking one of these may be the rule. It is a
    violation if one of the outputs earns the top in two rows or more, each time it is tried again.

    Our inference.
    """
    found, probed = await _probed(trial)
    if found.tally(Question.SWAP).telling or not found.about_answers:
        raise NotApplicable("wrong answers alone earn as much; see calibration-swap")
    tallies = probe_tallies(probed, Question.PRESSED, found.guessed)
    if said := _told(trial, tallies):
        hints = {_PRESSED_HINTS.get(tally.name.partition(AS)[0], _ANYWHERE) for tally in tallies if tally.telling}
        hint = hints.pop() if len(hints) == 1 else _ANYWHERE
        raise Violation(
            f"less than {found.top:g}, which answers as {found.words} earn", f"rewarded all the same: {said}", hint
        )
    _note(trial, tallies, found)


@check(
    "calibration-strict",
    "Right answers in another fair form are refused",
    why="the policy is trained on the form; state it in the prompt, or let the verifier accept both.",
    needs=[RESOURCES_SERVER, SCORE],
)
async def calibration_strict(trial: Trial, _: object) -> None:
    """Scores rows' own answers with white space around them, after a long text, in another case, and with numbers written differently.

    The long text is left out where recorded answers have no words before the answer. For calls, their arguments are put
    in another order, as are the keys of a JSON object. What look-alike letters of other alphabets earn is only reported,
    since a fair verifier may accept them or not.

    Our inference. To be strict about form may be the task.
    """
    found, probed = await _probed(trial)
    tallies = probe_tallies(probed, Question.FAIR)
    if said := _told(trial, tallies):
        hint = (
            "The scorer compares texts as they are, or reads only their beginning; strip, fold case or parse numbers where the "
            "task is not about form."
        )
        raise Violation(f"{found.top:g}, as for answers as {found.words}", f"refused: {said}", hint)
    _note(trial, tallies, found, probed)


@check(
    "calibration-deeds",
    "Words without the right calls, or extra or different calls, earn the top reward",
    why="saying is easier than doing, and doing everything is easier than choosing, so the policy learns that.",
    needs=[RESOURCES_SERVER, SCORE],
)
async def calibration_deeds(trial: Trial, _: object) -> None:
    """Scores the last message of rows' own answers without their calls, and their calls among those of other rows.

    If a field of the row lists the calls, they are also made twice, and with one argument changed. What recorded calls
    earn then, and calls in the opposite order, is only reported, since that depends on the task.

    Our inference. If calls only find out what to say, words are enough; extra calls may do no harm, and an argument may
    be free text.
    """
    found, probed = await _probed(trial)
    if not found.about_answers:
        raise NotApplicable("what other rows' answers do earns as much; see calibration-swap")
    tallies = probe_tallies(probed, Question.DEEDS)
    if said := _told(trial, tallies):
        hint = (
            "The scorer reads the last message alone, looks for the right calls among all, or compares what they lead to, "
            "which calls that are refused do not change; fine where that is meant."
        )
        raise Violation(
            f"less than {found.top:g}, which answers as {found.words} earn", f"rewarded all the same: {said}", hint
        )
    _note(trial, tallies, found, probed)


async def _probed(trial: Trial) -> tuple[Calibration, tuple[RowScores, ...]]:
    """The calibration, and what probes earn.

    Raises:
        NotApplicable: no row could be calibrated.
    """
    return await calibrated(trial), await probes_of(trial)


def _told(trial: Trial, tallies: Sequence[ProbeTally]) -> str:
    """The probes that are telling, each with a row; '' if none is. The trial's record becomes that of the first."""
    telling = [tally for tally in tallies if tally.telling]
    if telling:
        reproduce(trial, telling[0].hits[0])
    return "; ".join(f"{tally}, such as {tally.hits[0].row}" for tally in telling)


def _note(trial: Trial, tallies: Sequence[ProbeTally], found: Calibration, probed: Sequence[RowScores] = ()) -> None:
    """Say of a pass what was tried, and what came of that which may be paid or not.

    Raises:
        NotApplicable: nothing was.
    """
    if not tallies:
        raise NotApplicable(f"answers as {found.words} give nothing to try")
    either = [f"{tally} (either is fine)" for tally in probe_tallies(probed, Question.EITHER)]
    trial.note = "; ".join((*map(str, tallies), *either))


@check(
    "calibration-odd",
    "A few rows are scored differently from the others",
    why="each may be a wrong answer in the dataset, or a case that the verifier does not know.",
    needs=[RESOURCES_SERVER, SCORE],
)
async def calibration_odd(trial: Trial, _: object) -> None:
    """Names the rows of calibration-gold, calibration-floor and calibration-swap that are too few for a finding.

    Our inference.
    """
    found = await calibrated(trial)
    tallies = {question: found.tally(question) for question in (Question.GOLD, Question.FLOOR, Question.SWAP)}
    odd = {question: tally for question, tally in tallies.items() if tally.odd}
    if odd:
        reproduce(trial, next(iter(odd.values())).hits[0])
        said = "; ".join(f"{question}: {', '.join(map(str, tally.hits[:_NAMED]))}" for question, tally in odd.items())
        raise Violation(f"{found.top:g} for a row's own answer alone", said, "Score these rows by hand.")
    trial.note = f"{max(tally.checked for tally in tallies.values())} rows checked"


@check(
    "calibration-separates",
    "All rewards are equal",
    why="group-relative training learns nothing from equal rewards, and nobody can see whether the verifier works.",
    needs=[RESOURCES_SERVER, SCORE],
)
async def calibration_separates(trial: Trial, _: object) -> None:
    """Looks at all rewards of recorded rollouts and of what calibration tried: rows' own answers, none, and those of other rows.

    Our inference: they should tell good from bad.
    """
    found = await calibration_of(trial)
    if found.missing:
        raise NotExamined(found.reason)
    tried = [score.reward for scores in found.rows for score in scores.scores]
    if None in tried:
        raise NotApplicable("some of what was tried is not scored")
    rewards = [*found.recorded, *tried]
    if len(rewards) < _REWARDS or not tried:
        raise NotApplicable(f"only {len(rewards)} rewards are known" if tried else found.reason)
    if len(set(rewards)) == 1:
        hint = "A dependency is missing, the scorer ignores the output, or all recorded rollouts are of one kind."
        for exchange in next((scores.gold.exchanges for scores in found.rows if scores.gold.exchanges), ()):
            trial.channel.adopt(exchange)
        raise Violation("two different rewards", f"{len(rewards)} times {rewards[0]:g}", hint)
    same = len(set(found.recorded)) == 1
    trial.note = (
        f"all {len(found.recorded)} recorded rollouts earned {rewards[0]:g}; what was tried did not" if same else ""
    )
