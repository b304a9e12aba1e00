"""What the fake policy says, by whichever API it is asked."""

import json
from itertools import pairwise
from typing import Any

import httpx
import jsonschema_rs
import pytest

from gym_mocks.policy import FakePolicy, PolicyCall, PolicyRequest, call, echo, generated, raw_call, say, think
from gym_mocks.policy.policy_calls import Calls
from gym_mocks.reference import ROLLOUTS
from gym_mocks.serving import serve

RECORDED = [json.loads(line) for line in ROLLOUTS.read_text().splitlines()]
TOOL: dict[str, Any] = {
    "type": "function",
    "name": "add",
    "strict": True,
    "parameters": {
        "type": "object",
        "properties": {"number": {"type": "integer", "minimum": 1, "maximum": 9}, "of": {"enum": ["a", "b"]}},
        "required": ["number", "of"],
        "additionalProperties": False,
    },
}


@pytest.fixture
def policy() -> FakePolicy:
    return FakePolicy()


def respond(client: httpx.Client, given: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    reply = client.post("/v1/responses", json={"input": given, **more})
    assert reply.status_code == 200, reply.text
    body: dict[str, Any] = reply.json()
    return body


def played(client: httpx.Client, prompt: list[dict[str, Any]], **more: Any) -> list[dict[str, Any]]:
    """All output items of a conversation whose every call is answered by `ok`."""
    output: list[dict[str, Any]] = []
    for _ in range(100):
        items = respond(client, prompt + output, **more)["output"]
        output += items
        calls = [item for item in items if item["type"] == "function_call"]
        if not calls and any(item["type"] == "message" for item in items):
            return output
        output += [{"type": "function_call_output", "call_id": c["call_id"], "output": "ok"} for c in calls]
    raise AssertionError("the policy never ends")


USER = [{"role": "user", "content": "hello"}]


def test_a_script_is_said_turn_by_turn_and_always_ends(policy: FakePolicy, client: httpx.Client) -> None:
    policy.script("weather", [[think("Hm."), call("get", city="Paris"), call("get", city="Rome")], raw_call("x", "{")])
    kinds = [item["type"] for item in played(client, USER)]
    parallel = ["reasoning", "function_call", "function_call", "function_call_output", "function_call_output"]
    assert kinds == [*parallel, "function_call", "function_call_output", "message"]
    assert policy.calls.count == 3
    assert [item.name for item in policy.calls.last.request.entries if hasattr(item, "name")] == [
        "get",
        "get",
        "x",
    ]


def test_a_policy_that_never_ends_is_ended(client: httpx.Client, policy: FakePolicy) -> None:
    policy.max_turns = 5
    policy.bind("loop", lambda _: call("again"))
    assert [item["type"] for item in played(client, USER)].count("function_call") == 5


def test_a_prompt_with_an_assistants_example_is_no_turn_of_ours(client: httpx.Client, policy: FakePolicy) -> None:
    policy.script("any", ["first", "second"])
    example = [*USER, {"role": "assistant", "content": "an example"}, {"role": "user", "content": "now you"}]
    assert respond(client, example)["output"][0]["content"][0]["text"] == "first"


def test_sync_and_async_functions_are_policies(client: httpx.Client, policy: FakePolicy) -> None:
    async def later(request: PolicyRequest) -> list[Any]:
        return [f"{request.step} {request.text} {sorted(request.tools)}"]

    with policy.bind("f", later):
        assert respond(client, USER, tools=[TOOL])["output"][0]["content"][0]["text"] == "0 hello ['add']"
    assert respond(client, USER)["output"][0]["content"][0]["text"] == echo(PolicyRequest("chat", {})).text + "hello"


@pytest.mark.parametrize("index", range(len(RECORDED)))
def test_replay_says_what_was_recorded(client: httpx.Client, policy: FakePolicy, index: int) -> None:
    policy.replay("recorded", RECORDED)
    rollout = RECORDED[index]
    said = played(client, rollout["responses_create_params"]["input"])
    wanted = [(c["name"], c["arguments"]) for c in rollout["response"]["output"] if c["type"] == "function_call"]
    assert [(c["name"], c["arguments"]) for c in said if c["type"] == "function_call"] == wanted
    assert said[-1]["content"][0]["text"] == rollout["response"]["output"][-1]["content"][0]["text"]


def test_replay_of_an_unknown_prompt_says_so(client: httpx.Client, policy: FakePolicy) -> None:
    policy.replay("recorded", RECORDED)
    assert "no recorded rollout" in client.post("/v1/responses", json={"input": USER}).text


def test_generated_calls_are_valid_and_repeatable(client: httpx.Client, policy: FakePolicy) -> None:
    for seed in range(20):
        with policy.generate("g", calls=4, seed=seed):
            one, other = (played(client, USER, tools=[TOOL]) for _ in range(2))
        assert one == other
        arguments = [json.loads(item["arguments"]) for item in one if item["type"] == "function_call"]
        assert len(arguments) == 4
        assert all(1 <= a["number"] <= 9 and a["of"] in {"a", "b"} and len(a) == 2 for a in arguments)


def test_hostile_calls_are_not_valid(client: httpx.Client, policy: FakePolicy) -> None:
    parameters: Any = TOOL["parameters"]
    policy.bind("g", generated(hostile=True, calls=30, arguments=lambda _, random: {"number": random.randint(1, 9)}))
    for item in played(client, USER, tools=[TOOL]):
        if item["type"] == "function_call":
            try:
                valid = jsonschema_rs.is_valid(parameters, json.loads(item["arguments"]))
            except ValueError:  # no JSON, or half a surrogate pair
                valid = False
            assert not valid


def test_routes_by_model_by_key_and_the_only_one(client: httpx.Client, policy: FakePolicy) -> None:
    def said(model: str, key: str = "") -> str | int:
        headers = {"authorization": f"Bearer {key}"} if key else {}
        reply = client.post("/v1/responses", json={"input": "hi", "model": model}, headers=headers)
        return reply.json()["output"][0]["content"][0]["text"] if reply.is_success else reply.status_code

    one = policy.script("rollout-1", [say("one")], api_key="key-1")
    assert said("whatever") == "one"
    with policy.script("rollout-2", [say("two")]):
        assert (said("rollout-1"), said("rollout-2"), said("x"), said("x", "key-1")) == (
            "one",
            "two",
            409,
            "one",
        )
        assert [m["id"] for m in client.get("/v1/models").json()["data"]] == ["rollout-1", "rollout-2"]
    assert said("rollout-2") == "one"
    one.release()
    one.release()
    assert said("rollout-1") == "hi"
    assert [call.route for call in policy.calls][-1] == ""
    assert len(policy.calls.of("rollout-2")) == 1


def test_calls_are_kept_within_bounds(client: httpx.Client) -> None:
    bounded = FakePolicy(keep=3)
    with serve(bounded) as url:
        for number in range(5):
            httpx.post(f"{url}/v1/chat/completions", json={"messages": [{"role": "user", "content": str(number)}]})
    assert (bounded.calls.count, len(bounded.calls)) == (5, 3)
    assert bounded.calls.last.request.text == "4"
    assert [call.request.text for call in bounded.calls] == ["2", "3", "4"]
    small = Calls(10, size=100)
    for length in (40, 40, 40, 200):
        small.add(PolicyCall("chat", b"x" * length, "", 200))
        assert sum(len(call.raw) for call in small) <= 100 or len(small) == 1
    assert (small.count, len(small)) == (4, 1)
    assert client.get("/health").json() == {"status": "ok"}


@pytest.mark.parametrize("reasoning", [True, False])
def test_tokens_are_contiguous_over_the_turns(client: httpx.Client, policy: FakePolicy, reasoning: bool) -> None:
    policy.token_fields = True
    thought = [think("So.")] if reasoning else []
    policy.script("t", [[*thought, call("add", number=1)], [*thought, call("add", number=2), call("x")], "Done."])
    output = played(client, [{"role": "developer", "content": "be brief"}, *USER], tools=[TOOL])
    bundles = [item for item in output if "prompt_token_ids" in item]
    assert len(bundles) == 3
    seen: list[int] = []
    for bundle in bundles:
        assert bundle["prompt_token_ids"][: len(seen)] == seen
        assert len(bundle["prompt_token_ids"]) > len(seen)
        assert len(bundle["generation_token_ids"]) == len(bundle["generation_log_probs"]) > 0
        assert all(probability <= 0 for probability in bundle["generation_log_probs"])
        seen = bundle["prompt_token_ids"] + bundle["generation_token_ids"]
    assert output == played(client, [{"role": "developer", "content": "be brief"}, *USER], tools=[TOOL])


def test_developer_messages_are_system_messages(client: httpx.Client, policy: FakePolicy) -> None:
    for role in ("system", "developer"):
        respond(client, [{"role": role, "content": "be brief"}, *USER])
    one, other = (call.request for call in policy.calls)
    assert one.entries == other.entries


def test_usage_is_on_every_turn_and_counts_the_tokens(client: httpx.Client, policy: FakePolicy) -> None:
    policy.token_fields = True
    policy.script("t", [[think("a b c"), call("add", number=1)], "Done."])
    reply = respond(client, USER)
    usage, item = reply["usage"], reply["output"][-1]
    assert usage["input_tokens"] == len(item["prompt_token_ids"])
    assert usage["output_tokens"] == len(item["generation_token_ids"])
    assert usage["total_tokens"] == usage["input_tokens"] + usage["output_tokens"]
    assert 0 < usage["output_tokens_details"]["reasoning_tokens"] < usage["output_tokens"]


def test_vllms_form_of_token_ids(client: httpx.Client) -> None:
    """What nemo-gym's vllm_model asks of the model behind it, and reads back."""
    messages = {"messages": USER, "tools": [{"type": "function", "function": TOOL}]}
    chat = client.post(
        "/v1/chat/completions", json=messages | {"logprobs": True, "return_tokens_as_token_ids": True}
    ).json()
    tokens = [entry["token"] for entry in chat["choices"][0]["logprobs"]["content"]]
    assert [f"token_id:{int(token.removeprefix('token_id:'))}" for token in tokens] == tokens
    prompt = client.post("/tokenize", json=messages).json()
    assert len(prompt["tokens"]) == prompt["count"] == chat["usage"]["prompt_tokens"]
    assert client.post("/tokenize", json={"prompt": "a b"}).json()["count"] == 2


@pytest.mark.parametrize("said", ["42", "Yes, \u00e9t\u00e9 \U0001f600.", "A"])
@pytest.mark.parametrize("stream", [False, True])
def test_log_probs_name_the_texts_of_tokens(client: httpx.Client, policy: FakePolicy, said: str, stream: bool) -> None:
    """Who asks a judge for the probability of "Yes", or of a score, as DeepEval's G-Eval does, looks for it by its text."""
    with policy.script("any", [said]):
        reply = client.post(
            "/v1/chat/completions", json=HELLO | {"logprobs": True, "top_logprobs": 2, "stream": stream}
        )
        completed = client.post("/v1/completions", json={"prompt": "a", "logprobs": 1}).json()["choices"][0]["logprobs"]
        echoed = client.post("/v1/completions", json={"prompt": "a b", "logprobs": 1, "echo": True}).json()
    last = [line for line in reply.text.split("\n\n") if line.startswith("data: {")][-1][6:] if stream else reply.text
    scored = json.loads(last)["choices"][0]["logprobs"]
    assert [*scored] == ["content"]  # as vLLM's; ms-swift's client takes no other field
    *named, end = scored["content"]
    assert "".join(each["token"] for each in named) == said
    assert bytes(byte for each in named for byte in each["bytes"]).decode() == said
    assert all(each["top_logprobs"][0]["token"] == each["token"] for each in [*named, end])
    assert completed["tokens"] == [*(each["token"] for each in named), end["token"]]
    assert [said[start:stop] for start, stop in pairwise(completed["text_offset"])] == completed["tokens"][:-1]
    assert echoed["choices"][0]["logprobs"]["tokens"] == ["a", " b", *completed["tokens"]]


def test_a_request_that_is_none_is_refused_as_openai_does(client: httpx.Client) -> None:
    for body in (b"", b"[]", b"{"):
        reply = client.post("/v1/responses", content=body, headers={"content-type": "application/json"})
        assert reply.status_code in {400, 422}
        assert isinstance(reply.json()["error"]["message"], str)


@pytest.mark.parametrize("rollout", ["/ng-rollout/3-0-a1", "/ng-rollout/r1/training-token-capture"])
def test_the_rollout_before_the_path_is_passed_over(client: httpx.Client, rollout: str) -> None:
    """Agents of nemo-gym 0.5.1 and later say there which rollout a call is for."""
    reply = client.post(f"{rollout}/v1/responses", json={"input": "Hello."})
    assert reply.json()["output"][0]["content"][0]["text"] == "Hello."
    assert client.post("/ng-rollout/v1/responses", json={"input": "Hello."}).status_code == 404


HELLO: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "hello"}]}
REFUSED: dict[str, tuple[str, dict[str, Any]]] = {
    "previous_response_id": ("responses", {"input": [], "previous_response_id": ["resp_1"]}),
    "conversation": ("responses", {"input": "a", "conversation": "conv_1"}),
    "background": ("responses", {"input": "a", "background": True}),
    "input": ("responses", {"input": 5}),
    "tools": ("responses", {"input": "a", "tools": "abc"}),
    "stream": ("responses", {"input": "a", "stream": "no"}),
    "model": ("responses", {"input": "a", "model": 5}),
    "messages": ("chat/completions", {"messages": "hi"}),
    "n": ("chat/completions", HELLO | {"n": 0}),
    "functions": ("chat/completions", HELLO | {"functions": [{"name": "f"}]}),
    "stream_options": ("chat/completions", HELLO | {"stream_options": "usage"}),
    "temperature": ("chat/completions", HELLO | {"temperature": "hot"}),
    "top_p": ("responses", {"input": "a", "top_p": True}),
    "max_output_tokens": ("responses", {"input": "a", "max_output_tokens": "9"}),
    "prompt_logprobs": ("completions", {"prompt": "a", "prompt_logprobs": -1}),
    "max_tokens": ("chat/completions", HELLO | {"max_tokens": -1}),
}


