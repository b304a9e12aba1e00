"""The OpenAI SDK, unmodified, takes the policy for the real thing, and its own types hold every reply."""

import asyncio
from collections.abc import Iterator
from typing import Any

import httpx
import openai
import pytest
import respx
from openai import AsyncOpenAI, AzureOpenAI, OpenAI
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from openai.types.responses import Response, ResponseItem, ResponseStreamEvent
from pydantic import TypeAdapter

from gym_mocks.policy import FakePolicy, PolicyFault, call, say, think
from gym_mocks.serving import serve

TOOL: dict[str, Any] = {
    "type": "function",
    "name": "get_weather",
    "strict": True,
    "parameters": {"type": "object", "properties": {}, "required": [], "additionalProperties": False},
}
CHAT_TOOL: dict[str, Any] = {"type": "function", "function": {"name": "get_weather", "parameters": {}}}
SCRIPT: list[Any] = [
    [think("Hm, Paris. " * 5), call("get_weather", city="Paris"), call("x")],
    say("It is sunny. " * 5),
]
EVENTS: TypeAdapter[Any] = TypeAdapter(ResponseStreamEvent)
ITEMS: TypeAdapter[Any] = TypeAdapter(ResponseItem)
RESULTS = ["function_call_output"] * 2


@pytest.fixture(params=[False, True], ids=["plain", "token-fields"])
def policy(request: pytest.FixtureRequest) -> FakePolicy:
    policy = FakePolicy(token_fields=request.param)
    policy.script("weather", SCRIPT)
    return policy


@pytest.fixture
def url(policy: FakePolicy) -> Iterator[str]:
    with serve(policy) as url:
        yield f"{url}/v1"


def strict(model: Any, value: Any) -> None:
    """Hold a reply to the SDK's own types, which the SDK itself does not."""
    model.model_validate(value.model_dump(by_alias=True), strict=False)


def results(response: Response) -> list[Any]:
    calls = [item for item in response.output if item.type == "function_call"]
    return [{"type": "function_call_output", "call_id": c.call_id, "output": "sun"} for c in calls]


def test_responses(url: str) -> None:
    with OpenAI(base_url=url, api_key="k") as client:
        given: Any = [{"role": "user", "content": "Weather?"}]
        first = client.responses.create(model="m", input=given, tools=[TOOL])
        strict(Response, first)
        given += [item.model_dump() for item in first.output] + results(first)
        last = client.responses.create(model="m", input=given, tools=[TOOL])
        strict(Response, last)
    assert last.output_text == "It is sunny. " * 5
    assert last.usage is not None


def test_a_response_says_what_it_was_asked_for(url: str) -> None:
    asked: Any = {"truncation": "auto", "service_tier": "flex", "max_tool_calls": 3, "top_logprobs": 2}
    with OpenAI(base_url=url, api_key="k") as client:
        said = client.responses.create(model="m", input="Weather?", **asked)
    strict(Response, said)
    assert {name: getattr(said, name) for name in asked} == asked


@pytest.mark.parametrize("stream", [False, True])
def test_a_response_is_gone_on_from_by_its_id(url: str, stream: bool) -> None:
    """As Microsoft's agent framework 1.17 asks by default: only what is new is sent."""
    with OpenAI(base_url=url, api_key="k") as client:
        first = client.responses.create(model="m", input="Weather?", tools=[TOOL])
        assert first.store
        asked: Any = {"model": "m", "tools": [TOOL], "input": results(first), "previous_response_id": first.id}
        if stream:
            with client.responses.stream(**asked) as events:
                last: Response = events.get_final_response()
        else:
            last = client.responses.create(**asked)
        strict(Response, last)
        whole: Any = [{"role": "user", "content": "Weather?"}, *(item.model_dump() for item in first.output)]
        same = client.responses.create(model="m", tools=[TOOL], input=[*whole, *results(first)])
        on = client.responses.create(model="m", input="And?", previous_response_id=last.id, store=False)
        with pytest.raises(openai.BadRequestError, match=f"no response '{on.id}' is kept"):
            client.responses.create(model="m", input="And?", previous_response_id=on.id)
    assert (last.output_text, last.id, last.previous_response_id) == ("It is sunny. " * 5, same.id, first.id)
    assert on.output_text == "Done."


