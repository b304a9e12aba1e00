"""Whether the row that is seeded matters."""

from collections.abc import Sequence
from typing import Any

from gym_conformance.checks.check import Level, check
from gym_conformance.checks.ending import NotApplicable, Violation
from gym_conformance.checks.needs import RESOURCES_SERVER, SCORE, SERVED_TOOLS, TOOLS
from gym_conformance.checks.property import knowledge_of
from gym_conformance.checks.trial import Trial
from gym_conformance.contract.dataset_rows import Call, Row
from gym_conformance.contract.statuses import is_error
from gym_conformance.gym_under_test import Gym
from gym_conformance.session.channel import Channel
from gym_conformance.trajectories.before_and_after import probe
from gym_conformance.trajectories.execute import run
from gym_conformance.trajectories.generate import is_read
from gym_conformance.trajectories.outcome import Outcome, differences
from gym_conformance.trajectories.renaming import own
from gym_conformance.trajectories.trajectory import PLAIN_ANSWER, Trajectory

#: Rows that are compared, and last words that are tried on each.
_ROWS, _ANSWERS = 4, 3


@check(
    "seed-reads-row",
    Level.SHOULD,
    "The row that is seeded SHOULD matter",
    why="every rollout plays one and the same task, whatever its prompt says: most of the data trains nothing.",
    needs=[RESOURCES_SERVER, TOOLS, SERVED_TOOLS, SCORE],
)
async def seed_reads_row(trial: Trial, _: object) -> None:
    """Makes the same reads, and has the same outputs scored, on up to four rows whose own fields differ.

    Something differs: a reply, or a reward. Outputs are recorded rollouts, and short texts of the rows, one of which
    may be the answer. Not where no read is answered, nor where a judge, which is our mock, gives the rewards. Where
    nothing is recorded, only reads without arguments count.

    Our inference: `SimpleAgent.run` posts the whole row to /seed_session (0.4.0), and it would not if nobody read it.
    """
    rows = _different(trial.gym.rows)
    if len(rows) == 1:
        raise NotApplicable("no two rows have different fields of their own")
    reads = _reads(trial.gym, rows)
    outcomes = [await run(trial.gym, trial.channel, Trajectory(row, reads)) for row in rows]
    if all(is_error(step.status) for step in outcomes[0].calls):
        raise NotApplicable("no read is answered")
    if any(_differ(outcomes[0], other) for other in outcomes[1:]):
        return
    rewards = [reward for row in rows for reward in await _rewards(trial, row, rows)]
    if trial.asked_judge_model:
        raise NotApplicable("its rewards are a judge's opinion, and the judge here is a mock")
    if any(reward != rewards[0] for reward in rewards):
        return
    raise Violation(
        f"replies or rewards that differ between {rows[0]} and {', '.join(map(str, rows[1:]))}",
        f"the same replies to {', '.join(dict.fromkeys(call.name for call in reads))}, and a reward of "
        f"{rewards[0]} throughout",
        "seed_session ignores the row, keeps that of the first session, or reads a field that no row has.",
    )


def _different(rows: Sequence[Row]) -> list[Row]:
    found: dict[str, Row] = {}
    for row in rows:
        found.setdefault(repr(own(row)), row)
    return list(found.values())[:_ROWS]


def _reads(gym: Gym, rows: Sequence[Row]) -> tuple[Call, ...]:
    """Every call of the rows' probes that reads."""
    reads = {repr(call): call for row in rows for call in probe(gym, row).calls if is_read(call.name)}
    # a catalogue that all rows share takes a question; what takes none tells the state
    known = tuple(call for call in reads.values() if gym.recorded or not call.arguments)
    if not known:
        raise NotApplicable("no tool is known that reads")
    return known


def _differ(one: Outcome, two: Outcome) -> bool:
    return next(differences(one, two), None) is not None


async def _rewards(trial: Trial, row: Row, rows: Sequence[Row]) -> list[Any]:
    """What outputs earn on a row: nothing done, recorded rollouts of all rows, and last words that may be the answer."""
    knowledge = await knowledge_of(trial)
    recorded = [each for each in knowledge.recorded_trajectories if each.row in rows][:_ROWS]
    tried = [(tuple[Call, ...](), PLAIN_ANSWER), *((each.calls, each.answer) for each in recorded)]
    tried += [(tuple[Call, ...](), answer) for answer in knowledge.answers.get(row, ())[:_ANSWERS]]
    runs = [Trajectory(row, calls, answer=answer) for calls, answer in tried]
    return [(await run(trial.gym, Channel(trial.gym.endpoint), each)).reward for each in runs]
