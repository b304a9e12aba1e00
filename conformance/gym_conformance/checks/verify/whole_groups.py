"""A verify that scores the rollouts of a prompt together, by comparison.

Source throughout: resources_servers/genrm_compare/app.py (nemo-gym 0.4.0 to 0.7.0). Every check sends its verifies to such
a server in groups (`gym_conformance.session.groups`); the checks here are about the groups themselves.
"""

import asyncio
from contextlib import suppress
from http import HTTPStatus

from gym_conformance.contract.endpoints import VERIFY
from gym_conformance.contract.policy_output import DO_NOTHING
from gym_conformance.session.channel import Channel
from gym_conformance.session.exchange import Exchange, Request
from gym_conformance.session.server_fault import NotSent, ServerFault
from gym_conformance.trials.check import Need, check
from gym_conformance.trials.ending import NotApplicable, Untestable, Violation
from gym_conformance.trials.needs import RESOURCES_SERVER
from gym_conformance.trials.trial import Trial

#: Seconds after which an incomplete group is given up.
_PATIENCE = 2.0


async def _whole_groups(trial: Trial) -> None:
    endpoint = trial.gym.endpoint
    if endpoint.groups.size == 1 and not endpoint.hangs[VERIFY]:
        with suppress(ServerFault, NotSent, Untestable):  # which other checks report
            await trial.verify_fresh(DO_NOTHING.response)
    if endpoint.groups.size == 1:
        raise NotApplicable("its verify scores each rollout alone")


WHOLE_GROUPS = Need("whole groups", _whole_groups)


@check(
    "verify-in-groups",
    "verify scores the rollouts of a prompt only as a group",
    why="a client that verifies one rollout at a time waits forever, and so does a group that loses one of its members.",
    needs=[RESOURCES_SERVER, WHOLE_GROUPS],
)
async def verify_in_groups(trial: Trial, _: object) -> None:
    """Says how many rollouts the server scores together, if a verify that was sent alone was not answered.

    All checks then send each verify with others of its prompt, each with its own `_ng_rollout_index`; rewards are
    compared with one another, and not with recorded ones.

    Source: `num_rollouts_per_prompt` of genrm_compare.
    """
    await trial.verify_fresh(DO_NOTHING.response)
    size = trial.gym.endpoint.groups.size
    raise Violation(
        "a score for one rollout",
        f"scores for {size} together, and for none alone",
        f"By design, where rewards compare rollouts: collect {size} of each prompt at a time; Verifiers and Unsloth's "
        "notebook cannot use it.",
    )


@check(
    "verify-group-again",
    "verify SHOULD answer a group that is sent again",
    why="otherwise one lost rollout holds up its prompt forever, since members of the old group are scored with those of the new one.",
    needs=[RESOURCES_SERVER, WHOLE_GROUPS],
)
async def verify_group_again(trial: Trial, _: object) -> None:
    """Sends all members of a group but one, gives up, and sends the whole group again; each must be answered.

    An error is an answer too, but a 500 is a crash. Applies only to servers that score whole groups.

    Our inference: clients give up and send again (nemo_gym/server_utils.py `request`); genrm_compare of 0.7.0 takes a
    member that comes again for the same one.
    """
    whole = await (await trial.open()).verify(DO_NOTHING.response)
    endpoint = trial.gym.endpoint
    rollout, *others = endpoint.groups.members(whole.request)
    await _statuses(trial, [rollout, *others[:-1]], _PATIENCE)
    trial.channel.adopt(Exchange(0, rollout, fault="given up", group=tuple(others[:-1])))
    statuses = await _statuses(trial, [rollout, *others], endpoint.timeout)
    trial.channel.adopt(Exchange(0, rollout, fault="sent again", group=tuple(others)))
    crashes = statuses.count(HTTPStatus.INTERNAL_SERVER_ERROR)
    if len(statuses) <= len(others) or crashes:
        raise Violation(
            f"{len(others) + 1} answers to a group of which {len(others)} members had been sent before",
            f"{len(statuses)} answers within {endpoint.timeout:g} s" + (f", {crashes} of them 500" if crashes else ""),
            "Members whose client has gone are still counted; know a member by its number, or drop it when its client "
            "disconnects.",
        )


async def _statuses(trial: Trial, members: list[Request], seconds: float) -> list[int]:
    """The statuses of those that are answered in time."""
    channel = Channel(trial.gym.endpoint)
    sent = [asyncio.ensure_future(channel.reply_to(member)) for member in members]
    try:
        await asyncio.wait(sent, timeout=seconds)
        return [one.result().status for one in sent if one.done() and one.exception() is None]
    finally:
        for one in sent:
            one.cancel()
        await asyncio.gather(*sent, return_exceptions=True)
