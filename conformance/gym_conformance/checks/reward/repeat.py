"""Repetition: a trajectory on a fresh session, a second verify, a recorded rollout.

Source: nemo_gym/server_utils.py `request` sends again when a reply is lost (every version); `/reverify_mode` says
since 0.5.0 whether a verify needs the session.
"""

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import combinations, compress
from typing import Any

from gym_conformance.contract.dataset_rows import Row
from gym_conformance.contract.endpoints import VERIFY
from gym_conformance.contract.policy_output import response
from gym_conformance.contract.statuses import is_refusal
from gym_conformance.grouping import grouped
from gym_conformance.session.channel import Channel
from gym_conformance.session.exchange import reply_of
from gym_conformance.trajectories.execute import TrajectoryRun, beside, run, run_each
from gym_conformance.trajectories.first import known_alone, known_and_less, known_in_part
from gym_conformance.trajectories.generate import Knowledge, trajectories
from gym_conformance.trajectories.outcome import Outcome, StepOutcome, differences, varying, volatile
from gym_conformance.trajectories.trajectory import Schedule, Trajectory
from gym_conformance.trials.before_and_after import reads_on
from gym_conformance.trials.chance import beyond_chance
from gym_conformance.trials.check import check
from gym_conformance.trials.drawn import told_alike
from gym_conformance.trials.ending import NotApplicable, Violation
from gym_conformance.trials.needs import (
    FIRST_LOOK,
    RECORDED_CALLS,
    RESOURCES_SERVER,
    ROLLOUTS,
    SCORE,
    SERVED_TOOLS,
    STATELESS,
    TOOLS,
    reverify_mode,
)
from gym_conformance.trials.property import alone, property_check
from gym_conformance.trials.recorded import differs_from_record
from gym_conformance.trials.replay import play
from gym_conformance.trials.solo import Solo
from gym_conformance.trials.trial import Trial

#: Fresh sessions that a trajectory is run on, and what is made of it where they differ.
_SESSIONS = 3

#: Runs of a rollout as it is: what differs among them says nothing of a call that is made twice.
_PLAIN = 8

#: Fresh sessions more, where each is told something else: of 24 worlds at least two are most likely the same.
_WORLDS = 30

#: Sessions in which what earns the most is done again, over so many times a search's seconds: a clock ticks meanwhile, and
#: a count comes to a round number.
_MANY, _LONGER = 60, 1.1

_RANDOM = (
    "The environment, or a judge model that it asks, is random in a way that the row does not seed, the reward depends on the "
    "time that has passed, or state is kept from earlier sessions."
)


async def _expect_the_best_again(trial: Trial, knowledge: Knowledge) -> None:
    """Require that what earns the most of what is known, and more than doing nothing, earns it each of many times.

    Raises:
        Violation: it does not, and no world of its own that a session has shown to the policy explains that.
    """
    seconds = _LONGER * trial.settings.search.profile.seconds
    tried = [each.trajectories[0] for each in known_alone(knowledge)]
    earned = [(await Solo(trial, one).outcome()).earned for one in tried]
    best = tried[earned.index(max(earned))] if tried else Trajectory(trial.gym.row)
    idle = await Solo(trial, Trajectory(best.row)).outcome()
    if not tried or max(earned) <= idle.earned:
        return
    first_channel = Channel(trial.gym.endpoint)
    first = await run(trial.gym, first_channel, best)
    others, done, began = list[tuple[Channel, Outcome]](), 1, time.monotonic()
    while done < _SESSIONS or (done < _MANY and time.monotonic() < began + seconds):
        await asyncio.sleep(max(0.0, began + done * seconds / _MANY - time.monotonic()))
        channel = Channel(trial.gym.endpoint)
        if (outcome := await run(trial.gym, channel, best)).reward != first.reward:
            others.append((channel, outcome))  # the rest is not kept: so many replies may be large
        done += 1
    if others:
        trial.channel.exchanges[:] = [*first_channel.exchanges, *others[0][0].exchanges]
        trial.schedule = Schedule((best,))
        with suppress(NotApplicable):  # worlds of their own
            one, two = await _rewards_of_one_world(trial, best, (first, *(outcome for _, outcome in others)))
            differ = f"{len(others)} of {done} sessions earned something else than the first"
            raise Violation(f"a reward of {one} each time", f"{two}; {differ}", _RANDOM)