@pytest.mark.parametrize("field", REFUSED)
def test_what_would_be_answered_wrongly_is_refused_by_name(client: httpx.Client, field: str) -> None:
    path, body = REFUSED[field]
    refused = client.post(f"/v1/{path}", json=body)
    assert refused.status_code == 400
    assert refused.json()["error"]["message"].startswith(f"{field}: ")
    assert refused.json()["error"]["param"] == field


@pytest.mark.parametrize(
    "messages",
    [[{"content": "a"}], [{"role": "user", "content": 5}], [{"role": "user", "content": {}}], []],
)
def test_messages_that_no_model_could_read_are_refused(client: httpx.Client, messages: list[dict[str, Any]]) -> None:
    """OpenAI and vLLM answer each of these with 400: a trainer that sends them is not to be told otherwise."""
    refused = client.post("/v1/chat/completions", json={"messages": messages})
    assert (refused.status_code, refused.json()["error"]["message"].partition(":")[0]) == (400, "messages")


def test_a_conversation_is_put_together_from_the_responses_that_are_kept() -> None:
    """With its tokens; no more is kept than was said, and what is not is refused by name."""
    policy = FakePolicy(token_fields=True, keep=3)
    policy.script("m", ["one", "two", "three", "four", "five"])
    with serve(policy) as url, httpx.Client(base_url=url) as client:
        name, seen, said = None, list[int](), list[str]()
        for text in ("a", "b", "c", "d"):
            reply = client.post("/v1/responses", json={"input": text, "previous_response_id": name}).json()
            name, (item,) = reply["id"], reply["output"]
            assert item["prompt_token_ids"][: len(seen)] == seen
            seen = item["prompt_token_ids"] + item["generation_token_ids"]
            said.append(item["content"][0]["text"])
        lost = client.post("/v1/responses", json={"input": "e", "previous_response_id": name})
        unknown = client.post("/v1/responses", json={"input": "e", "previous_response_id": "resp_1"})
    assert said == ["one", "two", "three", "four"]
    assert lost.status_code == unknown.status_code == 400
    wanted = "previous_response_id: no response 'resp_1' is kept; send the whole conversation as input"
    error = unknown.json()["error"]
    assert (error["message"], error["param"]) == (wanted, "previous_response_id")
    assert error["code"] == "previous_response_not_found"


