"""Requests that hold several prompts, which inference engines take at once: each prompt becomes a request of its own."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gym_mocks.policy.request_values import token_ids
from gym_mocks.wire import HttpRefusal

#: What a request is taken apart into; None where it holds one prompt, and is answered as it stands.
Parts = Callable[[dict[str, Any]], list[dict[str, Any]] | None]

MOST_PROMPTS = 4096


def listed(*fields: str) -> Parts:
    """Take apart a list of prompts, texts or lists of token ids, in the first of these fields that is there."""

    def parts(body: dict[str, Any]) -> list[dict[str, Any]] | None:
        name = next((name for name in fields if body.get(name) is not None), fields[0])
        given = body.get(name)
        if not isinstance(given, list) or not given or not all(isinstance(each, str | list) for each in given):
            return None
        return _each(body, name, given)

    return parts


def renamed(name: str, single: str) -> Parts:
    """Take apart a list in the field of this name, which each part has as `single`, as TRL's server is asked.

    `generation_kwargs` say the same as fields of the request itself, and are heeded first.
    """

    def parts(body: dict[str, Any]) -> list[dict[str, Any]]:
        given, more = body.get(name), body.get("generation_kwargs") or {}
        if not isinstance(given, list) or not given or not isinstance(more, Mapping):
            raise HttpRefusal(400, f"{name}: a list is expected, with one prompt at least")
        return _each({**body, **more}, single, given)

    return parts


def as_rendered(name: str) -> Parts:
    """Take the token ids in the field of this name for the conversation as the client rendered it."""

    def parts(body: dict[str, Any]) -> list[dict[str, Any]]:
        if not body.get(name) or not token_ids(body[name]):
            raise HttpRefusal(400, f"{name}: a list of token ids is expected")
        return [{**body, "input_ids": body[name]}]

    return parts


def _each(body: dict[str, Any], name: str, given: Sequence[Any]) -> list[dict[str, Any]]:
    if len(given) > MOST_PROMPTS:
        raise HttpRefusal(400, f"{name}: {MOST_PROMPTS:,} prompts at most are answered at once")
    if body.get("stream") and len(given) > 1:
        raise HttpRefusal(400, "stream: not supported for several prompts; send one in each request")
    return [{**body, name: one} for one in given]


def alone(replies: Sequence[Any]) -> Any:
    """The reply to the only prompt."""
    return replies[0]


def one_by_one(replies: Sequence[Any]) -> list[Any]:
    """The replies as one list, as SGLang answers; where there are several of one prompt, all of them in it."""
    return [one for reply in replies for one in (reply if isinstance(reply, list) else [reply])]


def side_by_side(replies: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The replies' lists as one list each, as TRL's server answers; None where one reply has none."""
    return {
        name: None
        if any(reply[name] is None for reply in replies)
        else [one for reply in replies for one in reply[name]]
        for name in replies[0]
    }


def choices_joined(replies: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The replies of `/v1/completions` as one: its choices numbered through, and their usage together."""
    choices = [choice for reply in replies for choice in reply["choices"]]
    usage = {name: sum(reply["usage"][name] for reply in replies) for name in replies[0]["usage"]}
    numbered = [{**choice, "index": index} for index, choice in enumerate(choices)]
    return {**replies[0], "choices": numbered, "usage": usage}