@property_check(
    "repeat-deterministic",
    "A trajectory SHOULD earn the same reward on every fresh session",
    why="group-relative advantages compare rollouts of one row, so the environment's randomness is mistaken for merit.",
    needs=[RESOURCES_SERVER, SCORE],
    examples=lambda knowledge: alone(trajectories(knowledge)),
    first=known_and_less,
    before=_expect_the_best_again,
    waits=True,
)
async def repeat_deterministic(trial: Trial, schedule: Schedule) -> None:
    """Runs a trajectory in three fresh sessions; the statuses and the reward, but for its last digits, must be the same each time.

    Other contents of the replies may vary by design; repeat-replies says which do. If a world is drawn anew in each
    session and the policy is told about it, only the rewards of sessions that were told the same are compared.

    First, what earns the most of what is known is done in up to 60 sessions, one after the other, for a second in the
    quick profile: a reward may depend on the time of day, or on how many scores came before.

    Our inference. If the server declares its verify stateless, repeat-stateless requires this as a MUST.
    """
    first, *others = [await run(trial.gym, trial.channel, schedule.trajectories[0]) for _ in range(_SESSIONS)]
    for other in others:
        for one, two in zip(first.steps, other.steps, strict=True):
            if one.status != two.status:
                raise Violation(f"{one.name} answers {one.status} each time", f"{two.status}", _RANDOM)
    if any(other.reward != first.reward for other in others):
        rewards = await _rewards_of_one_world(trial, schedule.trajectories[0], (first, *others))
        raise Violation(f"a reward of {rewards[0]} each time", f"{rewards[1]}", _RANDOM)


async def _rewards_of_one_world(trial: Trial, trajectory: Trajectory, outcomes: Sequence[Outcome]) -> tuple[Any, Any]:
    """Different rewards of two sessions that were told the same until then, also where they look round at the end.

    Raises:
        NotApplicable: in so many sessions there are none.
    """
    reads = reads_on(trial.gym, trajectory.row).calls if trajectory.row.tools else ()
    looking = replace(trajectory, calls=(*trajectory.calls, *reads))
    if reads or any(int(place[0]) < len(outcomes[0].steps) - 1 for place in varying(outcomes)):
        worlds = [partial(run, trial.gym, Channel(trial.gym.endpoint), looking) for _ in range(_WORLDS)]
        seen = await beside(worlds)
        outcomes = seen if any(each.reward != seen[0].reward for each in seen) else outcomes
    verified = len(outcomes[0].steps) - 1
    alike = told_alike(outcomes, varying(outcomes), in_order=True)
    for one, two in combinations(outcomes, 2):
        if one.reward != two.reward and alike(one, two, verified):
            return one.reward, two.reward
    raise NotApplicable(
        "each session draws a world of its own and shows it to the policy: what it earns follows from that"
    )


@property_check(
    "repeat-replies",
    "Replies differ from one fresh session to the next",
    why="what differs is noise to the policy; the suite leaves it out whenever it compares two runs.",
    needs=[RESOURCES_SERVER, TOOLS, SERVED_TOOLS],
    examples=lambda knowledge: alone(trajectories(knowledge, min_calls=1)),
)
async def repeat_replies(trial: Trial, schedule: Schedule) -> None:
    """Runs a trajectory in two fresh sessions and compares the tools' replies value by value.

    Our inference: times, ids and random texts are legitimate, but it helps to know where they are.
    """
    first, second = [await run(trial.gym, trial.channel, schedule.trajectories[0]) for _ in range(2)]
    for difference in differences(first, second):
        if difference.step != VERIFY and difference.place[1:] != ("status",):
            place = difference.where or "the whole reply"
            raise Violation(
                f"{difference.expected!r} again at {place} of {difference.step}",
                f"{difference.actual!r} at {place} of {difference.step}, where another session got {difference.expected!r}",
                "A time, an id, a random text or a count over all sessions, which is fine as long as no reward depends on it.",
            )


