"""An answer in the shapes of inference engines, which continue a text or token ids.

OpenAI's `/v1/completions` (OpenAI SDK: `openai.types.Completion`), with vLLM's `return_token_ids`; vLLM's
`/inference/v1/generate` (vllm/entrypoints/serve/disagg of 0.20 and later), which Verifiers, prime-rl and SkyRL ask;
SGLang's `/generate` (sglang/srt/managers/io_struct.py of 0.5), which slime and AReaL ask; and `/generate/` and `/chat/`
of `trl vllm-serve` (trl/scripts/vllm_serve.py of 1.16), which TRL's `VLLMClient` and Atropos ask.
"""

from array import array
from base64 import b64encode
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Any

from gym_mocks.policy.answer import LISTS, PolicyAnswer, pieces
from gym_mocks.policy.items import written

STEP = 8  # tokens that each chunk of a stream adds, where it has tokens
MOST_CHUNKS = 64  # of a stream whose chunks each have all that was said so far


def completion(answer: PolicyAnswer) -> dict[str, Any]:
    """The reply of `/v1/completions` as one object."""
    choice = {"text": _text(answer)} | _closing(answer)
    choices = [{"index": index} | choice for index in range(answer.count)]
    return (
        _envelope(answer) | {"choices": choices, "usage": _usage(answer)} | sglang_extension(answer) | answer.metadata
    )


def chunks(answer: PolicyAnswer) -> Iterator[dict[str, Any]]:
    """The same as the chunks of a stream; the last of a choice has its tokens and log probabilities."""
    envelope = _envelope(answer)
    for index in range(answer.count):
        texts = [*pieces(_text(answer))]
        for at, piece in enumerate(texts, 1):
            choice = {"index": index, "text": piece, "finish_reason": None, "logprobs": None}
            yield envelope | {"choices": [choice]} | answer.usage_so_far(at / (len(texts) + 1))
        yield envelope | {"choices": [{"index": index, "text": ""} | _closing(answer)]} | answer.usage_so_far()
    if extension := sglang_extension(answer):
        yield envelope | {"choices": []} | extension
    if answer.wants_usage:
        yield envelope | {"choices": [], "usage": _usage(answer)}


def vllm_generation(answer: PolicyAnswer) -> dict[str, Any]:
    """The reply of vLLM's `/inference/v1/generate`."""
    choice = _vllm_part(answer, 0, len(answer.tokens.generation)) | _vllm_routed_experts(answer)
    choices = [{"index": index} | choice for index in range(answer.count)]
    asked = {"prompt_token_ids": answer.tokens.prompt} if answer.request.body.get("return_token_ids") else {}
    said = {"choices": choices, "usage": _usage(answer), "prompt_logprobs": None}
    return _vllm_envelope(answer) | said | asked | prompt_log_probs(answer)


def vllm_chunks(answer: PolicyAnswer) -> Iterator[dict[str, Any]]:
    """The same as a stream, each chunk with the tokens that it adds."""
    length = len(answer.tokens.generation)
    for index in range(answer.count):
        for start in range(0, length, STEP):
            end = min(start + STEP, length)
            part = {"choices": [{"index": index} | _vllm_part(answer, start, end)]}
            yield _vllm_envelope(answer) | part | answer.usage_so_far(end / length)
    if answer.wants_usage:
        yield _vllm_envelope(answer) | {"choices": [], "usage": _usage(answer)}


def _vllm_envelope(answer: PolicyAnswer) -> dict[str, Any]:
    name = answer.id("gen")  # under the name of later versions, too
    return {"request_id": name, "id": name, "created": answer.created, "model": answer.model}


def _vllm_part(answer: PolicyAnswer, start: int, end: int) -> dict[str, Any]:
    """The choice from one of its tokens to another."""
    most = answer.listed("logprobs") if answer.sampling.get("logprobs") else 0
    content: list[dict[str, Any]] = []
    for scored in answer.log_probs[start:end]:
        first, *others = (
            {"token": f"token_id:{token}", "logprob": one, "bytes": None}
            for token, one in answer.made.likeliest(*scored, most)
        )
        content.append(first | {"top_logprobs": [first, *others] if most else []})
    return {
        "finish_reason": (answer.cut or "stop") if end == len(answer.tokens.generation) else None,
        "token_ids": answer.tokens.generation[start:end],
        "logprobs": None if answer.sampling.get("logprobs") is None else {"content": content},
    }


def _vllm_routed_experts(answer: PolicyAnswer) -> dict[str, Any]:
    """Each token's experts from the place on that the client names, packed as prime-rl's and SkyRL's servers pack them."""
    if not answer.made.routed_experts:
        return {}
    start = _place(answer.sampling.get("routed_experts_prompt_start"))
    routed, shape = _routed(answer, answer.tokens.generation, start), answer.made.routed_experts
    data = b64encode(bytes(_flat(routed))).decode()
    # `data` comes first: Verifiers looks for it there before it reads the JSON
    return {"routed_experts": {"data": data, "shape": [len(routed), *shape], "start": start, "dtype": "uint8"}}


