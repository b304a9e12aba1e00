"""Whether the row that is seeded matters."""

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final

from gym_conformance.contract.dataset_rows import Call, Row
from gym_conformance.contract.endpoints import VERIFY
from gym_conformance.contract.statuses import is_error
from gym_conformance.grouping import first_of_each
from gym_conformance.gym_under_test import Gym
from gym_conformance.session.channel import Channel
from gym_conformance.session.refusals import says_no
from gym_conformance.trajectories.execute import run, run_each
from gym_conformance.trajectories.generate import is_reading, named_values
from gym_conformance.trajectories.made_up import made_up
from gym_conformance.trajectories.names_of_ids import ends_in_id
from gym_conformance.trajectories.outcome import Outcome, Place, compared, differences, values_at, volatile
from gym_conformance.trajectories.renaming import own
from gym_conformance.trajectories.trajectory import PLAIN_ANSWER, Trajectory
from gym_conformance.trials.before_and_after import is_by_design, reads_on, writing
from gym_conformance.trials.chance import beyond_chance
from gym_conformance.trials.check import check
from gym_conformance.trials.drawn import minted
from gym_conformance.trials.ending import NotApplicable, Violation
from gym_conformance.trials.needs import RESOURCES_SERVER, SCORE, SERVED_TOOLS, TOOLS
from gym_conformance.trials.property import knowledge_of
from gym_conformance.trials.trial import Trial
from gym_schemas import Way, mapped, scalars

#: Rows that are compared, last words of each that are tried, and numbers that are 0.
_ROWS, _ANSWERS, _ZEROS = 4, 3, 4

#: Fields that only say which row it is.
_NAMES_THE_ROW: Final = re.compile(r"(^|_)(idx|index|uuid|number)$", re.IGNORECASE)

#: Reads of one row again, to leave out what differs by itself: random numbers, ids, times.
_AGAIN = 3

#: A text of so many characters is not in a reply by accident.
_TELLING = 4


@check(
    "seed-reads-row",
    "The seeded row SHOULD matter",
    why="if it does not, every rollout plays the same task, whatever its prompt says, and most of the data trains nothing.",
    needs=[RESOURCES_SERVER, TOOLS, SERVED_TOOLS, SCORE],
    gentle=True,
)
async def seed_reads_row(trial: Trial, _: object) -> None:
    """Makes the same reads, and scores the same outputs, on up to four rows whose own fields differ in more than their ids.

    It is a violation if every reply and reward is the same for all rows although some outputs earn more than others, or
    if replies in one row's session contain a text that only another row has, and no two rows are needed to name what they
    contain, as where a catalogue is the same for all. The outputs are recorded rollouts, made-up
    calls, and short texts from the rows, one of which may be the answer.

    Nothing can be said if all outputs earn the same and no reply contains a text of a row, since the row's task may
    matter to verify alone; if no read is answered; if what reads answer is drawn anew in each session, apart from ids
    and times; or if the rewards come from a judge model, which is our mock. Without recorded rollouts, only reads that
    take no arguments count.

    A row also counts as unread if its number 0 is treated as missing, as in `row.get("seed") or time()`: its sessions
    then differ each time, and agree each time once the 0 is a 1.

    Our inference: `SimpleAgent.run` posts the whole row to /seed_session (0.4.0), and would not if nobody read it.
    """
    await _expect_zeros_read(trial)
    rows = different_rows(trial.gym.rows)
    if len(rows) == 1:
        raise NotApplicable("no two rows have fields of their own that differ in more than ids")
    reads = _reads(trial.gym, rows)
    outcomes = [await run(trial.gym, trial.channel, Trajectory(row, reads)) for row in rows]
    if all(is_error(step.status) for step in outcomes[0].calls):
        raise NotApplicable("no read is answered")
    again = [await run(trial.gym, trial.channel, Trajectory(rows[0], reads)) for _ in range(_AGAIN)]
    by_chance = frozenset[Place]().union(*(volatile(outcomes[0], other) for other in again))
    if any(not each.of_time for other in outcomes[1:] for each in differences(outcomes[0], other, by_chance)):
        return
    earned = await _shared_rewards(trial, rows)
    if earned is None:
        return
    shown = _text_of_another(rows, outcomes) if _of_one_row(trial.gym.rows, outcomes) else None
    if len(earned) <= 1 and shown is None:
        raise NotApplicable(
            f"all that was tried earns {''.join(earned) or 'nothing'}, and no reply holds a text of a row"
        )
    if shown is None and _drawn([outcomes[0], *again], by_chance):
        raise NotApplicable("what the reads answer is drawn anew in each session, on one row too")
    raise Violation(
        f"replies or rewards that differ between {rows[0]} and {', '.join(map(str, rows[1:]))}",
        f"the same replies to {', '.join(dict.fromkeys(call.name for call in reads))}, and a reward of "
        f"{' or '.join(earned)} for the same output" + (f"; all hold {shown!r}, which is one row's" if shown else ""),
        "seed_session ignores the row, keeps that of the first session, or reads a field that no row has; or the reads are "
        "remembered for all sessions, by their arguments.",
    )


