"""Judge models' prompts: where the policy's text stands in them, and whether what it writes can pass for a verdict.

Our inference throughout. Only for launched servers whose verify asks a model, which our mock answers for: no model is
needed to see what one would be asked, nor what the server makes of an answer that quotes the policy.
"""

import time
from collections.abc import Sequence
from contextlib import suppress
from itertools import islice
from secrets import token_hex
from typing import Final

from gym_conformance.calibration.prompt_places import (
    INSTRUCTIONS,
    JudgedRow,
    Judgement,
    VerdictWords,
    parts_of,
    place_of,
    verdicts,
)
from gym_conformance.checks.launched.judge_models import answering, judge_models_of
from gym_conformance.contract.dataset_rows import Row
from gym_conformance.contract.policy_output import message, response
from gym_conformance.contract.statuses import is_success
from gym_conformance.contract.verify_reply import is_number
from gym_conformance.printable import counted
from gym_conformance.session.channel import Channel
from gym_conformance.session.exchange import reply_of
from gym_conformance.trials.check import check
from gym_conformance.trials.ending import NotApplicable, Violation
from gym_conformance.trials.launched import Saying
from gym_conformance.trials.needs import RESOURCES_SERVER
from gym_conformance.trials.trial import Trial

#: Rows whose prompts are looked at, and yeses and noes that are tried.
_ROWS: Final = 3
_VERDICTS: Final = 10

#: Seconds after which no further row is begun, and no other form is tried: some ask for an unfit answer again and again.
_SECONDS: Final = 20.0

#: Forms in which a verifier may look for what it hands to its judge model: its `{}` is the policy's text.
_WRAPS: Final = ("{}", "\\boxed{{{}}}", "<answer>{}</answer>", "Answer: {}", '{{"answer": "{}"}}')

#: A verifier may hand on only what is long enough to be an answer.
_WORDS: Final = "The result is "


async def _judged(trial: Trial, row: Row, said: str, saying: Saying | str = Saying.NO) -> Judgement:
    """Have a message verified while the judge model says so."""
    model = judge_models_of(trial).model
    channel = Channel(trial.gym.endpoint)
    session = await trial.open(row, channel=channel)
    with answering(model, saying, "verify asks no model to score this row"):
        reply = reply_of(await session.verify(response([message(said)])))
        parts = tuple(part for body in model.prompts for part in parts_of(body))
    await session.close()
    reward = reply.fields.get("reward") if is_success(reply.status) else None
    return Judgement(parts, reward if is_number(reward) else None, tuple(channel.exchanges))


async def _judged_rows(trial: Trial) -> Sequence[JudgedRow]:
    """The first rows whose judge model is shown what the policy wrote.

    Raises:
        NotApplicable: it is shown nothing of it.
    """
    if trial.learned.judged_rows is None:
        judge_models_of(trial)
        end = time.monotonic() + _SECONDS
        found = [await _shown(trial, row, end) for row in trial.gym.rows[:_ROWS]]
        trial.learned.judged_rows = tuple(one for one in found if one)
    if not trial.learned.judged_rows:
        raise NotApplicable("verify asks no model, or shows it nothing of a message that was tried")
    return trial.learned.judged_rows


async def _shown(trial: Trial, row: Row, end: float) -> JudgedRow | None:
    """The row, where its judge model is shown the policy's text in one of the forms."""
    for wrap in _WRAPS:
        if time.monotonic() > end:
            return None
        mark = _mark()
        with suppress(NotApplicable):
            judgement = await _judged(trial, row, wrap.format(mark))
            if place := place_of(judgement.parts, (wrap.format(mark), mark)):
                return JudgedRow(row, wrap, place, judgement)
    return None


def _mark() -> str:
    """A text that stands nowhere by chance."""
    return f"{_WORDS}{token_hex(8)}"


def _tell(trial: Trial, judgement: Judgement) -> None:
    for exchange in judgement.exchanges:
        trial.channel.adopt(exchange)


@check(
    "judge-prompt-role",
    "What the policy writes SHOULD NOT appear among its judge model's instructions",
    why="models follow a system or developer message; a policy learns to write its own instructions there.",
    needs=[RESOURCES_SERVER],
)
async def judge_prompt_role(trial: Trial, _: object) -> None:
    """Verifies a marked text in up to three rows, and looks for it in the requests to the judge model.

    It is a violation if the text is in a system or developer message in each of them.

    Our inference.
    """
    rows = await _judged_rows(trial)
    trial.note = f"looked at in {counted(len(rows), 'row')}; it stands in a {rows[0].place.role} message"
    if all(one.place.role in INSTRUCTIONS for one in rows):
        _tell(trial, rows[0].judgement)
        raise Violation(
            "the policy's text in a user message",
            f"it stands in a {rows[0].place.role} message in {len(rows)} of {counted(len(rows), 'row')}, such as {rows[0].row}",
            "Put the instructions into the system message, and the policy's text into a user message of its own.",
        )


