"""Episodes of gymnasium-style servers: what is played in them, and what comes of it.

Source throughout: `GymnasiumServer` in resources_servers/gymnasium/base.py, and the agent that drives it,
responses_api_agents/gymnasium_agent/app.py (0.4.0 to 0.7.0).
"""

import json
import re
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import groupby, islice
from random import Random
from typing import Any, Final

from gym_conformance.contract.dataset_rows import Call, Rollout, Row
from gym_conformance.contract.endpoints import RESET, STEP
from gym_conformance.contract.policy_output import DO_NOTHING, function_call, message, response
from gym_conformance.contract.statuses import is_success
from gym_conformance.scouting.acting import (
    ALL_SHOWN,
    Action,
    Exploration,
    Explored,
    ExploredRow,
    Play,
    calls_to_make,
    odd_texts,
    shown_in,
    texts_to_write,
)
from gym_conformance.session.channel import Channel
from gym_conformance.session.contracts import CookieHabit
from gym_conformance.session.exchange import Exchange, Reply, reply_of
from gym_conformance.session.stepping import SteppingSession
from gym_conformance.trajectories.execute import beside
from gym_conformance.trajectories.made_up import bare_reads
from gym_conformance.trajectories.outcome import Difference, Outcome, Place, StepOutcome, differences
from gym_conformance.trials.before_and_after import RUNS
from gym_conformance.trials.trial import Trial

#: Steps of an episode; the agent takes ten (`max_steps`).
STEPS: Final = 10

#: Recorded rollouts that are played.
_PLAYS: Final = 4

#: Rows that are explored, episodes of each, at least so many however long they take, and seconds after which none is begun.
_ROWS, _WALKS, _LEAST, _SECONDS = 4, 16, 2, 3.0

#: Rows whose episodes are begun before any is played.
_UNTOUCHED: Final = 2

#: Bytes of replies that are heard on a row, and in an episode that is played many times, and texts that are shown and used.
_HEARD, _LARGE, _FORMS = 4_000_000, 500_000, 100

#: Where a sentence ends.
_SENTENCE: Final = re.compile(r"[.!?:\n]")

#: The share of episodes that begin as others went.
_GO_ON: Final = 0.5

#: Actions that mean nothing.
_ODD: Final = 30

#: The weights of what was tried and brought nothing else, and of what no text shows, beside 1 for what one shows and
#: nobody has tried.
_IN_VAIN, _NOT_SHOWN = 0.05, 0.4


def episode_session(trial: Trial, row: Row | None = None, channel: Channel | None = None) -> SteppingSession:
    """A session that is not reset yet."""
    return SteppingSession(channel or trial.channel, row or trial.gym.row, CookieHabit.COLLECTING)


def _turns(output: Iterable[Any]) -> Iterator[Action]:
    """The policy's turns in a recorded output."""

    def of_policy(item: Any) -> bool:
        return not (
            isinstance(item, dict) and (item.get("role") == "user" or item.get("type") == "function_call_output")
        )

    return (response(list(turn)) for policy, turn in groupby(output, of_policy) if policy)


async def plays(trial: Trial) -> Sequence[Play]:
    """Episodes to play: recorded ones, the best that were found, and one of the same message again and again."""
    found = [each.play for each in (await explored(trial)).best if each.play.actions]
    return [*recorded_plays(trial), *found, Play(trial.gym.row, (DO_NOTHING.response,) * STEPS)]


def recorded_plays(trial: Trial) -> Sequence[Play]:
    """What the policy did in recorded rollouts, in the longest ones."""
    gym = trial.gym
    recorded = [(row, rollout) for row, rollouts in gym.recorded.items() for rollout in rollouts]
    recorded = recorded or [(gym.row, rollout) for rollout in gym.rollouts]
    longest = sorted(recorded, key=lambda each: -len(each[1].output))[:_PLAYS]
    found = [Play(row, tuple(islice(_turns(rollout.output), STEPS))) for row, rollout in longest]
    return [play for play in found if play.actions]