def test_messages_may_be_sent_back_without_their_ids(client: httpx.Client, policy: FakePolicy) -> None:
    """As LiteLLM 1.110 bridges chats to responses, and pydantic-ai 2.66 sends a history: a turn is counted, and once."""
    example = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "An example."}]
    given = [*example, {"role": "user", "content": "b"}]
    policy.script("m", [[think("Hm."), say("Let me see."), call("look")], "one", "two"])
    for said in ("look", "one", "two"):
        *_, last = output = client.post("/v1/responses", json={"input": given}).json()["output"]
        assert said in (last.get("name"), last.get("content", [{}])[0].get("text"))
        given += [{"role": "assistant", "content": each["content"]} if "content" in each else each for each in output]
        given += [{"type": "function_call_output", "call_id": last.get("call_id", ""), "output": "c"}]


def test_items_may_be_sent_back_by_their_ids() -> None:
    """As Vercel's `ai` 6.0 sends reasoning and messages back by default: the turn would be lost, and be said again."""
    policy = FakePolicy(token_fields=True)
    policy.script("m", [[think("Hm."), say("one")], "two"])
    with serve(policy) as url, httpx.Client(base_url=url) as client:
        first = client.post("/v1/responses", json={"input": "a"}).json()["output"]
        references = [{"type": "item_reference", "id": item["id"]} for item in first]
        given = [{"role": "user", "content": "a"}, *references, {"role": "user", "content": "b"}]
        (second,) = client.post("/v1/responses", json={"input": given}).json()["output"]
        lost = client.post("/v1/responses", json={"input": [{"type": "item_reference", "id": "msg_1"}]})
    assert second["content"][0]["text"] == "two"
    seen = first[-1]["prompt_token_ids"] + first[-1]["generation_token_ids"]
    assert second["prompt_token_ids"][: len(seen)] == seen
    assert lost.json()["error"]["message"] == "input: no item 'msg_1' is kept; send the item itself"