def _twice(trial: Trial, schedule: Schedule) -> Callable[[Channel], Awaitable[tuple[Any, Any] | None]]:
    """The control of a second verify: as many fresh sessions that do the same, and their rewards where they differ.

    Each waits one verify longer than the one before it until it is scored, since a reward may fall with the time.
    """

    async def run_again(channel: Channel) -> tuple[Any, Any] | None:
        first = await run(trial.gym, channel, schedule.trajectories[0])
        *began, verified = first.began
        took = time.monotonic() - verified
        for number in range(1, _SESSIONS):
            late = (*began, verified + number * took)
            other = await run(trial.gym, channel, schedule.trajectories[0], late)
            if other.steps[-1] != first.steps[-1]:
                return first.steps[-1].body, other.steps[-1].body
        return None

    return run_again


@property_check(
    "repeat-stateless",
    "A verify that is declared stateless MUST give the same reward for the same request",
    why="recorded rollouts are scored again on that promise, and the new reward replaces the old one.",
    needs=[RESOURCES_SERVER, STATELESS, SCORE],
    examples=lambda knowledge: alone(trajectories(knowledge)),
)
async def repeat_stateless(trial: Trial, schedule: Schedule) -> None:
    """If `/reverify_mode` says stateless, runs a trajectory and verifies its output twice more without a session.

    Source: `reverify_mode` in nemo_gym/base_resources_server.py (0.5.0 on).
    """

    async def without(channel: Channel) -> tuple[Any, Any] | None:
        rollout = TrajectoryRun(trial.gym, channel, schedule.trajectories[0])
        first = (await rollout.finish()).reward
        for _again in range(2):
            stranger = TrajectoryRun(trial.gym, channel, schedule.trajectories[0])
            stranger.output = rollout.output
            if first != (second := (await stranger.verify()).body):
                return first, second
        return None

    if found := await beyond_chance(trial, without, _twice(trial, schedule), together=True):
        hint = "verify reads the session; declare it unsupported."
        raise Violation(f"a reward of {found[0]}, without the session too", f"{found[1]}", hint)


@check(
    "repeat-declares-stateless",
    "verify needs no session, but is not declared stateless",
    why="once declared, recorded rollouts can be scored again after the verifier is fixed, without new rollouts.",
    needs=[RESOURCES_SERVER, ROLLOUTS, SCORE],
)
async def repeat_declares_stateless(trial: Trial, _: object) -> None:
    """Scores recorded rollouts in their sessions and without one; if every reward agrees, verify looks stateless.

    Not applicable if the server cannot declare it (`/reverify_mode`, from 0.5.0).

    Source: nemo_gym/rollout_reverification.py (from 0.5.0) rescores only what is declared stateless.
    """
    rows = list(trial.gym.recorded)[:_CLASSIFIED]
    asides = [Trial(trial.bench) for _ in rows]
    needing = await beside([partial(_needs_its_session, *each) for each in zip(asides, rows, strict=True)])
    trial.channel.exchanges += [each for aside in asides for each in aside.channel.exchanges]
    stateful = list(compress(rows, needing))
    trial.note = "stateful: " + ", ".join(map(str, stateful)) if stateful else "stateless, as far as its rollouts tell"
    mode = await reverify_mode(trial)
    if mode is None:
        raise NotApplicable(f"the server cannot say (/reverify_mode, nemo-gym 0.5.0 on); {trial.note}")
    if mode != "stateless" and not stateful:
        raise Violation(
            '/reverify_mode "stateless"', json.dumps(mode), "Set reverify_mode if verify reads nothing but its request."
        )


#: Recorded rollouts that a server is classified by.
_CLASSIFIED = 8


