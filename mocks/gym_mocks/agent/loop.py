"""The default agent's loop, reproduced exactly (responses_api_agents/simple_agent/app.py of nemo-gym 0.4.0)."""

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from pydantic import ValidationError
from pydantic_core import from_json

from gym_mocks.agent.model_replies import ModelReply
from gym_mocks.agent.peers import CookieValues, Peers, cookies_of
from gym_mocks.wire import HttpReply

UNREAD = dict.fromkeys(map(ord, "\t\r\n"))  # in an address
URL_LETTERS = ":/?#[]@!$&'()*+,;=%"  # that stand for themselves

TURNS = 1_000  # the default agent has no end of its own; a model that never comes to one would keep this one for ever


class InnerError(Exception):
    """A server that the agent called answered with an error; the agent answers 500 with its content."""

    def __init__(self, content: bytes) -> None:
        super().__init__(content)
        self.content = content


async def play(
    peers: Peers, params: Mapping[str, Any], cookies: CookieValues, max_steps: int | None
) -> tuple[dict[str, Any], CookieValues]:
    """Call the model and the tools until the model is done; its last response with all output, and cookies.

    The cookies are those of the last tool's reply, whatever was there before: a reply without any loses the
    session.
    """
    given = params["input"]
    asked = [{"role": "user", "content": given, "type": "message"}] if isinstance(given, str) else given
    said: list[dict[str, Any]] = []
    usage: dict[str, Any] | None = None
    model_cookies: CookieValues = {}
    step = 0
    while True:
        if step == TURNS:
            raise RuntimeError(f"{TURNS} turns, and the model has not come to an end")
        step += 1
        reply = await peers.post(f"{peers.model}/v1/responses", {**params, "input": asked + said}, model_cookies)
        response, model_cookies = checked(reply), cookies_of(reply)
        output = _output(response)
        said += output
        usage = _summed(usage, response.get("usage"))
        calls = [item for item in output if item["type"] == "function_call"]
        messages = [item for item in output if item["type"] == "message" and item["role"] == "assistant"]
        if response.get("incomplete_details") is not None or (messages and not calls):
            break
        for call in calls:
            told, cookies = await _called(peers, call, cookies)
            said.append(_result(call, told))
        if max_steps and step >= max_steps:
            break
    return {**response, "output": said, "usage": usage}, cookies | model_cookies


async def _called(peers: Peers, call: Mapping[str, Any], cookies: CookieValues) -> tuple[str, CookieValues]:
    """What a tool call is answered, and the cookies after it; arguments that are not JSON reach no tool."""
    try:
        arguments = json.loads(call["arguments"])
    except (json.JSONDecodeError, TypeError) as error:
        return json.dumps({"error": f"Invalid tool call arguments: {error!r}"}), cookies
    if _has_big_integer(arguments):
        raise TypeError("Integer exceeds 64-bit range")  # as orjson does
    reply = await peers.post(_url(peers.resources, call["name"]), arguments, cookies)
    return body_of(reply).decode(), cookies_of(reply)


def _url(base: str, name: str) -> str:
    """A tool's address as aiohttp reads it: `../verify` and `verify#a` are paths of this server, too."""
    path, mark, query = name.translate(UNREAD).partition("#")[0].partition("?")
    segments: list[str] = []
    for segment in path.split("/"):
        if segment == "..":
            segments[-1:] = []
        elif segment != ".":
            segments.append(segment)
    if path.rpartition("/")[2] in {".", ".."}:
        segments.append("")
    return quote(f"{base}/{'/'.join(segments)}{mark}{query}", safe=URL_LETTERS)


def succeeded(reply: HttpReply) -> HttpReply:
    """A reply that is none of an error.

    Raises:
        InnerError: it is.
    """
    if not 200 <= reply.status < 400:  # noqa: PLR2004 - as aiohttp's `ok`
        raise InnerError(body_of(reply))
    return reply


def checked(reply: HttpReply) -> dict[str, Any]:
    """A reply's JSON object, which has no NaN and no lone surrogate: orjson reads it.

    Raises:
        InnerError: the reply is an error.
        RuntimeError: it is no JSON object.
    """
    body = body_of(succeeded(reply))
    try:
        value = from_json(body, allow_inf_nan=False)
    except ValueError as error:
        raise RuntimeError(f"Received what is no JSON, {error}: {body[:200]!r}") from None
    if not isinstance(value, dict):
        raise RuntimeError(f"Received an invalid response: {body[:200]!r}")  # noqa: TRY004 - the agent's own error
    return value


def body_of(reply: HttpReply) -> bytes:
    """The body of a reply that has been read whole."""
    if not isinstance(reply.body, bytes):
        raise TypeError("the reply is still a stream")
    return reply.body


def _has_big_integer(value: Any) -> bool:
    if isinstance(value, dict):
        return any(map(_has_big_integer, value.values()))
    if isinstance(value, list):
        return any(map(_has_big_integer, value))
    return isinstance(value, int) and not -(2**63) <= value < 2**64


def _output(response: Mapping[str, Any]) -> list[dict[str, Any]]:
    """A response's items, each with its type.

    Raises:
        RuntimeError: it is none that nemo-gym would take.
    """
    try:
        ModelReply.model_validate(response)
    except ValidationError as error:
        wrong = told(error)
        raise RuntimeError(f"Received an invalid response from model server, {wrong}: {json.dumps(response)}") from None
    return [{"type": "message"} | item for item in response["output"]]


def told(error: ValidationError) -> str:
    """What is wrong, and where."""
    wrong = (f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors(include_url=False))
    return f"{'; '.join(wrong):.1000}"


def _result(call: Mapping[str, Any], text: str) -> dict[str, Any]:
    return {
        "call_id": call["call_id"],
        "output": text,
        "type": "function_call_output",
        "id": None,
        "status": None,
    }


def _summed(before: dict[str, Any] | None, now: dict[str, Any] | None) -> dict[str, Any] | None:
    """The usage so far: sums, whose details the agent sets to 0."""
    if not before or not now:
        return before or now
    sums = {name: before[name] + now[name] for name in ("input_tokens", "output_tokens", "total_tokens")}
    details = {
        "input_tokens_details": {**before["input_tokens_details"], "cached_tokens": 0},
        "output_tokens_details": {**before["output_tokens_details"], "reasoning_tokens": 0},
    }
    return before | sums | details
