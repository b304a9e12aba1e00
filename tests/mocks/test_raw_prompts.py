"""Texts and token ids instead of conversations, as trainers' inference clients send them, recorded from each."""

import json
from collections.abc import Iterator, Sequence
from typing import Any

import httpx
import pytest

from gym_mocks.policy import FakePolicy, PolicyFault, call, think
from gym_mocks.serving import serve

Json = dict[str, Any]
PROMPT = "<|im_start|>user\nWeather?<|im_end|>\n<|im_start|>assistant\n"
CALLED = '<think>\nHm.\n</think>\n\n<tool_call>\n{"name": "get", "arguments": {"city": "Paris"}}\n</tool_call>'


class Bytes:
    """A tokenizer with an id for each byte, and one that ends a turn."""

    eos_token_id = 256

    def encode(self, text: str, *, add_special_tokens: bool) -> list[int]:
        assert add_special_tokens is False
        parts = [list(part.encode()) for part in text.split("<|im_end|>")]
        return [token for part in parts for token in [*part, self.eos_token_id]][:-1]

    def decode(self, token_ids: Sequence[int], /) -> str:
        return b"".join(bytes([token]) if token < self.eos_token_id else b"<|im_end|>" for token in token_ids).decode()


IDS = Bytes().encode(PROMPT, add_special_tokens=False)


@pytest.fixture
def policy() -> FakePolicy:
    policy = FakePolicy(tokens=Bytes())
    policy.script("m", [[think("Hm."), call("get", city="Paris")], "Sunny."])
    return policy


@pytest.fixture
def client(policy: FakePolicy) -> Iterator[httpx.Client]:
    with serve(policy) as url, httpx.Client(base_url=url) as client:
        yield client


def vllm(client: httpx.Client, ids: list[int]) -> tuple[list[int], list[float]]:
    """What Verifiers' train client (renderers 0.1.12), prime-rl and SkyRL send and read."""
    sampling = {"max_tokens": 64, "stop_token_ids": [256], "logprobs": 1}
    reply = client.post("/inference/v1/generate", json={"model": "m", "token_ids": ids, "sampling_params": sampling})
    choice = reply.json()["choices"][0]
    assert choice["finish_reason"] == "stop"
    content = choice["logprobs"]["content"]
    assert [each["token"] for each in content] == [f"token_id:{token}" for token in choice["token_ids"]]
    return choice["token_ids"], [each["logprob"] for each in content]


def sglang(client: httpx.Client, ids: list[int]) -> tuple[list[int], list[float]]:
    """What slime's `sglang_rollout.generate` and AReaL send and read."""
    body = {"input_ids": ids, "sampling_params": {"max_new_tokens": 64}, "return_logprob": True}
    reply = client.post("/generate", json=body).json()
    assert reply["meta_info"]["finish_reason"] == {"type": "stop", "matched": 256}
    pairs = reply["meta_info"]["output_token_logprobs"]
    assert [token for _, token, _ in pairs] == reply["output_ids"]
    return reply["output_ids"], [probability for probability, _, _ in pairs]


def completions(client: httpx.Client, ids: list[int]) -> tuple[list[int], list[float]]:
    """What rLLM's gateway sends in its cumulative mode, and reads."""
    body = {"model": "m", "prompt": ids, "logprobs": 1, "return_token_ids": True, "add_special_tokens": False}
    choice = client.post("/v1/completions", json=body).json()["choices"][0]
    assert choice["prompt_token_ids"] == ids
    return choice["token_ids"], choice["logprobs"]["token_logprobs"]


@pytest.mark.parametrize("engine", [vllm, sglang, completions])
def test_tokens_in_and_tokens_out_turn_by_turn(client: httpx.Client, engine: Any) -> None:
    said: list[str] = []
    ids = IDS
    for _ in range(3):
        generated, probabilities = engine(client, ids)
        assert len(generated) == len(probabilities)
        said.append(Bytes().decode(generated))
        ids = [*ids, *generated, *Bytes().encode(f"\n{PROMPT}", add_special_tokens=False)]
    assert said == [f"{CALLED}<|im_end|>", "Sunny.<|im_end|>", "Done.<|im_end|>"]


