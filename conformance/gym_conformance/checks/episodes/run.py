"""Environment servers: `POST /run` plays a whole episode with its own agents, models and resources servers.

Source throughout: `BaseEnvironmentServer` in nemo_gym/base_environment_server.py, and its client,
nemo_gym/rollout_collection.py (0.7.0).
"""

import asyncio
import json
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import Any, Final

from gym_conformance.contract.dataset_rows import Rollout, Row
from gym_conformance.contract.endpoints import AGGREGATE_METRICS, ROLLOUT_INDEX, RUN, TASK_INDEX
from gym_conformance.contract.episode import Episode
from gym_conformance.contract.verify_reply import is_number, rounded
from gym_conformance.findings import Cause
from gym_conformance.gym_under_test import BARE_ROW, Gym
from gym_conformance.session.channel import Channel
from gym_conformance.session.contracts import JSON_HEADERS, post
from gym_conformance.session.exchange import Reply, Request
from gym_conformance.session.playing import PlayedEpisode, play
from gym_conformance.session.server_fault import Fault, ServerFault
from gym_conformance.trajectories.followed import linked, parsed
from gym_conformance.trajectories.outcome import Outcome, StepOutcome, differences, varying
from gym_conformance.trajectories.trajectory import REPLY, is_reference
from gym_conformance.trials.chance import beyond_chance
from gym_conformance.trials.check import Need, check
from gym_conformance.trials.ending import NotApplicable, Untestable, Violation
from gym_conformance.trials.needs import ENVIRONMENT, each_row
from gym_conformance.trials.trial import Trial, describe, expect_no_crash, expect_object, expect_success
from gym_schemas import Way, mapped

#: Rows that are played at the same time, and how often each; and how often each alone, to see what varies by itself.
_ROWS, _TIMES, _ALONE = 3, 3, 4

#: Items of a response up to which it is found out what the policy said.
_ITEMS = 200

#: What collection leaves out of a result before it is aggregated.
_HEAVY: Final = frozenset({"response", "responses_create_params", "ng_agent_observations"})


def episode_of(gym: Gym, row: Row | None = None) -> Episode:
    """A new episode of the row, in the form that its client gives it: a flat row is materialized where need be."""
    row = row or gym.row
    return Episode(row, gym.api.episodes or row.task is not None)


async def played(trial: Trial, episode: Episode) -> PlayedEpisode:
    """An episode, played while no other one is; what it earned is remembered."""
    found = await _played(trial.gym, trial.channel, episode)
    said, reward = _said(found), found.result.get("reward")
    if said and is_number(reward) and not found.result.get("mask_sample"):
        trial.learned.earned.setdefault((episode.row, said), []).append(rounded(reward))
    return found


def _said(found: PlayedEpisode) -> str:
    """What the policy said and called, with references in place of ids that it had been told; '' if nothing shows that."""
    row, items = found.episode.row, [item for item in found.output if isinstance(item, dict)]
    rollout = Rollout({"response": {"output": items}}, row.source)
    called = sum(item.get("type") == "function_call" for item in items)
    if not 0 < len(items) <= _ITEMS or len(rollout.calls) < called:
        return ""  # it is not known what a call says that cannot be read
    answered = [(call, parsed(output)) for call, output in rollout.played]
    calls = [[call.name, mapped(call.arguments, _place, leaf=is_reference)] for call in linked(row, answered)]
    texts = [
        item.get("content") or item.get("summary") for item in items if item.get("role", "assistant") == "assistant"
    ]
    return json.dumps([calls, texts], sort_keys=True)


def _place(value: Any, _: Way) -> Any:
    return {**value[REPLY], "otherwise": None} if is_reference(value) else value


async def _played(gym: Gym, channel: Channel, episode: Episode) -> PlayedEpisode:
    """An episode, played.

    Raises:
        Untestable: it takes longer than a request is given, as it may; or the server wants more than our made-up row.
    """
    try:
        found = await play(channel, episode)
    except ServerFault as fault:
        if fault.fault is Fault.HANG:
            raise Untestable(f"an episode within {gym.endpoint.timeout:g} s (--gym-timeout)") from None
        raise
    if found.failed and episode.row is BARE_ROW:
        raise Untestable(f"dataset rows (--gym-data); with a made-up row {found.failed}")
    return found


async def _ends(trial: Trial) -> None:
    """A server whose episodes all fail, for its peers do, has one finding of it, and not one for every check."""
    found = await played(trial, episode_of(trial.gym))
    if found.failed:
        raise Untestable(f"an episode that ends with a result: {found.failed}")


EPISODE: Final = Need("an episode that ends with a result", _ends)