@pytest.mark.parametrize("stream", [False, True])
def test_a_response_that_is_kept_is_given_again_until_it_is_deleted(url: str, stream: bool) -> None:
    with OpenAI(base_url=url, api_key="k") as client:
        if stream:
            with client.responses.stream(model="m", input="Weather?", tools=[TOOL]) as events:
                first: Response = events.get_final_response()
        else:
            first = client.responses.create(model="m", input="Weather?", tools=[TOOL])
        again = client.responses.retrieve(first.id)
        strict(Response, again)
        with pytest.raises(openai.BadRequestError, match="not made in the background"):
            client.responses.retrieve(first.id, stream=True)
        client.responses.delete(first.id)
        with pytest.raises(openai.NotFoundError, match=f"Response with id '{first.id}' not found"):
            client.responses.retrieve(first.id)
        with pytest.raises(openai.BadRequestError):
            client.responses.create(model="m", input="And?", previous_response_id=first.id)
    assert (again.id, len(again.output)) == (first.id, 3)


def test_the_input_of_a_response_that_is_kept_is_listed(url: str) -> None:
    """From the conversation's beginning, the newest first unless asked otherwise."""
    with OpenAI(base_url=url, api_key="k") as client:
        first = client.responses.create(model="m", input="Weather?", tools=[TOOL])
        asked: Any = {"model": "m", "input": results(first), "previous_response_id": first.id}
        last = client.responses.create(**asked)
        listed = [*client.responses.input_items.list(last.id, order="asc")]
        newest = client.responses.input_items.list(last.id)
        with pytest.raises(openai.NotFoundError, match="not found"):
            client.responses.input_items.list("resp_1")
    for item in listed:
        ITEMS.validate_python(item.model_dump(by_alias=True))
    assert [item.type for item in listed] == ["message", *(item.type for item in first.output), *RESULTS]
    assert [item.id for item in newest] == [item.id for item in reversed(listed)]


@pytest.mark.parametrize("steps", [0, 1])
def test_responses_streamed(url: str, steps: int) -> None:
    given: Any = [{"role": "user", "content": "Weather?"}]
    with OpenAI(base_url=url, api_key="k") as client:
        for _ in range(steps):
            first = client.responses.create(model="m", input=given)
            given += [item.model_dump() for item in first.output] + results(first)
        whole = client.responses.create(model="m", input=given)
        with client.responses.stream(model="m", input=given) as stream:
            events = list(stream)
            final = stream.get_final_response()
        raw = list(client.responses.create(model="m", input=given, stream=True))
    for event in raw:
        EVENTS.validate_python(event.model_dump(by_alias=True))
    assert [event.sequence_number for event in raw] == list(range(len(raw)))
    assert events[-1].type == "response.completed"
    assert [item.model_dump(exclude={"parsed_arguments"}) for item in final.output][-1]["type"] in {
        "message",
        "function_call",
    }
    assert final.output_text == whole.output_text
    assert [i.arguments for i in final.output if i.type == "function_call"] == [
        i.arguments for i in whole.output if i.type == "function_call"
    ]


def test_chat(url: str) -> None:
    messages: Any = [{"role": "developer", "content": "Brief."}, {"role": "user", "content": "Weather?"}]
    with OpenAI(base_url=url, api_key="k") as client:
        first = client.chat.completions.create(model="m", messages=messages, tools=[CHAT_TOOL])
        strict(ChatCompletion, first)
        message = first.choices[0].message
        assert first.choices[0].finish_reason == "tool_calls"
        calls = message.tool_calls or []
        messages += [message.model_dump(exclude_none=True)]
        messages += [{"role": "tool", "tool_call_id": c.id, "content": "sun"} for c in calls]
        last = client.chat.completions.create(model="m", messages=messages, logprobs=True)
        strict(ChatCompletion, last)
    assert last.choices[0].message.content == "It is sunny. " * 5
    assert last.choices[0].finish_reason == "stop"


