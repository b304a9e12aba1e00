"""Texts and token ids instead of conversations, as trainers' inference clients send them, recorded from each."""

import json
import math
from base64 import b64decode
from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import httpx
import pytest

from gym_mocks.policy import FakePolicy, PolicyFault, call, say, think
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


def vllm(client: httpx.Client, ids: list[int]) -> tuple[list[int], list[float]]:
    """What Verifiers' train client (renderers 0.1.12), prime-rl and SkyRL send and read."""
    sampling = {"max_tokens": 640, "stop_token_ids": [256], "logprobs": 1}
    reply = client.post("/inference/v1/generate", json={"model": "m", "token_ids": ids, "sampling_params": sampling})
    choice = reply.json()["choices"][0]
    assert choice["finish_reason"] == "stop"
    assert reply.json()["usage"]["prompt_tokens"] == len(ids)  # which Verifiers tells of
    content = choice["logprobs"]["content"]
    assert [each["token"] for each in content] == [f"token_id:{token}" for token in choice["token_ids"]]
    return choice["token_ids"], [each["logprob"] for each in content]


def vllm_streamed(client: httpx.Client, ids: list[int]) -> tuple[list[int], list[float]]:
    """What vime's `generate_streaming` (of 2026) sends and reads: each chunk has the tokens that it adds."""
    body: Json = {"model": "m", "token_ids": ids, "sampling_params": {"max_tokens": 640, "logprobs": 1}}
    body |= {"stream": True, "stream_options": {"include_usage": True}}
    lines = client.post("/inference/v1/generate", json=body).text.strip().split("\n\n")
    assert lines.pop() == "data: [DONE]"
    *chunks, last = [json.loads(line.removeprefix("data: ")) for line in lines]
    choices = [chunk["choices"][0] for chunk in chunks]
    assert [choice["finish_reason"] for choice in choices] == [None] * (len(choices) - 1) + ["stop"]
    said = [token for choice in choices for token in choice["token_ids"]]
    assert (last["choices"], last["usage"]["completion_tokens"]) == ([], len(said))
    return said, [each["logprob"] for choice in choices for each in choice["logprobs"]["content"]]


def sglang(client: httpx.Client, ids: list[int]) -> tuple[list[int], list[float]]:
    """What slime's `sglang_rollout.generate` and AReaL send and read."""
    body = {"input_ids": ids, "sampling_params": {"max_new_tokens": 640}, "return_logprob": True}
    reply = client.post("/generate", json=body).json()
    assert reply["meta_info"]["finish_reason"] == {"type": "stop", "matched": 256}
    pairs = reply["meta_info"]["output_token_logprobs"]
    assert [token for _, token, _ in pairs] == reply["output_ids"]
    return reply["output_ids"], [probability for probability, _, _ in pairs]


def sglang_streamed(client: httpx.Client, ids: list[int]) -> tuple[list[int], list[float]]:
    """What slime's `generate_streaming` sends and reads: each chunk has all so far, and the last alone says why it ended."""
    body = {"input_ids": ids, "sampling_params": {"max_new_tokens": 640}, "return_logprob": True, "stream": True}
    lines = client.post("/generate", json=body).text.strip().split("\n\n")
    assert lines.pop() == "data: [DONE]"
    chunks = [json.loads(line.removeprefix("data:")) for line in lines]
    for before, after in pairwise(chunks):
        assert before["meta_info"]["finish_reason"] is None
        assert after["text"].startswith(before["text"])
        assert len(after["text"]) > len(before["text"])
        assert after["output_ids"][: len(before["output_ids"])] == before["output_ids"]
    assert chunks[-1]["meta_info"]["finish_reason"] == {"type": "stop", "matched": 256}
    assert Bytes().decode(chunks[-1]["output_ids"]) == chunks[-1]["text"] + "<|im_end|>"
    pairs = chunks[-1]["meta_info"]["output_token_logprobs"]
    return chunks[-1]["output_ids"], [probability for probability, _, _ in pairs]


def completions(client: httpx.Client, ids: list[int]) -> tuple[list[int], list[float]]:
    """What rLLM's gateway sends in its cumulative mode, and reads."""
    body = {"model": "m", "prompt": ids, "logprobs": 1, "return_token_ids": True, "add_special_tokens": False}
    choice = client.post("/v1/completions", json=body).json()["choices"][0]
    assert choice["prompt_token_ids"] == ids
    return choice["token_ids"], choice["logprobs"]["token_logprobs"]


