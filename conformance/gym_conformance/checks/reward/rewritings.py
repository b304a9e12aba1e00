"""Rewards that depend on what was done, not on how it was written down.

Our inference throughout: a reward that depends on a call's id, on white space or on a claim of success teaches the
policy to write ids, white space and claims.
"""

import json
import re
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any, Final, Self

from gym_conformance.calibration.probe_answers import ENDS, TESTED_AFTER, turned
from gym_conformance.checks.calls.moves import falls
from gym_conformance.contract.dataset_rows import Call, Rollout, Row
from gym_conformance.contract.gold_names import is_gold
from gym_conformance.contract.policy_output import (
    FAILING_PROGRAM,
    IDLE_PROGRAM,
    Item,
    function_call,
    function_call_output,
    message,
    reasoning,
    response,
)
from gym_conformance.contract.verify_reply import WHOLE, is_number, rounded
from gym_conformance.drift.wording import short
from gym_conformance.grouping import each_kind_first
from gym_conformance.gym_under_test import Gym
from gym_conformance.scouting.answers import asks_for_python
from gym_conformance.scouting.learn import recorded_rows
from gym_conformance.session.channel import Channel
from gym_conformance.session.contracts import Session
from gym_conformance.session.exchange import reply_of
from gym_conformance.trajectories.execute import run, run_each
from gym_conformance.trajectories.followed import followed
from gym_conformance.trajectories.generate import is_reading, writes_in
from gym_conformance.trajectories.outcome import StepOutcome
from gym_conformance.trajectories.renaming import own
from gym_conformance.trials.chance import beyond_chance
from gym_conformance.trials.check import check
from gym_conformance.trials.ending import NotApplicable, Violation
from gym_conformance.trials.needs import RECORDED_CALLS, RESOURCES_SERVER, ROLLOUTS, SCORE, SERVED_TOOLS, each_row
from gym_conformance.trials.replay import called
from gym_conformance.trials.trial import Trial


def _rename_call_ids(output: list[Item]) -> list[Item]:
    return [item | {"call_id": f"renamed_{item['call_id']}"} if "call_id" in item else item for item in output]


def _space_arguments(output: list[Item]) -> list[Item]:
    return [_rewritten(item, lambda arguments: json.dumps(arguments, indent=2)) for item in output]


def _reverse_keys(output: list[Item]) -> list[Item]:
    return [_rewritten(item, lambda arguments: json.dumps(turned(arguments))) for item in output]


def _rewritten(item: Item, write: Callable[[Any], str]) -> Item:
    if item.get("type") != "function_call":
        return item
    try:
        return item | {"arguments": write(json.loads(item["arguments"]))}
    except (TypeError, ValueError):
        return item


def _insert_reasoning(output: list[Item]) -> list[Item]:
    """Only where none is recorded: a scorer that is used to reasoning may score it (0.7.0's lc_niah does)."""
    if any(item.get("type") == "reasoning" for item in output):
        return output
    return [reasoning("Let me think about that."), *output]


def _split_text(output: list[Item]) -> list[Item]:
    """Each text in two parts, cut at a space, as models stream it."""
    return [
        item | {"content": [half for part in item["content"] for half in _halves(part)]} if _is_message(item) else item
        for item in output
    ]