@pytest.mark.parametrize("prompt", [PROMPT, [PROMPT], IDS, [IDS]], ids=["text", "batch", "ids", "batch-of-ids"])
@pytest.mark.parametrize("stream", [False, True])
def test_a_prompt_is_continued(client: httpx.Client, policy: FakePolicy, prompt: Any, stream: bool) -> None:
    asked = {"prompt": prompt, "n": 2, "stream": stream, "return_token_ids": True, "stream_options": {}}
    reply = client.post("/v1/completions", json=asked)
    if stream:
        lines = reply.text.strip().split("\n\n")
        assert lines.pop() == "data: [DONE]"
        choices = [choice for line in lines for choice in json.loads(line[6:])["choices"]]
    else:
        choices = reply.json()["choices"]
    texts = ["".join(choice["text"] for choice in choices if choice["index"] == index) for index in (0, 1)]
    assert texts == [CALLED, CALLED]
    assert all(choice["token_ids"] for choice in choices if choice["finish_reason"])
    assert policy.calls.last.turn == (think("Hm."), call("get", city="Paris"))


def test_ids_that_stand_for_nothing_are_continued_too() -> None:
    policy = FakePolicy()
    policy.script("m", ["a", "b"])
    with serve(policy) as url, httpx.Client(base_url=url) as client:
        first = client.post("/tokenize", json={"messages": [{"role": "user", "content": "hi"}]}).json()["tokens"]
        generated, _ = vllm(client, first)
        opening = client.post("/tokenize", json={"messages": []}).json()["tokens"]
        assert client.post("/generate", json={"input_ids": [*first, *generated, *opening]}).json()["text"] == "b"
        assert client.post("/detokenize", json={"tokens": [4, 5]}).json() == {"prompt": "<4><5>"}


@pytest.mark.parametrize("stream", [False, True])
def test_a_chat_gives_token_ids_in_vllms_form(client: httpx.Client, stream: bool) -> None:
    """RLLM's gateway and prime-rl set `return_token_ids`; a stream has the prompt's in its first chunk."""
    asked = {"messages": [{"role": "user", "content": "hi"}], "return_token_ids": True, "stream": stream}
    reply = client.post("/v1/chat/completions", json=asked)
    first = last = reply.json() if not stream else {}
    if stream:
        chunks = [json.loads(line[6:]) for line in reply.text.split("\n\n") if line.startswith("data: {")]
        first, last = chunks[0], chunks[-1]
        assert not any("prompt_token_ids" in chunk for chunk in chunks[1:])
    assert first["prompt_token_ids"] == Bytes().encode(
        "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n", add_special_tokens=False
    )
    assert Bytes().decode(last["choices"][0]["token_ids"]) == f"{CALLED}<|im_end|>"


REFUSED: dict[str, tuple[str, Json, str]] = {
    "two prompts": ("/v1/completions", {"prompt": ["a", "b"]}, "prompt: a text or a list of token ids is expected"),
    "no prompt": ("/v1/completions", {}, "prompt: "),
    "echo": ("/v1/completions", {"prompt": "a", "echo": True}, "echo: not supported"),
    "texts as ids": ("/inference/v1/generate", {"token_ids": ["a"]}, "token_ids: a list of token ids"),
    "truths as ids": ("/inference/v1/generate", {"token_ids": [True]}, "token_ids: a list of token ids"),
    "sampling": ("/inference/v1/generate", {"token_ids": [1], "sampling_params": {"n": "x"}}, "sampling_params: "),
    "a stream": ("/generate", {"text": "a", "stream": True}, "stream: not supported here; /v1/completions streams"),
    "neither": ("/generate", {"sampling_params": {}}, "input_ids or text is expected"),
    "no tokens": ("/detokenize", {"tokens": "a"}, "tokens: a list of token ids is expected"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_continued_is_refused_in_a_line(client: httpx.Client, case: str) -> None:
    path, body, why = REFUSED[case]
    refused = client.post(path, json=body)
    assert refused.status_code == 400
    assert refused.json()["error"]["message"].startswith(why)


def test_faults_and_the_end_of_tokens(client: httpx.Client, policy: FakePolicy) -> None:
    policy.fail(PolicyFault("cut", times=2))
    assert client.post("/generate", json={"text": PROMPT}).json()["meta_info"]["finish_reason"]["type"] == "length"
    several = client.post("/generate", json={"text": PROMPT, "sampling_params": {"n": 3}}).json()
    assert [each["meta_info"]["finish_reason"]["type"] for each in several] == ["length"] * 3
    policy.fail(PolicyFault("status", status=503, times=1))
    assert client.post("/generate", json={"text": PROMPT}).status_code == 503