@pytest.mark.parametrize("engine", [vllm, vllm_streamed, sglang, sglang_streamed, completions])
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
        rendered = client.post("/v1/chat/completions/render", json={"messages": [{"role": "user", "content": "hi"}]})
        assert rendered.json()["token_ids"] == first  # as SkyRL asks
        opening = client.post("/tokenize", json={"messages": []}).json()["tokens"]
        assert client.post("/generate", json={"input_ids": [*first, *generated, *opening]}).json()["text"] == "b"
        assert client.post("/detokenize", json={"tokens": [4, 5]}).json()["prompt"] == "<4><5>"


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


def test_reasoning_has_both_of_its_names_in_a_chat(client: httpx.Client) -> None:
    """Clients of vLLM 0.16 and later, such as rLLM's, read the one, older ones the other; either may be sent back."""
    asked = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
    said = client.post("/v1/chat/completions", json=asked).json()["choices"][0]["message"]
    assert said["reasoning"] == said["reasoning_content"] == "Hm."
    lines = client.post("/v1/chat/completions", json={**asked, "stream": True}).text.split("\n\n")
    deltas = [json.loads(line[6:])["choices"][0]["delta"] for line in lines if line.startswith("data: {")]
    assert {"reasoning": "Hm.", "reasoning_content": "Hm."} in deltas


