"""Tokens: contiguous over turns of every kind, by each API, and of the vocabulary or tokenizer that was given."""

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gym_mocks.examples import weather
from gym_mocks.gym import MockGym
from gym_mocks.policy import FakePolicy, PolicyFault, Vocabulary, call, raw_call, refuse, say, think
from gym_mocks.policy.items import TurnItem
from gym_mocks.serving import serve
from gym_mocks.wire import HttpRequest

Json = dict[str, Any]
PATHS = {"responses": "/v1/responses", "chat": "/v1/chat/completions", "messages": "/v1/messages"}
FIELDS = ("prompt_token_ids", "generation_token_ids", "generation_log_probs")

texts = st.text(max_size=30) | st.sampled_from(["", " ", "Sunny.", "<think>", "\ud800", "a" * 300])
items = st.one_of(
    texts.map(say),
    texts.map(think),
    texts.map(refuse),
    st.builds(
        raw_call, st.sampled_from(["add", "list"]), st.sampled_from(["{}", '{"a": 1}', "{", '{"a":1.50}', "null"])
    ),
)
turns = st.lists(items, min_size=1, max_size=4)
#: What comes between two turns: nothing, a tool's results, or a user.
between = st.sampled_from(["nothing", "results", "user"])


class Characters:
    """A tokenizer as Hugging Face's are used here: an id for each character."""

    eos_token_id = 2

    def encode(self, text: str, *, add_special_tokens: bool) -> list[int]:
        assert add_special_tokens is False
        return [ord(character) + 10 for character in text]

    def decode(self, ids: Sequence[int]) -> str:
        return "".join(chr(number - 10) for number in ids if number != self.eos_token_id)


def answered(policy: FakePolicy, api: str, conversation: list[Json]) -> Json:
    """The policy's reply to a conversation."""
    key = "input" if api == "responses" else "messages"
    body = json.dumps({key: conversation, "tools": [{"type": "function", "name": "add"}]}).encode()
    request = HttpRequest("POST", PATHS[api], {"content-type": "application/json"}, body)
    with pytest.raises(StopIteration) as done:  # without an event loop, for there is nothing to wait for
        policy.answer(request).send(None)
    reply = done.value.value
    assert reply.status == 200, reply.body
    assert isinstance(reply.body, bytes)
    found: Json = json.loads(reply.body)
    return found


def said_by(api: str, reply: Json) -> list[Json]:
    """The items or the message that a client puts into the conversation."""
    if api == "responses":
        output: list[Json] = reply["output"]
        return output
    if api == "chat":
        return [reply["choices"][0]["message"]]
    fields = {name: reply[name] for name in FIELDS if name in reply}
    return [{"role": "assistant", "content": reply["content"], **fields}]


def results_of(api: str, said: list[Json]) -> list[Json]:
    """A result for each call of a turn."""
    if api == "responses":
        calls = [item["call_id"] for item in said if item["type"] == "function_call"]
        return [{"type": "function_call_output", "call_id": name, "output": "ok"} for name in calls]
    if api == "chat":
        calls = [each["id"] for each in said[0].get("tool_calls") or []]
        return [{"role": "tool", "tool_call_id": name, "content": "ok"} for name in calls]
    blocks = [block["id"] for block in said[0]["content"] if block["type"] == "tool_use"]
    results = [{"type": "tool_result", "tool_use_id": name, "content": "ok"} for name in blocks]
    return [{"role": "user", "content": results}] if results else []


def without_fields(said: list[Json]) -> list[Json]:
    return [{key: value for key, value in each.items() if key not in FIELDS} for each in said]


@pytest.mark.parametrize("tokens", [None, (500, 3), Characters()], ids=["vocabulary", "small", "tokenizer"])
@pytest.mark.parametrize("api", PATHS)
@settings(deadline=None, max_examples=60)
@given(
    st.lists(st.tuples(turns, between, st.sampled_from(["", "cut", "no_tokens"])), min_size=2, max_size=6),
    st.booleans(),
)
def test_each_prompt_begins_with_all_tokens_seen(
    api: str, tokens: Any, script: list[tuple[list[TurnItem], str, Any]], given_back: bool
) -> None:
    """Over turns of every kind, whether the client gives the tokens back or not."""
    policy = FakePolicy(token_fields=True, tokens=tokens)
    policy.script("p", [turn for turn, _, _ in script])
    for number, (_, _, fault) in enumerate(script):
        if fault:
            policy.fail(PolicyFault(fault, turn=number))
    conversation: list[Json] = [{"role": "user", "content": "hello"}]
    seen: list[int] = []
    for number, (_, then, _) in enumerate(script):
        said = said_by(api, answered(policy, api, conversation))
        bundle = said[-1]
        assert bundle["prompt_token_ids"][: len(seen)] == seen
        assert len(bundle["prompt_token_ids"]) > len(seen)
        assert len(bundle["generation_token_ids"]) == len(bundle["generation_log_probs"])
        seen = bundle["prompt_token_ids"] + bundle["generation_token_ids"]
        conversation += said if given_back else without_fields(said)
        conversation += results_of(api, said) if then == "results" else []
        conversation += [{"role": "user", "content": "go on"}] if then == "user" else []
        assert policy.calls.count == number + 1
    assert policy.calls.last.request.step == len(script) - 1


