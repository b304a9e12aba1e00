"""Learning from a gym before trajectories are made: its recorded calls, and what its tools return."""

import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import Any

from gym_conformance.contract.dataset_rows import Row, Tool
from gym_conformance.contract.endpoints import tool_path
from gym_conformance.contract.gold_names import may_be_gold
from gym_conformance.contract.openapi import ServerKind
from gym_conformance.grouping import distinct
from gym_conformance.gym_under_test import Gym
from gym_conformance.scouting.answers import may_be_answer, paid_answers
from gym_conformance.scouting.asking_back import asking_back
from gym_conformance.scouting.scout import Scouted, scouted
from gym_conformance.scouting.scripted import scripted
from gym_conformance.scouting.words import NOTHING_ASKED, KnownWords, known_arguments
from gym_conformance.session.channel import Channel
from gym_conformance.trajectories.execute import beside, run, run_each
from gym_conformance.trajectories.followed import followed
from gym_conformance.trajectories.generate import Knowledge, named_values, says_nothing
from gym_conformance.trajectories.known import by_tools
from gym_conformance.trajectories.made_up import bare_reads, made_up
from gym_conformance.trajectories.outcome import Outcome, StepOutcome, differences, volatile
from gym_conformance.trajectories.returned import Returned, returned
from gym_conformance.trajectories.trajectory import Trajectory, resolve
from gym_schemas import scalars

#: Recorded rollouts that are run to learn from.
_RUNS = 4

#: Rows for which a made-up trajectory is run to learn from, and others that are explored where a tool took no call on these.
_MADE_UP, _FURTHER = 2, 4

#: Rows whose scripted calls are made, and reads that follow each.
_WRITTEN, _READS = 8, 3

#: Sessions in which nothing is done, to measure what one costs.
_BARE = 3

#: Rows of which nothing is known but a call that earns a reward, where such a call is made.
_HANDED_IN = 3

#: If a session takes more seconds than the first, it is found out how many may run concurrently, and no more than these.
BRIEF, _MANY = 0.1, 16

#: The server waits rather than computes if so many take at most this many times as long as one, two at most this share of
#: twice as long, and twice as many no longer than this many times what half of them took.
_AS_ONE, _AS_TWO, _AS_HALF = 2, 0.75, 1.5

#: The share of the deadline in which a number that is tried first can be done one after the other, and that which a
#: larger one takes if it takes longer in proportion.
_SHARE, _MOST_SHARE = 0.5, 0.8

#: Tools that are left out to see what they do.
_ASIDE = 6

#: Seconds for finding answers that earn a reward, and answers tried on one row.
_PATIENCE, _ASKED = 15.0, 56

#: Values of a reply, and members of each list, that later calls may use.
_SEEN, _FIRST = 200, 3

#: Values kept for each name: few, so that they coincide.
_MINED = 6


@dataclass(frozen=True)
class FoundCalls:
    """What tools know, and what they were found to accept, on rows without a recorded rollout that calls them."""

    words: KnownWords
    scouted: tuple[Scouted, ...]

    @property
    def taken(self) -> tuple[Trajectory, ...]:
        """Calls that the tools accept, by row."""
        return tuple(each.taken for each in self.scouted if each.taken.calls)


def _rows(gym: Gym) -> tuple[Row, ...]:
    """The rows from which something can be learned about tools."""
    return tuple(row for row in gym.rows if row.tools) or gym.rows or (gym.row,)


def _is_graded(gym: Gym) -> bool:
    """Whether calls are only written down, never sent."""
    return gym.kind is ServerKind.SINGLE_TURN


async def find(gym: Gym, asked: KnownWords = NOTHING_ASKED) -> FoundCalls:
    """Find calls that the tools accept; `asked` is what some were asked before.

    Raises:
        ServerFault: the server does not answer.
    """
    rows = () if _is_graded(gym) else _rows(gym)
    words = asked.with_more(await known_arguments(gym, rows[:_MADE_UP], lambda tool: tool.name not in asked.asked))
    return FoundCalls(words, tuple(await _scouted(gym, rows, words.arguments)))


