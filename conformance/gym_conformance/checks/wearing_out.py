"""What a server can no longer do after some hundred sessions."""

from gym_conformance.contract.statuses import is_success
from gym_conformance.findings import Cause
from gym_conformance.session.channel import NoMoreSessions
from gym_conformance.session.exchange import Reply, reply_of
from gym_conformance.trials.check import check
from gym_conformance.trials.ending import Violation
from gym_conformance.trials.needs import RESOURCES_SERVER
from gym_conformance.trials.trial import Trial, describe, refuse_made_up

#: A training run has millions; so many in all show a fixed number of places, and take no second.
_SEEDS = 120

#: A seed that is refused so often in a row is no accident.
_REFUSALS = 3


@check(
    "resources-seeds",
    "/seed_session MUST go on opening sessions",
    why="a training run opens a million sessions: from this one on every rollout is lost.",
    needs=[RESOURCES_SERVER],
)
async def resources_seeds(trial: Trial, _: object) -> None:
    """Seeds the first row until the run has opened 120 sessions in all, and looks whether the last are still taken.

    Source: `SimpleAgent.run` raises for any status but 200 (0.4.0); no request of the cookie contract ends a session.
    """
    seeds = trial.gym.endpoint.seeds
    refused = 0
    while seeds.taken < _SEEDS or refused or not trial.channel.exchanges:
        trial.channel.exchanges.clear()
        try:
            reply = reply_of(await trial.session().seed())
        except NoMoreSessions:
            if seeds.refused is None:
                raise
            raise _worn_out(trial, seeds.refused) from None
        refuse_made_up(trial.gym.row, reply)
        refused = refused + 1 if not is_success(reply.status) else 0
        if refused == _REFUSALS:
            if seeds.taken:
                raise _worn_out(trial, reply)
            return  # never taken: seed-accepts-rows has told it
    trial.note = f"at least {_SEEDS} sessions were opened in this run"


def _worn_out(trial: Trial, reply: Reply) -> Violation:
    """That no more are opened, and what may have led to it."""
    seeds = trial.gym.endpoint.seeds
    held = (
        f" Or a call holds a lock or a transaction for ever; the last ones before it were {', '.join(seeds.before)}."
        if seeds.before
        else ""
    )
    return Violation(
        f"status 200, as to the first {seeds.taken} seeds",
        describe(reply),
        "Each session takes something that is never given back: a slot of a pool, a semaphore, files or processes. "
        f"Free what the oldest sessions hold, or what had no requests for a while.{held}",
        Cause.WORN_OUT,
    )