async def explored(trial: Trial) -> Exploration:
    """How episodes begin, and some that were found by trying what the policy is shown; found out the first time."""
    if trial.learned.explored is None:
        rows = trial.gym.rows[:_ROWS] or (trial.gym.row,)
        probes = [
            Play(row, actions)
            for row in rows[:_UNTOUCHED]
            for actions in ((), (DO_NOTHING.response,), tuple(map(_called, bare_reads(row)[:STEPS])))
        ]
        began = time.monotonic()
        untouched = [await times(trial, probe) for probe in probes]
        # one row after the other: what another session does is for others to find out
        found = [await _Explorer(trial, row).explore(time.monotonic() + _SECONDS / len(rows)) for row in rows]
        trial.learned.explored = Exploration(
            began, list(zip(probes, untouched, strict=True)), dict(zip(rows, found, strict=True))
        )
    return trial.learned.explored


async def times(trial: Trial, play: Play) -> Sequence[Outcome]:
    """What the episode comes to, `RUNS` times, or once if its replies are large; the first is on the trial's record."""
    first = await played(trial, trial.channel, play)
    if is_large(first):
        return [first]
    channels = [Channel(trial.gym.endpoint) for _ in range(RUNS - 1)]
    return [first, *await beside([partial(played, trial, channel, play) for channel in channels])]


def is_large(outcome: Outcome) -> bool:
    """Whether an episode's replies are too large to be kept many times."""
    return sum(len(step.source.body) for step in outcome.steps if step.source) > _LARGE


class _Explorer:
    """Finds out how to act on a row, by acting: what brings something else is done more often."""

    def __init__(self, trial: Trial, row: Row) -> None:
        self._trial = trial
        self._row = row
        self._shown = dict.fromkeys(shown_in(Rollout.input_texts(row.data)))
        self._latest = ""
        self._heard = 0
        self._tried = Counter[str]()
        self._moved = Counter[str]()
        self._draw = Random(str(row))
        # what brought something else each time, in the episode with most of it
        self._furthest: Sequence[tuple[str, Action]] = ()
        # how the answer to what does nothing begins
        self._in_vain: str | None = None

    async def explore(self, until: float) -> ExploredRow:
        """Play some episodes, each once more at once."""
        found = list[Explored]()
        while len(found) < _WALKS and (len(found) < _LEAST or (time.monotonic() < until and self._heard < _HEARD)):
            play, outcome = await self._walked(self._beginning(len(found)))
            again = await played(self._trial, Channel(self._trial.gym.endpoint), play)
            found.append(Explored(play, outcome, again))
        return ExploredRow(tuple(self._shown), found)

    def _beginning(self, number: int) -> Sequence[tuple[str, Action]]:
        """What an episode begins with: nothing is done in the first, then what is shown, then some of the way that led furthest, or none."""
        if number == 0:
            return [("", DO_NOTHING.response)]
        if number == ALL_SHOWN:
            return [(text, response([message(text)])) for text in islice(self._shown, STEPS)]
        return self._furthest[: self._draw.randint(0, len(self._furthest))] if self._draw.random() < _GO_ON else ()

    async def _walked(self, first: Sequence[tuple[str, Action]]) -> tuple[Play, Outcome]:
        """One episode, which begins with these actions."""
        session = episode_session(self._trial, self._row, Channel(self._trial.gym.endpoint))
        reply = reply_of(await session.seed())
        steps, actions, further = [StepOutcome.of_reply(RESET, reply)], list[Action](), list[tuple[str, Action]]()
        while len(actions) < STEPS and not is_over(reply):
            self._hear(reply)
            if self._heard > _HEARD:
                break
            name, action = first[len(actions)] if len(actions) < len(first) else self._next()
            before, reply = reply, reply_of(await session.step(action))
            actions.append(action)
            steps.append(StepOutcome.of_reply(STEP, reply))
            if not name and _begins(reply) != _begins(before):
                self._in_vain = _begins(reply)
            moved = reply.said != before.said and _begins(reply) != self._in_vain and not is_over(reply)
            self._tried[name] += 1
            self._moved[name] += moved
            further += [(name, action)] if moved else []
        await session.close()
        self._furthest = max(self._furthest, further, key=len)
        return Play(self._row, tuple(actions)), Outcome(tuple(steps))

    def _hear(self, reply: Reply) -> None:
        """Take in what the policy is told."""
        self._heard += len(reply.body)
        for text in _told(reply):
            self._latest = text
            self._shown |= dict.fromkeys(shown_in([text]))

    def _next(self) -> tuple[str, Action]:
        """What to do next, by what it is called here."""
        texts = texts_to_write(self._row, islice(self._shown, _FORMS), self._latest)
        calls = {f"{call.name} {call.arguments}": call for call in calls_to_make(self._row, self._latest)}
        names = [*texts, *calls]
        if not names:
            return "", DO_NOTHING.response
        [name] = self._draw.choices(names, list(map(self._weight, names)))
        return name, _called(calls[name]) if name in calls else response([message(name)])

    def _weight(self, name: str) -> float:
        if tried := self._tried[name]:
            return _IN_VAIN + self._moved[name] / tried
        return 1.0 if name in self._shown else _NOT_SHOWN