async def learn(gym: Gym, found: FoundCalls | None = None) -> Knowledge:
    """Run a few recorded and made-up rollouts, and note what their tools return; `found` is what was found before, if it was.

    Raises:
        ServerFault: the server does not answer.
    """
    found = found or await find(gym)
    calls = [call for _, several in gym.recorded_calls for call in several]
    rows, graded, words = _rows(gym), _is_graded(gym), found.words
    knowledge = Knowledge(
        rows=rows,
        answers={row: _answers(gym, row) for row in gym.rows or (gym.row,)},
        meaningful={**words.arguments, **distinct(((call.name, call.arguments) for call in calls), repr)},
        known_trajectories=(*recorded_trajectories(gym), *(() if graded else _written(gym, rows)), *_taken(found)),
        crashing=tuple(one for each in found.scouted for one in each.crashing),
        first_sessions=(*words.sessions, *(each.session for each in found.scouted)),
    )
    knowledge = await _with_pace(gym, knowledge)
    runs = knowledge.known_trajectories[:_RUNS]
    knowledge = knowledge if graded else await _with_further_reads(gym, knowledge, runs)
    knowledge = knowledge if gym.recorded else await _with_paid_answers(gym, knowledge)
    made = (made_up(knowledge, row) for row in (() if graded else rows[:_MADE_UP]))
    outcomes = await run_each(gym, (*runs, *made))
    played = [step for outcome in outcomes for step in outcome.calls]
    values = (*(call.arguments for call in calls), *(step.body for step in played))
    return replace(knowledge, returned=_returned(played), mined=_by_name(values))


async def _with_paid_answers(gym: Gym, knowledge: Knowledge) -> Knowledge:
    """Put what earns a reward first: an answer among a row's answers, a call after what else a session is known to do."""
    found = await paid_answers(gym, knowledge.sessions_in(_PATIENCE, at_most=_ASKED))
    paid = found.by_row
    said = {row: one.answer for row, one in paid.items() if not one.calls}
    handed_in = {row: one for row, one in paid.items() if one.calls}
    first = {row: (said[row], *others) for row, others in knowledge.answers.items() if row in said}
    done = [_ending(one, handed_in[one.row]) for one in knowledge.known_trajectories if one.row in handed_in]
    bare = [one for row, one in handed_in.items() if row not in {each.row for each in done}][:_HANDED_IN]
    return replace(
        knowledge,
        answers={**knowledge.answers, **first},
        known_trajectories=(*done, *bare, *knowledge.known_trajectories),
        paid=paid,
        first_sessions=(*knowledge.first_sessions, *found.sessions),
    )


def _ending(done: Trajectory, handed_in: Trajectory) -> Trajectory:
    """What is done, and then what earns a reward in place of other calls of that tool."""
    tools = {call.name for call in handed_in.calls}
    others = done.without([at for at, call in enumerate(done.calls) if call.name in tools])
    return replace(others, calls=(*others.calls, *handed_in.calls))


async def _with_further_reads(gym: Gym, knowledge: Knowledge, runs: Sequence[Trajectory]) -> Knowledge:
    """Add tools that read though their names do not say so, and trajectories that read back what they write."""
    knowledge = replace(knowledge, quiet=await quiet_tools(gym, runs))
    asking = await asking_back(gym, knowledge.known_trajectories, knowledge.may_read)
    return replace(knowledge, known_trajectories=(*asking, *knowledge.known_trajectories))


async def _with_pace(gym: Gym, knowledge: Knowledge) -> Knowledge:
    """Measure how long a session and a call take, and how many sessions may run concurrently."""
    bare = Trajectory(gym.row)
    begun = next((one.chosen([0]) for one in knowledge.known_trajectories if one.calls), bare)
    session = sum([await _seconds(gym, [bare]) for _ in range(_BARE)]) / _BARE
    whole = session if begun is bare else await _seconds(gym, [begun])
    at_once = await concurrency(gym, begun, whole) if whole > BRIEF else 1
    return replace(
        knowledge,
        session_seconds=session,
        call_seconds=max(0.0, whole - session),
        at_once=at_once,
    )