def expect_answer(gym: Gym, found: PlayedEpisode) -> None:
    """Hold the answer to the form that its client reads.

    Raises:
        Violation: it has another.
    """
    hint = "run() raises, or a server that it called did; raise HandledEpisodeError instead."
    expect_success(found.reply, hint)
    said = expect_object(found.reply, "run() returns the response model.")
    if not gym.api.episodes:
        return
    episode, ended = found.episode, found.ended
    for key, ours in (("episode_id", episode.identity.episode), ("task_id", episode.task_id)):
        if said.get(key) != ours:
            hint = "The response carries the identity of another request, or none."
            raise Violation(f"{key}: {ours!r}", f"{said.get(key)!r}", hint)
    if ended is None or (ended.result is None) == (ended.failure is None):
        raise Violation("a result or a failure, and not both", describe(found.reply), "Return one of them.")
    _expect_failure(ended.failure)
    if ended.result is not None and not isinstance(ended.result, dict):
        raise Violation("result: an object", f"{ended.result!r}", "The response model accepts any value.")
    if ended.reserved:
        keys = ", ".join(ended.reserved)
        raise Violation(
            "no key of the collector's own in the result", keys, "Collection stops with an error; rename the key."
        )


def _expect_failure(failure: Any) -> None:
    if failure is None:
        return
    known = isinstance(failure, dict)
    if not (known and isinstance(failure.get("failure_reason"), str) and isinstance(failure.get("terminal"), bool)):
        expected = "failure: an object with failure_reason, a text, and terminal, true or false"
        raise Violation(expected, f"{failure!r}", "Build it as EpisodeFailure does.")


@check(
    "run-answers",
    "/run MUST answer every dataset row with a result or a handled failure",
    why="collection stops with an error at the first answer that is neither, and loses all other rollouts.",
    needs=[ENVIRONMENT],
    subjects=each_row,
)
async def run_answers(trial: Trial, row: Row) -> None:
    """Plays an episode of each row and expects status 200 and a JSON object.

    If the OpenAPI document says that /run takes episode requests, the answer carries their episode_id and task_id and has
    either a result, an object without the collector's own keys, or a failure with its failure_reason and terminal.

    Source: `BaseEpisodeResponse` in nemo_gym/episode_types.py, `run_request` in nemo_gym/base_environment_server.py, and
    `_episode_record` in nemo_gym/rollout_collection.py (0.7.0).
    """
    found = await played(trial, episode_of(trial.gym, row))
    expect_answer(trial.gym, found)
    trial.note = found.failed


@check(
    "run-rewards",
    "An episode's reward MUST be a finite number",
    why="null counts as 0 and text ends the collection; either way, what the policy earned is lost.",
    needs=[ENVIRONMENT, EPISODE],
    subjects=each_row,
)
async def run_rewards(trial: Trial, row: Row) -> None:
    """Plays an episode of each row and reads the result's `reward`. Not applicable to an unscored result, which has none.

    Source: `BaseVerifyResponse` in nemo_gym/base_resources_server.py, and `float(result["reward"] or 0.0)` in
    nemo_gym/rollout_collection.py (0.7.0).
    """
    result = await _result(trial, row)
    if "reward" not in result:
        raise NotApplicable("its result has no reward, so the episode is unscored")
    reward = result["reward"]
    if not is_number(reward):
        raise Violation("reward: a finite number", f"reward: {reward!r}", "NaN becomes null in JSON.")


async def _result(trial: Trial, row: Row) -> dict[str, Any]:
    """What an episode ended with.

    Raises:
        Untestable: it ended with no result.
    """
    found = await played(trial, episode_of(trial.gym, row))
    ended = found.ended
    if ended is None or not isinstance(ended.result, dict):
        raise Untestable(f"a result: {found.failed}; see run-answers")
    return ended.result