def test_a_thread_that_the_server_would_keep_is_refused_as_anthropics_clients_know(client: httpx.Client) -> None:
    """Their tool runner asks for one by itself, sends the new messages alone, and does without where it is told this."""
    refused = client.post("/v1/messages", json=HELLO | {"max_tokens": 9, "thread": {"type": "create"}})
    assert refused.status_code == 400
    assert refused.json()["error"]["details"]["error_code"] == "thread_unsupported_request"


def test_a_model_has_a_path_of_its_own(client: httpx.Client, policy: FakePolicy) -> None:
    assert client.get("/v1/models/any").json()["id"] == "any"
    with policy.script("org/a b", []), policy.script("c", []):
        assert client.get("/v1/models/org/a%20b").json()["id"] == "org/a b"
        assert client.get("/v1/models/d").status_code == 404
        assert client.post("/v1/models/c").status_code == 404


@pytest.mark.parametrize(
    ("path", "body"), [("messages/count_tokens", HELLO), ("responses/input_tokens", {"input": HELLO["messages"]})]
)
def test_how_long_a_request_is(client: httpx.Client, path: str, body: dict[str, Any]) -> None:
    counted = client.post(f"/v1/{path}", json=body).json()["input_tokens"]
    answered = client.post(f"/v1/{path.partition('/')[0]}", json=body | {"max_tokens": 9}).json()
    assert counted == answered["usage"]["input_tokens"]