def _routed(answer: PolicyAnswer, said: Sequence[int], start: int) -> list[list[list[int]]]:
    """The experts of all tokens from a place on that were read, which the last one was not."""
    return answer.made.routed([*answer.tokens.prompt, *said][:-1][start:])


def _flat(routed: list[list[list[int]]]) -> Iterator[int]:
    return (expert for token in routed for layer in token for expert in layer)


def _place(value: Any) -> int:
    return value if isinstance(value, int) and value >= 0 else 0


def prompt_log_probs(answer: PolicyAnswer) -> dict[str, Any]:
    """The prompt's log probabilities as vLLM writes them, where they are asked for, as by those who distil a teacher."""
    if not answer.prompt_is_scored:
        return {}
    scored = [*zip(answer.prompt_log_probs, answer.prompt_texts, strict=True)]
    most = answer.listed("prompt_logprobs") if answer.sampling.get("prompt_logprobs") else answer.listed(*LISTS)
    entries = {  # each once: a long prompt has few different tokens
        (token, text): {
            str(one): {
                "logprob": each,
                "rank": rank,
                "decoded_token": text if one == token else answer.tokenizer.decoded([one]),
            }
            for rank, (one, each) in enumerate(answer.made.likeliest(token, probability, most), 1)
        }
        for (token, probability), text in dict.fromkeys(scored)
        if probability is not None
    }
    read = [None if probability is None else entries[token, text] for (token, probability), text in scored]
    return {"prompt_logprobs": read}


def sglang_generation(answer: PolicyAnswer) -> dict[str, Any] | list[dict[str, Any]]:
    """The reply of SGLang's `/generate`; a list where several are asked for."""
    reply = _sglang_so_far(answer, len(answer.tokens.generation))
    return reply if answer.count == 1 else [reply] * answer.count


