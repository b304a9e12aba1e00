"""TRL's own VLLMClient, by which its trainers ask a vLLM server, with the policy for that server; weights are not sent."""

from typing import Any

import pytest
from trl.generation import vllm_client

from gym_mocks.policy import FakePolicy
from gym_mocks.serving import serve


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The client of a policy that repeats what it was told; vLLM itself is for its weights alone."""
    monkeypatch.setattr(vllm_client, "is_vllm_available", lambda: True)
    with serve(FakePolicy()) as url:
        yield vllm_client.VLLMClient(url)


def test_it_reads_what_the_policy_says_of_several_prompts(client: Any) -> None:
    texts = client.generate(["Weather?", "Hi"], n=2)
    ids = client.generate(texts["prompt_ids"], n=2, logprobs=3)
    assert ids["prompt_ids"] == texts["prompt_ids"]
    chats = client.chat([[{"role": "user", "content": text}] for text in ("Weather?", "Hi")], n=2)
    for said, listed in ((texts, 1), (ids, 3), (chats, 1)):
        assert [len(said[name]) for name in ("prompt_ids", "completion_ids", "logprobs")] == [2, 4, 4]
        tokens = said["logprob_token_ids"]
        assert [[token for token, *_ in each] for each in tokens] == said["completion_ids"]
        assert {len(set(likely)) for each in tokens for likely in each} == {listed}
        assert [[*map(len, each)] for each in said["logprobs"]] == [[*map(len, each)] for each in tokens]
    assert chats["completion_ids"] == texts["completion_ids"]
    assert client.generate([[7]], logprobs=None)["logprobs"] is None


def test_it_reads_the_scores_of_a_teacher(client: Any) -> None:
    said = client.generate(["Weather?", "Hi"])
    sequences = [[*read, *spoken] for read, spoken in zip(said["prompt_ids"], said["completion_ids"], strict=True)]
    scored = client.get_sequence_logprobs(sequences, [len(read) for read in said["prompt_ids"]], top_logprobs=2)
    assert scored["actual_token_ids"] == [[[token] for token in each] for each in said["completion_ids"]]
    assert scored["actual_logprobs"] == said["logprobs"]