def _begins(reply: Reply) -> str | None:
    """The first sentence of what a reply says to the policy."""
    return next((_SENTENCE.split(text)[0] for text in _told(reply)), None)


def _called(call: Call) -> Action:
    return response([function_call(call.name, json.dumps(call.arguments))])


def _told(reply: Reply) -> Iterator[str]:
    """What a reply says to the policy: its observation, and what its calls came to."""
    if isinstance(said := reply.fields.get("observation"), str):
        yield said
    info = reply.fields.get("info")
    outputs = info.get("tool_outputs") if isinstance(info, dict) else None
    for each in outputs if isinstance(outputs, list) else ():
        if isinstance(each, dict) and isinstance(each.get("output"), str):
            yield each["output"]


def of_one_length(one: Outcome, two: Outcome) -> tuple[Outcome, Outcome]:
    """The steps that both episodes have."""
    short = min(len(one.steps), len(two.steps))
    return Outcome(one.steps[:short]), Outcome(two.steps[:short])


def differences_of(one: Outcome, two: Outcome, mask: frozenset[Place] = frozenset()) -> Iterator[Difference]:
    """Where two episodes differ in the steps that both have, but for the time."""
    return (each for each in differences(*of_one_length(one, two), mask) if not each.of_time)


async def odd_actions(trial: Trial) -> Sequence[str]:
    """The forms that prompts and observations of the first row show, with words that mean nothing in them."""
    return odd_texts((await explored(trial)).rows[trial.gym.row].shown)[:_ODD]


async def actions_of(trial: Trial) -> Sequence[Action]:
    """What is done in the first episode to play."""
    return (await plays(trial))[0].actions


def is_over(reply: Reply) -> bool:
    """Whether nothing comes after it."""
    said = reply.said
    return (
        not is_success(reply.status)
        or not isinstance(said, dict)
        or bool(said.get("terminated") or said.get("truncated"))
    )


async def stepped(session: SteppingSession, reset: Exchange, actions: Iterable[Action]) -> Outcome:
    """Step in a session that was reset until the episode is over or the actions are."""
    reply = reply_of(reset)
    steps = [StepOutcome.of_reply(RESET, reply)]
    for action in actions if is_success(reply.status) else ():
        reply = reply_of(await session.step(action))
        steps.append(StepOutcome.of_reply(STEP, reply))
        if is_over(reply):
            break
    return Outcome(tuple(steps))


async def played(trial: Trial, channel: Channel, play: Play) -> Outcome:
    """An episode alone."""
    session = episode_session(trial, play.row, channel)
    outcome = await stepped(session, await session.seed(), play.actions)
    await session.close()
    return outcome