@pytest.mark.parametrize("api", PATHS)
@settings(deadline=None, max_examples=40)
@given(turns)
def test_a_policy_that_says_the_same_for_ever_is_ended(api: str, turn: list[TurnItem]) -> None:
    policy = FakePolicy(max_turns=7)
    policy.bind("p", lambda _: turn)
    conversation: list[Json] = [{"role": "user", "content": "hello"}]
    for _ in range(8):
        said = said_by(api, answered(policy, api, conversation))
        conversation += said
        conversation += results_of(api, said)
    assert policy.calls.last.turn == (say("Enough."),)


@pytest.mark.parametrize("text", ["Sunny, 21 degrees.", "", "déjà vu 🌦"])
def test_a_tokenizers_ids_decode_to_what_was_said(text: str) -> None:
    tokenizer = Characters()
    policy = FakePolicy(tokens=tokenizer)
    policy.script("p", [[think("Hm."), call("add", number=1), call("add", number=2)], say(text)])
    first = said_by("responses", answered(policy, "responses", [{"role": "user", "content": "What now?"}]))
    called = tokenizer.decode(first[-1]["generation_token_ids"])
    assert called.startswith("<think>\nHm.\n</think>\n\n<tool_call>\n")
    assert json.loads(called.split("<tool_call>")[2].removesuffix("</tool_call>"))["arguments"] == {"number": 2}
    results = results_of("responses", first)
    (last,) = said_by(
        "responses", answered(policy, "responses", [{"role": "user", "content": "What now?"}, *first, *results])
    )
    assert tokenizer.decode(last["generation_token_ids"]) == text
    assert last["generation_token_ids"][-1] == tokenizer.eos_token_id
    assert "What now?" in tokenizer.decode(last["prompt_token_ids"])


@pytest.mark.parametrize(("size", "end"), [(15, 0), (32, 31), (1000, 2), (151_936, 151_645)])
def test_a_vocabulary_holds_all_ids_and_its_end_ends_turns_alone(size: int, end: int) -> None:
    policy = FakePolicy(tokens=Vocabulary(size, end))
    policy.script("p", [[think("Well, what is it?"), call("add", number=1)], "It is sunny: " + "and warm " * 50])
    conversation = [{"role": "user", "content": "What is the weather like in Paris, and how are you today?"}]
    for _ in range(2):
        said = said_by("responses", answered(policy, "responses", conversation))
        conversation += [*said, *results_of("responses", said)]
        ids = said[-1]["generation_token_ids"]
        assert ids.index(end) == len(ids) - 1
        assert all(0 <= number < size for number in said[-1]["prompt_token_ids"] + ids)


@pytest.mark.parametrize("tokens", [(14, 2), (100, 100), (100, -1)])
def test_a_vocabulary_that_cannot_be_is_refused(tokens: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="tokens: a vocabulary of"):
        FakePolicy(tokens=tokens)


def test_a_turn_that_is_cut_has_no_end_token() -> None:
    policy = FakePolicy(tokens=(1000, 2))
    policy.fail(PolicyFault("cut"))
    (item,) = said_by("responses", answered(policy, "responses", [{"role": "user", "content": "hello"}]))
    assert 2 not in item["generation_token_ids"]


def test_log_probabilities_have_the_scale_that_was_chosen() -> None:
    policy = FakePolicy(token_fields=True, log_prob_scale=20)
    (item,) = said_by("responses", answered(policy, "responses", [{"role": "user", "content": "hello " * 40}]))
    assert -20 <= min(item["generation_log_probs"]) < -1


def test_routed_experts_are_there_for_each_token() -> None:
    policy = FakePolicy(token_fields=True, routed_experts=(3, 2))
    (item,) = said_by("responses", answered(policy, "responses", [{"role": "user", "content": "hello"}]))
    routed = item["routed_experts"]
    assert len(routed) == len(item["prompt_token_ids"]) + len(item["generation_token_ids"])
    assert {(len(layers), len(experts)) for layers in routed for experts in layers} == {(3, 2)}


def test_a_turn_may_lack_its_tokens_or_their_fields() -> None:
    policy = FakePolicy(token_fields=True)
    policy.fail(PolicyFault("no_tokens", times=1))
    user = [{"role": "user", "content": "hello"}]
    (none,) = said_by("responses", answered(policy, "responses", user))
    assert none["prompt_token_ids"]
    assert none["generation_token_ids"] == none["generation_log_probs"] == []
    policy.fail(PolicyFault("no_token_fields", times=1))
    (bare,) = said_by("responses", answered(policy, "responses", user))
    assert not set(FIELDS) & bare.keys()