async def _needs_its_session(trial: Trial, row: Row) -> bool:
    """Whether the row's recorded rollout is scored differently without its session."""
    within = await play(trial, row)
    recorded = response(trial.gym.recorded[row][0].output)
    without = reply_of(await trial.session(row).verify(recorded))
    return StepOutcome.of_verify(within) != StepOutcome.of_verify(without)


@property_check(
    "repeat-verify",
    "A repeated verify MUST give the same reward",
    why="clients resend a verify when its reply is lost, and then the second one scores the rollout.",
    needs=[RESOURCES_SERVER, SCORE],
    examples=lambda knowledge: alone(trajectories(knowledge)),
    first=known_in_part,
)
async def repeat_verify(trial: Trial, schedule: Schedule) -> None:
    """Runs a trajectory and verifies it twice more in its session; the reward must stay the same.

    It begins with known trajectories, and with their last words after none or half of their calls: a verify that does
    what is missing itself rewards it the second time.

    Not applicable if a second verify is refused, since what is lost with a reply then stays lost, and nothing is scored
    wrongly; or to a server of NeMo Gym's main, which is not released, that does not declare its verify stateless
    (`/reverify_mode`), since no client sends it again there (`nemo_gym.agents.utils.verify_call`). If fresh sessions
    differ as often, repeat-deterministic reports it.

    Source: nemo_gym/server_utils.py `request` retries on a lost connection (every version).
    """
    if trial.gym.api.is_of_main and await reverify_mode(trial) != "stateless":
        raise NotApplicable("NeMo Gym's main: a verify that is not stateless is not sent again")

    async def repeated(channel: Channel) -> tuple[StepOutcome, StepOutcome] | None:
        rollout = TrajectoryRun(trial.gym, channel, schedule.trajectories[0])
        first = (await rollout.finish()).steps[-1]
        for _again in range(2):
            if (second := await rollout.verify()) != first:
                if is_refusal(second.status):
                    raise NotApplicable(f"a second verify is refused ({second.status}): an episode is scored once")
                return first, second
        return None

    if found := await beyond_chance(trial, repeated, _twice(trial, schedule), together=True):
        first, second = found
        raise Violation(
            f"a reward of {first.body} again",
            f"status {second.status}, reward {second.body}",
            "verify changes the session that it scores: it resets or uses up what was done, or does itself what is missing; "
            "score a copy.",
        )


@property_check(
    "repeat-verify-pure",
    "A verify SHOULD NOT change what the tools answer",
    why="an agent that asks for an interim score would change the very episode that is being scored.",
    needs=[RESOURCES_SERVER, TOOLS, SERVED_TOOLS, SCORE],
    examples=lambda knowledge: alone(trajectories(knowledge, min_calls=1)),
)
async def repeat_verify_pure(trial: Trial, schedule: Schedule) -> None:
    """Verifies before each call of a trajectory; the replies must be as they are without, except for what varies anyway.

    Not applicable if verify ends the session, so that later calls are refused, in whatever words, or if its reply sets no
    cookie, so that they have no session.

    Our inference: nothing says that verify ends the session.
    """
    trajectory = schedule.trajectories[0]

    async def interim(channel: Channel) -> Outcome:
        rollout = TrajectoryRun(trial.gym, channel, trajectory)
        for _step in range(trajectory.steps - 1):
            await rollout.step()
            await rollout.verify()
        await rollout.step()
        return rollout.outcome

    outcome, solo = await interim(trial.channel), Solo(trial, trajectory)
    alone = await solo.outcome()
    verified = [each for each in trial.channel.exchanges if each.request.path == VERIFY and each.request.cookies]
    if any(each.reply and not each.reply.set_cookies for each in verified):
        raise NotApplicable(
            "what comes after a verify whose reply sets no cookie has no session; see cookie-sent-again"
        )
    if any(two.is_refused and two != one for one, two in zip(alone.steps, outcome.steps, strict=True)):
        raise NotApplicable("verify ends the session: what comes after it is refused")
    if difference := await solo.beyond_chance(interim, outcome):
        raise Violation(
            f"{difference.answer}, as without a verify before",
            f"{difference.actual!r}",
            "verify releases or resets the session's state.",
        )


