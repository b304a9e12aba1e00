"""What `/run` of a launched environment server makes of its model, which is our mock.

Source throughout: `BaseEnvironmentServer.run_request` in nemo_gym/base_environment_server.py, and its client,
nemo_gym/rollout_collection.py (0.7.0).
"""

from gym_conformance.checks.episodes.run import EPISODE, episode_of, expect_answer, played
from gym_conformance.checks.launched.judge_models import answering, judge_models_of
from gym_conformance.contract.statuses import is_crash
from gym_conformance.session.playing import PlayedEpisode, play
from gym_conformance.session.server_fault import Fault, ServerFault
from gym_conformance.trials.check import check
from gym_conformance.trials.ending import NotApplicable, Violation
from gym_conformance.trials.launched import Saying
from gym_conformance.trials.needs import ENVIRONMENT
from gym_conformance.trials.trial import Trial

#: Fresh episodes that must earn the same.
_EPISODES = 4


@check(
    "model-fails",
    "/run MUST give a well-formed answer whatever its model answers",
    why="models fail for minutes under load; a malformed answer ends the whole collection instead of one rollout.",
    needs=[ENVIRONMENT, EPISODE],
    subjects=lambda _: (Saying.GARBAGE, Saying.BROKEN, Saying.FAILURE, Saying.NOTHING),
)
async def model_fails(trial: Trial, saying: Saying) -> None:
    """Plays an episode while the model answers garbage, invalid JSON, 500 or nothing, and expects a result or a failure.

    Applies only to launched servers whose episode asks a model. If /run takes rows, a 5xx is fine, because agents have
    no other form of failure. Waiting for a silent model is no violation, because the server's own limit, such as
    `default_episode_timeout_seconds`, may be longer than --gym-timeout.

    Source: `run_request` in nemo_gym/base_environment_server.py makes a failure of every exception, and of the
    episode's timeout; `_run_examples_with_metadata` in nemo_gym/rollout_collection.py raises for other answers (0.7.0).
    """
    found = await _played(trial, saying)
    if not trial.gym.api.episodes and is_crash(found.reply.status):
        return
    expect_answer(trial.gym, found)
    trial.note = found.failed


@check(
    "model-unscored",
    "A rollout whose model failed SHOULD NOT be scored",
    why="an outage is mistaken for a bad answer, and the policy learns from a reward that it did not earn.",
    needs=[ENVIRONMENT, EPISODE],
)
async def model_unscored(trial: Trial, _: object) -> None:
    """Plays an episode while every model answers 500, and expects a failure, or a result that is masked or has no reward.

    Source: `_agent_request_failure_row` in nemo_gym/rollout_collection.py, "an infrastructure failure is not a verifier
    score of zero", and `mask_sample` in nemo_gym/base_resources_server.py (0.7.0).
    """
    ended = (await _played(trial, Saying.FAILURE)).ended
    result = ended.result if ended else None
    if isinstance(result, dict) and result.get("reward") is not None and not result.get("mask_sample"):
        hint = "The model's error is caught along with the policy's own; raise it, or set mask_sample."
        raise Violation("a failure", f"a reward of {result['reward']!r}, and no mask_sample", hint)


@check(
    "model-repeat",
    "A row SHOULD earn the same reward for the same policy",
    why="group-relative advantages compare rollouts of one row, so the environment's randomness is mistaken for merit.",
    needs=[ENVIRONMENT, EPISODE],
)
async def model_repeat(trial: Trial, _: object) -> None:
    """Plays a row four times with a model that always answers the same; the reward must be the same each time.

    Our inference.
    """
    judge_models_of(trial)
    episodes = [await played(trial, episode_of(trial.gym)) for _episode in range(_EPISODES)]
    rewards = [episode.result.get("reward") for episode in episodes]
    if any(reward != rewards[0] for reward in rewards):
        hint = "It uses randomness that the row does not seed, or keeps state from earlier episodes."
        raise Violation(f"a reward of {rewards[0]} each time", f"{rewards}", hint)


async def _played(trial: Trial, saying: Saying) -> PlayedEpisode:
    """An episode while the model says so.

    Raises:
        NotApplicable: the episode asks no model, or waits longer for a silent one than we do.
    """
    try:
        with answering(judge_models_of(trial).model, saying, "an episode asks no model"):
            return await play(trial.channel, episode_of(trial.gym))
    except ServerFault as fault:
        if fault.fault is not Fault.HANG or saying is not Saying.NOTHING:
            raise
        raise NotApplicable(f"its own limit is longer than {trial.gym.endpoint.timeout:g} s (--gym-timeout)") from None
