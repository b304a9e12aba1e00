"""Policies: callables that answer a request with a turn."""

import inspect
import json
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from random import Random
from typing import Any

from gym_mocks.policy.conversation import PolicyRequest, Prompt, recorded_turns
from gym_mocks.policy.items import Say, ToolCall, Turn, TurnItem, turn_of
from gym_mocks.policy.samples import broken, sample

Said = TurnItem | str | Sequence[TurnItem | str]
Policy = Callable[[PolicyRequest], Said | Awaitable[Said]]
ArgumentMaker = Callable[[dict[str, Any], Random], Any]


async def turn_by(policy: Policy, request: PolicyRequest) -> Turn:
    """A policy's turn, whether the policy is sync or async."""
    said = policy(request)
    return turn_of(await said if inspect.isawaitable(said) else said)


def policy_of(given: Any) -> Policy:
    """A policy as it is given.

    Raises:
        TypeError: it is no function.
    """
    if not callable(given):
        raise TypeError(f"a policy is a function of the request, which scripted(...) makes of turns: not {given!r:.80}")
    policy: Policy = given
    return policy


def scripted(turns: Sequence[Said]) -> Policy:
    """Say the n-th turn to a conversation in which it has had n turns, then "Done.".

    It keeps no state, so any number of rollouts may follow one script at once.

    Raises:
        TypeError: they are no list of turns, or one of them is no turn.
    """
    if isinstance(turns, str | TurnItem) or not isinstance(turns, Sequence):
        raise TypeError(f"a script is a list of turns: not {turns!r:.80}")
    script = [turn_of(said) for said in turns]
    return lambda request: script[request.step] if request.step < len(script) else Say("Done.")


def scripted_rows(
    rows: Iterable[Mapping[str, Any]], scripts: Iterable[Sequence[Said]], *, otherwise: Policy | None = None
) -> Policy:
    """Follow, to each row's prompt, that row's script; a prompt of no row is for `otherwise`, or gets a 500 that says so.

    Raises:
        ValueError: there are more rows than scripts, or fewer.
    """
    rows, scripts = list(rows), list(scripts)
    if len(rows) != len(scripts):
        raise ValueError(f"a script for each row is expected: not {len(scripts)} for {len(rows)} rows")
    by_prompt = {_prompt(_asked(row)): scripted(script) for row, script in zip(rows, scripts, strict=True)}

    def policy(request: PolicyRequest) -> Said | Awaitable[Said]:
        found = by_prompt.get(_prompt(request), otherwise)
        if found is None:
            raise LookupError("no row has this prompt")
        return found(request)

    return policy


def echo(request: PolicyRequest) -> Say:
    """Say what it was told last."""
    return Say(request.text)


def replayed(rollouts: Iterable[Mapping[str, Any]]) -> Policy:
    """Say what the policy of recorded rollouts said: those of `example_rollouts.jsonl`'s form.

    The rollout is the one of the same prompt; of several, the one that agrees with the turns so far. Where
    nothing is left to say, `Done.`; where none fits, the client gets a 500 that says so.

    Raises:
        ValueError: one of them is of another form.
    """
    recorded: defaultdict[tuple[Prompt, ...], list[list[Turn]]] = defaultdict(list)
    for rollout in rollouts:
        try:
            asked, played = _prompt(_asked(rollout)), list(recorded_turns(rollout["response"]["output"]))
        except (KeyError, TypeError) as error:
            needed = "responses_create_params (with input) and response (with output)"
            raise ValueError(f"a recorded rollout has {needed}: not {rollout!r:.80}") from error
        recorded[asked].append(played)

    def policy(request: PolicyRequest) -> Said:
        turns, fitting = list(request.turns), recorded.get(_prompt(request))
        if not fitting:
            raise LookupError("no recorded rollout has this prompt")
        said = next((said for said in fitting if said[: len(turns)] == turns), fitting[0])
        return said[len(turns)] if len(turns) < len(said) else Say("Done.")

    return policy


def generated(*, calls: int = 3, arguments: ArgumentMaker = sample, hostile: bool = False, seed: int = 0) -> Policy:
    """Call the request's own tools, one a turn, then ends; deterministic for a conversation and a seed.

    Args:
        calls: how many turns call a tool before the last one.
        arguments: makes arguments from a JSON Schema; given a seeded source of randomness. Those of `sample` are
            validated; where it finds none, the client gets a 500 that says so.
        hostile: break the arguments on purpose: not JSON, no object, something missing, extra or of another type;
            always such that the schema refuses them.
        seed: changes every choice.
    """

    def policy(request: PolicyRequest) -> Said:
        if request.step >= calls or not request.tools:
            return Say("Done.")
        random = Random(f"{seed} {request.step} {request.prompt}")
        name = random.choice(sorted(request.tools))
        schema = {"type": "object", **request.tools[name]}
        made = arguments(schema, random)
        return ToolCall(name, broken(schema, made, random) if hostile else json.dumps(made))

    return policy


def _asked(row: Mapping[str, Any]) -> PolicyRequest:
    given = row["responses_create_params"]
    return PolicyRequest("responses", {"input": given["input"], "instructions": given.get("instructions")})


def _prompt(request: PolicyRequest) -> tuple[Prompt, ...]:
    return tuple(entry for entry in request.prompt if entry.role != "assistant")


def ending(policy: Policy, limit: int) -> Policy:
    """The same policy, which ends after `limit` turns whatever it would say: agents loop until it ends."""

    async def limited(request: PolicyRequest) -> Turn:
        turn = await turn_by(policy, request) if request.step < limit else ()
        return turn or (Say("Enough."),)

    return limited