REFUSED: dict[str, tuple[str, Json, str]] = {
    "prompts of two kinds": ("/v1/completions", {"prompt": ["a", 1]}, "prompt: a text, a list of token ids, or a list"),
    "a stream of several": (
        "/v1/completions",
        {"prompt": ["a", "b"], "stream": True},
        "stream: not supported for several",
    ),
    "too many prompts": ("/generate", {"text": [""] * 5_000}, "text: 4,096 prompts at most"),
    "no prompts of TRL's": ("/generate/", {"prompts": []}, "prompts: a list is expected"),
    "no chats of TRL's": ("/chat/", {"messages": ["hi"]}, "messages: a list of objects is expected"),
    "no prompt": ("/v1/completions", {}, "prompt: "),
    "echo": ("/v1/completions", {"prompt": "a", "echo": "yes"}, "echo: true or false is expected"),
    "texts as ids": ("/inference/v1/generate", {"token_ids": ["a"]}, "token_ids: a list of token ids"),
    "truths as ids": ("/inference/v1/generate", {"token_ids": [True]}, "token_ids: a list of token ids"),
    "sampling": ("/inference/v1/generate", {"token_ids": [1], "sampling_params": {"n": "x"}}, "sampling_params: "),
    "ids of a batch": (
        "/generate",
        {"input_ids": [1], "token_ids_logprob": [[1]]},
        "token_ids_logprob: a list of 1,000 token ids at most",
    ),
    "neither": ("/generate", {"sampling_params": {}}, "input_ids or text is expected"),
    "a limit in words": (
        "/generate",
        {"input_ids": [1], "sampling_params": {"max_new_tokens": "5"}},
        "sampling_params: an object is expected, with n from 1 to 128 and integers from 0 as limits",
    ),
    "half a limit": (
        "/v1/completions",
        {"prompt": "a", "max_tokens": 2.5},
        "max_tokens: an integer from 0 is expected",
    ),
    "a chat of texts": ("/v1/chat/completions", {"messages": [], "input_ids": "a"}, "input_ids: a list of token ids"),
    "a chat without tokens": ("/v1/chat/completions/tokens", {"messages": []}, "tokens: a list of token ids"),
    "a chat of texts to count": ("/tokenize", {"messages": [], "input_ids": 1}, "input_ids: a list of token ids"),
    "choices in words": ("/v1/messages", {"messages": [], "n": "two"}, "n: 1 to 128 choices are possible"),
    "a tool of no schema": (
        "/v1/responses",
        {"input": "x", "tools": [{"type": "function", "name": "f", "parameters": ["a"]}]},
        "tools: a list of objects is expected, with objects as parameters",
    ),
    "no tokens": ("/detokenize", {"tokens": "a"}, "tokens: a list of token ids is expected"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_continued_is_refused_in_a_line(client: httpx.Client, case: str) -> None:
    path, body, why = REFUSED[case]
    refused = client.post(path, json=body)
    assert refused.status_code == 400
    assert refused.json()["error"]["message"].startswith(why)


def test_several_prompts_are_answered_in_their_order(client: httpx.Client, policy: FakePolicy) -> None:
    """As lm-eval, LangChain's `OpenAI` and whoever collects a group at once send them."""
    later = f"{PROMPT}{CALLED}<|im_end|>\n{PROMPT}"
    said = client.post("/v1/completions", json={"prompt": [PROMPT, later], "n": 2, "return_token_ids": True}).json()
    assert [(choice["index"], choice["text"]) for choice in said["choices"]] == [
        *enumerate([CALLED, CALLED, "Sunny.", "Sunny."])
    ]
    assert said["choices"][2]["prompt_token_ids"] == Bytes().encode(later, add_special_tokens=False)
    alone = [client.post("/v1/completions", json={"prompt": each, "n": 2}).json()["usage"] for each in (PROMPT, later)]
    assert said["usage"] == {name: sum(each[name] for each in alone) for name in alone[0]}
    engine = client.post("/generate", json={"text": [PROMPT, later], "sampling_params": {"n": 2}}).json()
    assert [each["text"] for each in engine] == [CALLED, CALLED, "Sunny.", "Sunny."]
    assert [each["text"] for each in client.post("/generate", json={"input_ids": [IDS]}).json()] == [CALLED]
    assert [each.turn for each in policy.calls][:2] == [(think("Hm."), call("get", city="Paris")), (say("Sunny."),)]
    policy.fail(PolicyFault("status", status=503, times=1))
    assert client.post("/v1/completions", json={"prompt": [PROMPT, later]}).status_code == 503


@pytest.mark.parametrize("logprobs", [0, None])
def test_trls_server_is_stood_in_for(client: httpx.Client, logprobs: int | None) -> None:
    """What `VLLMClient` of TRL 1.16 sends and reads, and Atropos' `TrlVllmServer`; conversations have their tools."""
    assert client.get("/health/", follow_redirects=True).status_code == 200
    asked: Json = {"n": 2, "temperature": 1.0, "max_tokens": 160, "logprobs": logprobs, "generation_kwargs": {}}
    chats = [[{"role": "user", "content": "Weather?"}], [{"role": "user", "content": "And now?"}]]
    texts = client.post("/generate/", json={"prompts": [PROMPT], "images": None, **asked}).json()
    ids = client.post("/generate/", json={"prompts": [IDS, IDS], **asked, "generation_kwargs": {"n": 1}}).json()
    talk = client.post("/chat/", json={"messages": chats, "tools": None, "chat_template_kwargs": {}, **asked}).json()
    assert (texts["prompt_ids"], ids["prompt_ids"], talk["prompt_ids"][0]) == ([IDS], [IDS, IDS], IDS)
    for reply, count in ((texts, 2), (ids, 2), (talk, 4)):
        assert [Bytes().decode(each) for each in reply["completion_ids"]] == [f"{CALLED}<|im_end|>"] * count
        if logprobs is None:
            assert reply["logprobs"] is reply["logprob_token_ids"] is None
        else:
            assert reply["logprob_token_ids"] == [[[token] for token in each] for each in reply["completion_ids"]]
            assert [[len(each) for each in one] for one in reply["logprobs"]] == [
                [1] * len(each) for each in reply["completion_ids"]
            ]


def test_a_teacher_scores_what_a_policy_said(client: httpx.Client) -> None:
    """prime-rl's `prefill_logprobs` and slime's on-policy distillation: a token has the log probability that it was said with."""
    generated, probabilities = vllm(client, IDS)
    ids = [*IDS, *generated]
    sampling = {"max_tokens": 1, "prompt_logprobs": 1}
    read = client.post("/inference/v1/generate", json={"token_ids": ids, "sampling_params": sampling}).json()
    first, *others = read["prompt_logprobs"]
    assert first is None
    assert [int(next(iter(each))) for each in others] == ids[1:]
    assert [next(iter(each.values()))["logprob"] for each in others[len(IDS) - 1 :]] == probabilities
    body = {"input_ids": ids, "return_logprob": True, "logprob_start_len": 0, "sampling_params": {"max_new_tokens": 0}}
    scored = client.post("/generate", json=body).json()["meta_info"]["input_token_logprobs"]
    assert [token for _, token, _ in scored] == ids
    assert [probability for probability, *_ in scored][len(IDS) :] == probabilities
    named = [*generated[:2], 7]
    top = client.post("/generate", json=body | {"top_logprobs_num": 4, "token_ids_logprob": named}).json()["meta_info"]
    first, *listed = top["input_top_logprobs"]  # as miles and slime distil
    assert first is None
    assert [each[0] for each in listed] == scored[1:]
    assert {len({token for _, token, _ in each}) for each in listed} == {4}
    assert [token for _, token, _ in top["input_token_ids_logprobs"][1]] == named
    assert [one for one, *_ in top["input_token_ids_logprobs"][-1]][:2] == probabilities[:2]
    assert top["output_top_logprobs"] == top["output_token_ids_logprobs"] == []
    told = client.post("/generate", json=body | {"return_text_in_logprobs": True}).json()["meta_info"]
    texts = [text for *_, text in told["input_token_logprobs"]]  # as SGLang's own frontend chooses among answers
    assert texts[1:] == [next(iter(each.values()))["decoded_token"] for each in others]
    completed = client.post("/v1/completions", json={"prompt": ids, "prompt_logprobs": 0}).json()
    assert completed["choices"][0]["prompt_logprobs"] == read["prompt_logprobs"]
    chat = client.post(
        "/v1/chat/completions", json={"messages": [{"role": "user", "content": "a"}], "prompt_logprobs": 0}
    ).json()
    assert chat["prompt_logprobs"][0] is None


@pytest.mark.parametrize(("most", "said"), [(0, ""), (1, CALLED[0]), (None, CALLED)])
def test_a_prompt_that_is_echoed_is_scored_with_it(client: httpx.Client, most: int | None, said: str) -> None:
    """As lm-eval's `local-completions` and rLLM's `compute_logprobs` ask, which take off as many tokens as they allowed."""
    asked = {"prompt": [IDS, IDS], "echo": True, "logprobs": 1, "max_tokens": most, "return_token_ids": True}
    for choice in client.post("/v1/completions", json=asked).json()["choices"]:
        assert choice["text"] == PROMPT + said
        assert len(choice["token_ids"]) == (len(CALLED) + 1 if most is None else most)
        assert choice["finish_reason"] == ("stop" if most is None else "length")
        scored = choice["logprobs"]
        tokens, (first, *others) = [*IDS, *choice["token_ids"]], scored["token_logprobs"]
        assert scored["tokens"] == [Bytes().decode([token]) for token in tokens]
        placed = zip(scored["tokens"], scored["text_offset"], strict=True)
        assert all(f"{PROMPT}{said}<|im_end|>".startswith(name, start) for name, start in placed)
        assert first is scored["top_logprobs"][0] is None
        assert [max(each.values()) for each in scored["top_logprobs"][1:]] == others


def test_a_prompt_is_scored_token_by_token_where_it_is_echoed(client: httpx.Client) -> None:
    """As PipelineRL's `TrainableLLM.get_logprobs` asks vLLM, of token ids and of a chat: with the text of each token."""
    asked = {"prompt": [IDS, IDS], "max_tokens": 0, "logprobs": 0, "echo": True}
    for choice in client.post("/v1/completions", json=asked).json()["choices"]:
        assert choice["prompt_logprobs"][0] is None
        read = [(int(token), one) for each in choice["prompt_logprobs"][1:] for token, one in each.items()]
        assert [token for token, _ in read] == IDS[1:]
        assert "".join(one["decoded_token"] for _, one in read) == PROMPT[1:]
        assert [one["logprob"] for _, one in read] == choice["logprobs"]["token_logprobs"][1:]
    body: Json = {"messages": [{"role": "user", "content": "Weather?"}], "logprobs": 1, "echo": True}
    chat = client.post("/v1/chat/completions", json=body).json()["prompt_logprobs"]
    assert "".join(one["decoded_token"] for each in chat[1:] for one in each.values()) == PROMPT[1:]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("path", ["/v1/completions", "/inference/v1/generate", "/generate"])
def test_a_turn_that_a_pause_breaks_off_goes_on_from_there(
    client: httpx.Client, policy: FakePolicy, path: str, stream: bool
) -> None:
    """As rLLM's asynchronous `RolloutClient`, AReaL and SkyRL ask again, with the tokens that they got, while weights change."""
    policy.fail(PolicyFault("abort", times=2))
    said: list[int] = []
    reasons: list[str] = []
    texts: list[str] = []
    while reasons[-1:] != ["stop"]:
        ids = [*IDS, *said]
        body = {"prompt": ids, "token_ids": ids, "input_ids": ids, "return_token_ids": True, "stream": stream}
        reply = client.post(path, json=body)
        whole = [json.loads(line[6:]) for line in reply.text.split("\n\n")[:-2]] if stream else [reply.json()]
        if path == "/generate":
            (*_, last) = whole
            said += last["output_ids"]
            reasons.append(last["meta_info"]["finish_reason"]["type"])
            texts.append(last["text"])
        else:
            choices = [each["choices"][0] for each in whole]
            said += [token for choice in choices for token in choice.get("token_ids", [])]
            reasons.append(choices[-1]["finish_reason"])
            texts.append("".join(choice.get("text", "") for choice in choices))
    assert reasons == ["abort", "abort", "stop"]
    assert Bytes().decode(said) == f"{CALLED}<|im_end|>"
    assert "".join(texts) in {CALLED, ""}  # vLLM's `/inference/v1/generate` has none


def test_a_conversation_that_a_pause_breaks_off_says_so(client: httpx.Client, policy: FakePolicy) -> None:
    policy.fail(PolicyFault("abort"))
    chat = client.post(
        "/v1/chat/completions", json={"messages": [{"role": "user", "content": "a"}], "return_meta_info": True}
    ).json()["choices"][0]
    assert (chat["finish_reason"], chat["meta_info"]["finish_reason"]["type"]) == ("abort", "abort")
    assert client.post("/v1/responses", json={"input": "hi"}).json()["status"] == "cancelled"


@pytest.mark.parametrize("given", ["<think>\n", "<think>\nHm", "Other"])
def test_what_a_template_begins_is_not_said_again(client: httpx.Client, given: str) -> None:
    """Thinking models' templates end in `<think>`; what the policy would not say itself changes nothing."""
    rest = CALLED.removeprefix(given)
    assert client.post("/v1/completions", json={"prompt": PROMPT + given}).json()["choices"][0]["text"] == rest


LIMITED: dict[str, Callable[[int], Json]] = {
    "/v1/completions": lambda most: {"prompt": IDS, "max_tokens": most, "return_token_ids": True},
    "/inference/v1/generate": lambda most: {"token_ids": IDS, "sampling_params": {"max_tokens": most}},
    "/generate": lambda most: {"input_ids": IDS, "sampling_params": {"max_new_tokens": most}},
}


@pytest.mark.parametrize("path", LIMITED)
def test_an_engine_says_no_more_tokens_than_it_may(client: httpx.Client, path: str) -> None:
    """AReaL's `agenerate` and slime's `generate` assert it of each reply, since they take its length off what is left."""
    for most, why in ((0, "length"), (5, "length"), (len(CALLED) + 1, "stop")):
        reply = client.post(path, json=LIMITED[path](most)).json()
        choice = reply if path == "/generate" else reply["choices"][0]
        said = choice["output_ids"] if path == "/generate" else choice["token_ids"]
        reason = choice["meta_info"]["finish_reason"]["type"] if path == "/generate" else choice["finish_reason"]
        assert (said, reason) == (Bytes().encode(CALLED + "<|im_end|>", add_special_tokens=False)[:most], why)
        assert choice.get("text", CALLED[:most]) == CALLED[:most]


def test_what_is_cut_short_is_text_without_a_tokenizer_too() -> None:
    with serve(FakePolicy()) as url:
        reply = httpx.post(f"{url}/v1/completions", json={"prompt": "Sunny, and warm.", "max_tokens": 2}).json()
    assert (reply["choices"][0]["text"], reply["usage"]["completion_tokens"]) == ("Sunny,", 2)


def test_a_chat_gives_token_ids_in_sglangs_form(client: httpx.Client) -> None:
    """What miles' session server (of 2026-08) and rLLM's gateway before SGLang send and read: a reply with calls has a text."""
    asked: Json = {"messages": [{"role": "user", "content": "hi"}], "input_ids": IDS, "logprobs": True}
    asked |= {"return_meta_info": True, "return_prompt_token_ids": True, "no_stop_trim": False}
    choice = client.post("/v1/chat/completions", json=asked).json()["choices"][0]
    assert choice["message"]["content"] == ""
    assert choice["message"]["tool_calls"][0]["function"]["name"] == "get"
    assert (choice["prompt_token_ids"], choice["finish_reason"]) == (IDS, "tool_calls")
    told = choice["meta_info"]
    pairs = told["output_token_logprobs"]
    assert Bytes().decode([token for _, token, _ in pairs]) == f"{CALLED}<|im_end|>"
    assert [probability for probability, *_ in pairs] == [each["logprob"] for each in choice["logprobs"]["content"]]
    assert (told["prompt_tokens"], told["completion_tokens"]) == (len(IDS), len(pairs))
    assert "routed_experts" not in told


def test_an_engine_says_which_experts_it_asked_of_all_tokens_that_it_read() -> None:
    """As AReaL, slime and miles read them for router replay: 32-bit numbers in base64, one row less than there are tokens."""
    policy = FakePolicy(tokens=Bytes(), routed_experts=(3, 2))
    with serve(policy) as url:
        body = {"input_ids": IDS, "return_routed_experts": True}
        reply = httpx.post(f"{url}/generate", json=body).json()
        later = httpx.post(f"{url}/generate", json={**body, "routed_experts_start_len": 5}).json()
    rows = len(IDS) + len(reply["output_ids"]) - 1
    numbers = memoryview(b64decode(reply["meta_info"]["routed_experts"])).cast("i")
    assert len(numbers) == rows * 3 * 2
    assert memoryview(b64decode(later["meta_info"]["routed_experts"])).cast("i") == numbers[5 * 3 * 2 :]
    assert list(numbers[:6]) == [number for layer in policy.made.routed(IDS[:1])[0] for number in layer]


def test_as_many_tokens_are_listed_as_are_asked_for(client: httpx.Client) -> None:
    """Those who distil a teacher, such as verl and slime, make tensors of a place's five likeliest tokens."""

    def ask(path: str, **asked: Any) -> Any:
        return client.post(path, json=asked).json()["choices"][0]

    chat = {"messages": [{"role": "user", "content": "hi"}], "logprobs": True, "top_logprobs": 5}
    said = ask("/v1/chat/completions", **chat)["logprobs"]["content"]
    engine = ask("/inference/v1/generate", token_ids=IDS, sampling_params={"logprobs": 5})["logprobs"]["content"]
    for each in [*said, *engine]:
        listed = [one["logprob"] for one in each["top_logprobs"]]
        assert len({one["token"] for one in each["top_logprobs"]}) == len(listed) == 5
        assert listed == sorted(listed, reverse=True)
        assert (each["top_logprobs"][0]["token"], listed[0]) == (each["token"], each["logprob"])
        assert sum(map(math.exp, listed)) < 1 + 1e-5
    completed = ask("/v1/completions", prompt=IDS, logprobs=5, prompt_logprobs=5)
    assert {len(each) for each in completed["logprobs"]["top_logprobs"]} == {5}
    assert {len(each) for each in completed["prompt_logprobs"][1:]} == {5}
    assert client.post("/v1/chat/completions", json=chat | {"top_logprobs": 10**9}).status_code == 400


@pytest.mark.parametrize(
    ("path", "asked"),
    [("chat/completions", {"messages": [{"role": "user", "content": "hi"}]}), ("completions", {"prompt": IDS})],
)
def test_what_sglang_says_beside_the_choices(path: str, asked: Json) -> None:
    """As Trinity reads the experts of OpenAI's APIs, and others the ids; a stream has it in a chunk of its own, before the usage."""
    wanted = {"return_routed_experts": True, "return_input_ids_in_sglext": True, "return_output_ids_in_sglext": True}
    with serve(FakePolicy(tokens=Bytes(), routed_experts=(3, 2))) as url:
        ask = partial(httpx.post, f"{url}/v1/{path}")
        whole = ask(json=asked | wanted | {"n": 2, "return_token_ids": True}).json()
        streamed = ask(json=asked | wanted | {"stream": True, "stream_options": {"include_usage": True}}).text
        plain = ask(json=asked | {"return_routed_experts": True, "return_meta_info": True}).json()
    said = whole["sglext"]
    read, generated = said["input_ids"], whole["choices"][0]["token_ids"]
    assert [each["prompt_token_ids"] for each in whole["choices"]] == [read, read]
    assert said["output_ids"] == [generated, generated]
    numbers = memoryview(b64decode(said["routed_experts"])).cast("i")
    assert len(numbers) == (len(read) + len(generated) - 1) * 3 * 2
    chunks = [json.loads(line.removeprefix("data: ")) for line in streamed.split("\n\n") if line.startswith("data: {")]
    assert [chunk["choices"] for chunk in chunks[-2:]] == [[], []]
    assert chunks[-2]["sglext"]["output_ids"] == [generated]
    assert "sglext" not in plain


def test_texts_and_ids_are_counted_several_at_a_time(client: httpx.Client) -> None:
    """As SGLang takes them; and what each token reads, as vLLM tells it."""
    several = client.post("/tokenize", json={"prompt": ["hi", "a"]}).json()
    assert (several["tokens"], several["count"]) == ([[*b"hi"], [*b"a"]], [2, 1])
    assert client.post("/detokenize", json={"tokens": several["tokens"]}).json()["text"] == ["hi", "a"]
    assert client.post("/tokenize", json={"prompt": "hi", "return_token_strs": True}).json()["token_strs"] == ["h", "i"]


def test_what_clients_ask_of_the_tokenizer(client: httpx.Client) -> None:
    """As lm-eval asks, where it is told of no tokenizer."""
    told = client.get("/tokenizer_info").json()
    end = client.post("/tokenize", json={"prompt": told["eos_token"], "add_special_tokens": False}).json()["tokens"]
    assert end == [Bytes.eos_token_id]
    assert "<|im_start|>assistant\n" in told["chat_template"]


def test_tokens_are_named_by_ids_where_the_engine_is_served_so() -> None:
    """As OpenEnv 0.10's `validate_llm` and PipelineRL want vLLM served (`--return-tokens-as-token-ids`); a request may say otherwise."""
    with serve(FakePolicy(tokens=Bytes(), named_by_ids=True)) as url:
        asked: Json = {"messages": [{"role": "user", "content": "hi"}], "logprobs": True, "return_token_ids": True}
        choice = httpx.post(f"{url}/v1/chat/completions", json=asked).json()["choices"][0]
        asked["return_tokens_as_token_ids"] = False
        other = httpx.post(f"{url}/v1/chat/completions", json=asked).json()["choices"][0]
    assert [each["token"] for each in choice["logprobs"]["content"]] == [f"token_id:{t}" for t in choice["token_ids"]]
    assert [each["token"] for each in other["logprobs"]["content"]] == ["h", "i", "<|im_end|>"]


def test_sglangs_router_finds_the_model_and_sglangs_clients_the_tokenizer(client: httpx.Client) -> None:
    """As sglang-router 0.3.2 asks before it takes a worker, SGLang's own benchmark for the tokenizer, and TRL 1.16 for the type."""
    told = [client.get(path).json() for path in ("/model_info", "/get_model_info", "/server_info", "/get_server_info")]
    assert {(each["model_path"], each["served_model_name"], each["is_generation"]) for each in told} == {
        ("m", "m", True)
    }
    assert told[2]["vllm_config"]["model_config"]["dtype"] == "torch.bfloat16"
    tokens = client.post("/v1/tokenize", json={"prompt": "hi"}).json()["tokens"]
    assert client.post("/v1/detokenize", json={"tokens": tokens}).json()["text"] == "hi"


def test_an_engines_other_paths_are_answered_where_they_are_named(client: httpx.Client, policy: FakePolicy) -> None:
    """What trainers ask of an engine beside tokens: weights, pauses, memory; each has paths of its own."""
    assert client.post("/pause").status_code == 404
    policy.accept("/pause", "/update_weights")
    policy.accept("/server_info", reply={"version": "0"})
    assert client.post("/pause", params={"mode": "keep"}).json() == {"success": True, "message": ""}
    assert client.post("/update_weights", json={"weight_dir": "w"}).status_code == 200
    assert client.get("/server_info").json() == {"version": "0"}
    metrics = '# TYPE vllm:num_requests_running gauge\nvllm:num_requests_running{engine="0"} 3.0\n'
    policy.accept("/metrics", reply=metrics)  # which prime-rl, SkyRL and miles poll
    assert client.get("/metrics").text == metrics
    first, weights, *_ = policy.accepted
    assert (first.path, first.query) == ("/pause", "mode=keep")
    assert json.loads(weights.body) == {"weight_dir": "w"}
    assert policy.calls.count == 0


def test_faults_and_the_end_of_tokens(client: httpx.Client, policy: FakePolicy) -> None:
    policy.fail(PolicyFault("cut", times=2))
    assert client.post("/generate", json={"text": PROMPT}).json()["meta_info"]["finish_reason"]["type"] == "length"
    several = client.post("/generate", json={"text": PROMPT, "sampling_params": {"n": 3}}).json()
    assert [each["meta_info"]["finish_reason"]["type"] for each in several] == ["length"] * 3
    policy.fail(PolicyFault("status", status=503, times=1))
    assert client.post("/generate", json={"text": PROMPT}).status_code == 503


def test_a_conversation_comes_with_its_tokens(client: httpx.Client) -> None:
    """As the token client of Verifiers up to 0.2 asks prime-rl's server, and prime-rl a teacher."""
    asked: Json = {"model": "m", "messages": [{"role": "user", "content": "Weather?"}], "tokens": IDS, "logprobs": True}
    path = "/v1/chat/completions/tokens"
    reply = client.post(path, json={**asked, "return_token_ids": True, "prompt_logprobs": 1}).json()
    assert (reply["prompt_token_ids"], len(reply["prompt_logprobs"])) == (IDS, len(IDS))
    (choice,) = reply["choices"]
    assert choice["message"]["tool_calls"]
    assert len(choice["token_ids"]) == len(choice["logprobs"]["content"]) == reply["usage"]["completion_tokens"]
    assert client.post(path, json={**asked, "stream": True}).text.endswith("data: [DONE]\n\n")


@pytest.mark.parametrize("path", ["/inference/v1/generate", "/skyrl/v1/generate"])
def test_routed_experts_are_packed(path: str) -> None:
    """As Verifiers' train client (renderers 0.1.12, which looks for the bytes) and SkyRL's read them."""
    policy = FakePolicy(tokens=Bytes(), routed_experts=(2, 3))
    body = {"model": "m", "token_ids": IDS, "sampling_params": {"routed_experts_prompt_start": 4}}
    with serve(policy) as url:
        raw = httpx.post(f"{url}{path}", json=body).content
    assert b'"routed_experts":{"data":"' in raw
    (choice,) = json.loads(raw)["choices"]
    packed = choice["routed_experts"]
    rows = len(IDS) + len(choice["token_ids"]) - 1 - 4  # the last token was not read
    assert (packed["shape"], packed["start"], packed["dtype"]) == ([rows, 2, 3], 4, "uint8")
    assert len(b64decode(packed["data"])) == rows * 2 * 3


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/completions", "/inference/v1/generate"])
def test_each_chunk_counts_the_tokens_so_far(client: httpx.Client, path: str) -> None:
    """As vLLM's and SGLang's clients ask that watch a rollout while it is said; vLLM counts only with `include_usage`."""
    asked: Json = {"messages": [{"role": "user", "content": "Weather?"}], "prompt": PROMPT, "token_ids": IDS}
    counted = {"include_usage": True, "continuous_usage_stats": True}
    told = [
        _chunks(client.post(path, json={"model": "m", **asked, "stream": True, "stream_options": options}))
        for options in (counted, counted | {"include_usage": False})
    ]
    *chunks, last = [chunk["usage"] for chunk in told[0]]
    said = [usage["completion_tokens"] for usage in chunks]
    assert said == sorted(said)
    assert said[-1] == last["completion_tokens"] > said[0]
    assert not any("usage" in chunk for chunk in told[1])


def _chunks(reply: httpx.Response) -> list[Json]:
    return [json.loads(line[6:]) for line in reply.text.splitlines() if line.startswith("data: {")]


def test_replies_name_the_weights_and_what_ended_them(policy: FakePolicy, client: httpx.Client) -> None:
    """As SGLang does, whose trainers name the weights as they give them: slime, and rLLM's and AReaL's clients."""
    policy.accept("/update_weights_from_distributed", "/update_weight_version")
    chat: Json = {"model": "m", "messages": [{"role": "user", "content": "Weather?"}]}
    for given in ({}, {"weight_version": "7"}, {"new_version": "8"}, {"weight_version": None}):
        client.post("/update_weights_from_distributed", json=given)
        replies = [
            client.post("/v1/chat/completions", json=chat),
            client.post("/v1/completions", json={"prompt": PROMPT}),
        ]
        versions = {reply.json()["metadata"]["weight_version"] for reply in replies}
        engine = client.post("/generate", json={"input_ids": IDS}).json()["meta_info"]["weight_version"]
        assert versions == {engine} == {client.get("/get_weight_version").json()["weight_version"]}
        assert engine == {"{}": "default", '{"weight_version": "7"}': "7"}.get(json.dumps(given), "8")
        assert [reply.json()["choices"][0]["matched_stop"] for reply in replies] == [256, 256]
    assert (
        client.post("/v1/completions", json={"prompt": PROMPT, "max_tokens": 2}).json()["choices"][0]["matched_stop"]
        is None
    )