async def _expect_zeros_read(trial: Trial) -> None:
    """Replies that are drawn anew each time where a number of the row is 0, and not where it is 1.

    Raises:
        Violation: there are some, chance excluded.
    """
    with_zeros = [(row, ways) for row in trial.gym.rows if (ways := _zeros(row))]
    for row, ways in with_zeros[:_ROWS]:
        played = writing(trial.gym, row)
        varying = await _varying(trial, played, Channel(trial.gym.endpoint))
        for way in ways[:_ZEROS] if varying else ():
            told = replace(played, row=replace(row, data=_with_one(row.data, way)))
            if not (steady := varying - await _varying(trial, told, Channel(trial.gym.endpoint))):
                continue
            there = await run(trial.gym, Channel(trial.gym.endpoint), told)
            here = await run(trial.gym, Channel(trial.gym.endpoint), played)
            steady = frozenset(place for place in steady if values_at(there, place) and _as_good(here, there, place))

            async def tried(channel: Channel, one: Trajectory, places: frozenset[Place]) -> Place | None:
                return min(places & await _varying(trial, one, channel), key=str, default=None)

            if steady and (
                place := await beyond_chance(
                    trial,
                    partial(tried, one=played, places=steady),
                    partial(tried, one=told, places=steady),
                    together=True,
                    suspected=True,
                )
            ):
                step, field = here.steps[int(place[0])], ".".join(map(str, way))
                raise Violation(
                    f"{step.name} answers alike on {row} each time, as where its {field} is 1",
                    f"another {'.'.join(map(str, place[2:])) or 'reply'} each time where it is 0, as recorded in the row",
                    "0 is treated as missing, as in `row.get('seed') or time()`: compare with None instead.",
                )


async def _varying(trial: Trial, trajectory: Trajectory, channel: Channel) -> frozenset[Place]:
    """Where two runs differ, but for times and what sound servers share; the reward may have noise."""
    one, two = [await run(trial.gym, channel, trajectory) for _ in range(2)]
    found = [each for each in differences(one, two) if not each.of_time and not is_by_design(each)]
    return frozenset(each.place for each in found if each.step != VERIFY)


def _as_good(one: Outcome, two: Outcome, place: Place) -> bool:
    """Whether neither refuses the step, or both do."""
    steps = [outcome.steps[int(place[0])] for outcome in (one, two)]
    return len({(step.status, step.source is not None and says_no(step.source)) for step in steps}) == 1


def _zeros(row: Row) -> list[Way]:
    """Where a 0 stands, but in a list."""
    zeros = [way for value, way in scalars(own(row)) if type(value) is int and value == 0]
    return [way for way in zeros if all(isinstance(step, str) for step in way)]


def _with_one(value: Any, way: Way) -> Any:
    return mapped(value, lambda here, place: 1 if place == way else here)


async def _shared_rewards(trial: Trial, rows: Sequence[Row]) -> list[str] | None:
    """The different rewards of what is tried and scored; None if an output earns more on one row than on another."""
    rewards = await _rewards(trial, rows)
    trial.expect_own_score()
    if any(reward != several[0] for several in rewards for reward in several):
        return None
    return list(dict.fromkeys(repr(several[0]) for several in rewards if several[0] is not None))