def test_tokens_that_a_chat_client_merges_count_the_turns() -> None:
    """nemo-gym's vllm_model sends two turns of reasoning alone as one message, with the tokens of the second."""
    policy = FakePolicy(token_fields=True)
    policy.script("p", [think("one"), think("two"), say("three")])
    conversation: list[Json] = [{"role": "user", "content": "hello"}]
    (first,) = said_by("chat", answered(policy, "chat", conversation))
    (second,) = said_by("chat", answered(policy, "chat", [*conversation, first]))
    (third,) = said_by("chat", answered(policy, "chat", [*conversation, second]))
    assert third["content"] == "three"


def test_a_rollout_of_reasoning_alone_ends_and_the_head_answers_meanwhile() -> None:
    with MockGym(token_fields=True) as gym:
        (row, *_) = gym.add_env(weather.server(), weather.ROWS)
        gym.policy.bind("p", lambda _: think("Hm."))
        with httpx.Client(timeout=30) as client:
            rollout = client.post(f"{gym.url('weather_simple_agent')}/run", json=row).json()
        output = rollout["response"]["output"]
        assert [item["type"] for item in output] == ["reasoning"] * 64 + ["message"]
        seen: list[int] = []
        for item in output:
            assert item["prompt_token_ids"][: len(seen)] == seen
            seen = item["prompt_token_ids"] + item["generation_token_ids"]


def test_a_model_that_never_ends_does_not_keep_the_gym(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever stands in the model's place: others are answered, and the rollout ends with an error."""
    monkeypatch.setattr("gym_mocks.agent.loop.TURNS", 300)
    endless = FakePolicy(lambda _: think("Hm."), max_turns=10**9)
    with MockGym() as gym, serve(endless):
        gym.add_model("endless", endless)
        rows = gym.add_env(weather.server(), weather.ROWS)
        gym.add_agent("agent", resources="weather", model="endless")

        async def both() -> tuple[httpx.Response, float]:
            async with httpx.AsyncClient(timeout=60) as client:
                run = asyncio.create_task(client.post(f"{gym.url('agent')}/run", json=rows[0]))
                await asyncio.sleep(0.1)
                live = await client.get(f"{gym.head_url}/health", timeout=5)
                return await run, live.elapsed.total_seconds()

        reply, waited = asyncio.run(both())
    assert reply.status_code == 500
    assert "300 turns" in reply.text
    assert waited < 2


def test_a_prompt_begins_with_the_tokens_that_a_client_requires() -> None:
    """As nemo-gym 0.7.0's vllm_model sends them (`supply_prefix_token_ids`), which refuses a reply that does not."""
    policy = FakePolicy(token_fields=True)
    policy.script("any", [[think("Hm."), call("add", number=1)], think("Hm."), say("Sunny.")])
    conversation: list[Json] = [{"role": "user", "content": "Go."}]
    seen: list[int] = []
    with serve(policy) as url, httpx.Client(base_url=url) as client:
        for text in (None, None, "Sunny."):
            body = {"messages": conversation, "required_prefix_token_ids": seen or None}
            message = client.post("/v1/chat/completions", json=body).json()["choices"][0]["message"]
            tokens = client.post("/tokenize", json=body).json()["tokens"]
            assert tokens == message["prompt_token_ids"]
            assert tokens[: len(seen)] == seen
            assert message["content"] == text
            seen = tokens + message["generation_token_ids"]
            kept = {"role": "assistant", "content": text, "tool_calls": message.get("tool_calls", [])}  # no reasoning
            conversation += [kept, {"role": "user", "content": "And?"}]
        wrong = {"messages": conversation, "required_prefix_token_ids": ["7"]}
        assert client.post("/v1/chat/completions", json=wrong).status_code == 400


def test_a_response_whose_context_was_compacted_begins_with_the_tokens_that_are_required() -> None:
    """As nemo-gym 0.7.0's simple_agent_with_compaction asks vllm_model_with_compaction: `/tokenize` first, with its input."""
    policy = FakePolicy(token_fields=True)
    policy.script("any", [[think("Hm."), call("add", number=1)], say("Sunny.")])
    said: list[Json] = [{"role": "user", "content": "Go."}]
    with serve(policy) as url, httpx.Client(base_url=url) as client:
        first = client.post("/v1/responses", json={"input": said}).json()["output"]
        seen = first[-1]["prompt_token_ids"] + first[-1]["generation_token_ids"]
        result = {"type": "function_call_output", "call_id": first[-1]["call_id"], "output": "1"}
        compacted = [*said, {key: first[-1][key] for key in ("type", "id", "call_id", "name", "arguments")}, result]
        body = {"input": compacted, "required_prefix_token_ids": seen}
        tokens = client.post("/tokenize", json=body).json()["tokens"]
        last = client.post("/v1/responses", json=body).json()["output"][-1]
        assert client.post("/v1/responses", json=body | {"required_prefix_token_ids": ["7"]}).status_code == 400
    assert last["content"][0]["text"] == "Sunny."
    assert last["prompt_token_ids"] == tokens
    assert tokens[: len(seen)] == seen
    assert len(tokens) > len(seen)