@check(
    "run-isolation",
    "Episodes that run at the same time MUST NOT be mixed up",
    why="a rollout is credited with what another earned; the rewards are noise, and nothing reports it.",
    needs=[ENVIRONMENT, EPISODE],
)
async def run_isolation(trial: Trial, _: object) -> None:
    """Plays three rows three times each at once; each answer must carry its own episode and echo its own row.

    If the policy said what it says alone, as the result's `response` shows, its reward and what its tools answered must
    also be as alone. If the model is our mock, on a launched server, so must the rest of the answer. Only what is the same
    in each run alone is compared.

    Source: `validate_response_identity` in nemo_gym/base_environment_server.py, and `_run_examples_with_metadata` in
    nemo_gym/rollout_collection.py, which runs very many at once (0.7.0).
    """
    gym, rows = trial.gym, each_row(trial)[:_ROWS]
    whole = bool(trial.launched.judge_models and trial.launched.judge_models.names)
    alone = {row: [await _apart(gym, row) for _ in range(_ALONE)] for row in rows}

    def mixed(found: Iterable[PlayedEpisode]) -> tuple[str, str] | None:
        return next(filter(None, (_mixed(one, alone[one.episode.row], whole=whole) for one in found)), None)

    async def together(channel: Channel) -> tuple[str, str] | None:
        return mixed(await asyncio.gather(*(_played(gym, channel, episode_of(gym, row)) for row in rows * _TIMES)))

    async def one_by_one(channel: Channel) -> tuple[str, str] | None:
        return mixed([await _played(gym, channel, episode_of(gym, row)) for row in rows * _TIMES])

    if await together(trial.channel) is None:
        return
    for row in rows:
        alone[row] += [await _apart(gym, row) for _ in range(2 * _ALONE)]
    trial.channel.exchanges.clear()
    if difference := await beyond_chance(trial, together, one_by_one, costly=True):
        hint = "An episode's state is kept on the server object or in a module; keep it inside run()."
        raise Violation(difference[0], f"{difference[1]}, while other episodes run", hint)


async def _apart(gym: Gym, row: Row) -> PlayedEpisode:
    return await _played(gym, Channel(gym.endpoint), episode_of(gym, row))


def _mixed(found: PlayedEpisode, alone: list[PlayedEpisode], *, whole: bool) -> tuple[str, str] | None:
    """What was expected of an answer, and what it has instead: of the whole of it, or of what no policy chooses."""
    answer = found.reply.said
    ours = found.episode.identity.episode
    if found.episode.typed and isinstance(answer, dict) and answer.get("episode_id", ours) != ours:
        return f"episode_id {ours!r}", f"{answer['episode_id']!r}"
    if found.failed:
        return None  # under load an episode may fail
    ended = [one for one in alone if not one.failed]
    said = _said(found)
    alike = [one for one in ended if said and _said(one) == said]
    if whole:
        return _differs(found, ended, lambda one: one.reply.said)
    return _differs(found, ended, _echo) or _differs(found, alike, _answered)


def _differs(
    found: PlayedEpisode, alone: Sequence[PlayedEpisode], view: Callable[[PlayedEpisode], Any]
) -> tuple[str, str] | None:
    """What all episodes alone have, and this one has not, of what is looked at."""
    *apart, beside = [Outcome((StepOutcome(RUN, one.reply.status, view(one), one.reply),)) for one in (*alone, found)]
    for difference in differences(apart[0], beside, varying(apart)) if apart else ():
        place = ".".join(map(str, difference.place[2:])) or "the answer"
        return f"{difference.expected!r} at {place}, as alone", f"{difference.actual!r}"
    return None


def _echo(found: PlayedEpisode) -> Any:
    return found.result.get("responses_create_params")


def _answered(found: PlayedEpisode) -> dict[str, Any]:
    """What came of what the policy said."""
    return {
        "reward": found.result.get("reward"),
        "output": [item.get("output") for item in found.output if _is_answer(item)],
    }


def _is_answer(item: Any) -> bool:
    return isinstance(item, dict) and item.get("type") == "function_call_output"


@check(
    "run-earlier",
    "An episode MUST know nothing about earlier ones",
    why="a rollout trains on what the policy said in another one, and is paid for it; nothing reports it.",
    needs=[ENVIRONMENT, EPISODE],
)
async def run_earlier(trial: Trial, _: object) -> None:
    """Plays a row, another one, and the first again; no response may begin with all that the one before it says, each longer.

    Source: `run` in environment_servers/single_agent_turn/app.py keeps what it learns in variables of its own (0.7.0).
    """
    one, *others = each_row(trial)
    outputs = [(await played(trial, episode_of(trial.gym, row))).output for row in (one, *others[:1], one)]
    if not all(outputs):
        raise NotApplicable("its results show no response of the policy's")
    if all(len(after) > len(before) and after[: len(before)] == before for before, after in pairwise(outputs)):
        raise Violation(
            "a response of this episode alone",
            f"{len(outputs[-1])} items, of which the first {len(outputs[-2])} are those of the episode before",
            "A list is kept for all episodes: of the module or the class, or a default argument.",
            Cause.OUTLIVING_STATE,
        )