async def concurrency(gym: Gym, trajectory: Trajectory, whole: float) -> int:
    """How many runs of a trajectory that takes `whole` seconds alone may be made concurrently.

    Where it waits, a sandbox may be started or a program run, and a machine has room for so many of them. So it is found
    out by doubling, as long as even the worst comes within the deadline.
    """
    deadline = gym.endpoint.timeout
    found, took, many = 1, whole, max(2, min(_MANY, int(_SHARE * deadline / whole)))
    while found < many and took * many / found <= _MOST_SHARE * deadline:
        seconds = await _seconds(gym, [trajectory] * many)
        if seconds > min(_AS_ONE, _AS_TWO * many) * whole or (found > 1 and seconds > _AS_HALF * took):
            break
        found, took, many = many, seconds, min(2 * many, _MANY)
    return found


async def _seconds(gym: Gym, trajectories: Sequence[Trajectory]) -> float:
    """How long the trajectories take concurrently, in seconds."""
    started = time.monotonic()
    await beside([partial(run, gym, Channel(gym.endpoint), one) for one in trajectories], _MANY, gym.endpoint)
    return time.monotonic() - started


async def quiet_tools(gym: Gym, found: Sequence[Trajectory]) -> frozenset[str]:
    """Tools with uninformative names whose omission changes no other reply and no reward.

    Each of their calls must also return information, and the same again when repeated. Otherwise a call that removes a
    file would qualify too if nothing looks at it afterwards.
    """
    tools: dict[str, Trajectory] = {}
    for trajectory in found:
        for call in trajectory.calls if len({call.name for call in trajectory.calls}) > 1 else ():
            if says_nothing(call.name):
                tools.setdefault(call.name, trajectory)
    asked = dict(list(tools.items())[:_ASIDE])
    numbers = {name: {at for at, call in enumerate(one.calls) if call.name == name} for name, one in asked.items()}
    without = await run_each(gym, [one.without(numbers[name]) for name, one in asked.items()])
    twice = await run_each(gym, [one.repeating(numbers[name]) for name, one in asked.items()])
    whole = {one: await run_each(gym, [one] * 2) for one in dict.fromkeys(asked.values())}
    return frozenset(
        name
        for (name, one), left, again in zip(asked.items(), without, twice, strict=True)
        if _misses_nothing(whole[one], numbers[name], left) and _tells_again(name, one, again)
    )


def _misses_nothing(whole: Sequence[Outcome], numbers: Collection[int], left: Outcome) -> bool:
    """Whether the other calls are answered in both whole runs as in the run that leaves these calls out."""
    first, again = (
        Outcome(tuple(step for at, step in enumerate(each.steps) if at - 1 not in numbers)) for each in whole
    )
    return all(each.of_time for each in differences(first, left, volatile(first, again)))


def _tells_again(name: str, trajectory: Trajectory, twice: Outcome) -> bool:
    """Whether the tool's calls, each made twice, return the same both times, and one returns more than it was sent."""
    calls = [call for call in trajectory.calls if call.name == name]
    steps = [step for step in twice.calls if step.name == tool_path(name)]
    new = list[Any]()
    for call, one, again in zip(calls, steps[::2], steps[1::2], strict=False):
        if not all(each.of_time for each in differences(Outcome((one,)), Outcome((again,)))):
            return False
        sent = {repr(value) for value, _ in scalars(resolve(call.arguments, []))}
        new += [value for value, _ in scalars(one.body) if repr(value) not in sent]
    return any(value not in ("", None) and not isinstance(value, bool) for value in new)