@check(
    "judge-prompt-delimiters",
    "What the policy writes can break out of its place in the judge model's prompt",
    why="what follows it there reads like the prompt's own words, such as a right answer or an instruction.",
    needs=[RESOURCES_SERVER],
)
async def judge_prompt_delimiters(trial: Trial, _: object) -> None:
    """Has a policy write the words that close its text in the judge model's prompt, and then go on, in up to three rows.

    It is noted if the prompt contains both as the policy wrote them, before the same words close its text once more. It
    does not count if the policy's text ends the message, is encoded (JSON, entities) or cleaned, or if the words that
    close it are new each time.

    Our inference. How far a judge model is taken in depends on the model.
    """
    rows = await _judged_rows(trial)
    left = [(one, judgement) for one in rows if (judgement := await _leaves(trial, one))]
    trial.note = f"tried in {counted(len(rows), 'row')}"
    if len(left) == len(rows):
        one, judgement = left[0]
        _tell(trial, judgement)
        raise Violation(
            "delimiters that the policy cannot write: made anew for each prompt, or taken out of its text, or its text as JSON",
            f"in {len(left)} of {counted(len(rows), 'row')}, such as {one.row}, it writes {one.place.closing.strip()!r}, which closes its "
            "text there, and what it writes next stands outside",
            "Put the policy's text into the prompt by json.dumps, or between random delimiters.",
        )


async def _leaves(trial: Trial, one: JudgedRow) -> Judgement | None:
    """The verify in which the policy's text closes itself and goes on; None where it cannot."""
    closing = one.place.closing
    if not closing:
        return None
    mark, outside = _mark(), _mark()
    forged = f"{mark}{closing}\n{outside}"
    for said in dict.fromkeys((one.written(mark) + f"{closing}\n{outside}", one.written(forged))):
        judgement = await _unless_unasked(trial, one.row, said)
        for part in judgement.parts if judgement else ():
            before, found, after = part.text.partition(f"{closing}\n{outside}")
            if found and mark in before and closing.strip() in after[: 2 * len(closing)]:
                return judgement
    return None


async def _unless_unasked(trial: Trial, row: Row, said: str) -> Judgement | None:
    try:
        return await _judged(trial, row, said)
    except NotApplicable:
        return None


@check(
    "judge-verdict-quoted",
    "A verdict that a judge model quotes SHOULD NOT count as its own",
    why="the policy writes the verdict that it wants, and the judge model repeats it while arguing against it.",
    needs=[RESOURCES_SERVER],
)
async def judge_verdict_quoted(trial: Trial, _: object) -> None:
    """Lets the judge model say no and quote the policy's yes, once before its no and once after it, in three rows.

    Yes and no are two words from its prompt (`[[YES]]` and `[[NO]]`, `Judgement: Yes` and `Judgement: No`) that earn
    different rewards when each is all that the model says. It is a violation if both quotes earn what the yes earns in
    each row, since a yes is then looked for anywhere.

    Our inference. To take the first or the last verdict may be the rule.
    """
    quoted = await _quoted(trial)
    if all(before and after for before, after, _ in quoted):
        _tell_quote(trial, quoted)


@check(
    "judge-verdict-first",
    "The first verdict in a judge model's answer counts, even one that it quotes",
    why="a judge model that argues before it decides may quote the policy, whose words are then the verdict.",
    needs=[RESOURCES_SERVER],
)
async def judge_verdict_first(trial: Trial, _: object) -> None:
    """Works like judge-verdict-quoted, and is noted if only the yes that is quoted before the no earns what a yes earns, in each row.

    Our inference. If the judge model is told to begin with its verdict, the first one is the right one.
    """
    quoted = await _quoted(trial)
    if all(before and not after for before, after, _ in quoted):
        _tell_quote(trial, quoted)


#: Whether a yes that is quoted before, and one that is quoted after the judge's no counts; and how they are written.
_Quoted = tuple[bool, bool, tuple[JudgedRow, VerdictWords, Judgement]]


def _tell_quote(trial: Trial, quoted: Sequence[_Quoted]) -> None:
    one, words, judgement = quoted[0][2]
    _tell(trial, judgement)
    raise Violation(
        f"what {words.no!r} alone earns",
        f"in {len(quoted)} of {counted(len(quoted), 'row')}, such as {one.row}, a judge model that says {words.quoted_first!r} earns "
        f"{judgement.reward:g}, as {words.yes!r} alone does",
        "Ask for the verdict at the end, in a form that nothing else has, read the last one, and reject two that differ.",
    )


async def _quoted(trial: Trial) -> Sequence[_Quoted]:
    """What came of quoted verdicts in each row.

    Raises:
        NotApplicable: no yes and no is known by which the reward differs, or the policy's yes does not reach the prompt.
    """
    found, end = [], time.monotonic() + _SECONDS
    for one in await _judged_rows(trial):
        if words := await _words(trial, one, end):
            before, after = [
                await _judged(trial, one.row, one.written(_mark() + " " + words.yes), quote)
                for quote in (words.quoted_first, words.quoted_last)
            ]
            paid = (await _judged(trial, one.row, one.written(_mark()), words.yes)).reward
            if paid is not None and any(words.yes in part.text for part in before.parts):
                found.append((before.reward == paid, after.reward == paid, (one, words, before)))
    if not found:
        raise NotApplicable("its prompt has no words for yes and no that lead to different rewards")
    trial.note = f"tried in {counted(len(found), 'row')}, with {found[0][2][1].yes!r} and {found[0][2][1].no!r}"
    return found


async def _words(trial: Trial, one: JudgedRow, end: float) -> VerdictWords | None:
    """A yes and a no that the prompt has, and that earn differently."""
    prompt = "\n".join(part.text for part in one.judgement.parts)
    said = one.written(_mark())
    for words in islice(dict.fromkeys(verdicts(prompt)), _VERDICTS):
        if time.monotonic() > end:
            return None
        rewards = [(await _judged(trial, one.row, said, answer)).reward for answer in (words.yes, words.no)]
        if None not in rewards and rewards[0] != rewards[1]:
            return words if (rewards[0] or 0.0) > (rewards[1] or 0.0) else VerdictWords(words.no, words.yes)
    return None
