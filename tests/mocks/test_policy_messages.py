"""Anthropic's Messages API: the stream says what the whole reply says."""

import json
from typing import Any

import httpx

from gym_mocks.policy import FakePolicy, call, say, think
from gym_mocks.serving import serve

BODY: dict[str, Any] = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]}


def assembled(text: str) -> dict[str, Any]:
    """The message that a client puts together from a stream's events."""
    events = [json.loads(line.removeprefix("data: ")) for line in text.splitlines() if line.startswith("data: ")]
    names = [line.removeprefix("event: ") for line in text.splitlines() if line.startswith("event: ")]
    assert names == [event["type"] for event in events]
    message: dict[str, Any] = events[0]["message"]
    for event in events[1:]:
        match event["type"]:
            case "content_block_start":
                message["content"].append(event["content_block"])
            case "content_block_delta":
                (key, piece) = next((k, v) for k, v in event["delta"].items() if k != "type")
                field = "input" if key == "partial_json" else key
                message["content"][event["index"]][field] = json.loads(piece) if field == "input" else piece
            case "message_delta":
                message |= event["delta"]
                message["usage"] |= event["usage"]
    assert names[-1] == "message_stop"
    return message


def test_a_stream_is_the_whole_reply() -> None:
    policy = FakePolicy()
    policy.script("m", [[think("Hm."), say("Let me see."), call("add", number=1)], "Done."])
    messages = BODY["messages"]
    with serve(policy) as url, httpx.Client(base_url=url) as client:
        for reason in ("tool_use", "end_turn"):
            body = BODY | {"messages": messages}
            whole = client.post("/v1/messages", json=body).json()
            assert assembled(client.post("/v1/messages", json=body | {"stream": True}).text) == whole
            assert whole["stop_reason"] == reason
            result = {"type": "tool_result", "tool_use_id": whole["content"][-1].get("id"), "content": "2"}
            messages = [*messages, {"role": "assistant", "content": whole["content"]}]
            messages.append({"role": "user", "content": [result]})
    assert whole["content"] == [{"type": "text", "text": "Done."}]