def recorded_trajectories(gym: Gym) -> tuple[Trajectory, ...]:
    """Recorded rollouts that call a tool, the longest first; one of an unknown row is assigned to the first row."""
    found = [followed(row, rollout) for row, rollouts in gym.recorded.items() for rollout in rollouts]
    found = [each for each in found if each.calls] or [followed(gym.row, rollout) for rollout in gym.rollouts]
    return tuple(sorted((each for each in found if each.calls), key=lambda each: -len(each.calls)))


def recorded_rows(gym: Gym) -> list[Row]:
    """Rows with a recorded rollout, ordered so that the first ones together call the most tools."""
    return [each.row for each in by_tools([followed(row, rollouts[0]) for row, rollouts in gym.recorded.items()])]


def _written(gym: Gym, rows: Iterable[Row]) -> Iterator[Trajectory]:
    """For rows without a recorded rollout, the calls that the row itself prescribes, and then a few reads."""
    unrecorded = filter(None, (scripted(row) for row in rows if not gym.recorded.get(row)))
    for one in islice(unrecorded, _WRITTEN):
        yield replace(one, calls=(*one.calls, *bare_reads(one.row)[:_READS]))


async def _scouted(gym: Gym, rows: Sequence[Row], words: Mapping[str, Sequence[Any]]) -> list[Scouted]:
    """What is found on rows with tools that no recorded rollout calls; further rows count where they show another tool at work."""
    called = {call.name for _, several in gym.recorded_calls for call in several}

    def uncalled(row: Row) -> set[str]:
        return {tool.name for tool in row.tools} - called

    def untaken_first(row: Row) -> Sequence[Tool]:
        """The row's tools, those first that no session has seen at work: another one's call may take what they need."""
        return sorted(row.tools, key=lambda tool: tool.name in taken)

    # one after the other: if sessions share state, one removes what another has just made
    found, taken = list[Scouted](), set[str]()
    for row in filter(uncalled, rows[:_MADE_UP]):
        found.append(await scouted(gym, row, untaken_first(row), words))
        taken |= found[-1].tools
    called |= taken
    end = time.monotonic() + _PATIENCE
    for row in sorted(rows[_MADE_UP:], key=lambda row: -len(uncalled(row)))[:_FURTHER]:
        if not uncalled(row) or time.monotonic() > end:
            continue
        further = await scouted(gym, row, untaken_first(row), words)
        if further.crashing or further.tools - called:
            found.append(further)
            called |= further.tools
            taken |= further.tools
    return found


def _taken(found: FoundCalls) -> Iterator[Trajectory]:
    """Calls that the tools were found to accept, and then the same with calls that may end the episode."""
    yield from found.taken
    yield from (ended for each in found.scouted for ended in each.ended)


def _answers(gym: Gym, row: Row) -> tuple[str, ...]:
    """The answers of the row's recorded rollouts, and texts of the row, one of which may be the solution."""
    recorded = [rollout.last_text for rollout in gym.recorded.get(row, ())]
    own = {key: value for key, value in row.data.items() if key != "responses_create_params"}
    named = [(name, str(value)) for name, value in named_values(own) if type(value) in (str, int)]
    texts = [each for each in named if may_be_answer(*each)]
    likely = sorted(texts, key=lambda each: not may_be_gold(each[0]))[:_MINED]
    return tuple(dict.fromkeys(text for text in [*recorded, *(each[1] for each in texts if each in likely)] if text))


def _returned(played: Iterable[StepOutcome]) -> dict[str, tuple[Returned, ...]]:
    """By tool, what a policy could pass on of its replies, once for each place."""
    found = (
        (step.name.removeprefix("/"), one)
        for step in played
        for one in returned(step.body, _SEEN)
        if type(one.value) in (str, int) and all(key < _FIRST for key in one.path if isinstance(key, int))
    )
    return distinct(found, lambda one: (type(one.value), one.path, one.word))


def _by_name(seen: Iterable[Any]) -> dict[str, tuple[Any, ...]]:
    """By property name, a few distinct values in the order seen."""
    found = distinct((named for each in seen for named in named_values(each)), repr)
    return {name: values[:_MINED] for name, values in found.items()}
