"""Episodes of environment servers: one request plays a whole rollout.

Source: `_run_examples_with_metadata` in nemo_gym/rollout_collection.py (0.7.0).
"""

from dataclasses import dataclass

from gym_conformance.contract.endpoints import RUN
from gym_conformance.contract.episode import Ended, Episode
from gym_conformance.contract.statuses import is_success
from gym_conformance.session.channel import Channel
from gym_conformance.session.contracts import post
from gym_conformance.session.exchange import Reply, reply_of


@dataclass(frozen=True)
class PlayedEpisode:
    """An episode, and what came of it."""

    episode: Episode
    reply: Reply

    @property
    def ended(self) -> Ended | None:
        """How it ended; None where no status 200 with a JSON object says it."""
        said = self.reply.said
        return self.episode.ended(said) if is_success(self.reply.status) and isinstance(said, dict) else None

    @property
    def failed(self) -> str:
        """Why it did not end with a result; '' where it did."""
        ended = self.ended
        if ended is None:
            return f"/run answers {self.reply.status}"
        return f"it reports the failure {ended.reason!r}" if ended.failure is not None else ""


async def play(channel: Channel, episode: Episode) -> PlayedEpisode:
    """`POST /run`."""
    return PlayedEpisode(episode, reply_of(await channel.send(post(RUN, episode.body))))
