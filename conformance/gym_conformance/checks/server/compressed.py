"""Whether replies are the same to a client that takes them compressed, as all usual ones do."""

from dataclasses import replace
from typing import Final

from gym_conformance.session.channel import Channel
from gym_conformance.session.exchange import Exchange, Request
from gym_conformance.session.server_fault import Fault, ServerFault
from gym_conformance.trajectories.disturbed import known_disturbed
from gym_conformance.trajectories.execute import run
from gym_conformance.trajectories.known import known
from gym_conformance.trajectories.outcome import Outcome
from gym_conformance.trajectories.trajectory import Trajectory
from gym_conformance.trials.check import check
from gym_conformance.trials.ending import Violation
from gym_conformance.trials.needs import RESOURCES_SERVER, SCORE
from gym_conformance.trials.property import knowledge_of
from gym_conformance.trials.solo import Solo
from gym_conformance.trials.trial import Trial

#: What aiohttp and httpx ask for.
_TAKEN: Final = {"Accept-Encoding": "gzip, deflate"}

#: Trajectories that are run, as they are and with refused calls in their midst.
_RUN: Final = 2


class _TakesCompressed(Channel):
    """A channel that takes compressed replies, with the record of another."""

    def __init__(self, channel: Channel) -> None:
        super().__init__(channel.endpoint, record=channel)

    async def send(self, request: Request) -> Exchange:
        """Send one request.

        Raises:
            Violation: the reply is not coded as it says.
            ServerFault: as `Channel.send` does.
        """
        try:
            return await super().send(replace(request, headers={**request.headers, **_TAKEN}))
        except ServerFault as fault:
            if fault.fault is not Fault.INVALID or "content-encoding" not in fault.detail:
                raise
            raise Violation(
                "a body that is encoded as its Content-Encoding says",
                f"{request.method} {request.path}: {fault.detail}",
                "Middleware sets the header on replies that it does not compress, such as errors or short ones.",
            ) from fault


@check(
    "repeat-compressed",
    "Compressed replies MUST have the same content",
    why="clients ask for compressed replies, and fail on one that is not encoded as its header says; the rollout is lost.",
    needs=[RESOURCES_SERVER, SCORE],
    gentle=True,
)
async def repeat_compressed(trial: Trial, _: object) -> None:
    """Runs meaningful trajectories, two of them with refused calls, and accepts replies in gzip or deflate.

    All other checks ask for uncompressed replies. Statuses, replies and the reward must be the same as theirs, chance
    excluded, and each body must be encoded as its Content-Encoding says.

    Source: nemo_gym/server_utils.py sends its requests with aiohttp (every version), which asks for both, as httpx
    does.
    """
    knowledge = await knowledge_of(trial)
    refused = [schedule.trajectories[0] for schedule in known_disturbed(knowledge)[:_RUN]]
    for trajectory in (*known(knowledge)[:_RUN], *refused):
        await _expect_the_same(trial, trajectory)


async def _expect_the_same(trial: Trial, trajectory: Trajectory) -> None:
    async def compressed(channel: Channel) -> Outcome:
        return await run(trial.gym, _TakesCompressed(channel), trajectory)

    trial.channel.exchanges.clear()
    if difference := await Solo(trial, trajectory).beyond_chance(compressed):
        raise Violation(
            f"{difference.answer}, as to a client that takes no compressed replies",
            f"{difference.actual!r}",
            "What is compressed is another reply, or only part of it: compress exactly the bytes that would be sent otherwise.",
        )