@check(
    "repeat-recorded",
    "Recorded rollouts SHOULD still be reproducible",
    why="the examples that newcomers trust, and the rewards that baselines were measured with, no longer hold.",
    needs=[RESOURCES_SERVER, ROLLOUTS, FIRST_LOOK, SCORE],
    subjects=lambda trial: list(trial.gym.recorded),
    beside=True,
    gentle=True,
)
async def repeat_recorded(trial: Trial, row: Row) -> None:
    """Repeats a recorded rollout's calls and verifies its output; tool outputs and reward must be as recorded.

    If another rollout of the row earned something else, that one is repeated too, and so are one that earned the same
    with other words and no calls, and one that calls a tool which these do not. Parsed JSON is compared, not text. The
    recorded usage is sent along, since a reward may count tokens.

    Some differences do not count: values that differ between two runs now; outputs of tools that are not served; values
    that change while a session waits for up to 3 s, such as the state of a job, since policies think between calls and
    a replay does not; dates that have all moved by the same number of days, as in a calendar that begins today; another
    order of the same words or members, if the recorded one is not sorted, since each process orders sets in its own
    way; a value that all replies of several tools share and that was another one in the record, if its name or form is
    that of an id or a host, since it names the process; and a value that comes after replies which are drawn anew in
    each session, apart from ids and times, if none of these is as the policy was told then.

    Our inference: `example_rollouts.jsonl` is part of every environment (nemo-gym's contribution rules).
    """
    await differs_from_record(trial, row)


@check(
    "repeat-tool-calls",
    "Repeated tool calls act twice",
    why="clients resend a call when its reply is lost; a tool that is not idempotent then acts twice.",
    needs=[RESOURCES_SERVER, SERVED_TOOLS, RECORDED_CALLS],
    gentle=True,
)
async def repeat_tool_calls(trial: Trial, _: object) -> None:
    """Repeats calls of the longest recorded rollout, and names the tools whose repetition changes later replies, chance excluded.

    For each tool, the first call, the last one and one in between are repeated.

    Source: nemo_gym/server_utils.py `request` retries on a lost connection (every version).
    """
    once = Trajectory(*trial.gym.recorded_calls[0])
    plain = await run(trial.gym, trial.channel, once)
    mask = volatile(plain, await run(trial.gym, trial.channel, once))
    tried = [
        at
        for numbers in _by_tool(once).values()
        for at in sorted({numbers[0], numbers[len(numbers) // 2], numbers[-1]})
    ]
    outcomes = await run_each(trial.gym, [once.repeating([at]) for at in tried])
    suspected = [
        at for at, outcome in zip(tried, outcomes, strict=True) if any(differences(plain, _as_once(outcome, at), mask))
    ]
    if suspected:
        mask = varying([plain, *await run_each(trial.gym, [once] * _PLAIN)])
    acting = dict[str, int]()
    for at in suspected:
        if (name := once.calls[at].name) in acting:
            continue
        outcomes = await run_each(trial.gym, [once.repeating([at])] * _SESSIONS)
        places = [{each.place for each in differences(plain, _as_once(outcome, at), mask)} for outcome in outcomes]
        if set.intersection(*places):
            acting[name] = at
    if acting:
        await run(trial.gym, trial.channel, once.repeating([*acting.values()][:1]))
        raise Violation(
            "calls that act once however often they arrive",
            f"not idempotent: {', '.join(acting)}",
            "Usual for tools that add or move something; keep it in mind when retrying.",
        )


def _by_tool(trajectory: Trajectory) -> dict[str, list[int]]:
    """The numbers of each tool's calls."""
    return grouped(lambda at: trajectory.calls[at].name, range(len(trajectory.calls)))


def _as_once(outcome: Outcome, at: int) -> Outcome:
    """What came of it but for the second of the two calls."""
    return Outcome((*outcome.steps[: at + 2], *outcome.steps[at + 3 :]))
