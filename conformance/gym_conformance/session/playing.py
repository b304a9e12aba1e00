"""Episodes of environment servers: one request plays a whole rollout.

Source: `_run_examples_with_metadata` in nemo_gym/rollout_collection.py (0.7.0).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gym_conformance.contract.endpoints import RUN
from gym_conformance.contract.episode import Ended, Episode
from gym_conformance.contract.statuses import is_success
from gym_conformance.session.channel import Channel
from gym_conformance.session.contracts import post
from gym_conformance.session.exchange import Reply, reply_of


@dataclass(frozen=True)
class PlayedEpisode:
    """An episode, and its result."""

    episode: Episode
    reply: Reply

    @property
    def ended(self) -> Ended | None:
        """How it ended; None unless the reply is a JSON object with status 200."""
        said = self.reply.said
        return self.episode.ended(said) if is_success(self.reply.status) and isinstance(said, dict) else None

    @property
    def result(self) -> Mapping[str, Any]:
        """The result's fields; none if it has no result."""
        result = self.ended.result if self.ended else None
        return result if isinstance(result, dict) else {}

    @property
    def output(self) -> list[Any]:
        """The items of the result's response, as far as there are any."""
        response = self.result.get("response")
        output = response.get("output") if isinstance(response, dict) else None
        return output if isinstance(output, list) else []

    @property
    def failed(self) -> str:
        """Why it ended without a result; '' if it has one."""
        ended = self.ended
        if ended is None:
            return f"/run answers {self.reply.status}"
        return f"it reports the failure {ended.reason!r}" if ended.failure is not None else ""


async def play(channel: Channel, episode: Episode) -> PlayedEpisode:
    """`POST /run`."""
    return PlayedEpisode(episode, reply_of(await channel.send(post(RUN, episode.body))))