@pytest.mark.parametrize("stream", [False, True])
def test_as_many_choices_as_are_asked_for(client: httpx.Client, stream: bool) -> None:
    asked = HELLO | {"n": 3, "logprobs": True, "top_logprobs": 1, "stream": stream}
    reply = client.post("/v1/chat/completions", json=asked)
    if stream:
        chunks = [json.loads(line[6:]) for line in reply.text.split("\n\n") if line.startswith("data: {")]
        choices = [choice for chunk in chunks for choice in chunk["choices"] if choice["finish_reason"]]
    else:
        choices = reply.json()["choices"]
    assert [choice["index"] for choice in choices] == [0, 1, 2]
    for choice in choices:
        assert choice["logprobs"]["content"]
        assert all(len(token["top_logprobs"]) == 1 for token in choice["logprobs"]["content"])


def test_log_probs_of_a_response_come_where_they_are_included(client: httpx.Client, policy: FakePolicy) -> None:
    with policy.script("any", [[think("Hm."), say("It is sunny in Paris today.")]]):
        asked = {"include": ["message.output_text.logprobs"], "top_logprobs": 1}
        [_, message] = respond(client, USER, **asked)["output"]
        [_, without] = respond(client, USER)["output"]
        streamed = client.post("/v1/responses", json=asked | {"input": USER, "stream": True}).text
    [part] = message["content"]
    assert part["logprobs"]
    assert all(each["top_logprobs"] for each in part["logprobs"])
    assert without["content"][0]["logprobs"] == []
    events = [json.loads(line[6:]) for line in streamed.splitlines() if line.startswith("data: ")]
    deltas = [event["logprobs"] for event in events if event["type"] == "response.output_text.delta"]
    assert [each for delta in deltas for each in delta] == part["logprobs"]


