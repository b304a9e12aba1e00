"""Episodes of gymnasium-style servers: what is played in them, and what comes of it.

Source throughout: `GymnasiumServer` in resources_servers/gymnasium/base.py, and the agent that drives it,
responses_api_agents/gymnasium_agent/app.py (0.4.0 to 0.7.0).
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, islice
from typing import Any, Final

from gym_conformance.contract.dataset_rows import Rollout, Row
from gym_conformance.contract.endpoints import RESET, STEP
from gym_conformance.contract.policy_output import DO_NOTHING, message, response
from gym_conformance.contract.statuses import is_success
from gym_conformance.session.channel import Channel
from gym_conformance.session.contracts import CookieHabit
from gym_conformance.session.exchange import Reply, reply_of
from gym_conformance.session.stepping import SteppingSession
from gym_conformance.trajectories.outcome import Outcome, StepOutcome
from gym_conformance.trials.trial import Trial

#: Steps of an episode; the agent takes ten (`max_steps`).
STEPS: Final = 8

#: Recorded rollouts that are played, and rows whose prompts and observations are read.
_PLAYS: Final = 4

#: What these show, as far as it is looked at.
_LOOKED_AT: Final = 100

#: What a prompt or an observation shows the policy to write: in a tag, in backquotes, in quotation marks or in brackets.
_SHOWN: Final = re.compile(r"<(\w+)>[^<>\n]{1,40}</\1>|`[^`\n]{1,40}`|\"[^\"\n]{1,40}\"|\[[^\]\n]{1,40}\]")

#: What is shown to be chosen from, as in `<move>left|right</move>`.
_CHOICE: Final = re.compile(r"\w+(?: ?\| ?\w+)+")


Action = Mapping[str, Any]


@dataclass(frozen=True)
class Play:
    """What a policy does in an episode of a row."""

    row: Row
    actions: Sequence[Action]


def episode_session(trial: Trial, row: Row | None = None, channel: Channel | None = None) -> SteppingSession:
    """A session that is not reset yet."""
    return SteppingSession(channel or trial.channel, row or trial.gym.row, CookieHabit.REPLACING)


def _turns(output: Iterable[Any]) -> Iterator[Action]:
    """The policy's turns in a recorded output."""

    def of_policy(item: Any) -> bool:
        return not (
            isinstance(item, dict) and (item.get("role") == "user" or item.get("type") == "function_call_output")
        )

    return (response(list(turn)) for policy, turn in groupby(output, of_policy) if policy)


async def plays(trial: Trial) -> Sequence[Play]:
    """Episodes to play: recorded ones, longest first, those of what the policy is shown, and one of the same message again and again."""
    gym = trial.gym
    recorded = [(row, rollout) for row, rollouts in gym.recorded.items() for rollout in rollouts]
    recorded = recorded or [(gym.row, rollout) for rollout in gym.rollouts]
    longest = sorted(recorded, key=lambda each: -len(each[1].output))[:_PLAYS]
    played = [Play(row, tuple(islice(_turns(rollout.output), STEPS))) for row, rollout in longest]
    prompts = [*((row, rollout.data) for row, rollout in recorded), *((row, row.data) for row in gym.rows)]
    texts = [(row, [*Rollout.input_texts(data), await _observed(trial, row)]) for row, data in prompts[:_PLAYS]]
    shown = [Play(row, _shown(said)) for row, said in texts]
    return [*(play for play in (*played, *shown) if play.actions), Play(gym.row, [DO_NOTHING.response] * STEPS)]


async def _observed(trial: Trial, row: Row) -> str:
    """What a reset says, and a step whose message does nothing, which often is how to act."""
    observed = trial.learned.observed
    if row not in observed:
        session = episode_session(trial, row, Channel(trial.gym.endpoint))
        replies = [reply_of(await session.seed()), reply_of(await session.step(DO_NOTHING.response))]
        await session.close()
        said = (reply.fields.get("observation") for reply in replies)
        observed[row] = "\n".join(text for text in said if isinstance(text, str))
    return observed[row]


def _shown(texts: Iterable[str]) -> Sequence[Action]:
    found = (each for text in texts for match in _SHOWN.finditer(text) for each in _chosen(match.group()))
    return [response([message(text)]) for text in dict.fromkeys(islice(found, _LOOKED_AT))][:STEPS]


def _chosen(shown: str) -> Iterator[str]:
    """Each of the words that are shown to be chosen from, in its place, and what is shown."""
    if choice := _CHOICE.search(shown):
        for word in re.findall(r"\w+", choice.group()):
            yield f"{shown[: choice.start()]}{word}{shown[choice.end() :]}"
    yield shown


async def actions_of(trial: Trial) -> Sequence[Action]:
    """What is done in the first of them."""
    return (await plays(trial))[0].actions


def is_over(reply: Reply) -> bool:
    """Whether nothing comes after it."""
    said = reply.said
    return (
        not is_success(reply.status)
        or not isinstance(said, dict)
        or bool(said.get("terminated") or said.get("truncated"))
    )


async def _episode(session: SteppingSession, actions: Iterable[Action]) -> Outcome:
    """Reset, and step until the episode is over or the actions are."""
    reply = reply_of(await session.seed())
    steps = [StepOutcome.of_reply(RESET, reply)]
    for action in actions if is_success(reply.status) else ():
        reply = reply_of(await session.step(action))
        steps.append(StepOutcome.of_reply(STEP, reply))
        if is_over(reply):
            break
    return Outcome(tuple(steps))


async def played(trial: Trial, channel: Channel, play: Play) -> Outcome:
    """An episode alone, in a session that is closed where it can be."""
    session = episode_session(trial, play.row, channel)
    outcome = await _episode(session, play.actions)
    await session.close()
    return outcome