def _halves(part: Item) -> list[Item]:
    text = part.get("text")
    at = text.rfind(" ", 0, len(text) // 2) if isinstance(text, str) else -1
    return [part | {"text": part["text"][:at]}, part | {"text": part["text"][at:]}] if at > 0 else [part]


def _join_text(output: list[Item]) -> list[Item]:
    """The text parts of each message as one."""
    return [item | {"content": _joined(item["content"])} if _is_message(item) else item for item in output]


def _joined(parts: list[Any]) -> list[Any]:
    texts = [part.get("text") if isinstance(part, dict) else None for part in parts]
    return (
        [parts[0] | {"text": "".join(map(str, texts))}]
        if texts and all(isinstance(text, str) for text in texts)
        else parts
    )


def _is_message(item: Item) -> bool:
    return item.get("type") == "message" and isinstance(item.get("content"), list)


#: What must not matter, by name: each rewrites a response's output.
REWRITINGS: Final[dict[str, Callable[[list[Item]], list[Item]]]] = {
    "other call ids": _rename_call_ids,
    "white space in arguments": _space_arguments,
    "arguments in another order": _reverse_keys,
    "a reasoning item before": _insert_reasoning,
    "text in two parts": _split_text,
    "text parts joined": _join_text,
}


def _recorded_rows(trial: Trial) -> Iterable[Row]:
    return recorded_rows(trial.gym)[:8]


async def _reward(trial: Trial, row: Row, output: list[Item], channel: Channel | None = None) -> Any:
    """The reward of an output, once its calls are made as it writes them; None where it is not scored."""
    return await _verified(await called(trial, row, channel, output), output)


#: Makes an output be scored, over a channel of its own.
Scored = Callable[[Channel], Awaitable[Any]]


async def _unlike(plain: Any, scored: Scored, channel: Channel) -> Any:
    """The reward where it is another one than `plain`, else None."""
    reward = await scored(channel)
    return None if reward == plain else reward


async def _pays_otherwise(trial: Trial, plain: Any, tried: Scored, control: Scored) -> Any:
    """What `tried` is paid instead of `plain`, as `control` is; None where it is paid the same, as far as chance allows."""
    return await beyond_chance(trial, partial(_unlike, plain, tried), partial(_unlike, plain, control), together=True)


async def _verified(session: Session, output: list[Item]) -> Any:
    return StepOutcome.of_verify(reply_of(await session.verify(response(output)))).body


@check(
    "reward-form",
    "The reward SHOULD NOT depend on how the same output is written",
    why="the policy is trained on accidents of its own formatting.",
    needs=[RESOURCES_SERVER, ROLLOUTS, SCORE],
    subjects=_recorded_rows,
    beside=True,
    gentle=True,
)
async def reward_form(trial: Trial, row: Row) -> None:
    """Scores a recorded rollout as it is, and rewritten: with other call ids, other white space and key order in arguments, a reasoning item before it, its texts in two parts, or its text parts joined. Its calls are made as they are rewritten.

    If the rollout's own reward varies, the difference must exceed that.

    Our inference.
    """
    recorded = [item for item in trial.gym.recorded[row][0].output if isinstance(item, dict)]
    plain = await _reward(trial, row, recorded)
    if plain is None:
        raise NotApplicable("its recorded rollout is not scored")
    for name, rewrite in REWRITINGS.items():
        output = rewrite(recorded)
        if output == recorded:
            continue
        trial.channel.exchanges.clear()
        scored = [partial(_reward, trial, row, each) for each in (output, recorded)]
        reward = await _pays_otherwise(trial, plain, *scored)
        if reward is not None:
            raise Violation(f"a reward of {plain}, as without {name}", f"{reward}", _HINTS.get(name, _HINT))


_HINT = "The scorer compares text where it should compare what the text means."
_HINTS = {
    "text in two parts": "The scorer reads one text part of a message, such as the first; join all of them.",
    "a reasoning item before": "The scorer looks at output[0], or counts items.",
}


@check(
    "reward-extra-read",
    "An additional read SHOULD NOT change the reward",
    why="the policy is trained not to check its work.",
    needs=[RESOURCES_SERVER, SERVED_TOOLS, ROLLOUTS, SCORE],
    subjects=_recorded_rows,
    beside=True,
    gentle=True,
)
async def reward_extra_read(trial: Trial, row: Row) -> None:
    """Scores a recorded rollout as it is, and with its last read made twice more before the policy's final message.

    A read is a call whose tool is named like one, and whose repetition gets the same reply. Not applicable if the
    rollout earned nothing.

    Our inference. An environment may reward few calls on purpose, so it is no finding if the reward falls further with
    twice as many reads, or less with one, or falls for that number of calls anyway, as other rows' shorter rollouts show.
    """
    looking = await _Looking.of(trial, row)
    trial.channel.exchanges.clear()
    control = partial(_reward, trial, row, looking.recorded)
    reward = await _pays_otherwise(trial, looking.plain, looking.reward, control)
    if reward is not None:
        once, twice = [await looking.reward(Channel(trial.gym.endpoint), times) for times in (1, 2 * _FURTHER)]
        if falls(looking.plain, reward, twice) or falls(looking.plain, once, reward):
            raise NotApplicable("each call costs a part of the reward")
        if await _has_budget(trial, looking):
            raise NotApplicable("only calls beyond so many cost a part of the reward")
        hint = "The scorer compares or counts calls; let it look at their result instead."
        expected = f"a reward of {looking.plain}, as without another {looking.look.name}"
        raise Violation(expected, f"{reward}", hint)


#: Further reads of a recorded rollout.
_FURTHER: Final = 2


@dataclass(frozen=True)
class _Looking:
    """A row's recorded rollout, what it earns, and its last read, with what that is answered each time."""

    trial: Trial
    row: Row
    recorded: list[Item]
    plain: Any
    look: Call
    said: str

    @classmethod
    async def of(cls, trial: Trial, row: Row) -> Self:
        """Play the rollout, and read again.

        Raises:
            NotApplicable: it reads nothing, earns nothing, or reads something else the second time.
        """
        rollout = trial.gym.recorded[row][0]
        look = next((call for call in reversed(rollout.calls) if is_reading(call)), None)
        if look is None:
            raise NotApplicable("its recorded rollout reads nothing")
        recorded = [item for item in rollout.output if isinstance(item, dict)]
        plain = await _reward(trial, row, recorded)
        if not plain:
            raise NotApplicable("its recorded rollout earns nothing")
        session = await called(trial, row)
        once, twice = [reply_of(await session.call(look)).text for _look in range(2)]
        if once != twice:
            raise NotApplicable(f"{look.name} gets a different reply the second time")
        return cls(trial, row, recorded, plain, look, once)

    @property
    def calls(self) -> int:
        """How many the rollout makes."""
        return len(self.trial.gym.recorded[self.row][0].calls)

    async def reward(self, channel: Channel, times: int = _FURTHER) -> Any:
        """What is earned with the read made so many times more before the policy's final message."""
        session = await called(self.trial, self.row, channel)
        looks = []
        for number in range(times):
            await session.call(self.look)
            looks += [
                function_call(self.look.name, json.dumps(self.look.arguments), f"look_{number}"),
                function_call_output(self.said, f"look_{number}"),
            ]
        return await _verified(session, [*self.recorded[:-1], *looks, *self.recorded[-1:]])


async def _has_budget(trial: Trial, looking: _Looking) -> bool:
    """Whether a shorter rollout of another row may read twice more, and earns less once it has as many calls as this one."""
    for row in _recorded_rows(trial):
        more = looking.calls + _FURTHER - len(trial.gym.recorded[row][0].calls)
        if more <= _FURTHER:
            continue
        with suppress(NotApplicable):
            other = await _Looking.of(Trial(trial.bench), row)
            few, many = [await other.reward(Channel(trial.gym.endpoint), times) for times in (_FURTHER, more)]
            if few == other.plain and is_number(many) and many < other.plain:
                return True
    return False


#: What floating-point arithmetic leaves of nothing earns nothing.
_DUST = 1e-9


@check(
    "reward-claim",
    "A bare claim of success SHOULD NOT raise the reward",
    why="claiming is easier than doing, so the policy learns to claim.",
    needs=[RESOURCES_SERVER, SCORE],
    subjects=each_row,
    beside=True,
    gentle=True,
)
async def reward_claim(trial: Trial, row: Row) -> None:
    """Scores a message that claims success, and two that do not: one of about the same length, and one of the same form.

    The form alone may be what is asked for, such as three sentences, or a text without a comma. If those two earn
    different rewards, as where a text is compared letter by letter, six more are scored, and the claim must earn more
    than all of them by more than they differ among themselves.

    Where the row asks for Python, a program that does nothing must not earn 1 where one that fails earns less, and one
    that exits at once no more than one that does nothing: whoever takes the exit status for the result of the tests pays
    for it.

    If the recorded rollouts of all rows do something and then say the same, which can be no row's answer, that message
    is also scored in the row with nothing done.

    Our inference.
    """

    async def paid(texts: Iterable[str]) -> list[Any]:
        replies = [await trial.scored(await trial.open(row), response([message(text)])) for text in texts]
        return [reply.get("reward") for reply in replies]

    plain = await paid(_PLAIN)
    if all(map(is_number, plain)) and len(set(plain)) > 1:
        plain += await paid(_PLAIN_TOO)
    if not all(map(is_number, plain)):
        return
    silent = rounded(max(plain) + max(plain) - min(plain) if len(plain) > len(_PLAIN) else max(plain))

    async def earned(text: str, least: float, channel: Channel) -> Any:
        """The reward of a text where it is more than this, else None."""
        reward = await _verified(await trial.open(row, channel=channel), [message(text)])
        return reward if is_number(reward) and reward - least > _DUST else None

    async def expect_no_more(claim: str, other: str, least: float, hint: str) -> None:
        """Tell a text that earns more than the other does, and more than this."""
        trial.channel.exchanges.clear()
        tried, control = (partial(earned, text, least) for text in (claim, other))
        if (claimed := await beyond_chance(trial, tried, control, together=True)) is not None:
            raise Violation(f"at most {least}", f"{claimed} for {short(claim)}", hint)

    for claim in filter(None, (_CLAIM, _said_by_all(trial.gym))):
        await expect_no_more(claim, _PLAIN[-1], silent, "The scorer, or its judge model, believes what it reads.")
    if asks_for_python(row) and all(map(is_number, programs := await paid([IDLE_PROGRAM, FAILING_PROGRAM]))):
        idle, failing = programs
        if idle == WHOLE:
            await expect_no_more(IDLE_PROGRAM, FAILING_PROGRAM, max(silent, failing), _UNTESTED)
        await expect_no_more(_EXITS, IDLE_PROGRAM, max(silent, idle), TESTED_AFTER)


@check(
    "reward-any-text",
    "A text without the row's answer SHOULD NOT earn all that an answer can",
    why="where any words are paid, there is nothing to learn, and the reward says that all is well.",
    needs=[RESOURCES_SERVER, SCORE],
    gentle=True,
)
async def reward_any_text(trial: Trial, _: object) -> None:
    """Scores two texts of no meaning, with nothing done, in up to four rows; they must not all earn 1.

    Only rows count that say what their answer is, in a field of such a name, and of which no rollout is recorded, since
    verify-floor has those. There must be three, with different answers.

    Our inference: what a row calls its answer is there to be compared.
    """
    answers = {
        row: gold for row in trial.gym.rows if row not in trial.gym.recorded and (gold := _gold(row)) is not None
    }
    rows = each_kind_first(answers.__getitem__, answers)[:_ANY]
    if len(rows) < _ROWS or len({answers[row] for row in rows}) == 1:
        raise NotApplicable(
            f"fewer than {_ROWS} rows without a recorded rollout say what their answer is, or all the same"
        )
    for row in rows:
        for text in _MEANINGLESS:
            if (await trial.scored(await trial.open(row), response([message(text)]))).get("reward") != WHOLE:
                return
    trial.expect_own_score()
    raise Violation(
        f"less than {WHOLE:g} for a text that has not the row's answer",
        f"{WHOLE:g} for each of {len(_MEANINGLESS)} such texts in each of {len(rows)} rows",
        "The scorer looks at whether something is said, and not at what.",
    )


def _gold(row: Row) -> str | None:
    """The row's answer, by the name of its field."""
    named = (value for name, value in own(row).items() if is_gold(name) and _ANSWER.search(name))
    return next((str(value) for value in named if isinstance(value, str | int | float) and value != ""), None)


def _said_by_all(gym: Gym) -> str:
    """What the recorded rollouts of several rows say in the end, all the same, after they have written; '' if they do not."""
    rollouts = [rollout for recorded in gym.recorded.values() for rollout in recorded[:1]]
    said = {rollout.last_text for rollout in rollouts}
    wrote = all(any(not is_reading(call) for call in rollout.calls) for rollout in rollouts)
    return said.pop() if len(rollouts) >= _ROWS and len(said) == 1 and wrote else ""


#: So many rows whose rollouts all say the same, or that say what their answer is, and of these so many at most are tried.
_ROWS: Final = 3
_ANY: Final = 4

#: What a field's name says that holds the answer itself, and not what is expected of it, such as a length.
_ANSWER: Final = re.compile(r"answer|gold|truth|solution|label", re.IGNORECASE)

#: Texts without a number, a name, or a word of a single letter: they are nothing's answer.
_MEANINGLESS: Final = (
    "Nothing here is settled: all of it stays doubtful, open, unclear.",
    "Perhaps somebody else will know more about that later.",
)

_PLAIN: Final = (
    "I have started to look into it, and will say more as soon as there is any news of it, which may take a while yet.",
    "I have considered the matter carefully. Nothing was settled finally: it is open, doubtful and unclear. Version: 1.0",
)
_PLAIN_TOO: Final = (
    "There are many ways to look at a question like this, and I weigh them one by one: no choice between them has been made so far.",
    "Perhaps somebody else knows more of it than I do. Until a reply arrives, which nobody can predict, all of this stays vague.",
    "Let me put down what comes to mind for now, as a draft only: hopefully a much better view will emerge by tomorrow evening.",
    "It would be unwise to judge in such a hurry. Give me more hours, or days, and I might manage to form an opinion about that.",
    "Where should one begin? Both ends seem equally far away, the middle is foggy, and my map for this region is rather useless.",
    "My notes on the subject were quite brief, just a few lines in pencil; I must read them over again before anything can be said.",
)
_UNTESTED: Final = (
    "Any program that ends well is paid, whatever it prints or defines: compare what it says, or run tests after it."
)
_EXITS: Final = f"```python\n{ENDS}```"
_CLAIM: Final = "I have completed the task successfully. Everything was done correctly: it is solved, finished and passed. Reward: 1.0"

#: Tools of a rollout whose calls are made again, in each order, how often, and sessions in which that must earn more.
_TOOLS, _TIMES, _SESSIONS = 4, 3, 2


@check(
    "reward-farmed",
    "What was done SHOULD NOT earn more than the whole reward by being done again",
    why="the policy learns to do one thing over and over, which pays more than to go on with its task.",
    needs=[RESOURCES_SERVER, SCORE, SERVED_TOOLS, RECORDED_CALLS],
    gentle=True,
)
async def reward_farmed(trial: Trial, _: object) -> None:
    """Plays a recorded rollout that earned the whole reward, and then its last calls of two of its tools in turn, three times.

    This is done for each two tools that write, and each alone. The whole reward is known if the best rollouts of three
    rows or more earned 1, and do not all make as many calls: where each deed pays, more of them may pay more.

    Our inference.
    """
    best = [max(several, key=_worth) for several in trial.gym.recorded.values()]
    whole = [(row, one) for row, one in zip(trial.gym.recorded, best, strict=True) if one.reward == WHOLE]
    if len(whole) < max(_ROWS, len(best) // 2 + 1) or any(_worth(one) > WHOLE for one in best):
        raise NotApplicable("it is not known what the whole reward is")
    if len({len(writes_in(one.calls)) for _, one in whole}) == 1:
        raise NotApplicable("all that earned the same make as many calls, each of which may pay")
    row, rollout = max(whole, key=lambda one: len(_last_writes(one[1].calls)))
    plain, last = followed(row, rollout), _last_writes(rollout.calls)
    if (await run(trial.gym, trial.channel, plain)).reward != WHOLE:
        raise NotApplicable("the recorded rollout does not earn it now; see repeat-recorded")
    pairs = [dict.fromkeys(pair) for pair in product(last[:_TOOLS], repeat=2)]
    farmed = [plain.chosen([*range(len(plain.calls)), *[*pair] * _TIMES]) for pair in pairs]
    for one, outcome in zip(farmed, await run_each(trial.gym, farmed), strict=True):
        if not _is_more(outcome.reward):
            continue
        trial.channel.exchanges.clear()
        again = [(await run(trial.gym, trial.channel, one)).reward for _session in range(_SESSIONS)]
        if all(map(_is_more, again)):
            names = " and ".join(dict.fromkeys(call.name for call in one.calls[len(plain.calls) :]))
            raise Violation(
                f"a reward of {WHOLE:g}, which the best rollouts of {len(whole)} rows earned",
                f"{again[-1]:g} after {names}, {_TIMES} times more",
                "The score counts how often something was done, rather than what is done in the end.",
            )


def _worth(rollout: Rollout) -> float:
    return rollout.reward if is_number(rollout.reward) else 0.0


def _is_more(reward: Any) -> bool:
    return is_number(reward) and reward > WHOLE + _DUST


def _last_writes(calls: Sequence[Call]) -> list[int]:
    """The number of the last call of each tool that writes, the latest first."""
    return [*{calls[at].name: at for at in writes_in(calls)}.values()][::-1]