@check(
    "run-repeats",
    "A row SHOULD earn the same whenever the policy says the same",
    why="group-relative advantages compare rollouts of one row, so the environment's randomness is mistaken for merit.",
    needs=[ENVIRONMENT, EPISODE],
)
async def run_repeats(trial: Trial, _: object) -> None:
    """Plays three rows twice each; wherever the policy said just what it had said before, the reward must be as it was then.

    All episodes that were played alone in this run are compared, from the first one on.

    Our inference: an environment that uses randomness takes its seed from the row, and an episode leaves nothing behind.
    """
    for row in each_row(trial)[:_ROWS]:
        trial.channel.exchanges.clear()  # the last two are shown
        for _again in range(2):
            await played(trial, episode_of(trial.gym, row))
        for rewards in (earned for (of, _said), earned in trial.learned.earned.items() if of is row):
            others = [reward for reward in rewards if reward != rewards[0]]
            if others:
                hint = "State is kept from earlier episodes, or the row does not seed what is drawn, or a judge decides otherwise."
                raise Violation(
                    f"{rewards[0]} for {row}, as for the first episode in which the policy says the same",
                    f"{others[-1]}; {len(others)} of {len(rewards)} earned something else than the first",
                    hint,
                )
    if all(len(rewards) == 1 for rewards in trial.learned.earned.values()):
        raise NotApplicable("the policy never says the same twice, or its results do not show what it says")


@check(
    "run-again",
    "A repeated episode request SHOULD be answered again",
    why="the client resends a request when its reply is lost; a refusal then loses the episode.",
    needs=[ENVIRONMENT, EPISODE],
)
async def run_again(trial: Trial, _: object) -> None:
    """Sends the same request twice; the second one must also end with a result.

    Source: `_request_with_retries` in nemo_gym/server_utils.py sends again after a broken connection (0.7.0).
    """
    episode = episode_of(trial.gym)
    first = await played(trial, episode)
    if first.failed:
        raise Untestable(f"an episode that ends with a result: by now {first.failed}")
    found = await played(trial, episode)
    if found.failed:
        hint = "The first run's sessions or files are in the way; give each run its own."
        raise Violation("a result again", found.failed, hint)


_NO_REQUESTS: Final = {
    "no JSON": b"{",
    "a list": b"[]",
    "null": b"null",
    "an empty object": b"{}",
    "an episode of the wrong types": b'{"episode_id":1,"task":"x"}',
    "a row without its task": b'{"task_id":"1","responses_create_params":null}',
}


@check(
    "run-malformed",
    "/run SHOULD refuse a malformed request without a 5xx",
    why="a 500 is recorded as a rollout that ran and failed, while a 422 names the field.",
    needs=[ENVIRONMENT],
    subjects=lambda _: _NO_REQUESTS,
)
async def run_malformed(trial: Trial, what: str) -> None:
    """Posts invalid JSON, a list, null, an empty object, and objects whose members have the wrong type.

    Source: `setup_webserver` in nemo_gym/base_environment_server.py gives FastAPI the request's model, which answers 422;
    `_agent_request_failure_row` in nemo_gym/rollout_collection.py says how a 500 is recorded (0.7.0).
    """
    reply: Reply = await trial.send(Request("POST", RUN, _NO_REQUESTS[what], JSON_HEADERS))
    expect_no_crash(reply, "The handler reads the raw body instead of a typed request model.", what)


@check(
    "run-aggregates",
    "/aggregate_metrics MUST accept the results of /run",
    why="collection fails at the very end, after all rollouts are done.",
    needs=[ENVIRONMENT, EPISODE],
)
async def run_aggregates(trial: Trial, _: object) -> None:
    """Plays two episodes and aggregates their results as collection does.

    group_level_metrics must be a list of objects, agent_metrics and key_metrics objects.

    Source: `_call_aggregate_metrics` in nemo_gym/rollout_collection.py, `AggregateMetrics` in nemo_gym/config_types.py
    (0.7.0).
    """
    results = [await _result(trial, trial.gym.row) for _ in range(2)]
    stripped = [
        {key: value for key, value in result.items() if key not in _HEAVY} | {TASK_INDEX: 0, ROLLOUT_INDEX: at}
        for at, result in enumerate(results)
    ]
    reply = await trial.send(post(AGGREGATE_METRICS, {"verify_responses": stripped}))
    hint = "aggregate_metrics() assumes a field that these results do not have, or forwards to a server that does."
    expect_success(reply, hint)
    body = expect_object(reply, hint)
    groups = body.get("group_level_metrics", [])
    objects = all(isinstance(body.get(key, {}), dict) for key in ("agent_metrics", "key_metrics"))
    if not objects or not isinstance(groups, list) or not all(isinstance(group, dict) for group in groups):
        raise Violation("group_level_metrics, agent_metrics and key_metrics", describe(reply), hint)
