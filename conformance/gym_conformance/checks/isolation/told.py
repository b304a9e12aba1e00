"""Isolation without a yardstick: what only one session was told, no other is told.

Source: `add_session_id` in nemo_gym/server_utils.py gives each client a session of its own (every version).
"""

import asyncio
from random import Random

from gym_conformance.checks.isolation.beside_others import FOUND_BY_ID
from gym_conformance.checks.isolation.counted_ids import expect_none_found
from gym_conformance.contract.endpoints import tool_path
from gym_conformance.findings import Cause
from gym_conformance.session.exchange import Exchange, reply_of
from gym_conformance.trajectories.execute import opened
from gym_conformance.trajectories.markers import any_marked_sessions, marked_sessions, markers, renewed
from gym_conformance.trajectories.trajectory import Schedule, asks_another, session_name
from gym_conformance.trials.ending import Violation
from gym_conformance.trials.needs import RESOURCES_SERVER, SCORE
from gym_conformance.trials.property import property_check
from gym_conformance.trials.suspicions import MEANWHILE, STORE
from gym_conformance.trials.trial import Trial

#: Characters that are shown around what was overheard.
_AROUND = 60


@property_check(
    "isolation-told",
    "Replies in one session MUST NOT reveal what only another session was told",
    why="rollouts write into each other's state; the rewards are noise, and training goes on without a sign of it.",
    needs=[RESOURCES_SERVER, SCORE],
    examples=any_marked_sessions,
    first=lambda knowledge: marked_sessions(knowledge, Random()),
    before=expect_none_found,
)
async def isolation_told(trial: Trial, schedule: Schedule) -> None:
    """Gives two sessions words of their own, in the free texts of their calls and rows, and looks for each one's words in the other's replies.

    They run one after the other and side by side, on one row and on two; the second also asks for what the first was
    given, by its ids and cursors, and what it has written, by its names. If a tool runs programs, one sets a name, and
    the other prints it. Then four sessions do the same at the same time, step by step. No reply may contain a word that
    its session did not send. Nothing is compared, so noise or a growing store cannot hide a leak, and the words are
    drawn from so many that none appears by accident.

    Nor may a fresh session find what another was given under a counted id that is new each time, such as `job-964`, if
    the server refuses an id that nobody was given.

    Source: `add_session_id` in nemo_gym/server_utils.py gives each client a session of its own (every version).
    """
    trial.schedule = schedule = renewed(schedule, Random())
    rollouts = opened(trial.gym, trial.channel, schedule)
    most = max(trajectory.steps for trajectory in schedule.trajectories)
    steps = [tuple(range(len(rollouts)))] * most if schedule.concurrent else [(turn,) for turn in schedule.turns()]
    words = _Words(schedule, trial.learned.words, shrinking=trial.shrinking)
    for turns in steps:  # those of one step take it at the same time
        ended = await asyncio.gather(*(rollouts[turn].step() for turn in turns), return_exceptions=True)
        made = [(turn, rollouts[turn].exchanges[-1]) for turn in turns if rollouts[turn].exchanges]
        for turn, exchange in made:
            words.say(turn, exchange)
        for fault in ended:
            if isinstance(fault, BaseException):
                raise fault
        for turn, exchange in made:
            words.hear(turn, exchange)


class _Words:
    """Which session was told which word first, and in which request; and what each session has sent itself.

    Whoever only says again what it was answered was not the first. `before` has the words that earlier sessions were told;
    what else looks like one is a part of a token or of an id, as in base64.
    """

    def __init__(self, schedule: Schedule, before: set[str], *, shrinking: bool) -> None:
        self._schedule = schedule
        self._before = before
        self._shrinking = shrinking
        self._told: dict[str, tuple[int, Exchange]] = {}
        self._sent: list[set[str]] = [set() for _ in schedule.trajectories]
        self._strange = set[str]()

    def say(self, turn: int, exchange: Exchange) -> None:
        """Take in what a session sent."""
        said = markers((exchange.request.body or b"").decode("latin-1"))
        self._sent[turn] |= said
        for marker in said - self._strange:
            self._told.setdefault(marker, (turn, exchange))
            self._before.add(marker)

    def hear(self, turn: int, exchange: Exchange) -> None:
        """Look for what the session never sent in what it was answered.

        Raises:
            Violation: another session was told it.
        """
        strange = markers(exchange.reply.text) - self._sent[turn] if exchange.reply else frozenset[str]()
        self._strange |= strange - self._told.keys()
        for marker in strange & self._told.keys():
            raise _overheard(self._schedule, turn, exchange, marker, self._told[marker])
        earlier = strange & self._before
        if earlier and not self._shrinking:  # no shorter schedule tells it
            raise Violation(
                f"{exchange.request.path} knows nothing of {min(earlier)!r}, which only another session was told",
                f"{min(earlier)!r} in its reply",
                STORE,
            )


def _overheard(
    schedule: Schedule, turn: int, exchange: Exchange, marker: str, origin: tuple[int, Exchange]
) -> Violation:
    teller, telling = origin
    text = reply_of(exchange).text
    at = max(text.lower().index(marker) - _AROUND, 0)
    calls = [call for call in schedule.trajectories[turn].calls if tool_path(call.name) == exchange.request.path]
    asked = any(asks_another(call.arguments) for call in calls)
    return Violation(
        f"{exchange.request.path} of session {session_name(turn)} knows nothing of {marker!r}, which only session "
        f"{session_name(teller)} was told, in {telling.request.path}",
        f"...{text[at : at + 2 * _AROUND + len(marker)]}...",
        MEANWHILE if schedule.concurrent else FOUND_BY_ID if asked else STORE,
        Cause.SHARED_STATE,
    )