@pytest.mark.parametrize("said", [{"role": "assistant", "content": "hi"}, None, 3, [{"type": "message"}]])
def test_what_is_no_turn_is_an_error_of_openais_form(client: httpx.Client, policy: FakePolicy, said: Any) -> None:
    policy.default = lambda _: said
    failed = client.post("/v1/responses", json={"input": "a"})
    assert failed.status_code == 500
    assert "a policy returns a text" in failed.json()["error"]["message"]


def test_what_is_not_served_is_named(client: httpx.Client) -> None:
    message = client.post("/v1/embeddings", json={}).json()["error"]["message"]
    assert message.startswith(
        "POST /v1/embeddings: Not Found; this policy serves /v1/responses, /v1/chat/completions, "
    )


def test_a_name_of_no_rollout_is_told_with_those_that_there_are(client: httpx.Client, policy: FakePolicy) -> None:
    with policy.script("a", []), policy.script("b", []):
        refused = client.post("/v1/responses", json={"model": "c", "input": "hi"})
        nameless = client.post("/v1/responses", json={"input": "hi"})
    assert refused.json()["error"]["message"] == "no active rollout is named 'c'; there are a, b"
    assert nameless.json()["error"]["message"] == "the request names no model; there are a, b"


def test_an_error_has_the_type_by_which_anthropics_clients_know_it(client: httpx.Client) -> None:
    refused = client.post("/v1/messages", json={"model": "m"})
    assert refused.status_code == 400
    assert refused.json()["type"] == "error"


def test_a_response_says_which_format_and_reasoning_it_was_asked_for(client: httpx.Client) -> None:
    asked = {"text": {"format": {"type": "json_object"}, "verbosity": "low"}, "reasoning": {"effort": "low"}}
    response = client.post("/v1/responses", json={"input": "hi", **asked}).json()
    assert {name: response[name] for name in asked} == asked
    refused = client.post("/v1/responses", json={"input": "hi", "text": ["json"]})
    assert refused.json()["error"]["message"] == "text: an object is expected"


def test_a_body_that_is_not_declared_as_json_is_told_as_that(client: httpx.Client) -> None:
    refused = client.post("/v1/responses", content=b'{"input": "hi"}')
    assert refused.status_code == 415
    assert refused.json()["error"]["message"] == "the request must say Content-Type: application/json"


@pytest.mark.parametrize("function", ["get_weather", 5, None])
def test_a_function_that_is_no_object_is_none(client: httpx.Client, function: Any) -> None:
    called = {"role": "assistant", "content": None, "tool_calls": [{"id": "a", "function": function}]}
    asked = {"messages": [*HELLO["messages"], called], "tools": [{"type": "function", "function": function}]}
    assert client.post("/v1/chat/completions", json=asked).status_code == 200


@pytest.mark.parametrize("where", ["/openai/deployments/a.b", "/openai/v1", "/openai"])
def test_azures_clients_and_groqs_get_what_is_below_v1(policy: FakePolicy, client: httpx.Client, where: str) -> None:
    policy.script("other", ["no"])
    policy.script("one", ["yes"], api_key="key-1")
    body = {"messages": USER}
    reply = client.post(f"{where}/chat/completions", json=body, headers={"api-key": "key-1"})
    assert reply.json()["choices"][0]["message"]["content"] == "yes"