def _drawn(outcomes: Sequence[Outcome], by_chance: frozenset[Place]) -> bool:
    """Whether calls on one row answer other things each time than ids and times, or nothing else."""
    first, last = outcomes[0], len(outcomes[0].steps) - 1
    calls = Outcome(tuple(replace(step, body={}) if at in (0, last) else step for at, step in enumerate(first.steps)))
    of_calls = [place for place in by_chance if place[0] not in (0, last)]
    return not compared(calls, by_chance) or not all(minted(place, outcomes) for place in of_calls)


def _text_of_another(rows: Sequence[Row], outcomes: Sequence[Outcome]) -> str | None:
    """A text that one row alone has, in the replies of a session that was seeded with another.

    What several rows speak of, in their prompts and tools too, may be the server's own word, such as a branch called main.
    """
    has = _texts_of(rows)
    written = [json.dumps(row.data, ensure_ascii=False) for row in rows]
    for at, outcome in enumerate(outcomes):
        said = _said([outcome])
        others = sorted(set[str]().union(*has) - has[at])
        found = (text for text in others if len(text) >= _TELLING and text in said)
        if shown := next((text for text in found if sum(text in row for row in written) == 1), None):
            return shown
    return None


def _of_one_row(rows: Sequence[Row], outcomes: Sequence[Outcome]) -> bool:
    """Whether one row has all texts of rows that the replies name: a catalogue that all rows share names things of several.

    One bare word may be the server's own, such as a branch called main.
    """
    has = _texts_of(rows)
    said = _said(outcomes)
    of_some = set[str]().union(*has) - has[0].intersection(*has)
    told = {text for text in of_some if len(text) >= _TELLING and text in said}
    return not " ".join(told).isidentifier() and any(told <= each for each in has)


def _texts_of(rows: Sequence[Row]) -> list[set[str]]:
    """The texts that each row has as its own."""
    return [{value for _, value in named_values(own(row)) if isinstance(value, str)} for row in rows]


def _said(outcomes: Sequence[Outcome]) -> str:
    """All that the replies of these sessions say."""
    return json.dumps([step.body for outcome in outcomes for step in outcome.calls], ensure_ascii=False)


def different_rows(rows: Sequence[Row]) -> list[Row]:
    """Rows that differ in more than what they are called: tasks with one answer may have different prompts and ids."""

    def task(row: Row) -> str:
        return repr({key: value for key, value in own(row).items() if not _names_the_row(key)})

    return list(first_of_each(task, rows).values())[:_ROWS]


def _names_the_row(field: str) -> bool:
    return ends_in_id(field) or _NAMES_THE_ROW.search(field) is not None


def _reads(gym: Gym, rows: Sequence[Row]) -> tuple[Call, ...]:
    """Every call of the rows' probes that reads."""
    reads = {repr(call): call for row in rows for call in reads_on(gym, row).calls if is_reading(call)}
    # a catalogue that all rows share takes a question; what takes none tells the state
    known = tuple(call for call in reads.values() if gym.recorded or not call.arguments)
    if not known:
        raise NotApplicable("no tool is known to read")
    return known


async def _rewards(trial: Trial, rows: Sequence[Row]) -> list[list[Any]]:
    """What each output earns, on each of the rows: nothing done, recorded rollouts, made-up calls, and last words."""
    knowledge = await knowledge_of(trial)
    recorded = [each for each in knowledge.known_trajectories if each.row in rows][:_ROWS]
    made = [made_up(knowledge, rows[0])] if not recorded else []
    tried = [(tuple[Call, ...](), PLAIN_ANSWER), *((each.calls, each.answer) for each in [*recorded, *made])]
    answers = dict.fromkeys(answer for row in rows for answer in knowledge.answers.get(row, ())[:_ANSWERS])
    tried += [(tuple[Call, ...](), answer) for answer in answers]
    outcomes = iter(
        await run_each(trial.gym, [Trajectory(row, calls, answer=answer) for calls, answer in tried for row in rows])
    )
    return [[next(outcomes).reward for _row in rows] for _output in tried]
