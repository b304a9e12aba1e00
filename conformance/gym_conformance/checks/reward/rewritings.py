"""Rewards that depend on what was done, not on how it was written down.

Our inference throughout: a reward that depends on a call's id or on white space teaches the policy to write ids and
white space.
"""

import json
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Self

from gym_conformance.calibration.probe_answers import turned
from gym_conformance.checks.calls.moves import falls
from gym_conformance.contract.dataset_rows import Call, Row
from gym_conformance.contract.policy_output import (
    Item,
    function_call,
    function_call_output,
    reasoning,
)
from gym_conformance.contract.verify_reply import is_number
from gym_conformance.scouting.learn import recorded_rows
from gym_conformance.session.channel import Channel
from gym_conformance.session.exchange import reply_of
from gym_conformance.trajectories.generate import is_reading
from gym_conformance.trials.chance import beyond_chance
from gym_conformance.trials.check import check
from gym_conformance.trials.ending import NotApplicable, Violation
from gym_conformance.trials.needs import RESOURCES_SERVER, ROLLOUTS, SCORE, SERVED_TOOLS
from gym_conformance.trials.replay import called, reward_of
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
    return await reward_of(await called(trial, row, channel, output), output)


#: Makes an output be scored, over a channel of its own.
Scored = Callable[[Channel], Awaitable[Any]]


async def _unlike(plain: Any, scored: Scored, channel: Channel) -> Any:
    """The reward where it is another one than `plain`, else None."""
    reward = await scored(channel)
    return None if reward == plain else reward


async def _pays_otherwise(trial: Trial, plain: Any, tried: Scored, control: Scored) -> Any:
    """What `tried` is paid instead of `plain`, as `control` is; None where it is paid the same, as far as chance allows."""
    return await beyond_chance(trial, partial(_unlike, plain, tried), partial(_unlike, plain, control), together=True)


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
        return await reward_of(session, [*self.recorded[:-1], *looks, *self.recorded[-1:]])


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