def sglang_chunks(answer: PolicyAnswer) -> Iterator[dict[str, Any]]:
    """The same as a stream, which slime reads: each chunk has all that was said so far, as by SGLang's default."""
    length = len(answer.tokens.generation)
    step = max(STEP, length // MOST_CHUNKS)
    for index in range(answer.count):
        place = {} if answer.count == 1 else {"index": index}
        for so_far in (*range(step, length, step), length):
            yield _sglang_so_far(answer, so_far) | place


def _sglang_so_far(answer: PolicyAnswer, length: int) -> dict[str, Any]:
    """What there is of a reply when so many tokens were said."""
    every, text = answer.tokens.generation, _text(answer)
    part = text if length == len(every) else text[: len(text) * length // len(every)]
    return {"text": part, "output_ids": every[:length], "meta_info": sglang_meta_info(answer, length)}


def sglang_meta_info(answer: PolicyAnswer, length: int) -> dict[str, Any]:
    """What SGLang says of a reply beside its text when so many tokens were said."""
    every, asked = answer.tokens.generation, answer.request.body
    said = every[:length]
    ended: dict[str | None, dict[str, Any]] = {
        None: {"type": "stop", "matched": answer.matched_stop},
        "length": {"type": "length", "length": len(said)},
        "abort": {"type": "abort", "message": "Aborted", "status_code": None, "err_type": None},
    }
    meta: dict[str, Any] = {
        "id": answer.id("gen"),
        "finish_reason": ended[answer.cut] if length == len(every) else None,
        "prompt_tokens": len(answer.tokens.prompt),
        "completion_tokens": len(said),
        "cached_tokens": 0,
        **answer.metadata["metadata"],
    }
    if asked.get("return_logprob") or asked.get("logprobs"):
        meta |= _sglang_log_probs(answer, "output", answer.log_probs[:length])
        meta |= _sglang_log_probs(answer, "input", answer.prompt_log_probs[answer.scored_from :])
    return meta | _sglang_routed_experts(answer, said)


def _sglang_routed_experts(answer: PolicyAnswer, said: Sequence[int]) -> dict[str, str]:
    """Each token's experts from the place on that the client names, as SGLang packs them, where it asks for them."""
    asked = answer.request.body
    if not (asked.get("return_routed_experts") and answer.made.routed_experts):
        return {}
    numbers = array("i", _flat(_routed(answer, said, _place(asked.get("routed_experts_start_len")))))
    return {"routed_experts": b64encode(numbers.tobytes()).decode()}


def sglang_extension(answer: PolicyAnswer) -> dict[str, Any]:
    """What SGLang says beside the choices of OpenAI's APIs (`SglExt` of its openai/protocol.py, 2026), as Trinity reads it."""
    asked, tokens = answer.request.body, answer.tokens
    # with `return_meta_info` the experts are there
    said: dict[str, Any] = (
        {} if asked.get("return_meta_info") else {**_sglang_routed_experts(answer, tokens.generation)}
    )
    if asked.get("return_input_ids_in_sglext"):
        said["input_ids"] = tokens.prompt
    if asked.get("return_output_ids_in_sglext"):
        said["output_ids"] = [tokens.generation] * answer.count
    return {"sglext": said} if said else {}


def _sglang_log_probs(answer: PolicyAnswer, side: str, scored: Sequence[tuple[int, float | None]]) -> dict[str, Any]:
    """Tokens' log probabilities; beside each, those of the likeliest, which is itself, and of the ids that a client names.

    With their texts where a client asks for them, as SGLang's own frontend does to choose among answers.
    """
    asked = answer.request.body if answer.request.api == "sglang" else {}  # in a chat nobody asks for them
    texts: Sequence[str | None] = [None] * len(scored)
    if with_texts := bool(asked.get("return_text_in_logprobs")):
        read = answer.prompt_texts
        texts = answer.token_texts[: len(scored)] if side == "output" else read[len(read) - len(scored) :]
    each = [[one, token, text] for (token, one), text in zip(scored, texts, strict=True)]
    meta: dict[str, Any] = {f"{side}_token_logprobs": each}
    if asked.get("top_logprobs_num"):
        most, name = answer.listed("top_logprobs_num"), answer.tokenizer.decoded

        def likeliest(entry: list[Any], token: int, log_prob: float) -> list[list[Any]]:
            others = answer.made.likeliest(token, log_prob, most)[1:]
            return [entry, *([one, other, name([other]) if with_texts else None] for other, one in others)]

        meta[f"{side}_top_logprobs"] = [
            None if one is None else likeliest(entry, token, one)
            for entry, (token, one) in zip(each, scored, strict=True)
        ]
    if wanted := answer.named_ids:
        named = [
            [one, token, answer.tokenizer.decoded([token]) if with_texts else None]
            for token, one in zip(wanted, answer.made.log_probs(wanted), strict=True)
        ]
        meta[f"{side}_token_ids_logprobs"] = [None if entry[0] is None else named for entry in each]
    return meta


def trl_generation(answer: PolicyAnswer) -> dict[str, Any]:
    """What TRL's server says of one prompt: its ids, and of each completion the ids and their log probabilities."""
    wanted = answer.request.body.get("logprobs", 0) is not None
    listed = [answer.made.likeliest(*scored, answer.listed("logprobs")) for scored in answer.log_probs]
    said = {
        "completion_ids": answer.tokens.generation,
        "logprobs": [[one for _, one in each] for each in listed] if wanted else None,
        "logprob_token_ids": [[token for token, _ in each] for each in listed] if wanted else None,
    }
    each = {name: None if value is None else [value] * answer.count for name, value in said.items()}
    return {"prompt_ids": [answer.tokens.prompt], **each}


def _text(answer: PolicyAnswer) -> str:
    if answer.text is not None:
        return answer.text
    return "".join(part for item in answer.turn for part in written(item))


def _closing(answer: PolicyAnswer) -> dict[str, Any]:
    """What a choice says when it is at its end."""
    asked = answer.request.body
    ids = {"token_ids": answer.tokens.generation, "prompt_token_ids": answer.tokens.prompt}
    return {
        "finish_reason": answer.cut or "stop",
        "stop_reason": None,  # vLLM's: the stop text or token that was asked for
        "matched_stop": answer.matched_stop,
        "logprobs": None if asked.get("logprobs") is None else _log_probs(answer),
        **prompt_log_probs(answer),
    } | (ids if asked.get("return_token_ids") else {})


def _log_probs(answer: PolicyAnswer) -> dict[str, Any]:
    names = [*(answer.prompt_names if answer.echoes else []), *answer.token_names]
    scored = [*(answer.prompt_log_probs if answer.echoes else []), *answer.log_probs]
    named = [(name, token, probability) for name, (token, probability) in zip(names, scored, strict=True)]
    most = answer.listed("logprobs")
    listed: dict[tuple[str, int, float | None], dict[str, float]] = {
        (name, token, one): dict(reversed(answer.likeliest(name, token, one, most)))  # its own name is its own
        for name, token, one in dict.fromkeys(named)
        if one is not None
    }
    return {
        "tokens": names,
        "token_logprobs": [probability for *_, probability in named],
        "top_logprobs": [listed.get(each) for each in named],
        "text_offset": [0, *accumulate(map(len, names))][:-1],
    }


def _envelope(answer: PolicyAnswer) -> dict[str, Any]:
    return {"id": answer.id("cmpl"), "object": "text_completion", "created": answer.created, "model": answer.model}


def _usage(answer: PolicyAnswer) -> dict[str, Any]:
    read, said = len(answer.tokens.prompt), len(answer.tokens.generation) * answer.count
    return {"prompt_tokens": read, "completion_tokens": said, "total_tokens": read + said}