def test_chat_streamed(url: str) -> None:
    messages: Any = [{"role": "user", "content": "Weather?"}]
    counted: Any = {"include_usage": True, "continuous_usage_stats": True}
    with OpenAI(base_url=url, api_key="k") as client:
        chunks = list(
            client.chat.completions.create(
                model="m",
                messages=messages,
                stream=True,
                stream_options=counted,
            )
        )
        for chunk in chunks:
            strict(ChatCompletionChunk, chunk)
        assert all(chunk.usage for chunk in chunks)
        with client.chat.completions.stream(model="m", messages=messages) as stream:
            final = stream.get_final_completion()
    calls = final.choices[0].message.tool_calls or []
    assert [c.function.arguments for c in calls] == ['{"city": "Paris"}', "{}"]


def test_azures_clients_ask_below_another_path(url: str) -> None:
    """By a deployment's name, or none; Groq's SDK 1.7 and nemo-gym's azure_openai_model ask so, too."""
    messages: Any = [{"role": "user", "content": "Weather?"}]
    with AzureOpenAI(azure_endpoint=url.removesuffix("/v1"), api_key="k", api_version="2024-10-21") as client:
        chat = client.chat.completions.create(model="weather", messages=messages)
        response = client.responses.create(model="weather", input="Weather?")
        assert [model.id for model in client.models.list()] == ["weather"]
    assert len(chat.choices[0].message.tool_calls or []) == 2
    assert len(response.output) == 3


def test_async_plain_and_streamed(url: str) -> None:
    async def ask() -> tuple[str, str]:
        async with AsyncOpenAI(base_url=url, api_key="k") as client:
            plain, streamed = await asyncio.gather(
                client.responses.create(model="m", input="Weather?"),
                client.responses.create(model="m", input="Weather?", stream=True),
            )
            events = [event async for event in streamed]
            return plain.id, events[-1].response.id

    one, other = asyncio.run(ask())
    assert one == other


def test_async_chat_streamed(url: str) -> None:
    async def ask() -> tuple[Any, str]:
        async with AsyncOpenAI(base_url=url, api_key="k") as client:
            messages: Any = [{"role": "user", "content": "Weather?"}]
            plain = await client.chat.completions.create(model="m", messages=messages)
            async with client.chat.completions.stream(model="m", messages=messages) as stream:
                return plain, (await stream.get_final_completion()).to_json()

    plain, streamed = asyncio.run(ask())
    final = ChatCompletion.model_validate_json(streamed)
    wanted = [call.function.arguments for call in plain.choices[0].message.tool_calls]
    assert [call.function.arguments for call in final.choices[0].message.tool_calls or []] == wanted


def test_models(url: str) -> None:
    with OpenAI(base_url=url, api_key="k") as client:
        assert [model.id for model in client.models.list()] == ["weather"]


def test_the_sdk_retries_a_429(policy: FakePolicy, url: str) -> None:
    policy.fail(PolicyFault("status", status=429, retry_after=0.05, times=1))
    with OpenAI(base_url=url, api_key="k") as client:
        assert client.responses.create(model="m", input="Weather?").output
    assert [call.status for call in policy.calls] == [429, 200]


def test_an_unknown_rollout_is_a_409(policy: FakePolicy, url: str) -> None:
    policy.script("other", ["x"])
    with OpenAI(base_url=url, api_key="k", max_retries=0) as client, pytest.raises(openai.ConflictError):
        client.responses.create(model="nobody", input="Weather?")


def test_in_process_by_respx(policy: FakePolicy) -> None:
    """What respx sees: not httpx2, on which the SDK is from 3.0 on; but the SDK takes a client of httpx."""
    with respx.mock() as router, httpx.Client() as plain:
        policy.mount(router, base_url="https://api.openai.com/v1")
        client = OpenAI(api_key="k", http_client=plain, max_retries=0)
        assert client.responses.create(model="weather", input="Weather?").output[1].type == "function_call"
    assert policy.calls.count == 1


def test_an_error_is_known_by_its_code(policy: FakePolicy, url: str) -> None:
    policy.fail(PolicyFault("status", status=400, code="context_length_exceeded"))
    with OpenAI(base_url=url, api_key="k") as client, pytest.raises(openai.BadRequestError) as error:
        client.responses.create(model="m", input="x")
    assert error.value.code == "context_length_exceeded"
