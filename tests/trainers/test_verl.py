"""verl's own batch of rollouts, started as its NeMo Gym recipe starts them: nemo-gym's RunHelper, replaced by the mock's.

The recipe is no package. Its packing is told here in our own words, and `_postprocess` is verl's.
"""

import asyncio
import socket
import warnings
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from gym_mocks.nemo import RunHelper
from gym_mocks.policy import FakePolicy, PolicyFault, call, refuse, say, think

Json = dict[str, Any]
CONFIGS = [
    "responses_api_models/vllm_model/configs/vllm_model_for_training.yaml",
    "resources_servers/workplace_assistant/configs/workplace_assistant.yaml",
    "resources_servers/math_with_judge/configs/math_with_judge.yaml",
]
AGENTS = ("workplace_assistant_simple_agent", "math_with_judge_simple_agent")


def started(head_port: int) -> Any:
    """The gym as a trainer starts it: at a port of its choice, with nemo-gym's own configurations."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # nemo-gym has moved what trainers import from here
        from nemo_gym.cli import GlobalConfigDictParserConfig, RunHelper  # noqa: PLC0415 - as they do: late
        from omegaconf import DictConfig  # noqa: PLC0415
    given = {
        "config_paths": CONFIGS,
        "head_server": {"host": "127.0.0.1", "port": head_port},
        "policy_model": {"responses_api_models": {"vllm_model": {"uses_reasoning_parser": False}}},
        "policy_model_name": "tiny",
        "policy_api_key": "dummy_key",
        "policy_base_url": ["http://127.0.0.1:9/v1"],
    }
    helper = RunHelper()
    config = GlobalConfigDictParserConfig(
        dotenv_path=None, initial_global_config_dict=DictConfig(given), skip_load_from_cli=True
    )
    helper.start(global_config_dict_parser_config=config)
    return helper


async def collected(head_port: int, rows: list[Json]) -> list[tuple[Json, Json]]:
    """Rows and rollouts, by nemo-gym's own collection."""
    from nemo_gym import server_utils  # noqa: PLC0415
    from nemo_gym.rollout_collection import RolloutCollectionHelper  # noqa: PLC0415

    head = server_utils.BaseServerConfig(host="127.0.0.1", port=head_port)
    try:
        return [await task for task in RolloutCollectionHelper().run_examples(rows, head_server_config=head)]
    finally:
        await server_utils.get_global_aiohttp_client().close()
        server_utils._GLOBAL_AIOHTTP_CLIENT = None  # noqa: SLF001 - it has no other way; the loop ends here


@pytest.fixture
def head_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port: int = probe.getsockname()[1]
        return port


def rows_of(count: int) -> list[Json]:
    return [
        {
            "responses_create_params": {"input": [{"role": "user", "content": f"task {number}"}], "temperature": 1.0},
            "agent_ref": {"type": "responses_api_agents", "name": AGENTS[number % 2]},
            "_rowidx": number,
        }
        for number in range(count)
    ]


def turns_of(rollout: Json) -> list[tuple[list[int], list[int], list[float]]]:
    """What each turn read anew, said, and how sure it was; contiguity is asserted as trainers assert it."""
    seen: list[int] = []
    turns: list[tuple[list[int], list[int], list[float]]] = []
    for item in rollout["response"]["output"]:
        if item.get("generation_token_ids"):
            asked, said = item["prompt_token_ids"], item["generation_token_ids"]
            assert asked[: len(seen)] == seen
            turns.append((asked[len(seen) :], said, item["generation_log_probs"]))
            seen = asked + said
    return turns


def output_of(rollout: Json, pad: int, prompt_length: int, response_length: int) -> Any:
    """A rollout as verl's agent loops hand it over: the prompt padded on the left, the response on the right."""
    from verl.experimental.agent_loop.agent_loop import AgentLoopMetrics, _InternalAgentLoopOutput  # noqa: PLC0415

    (prompt, *_), *_ = turns = turns_of(rollout)
    response: list[int] = []
    mask: list[int] = []
    log_probs: list[float] = []
    for number, (read, said, sure) in enumerate(turns):
        between = read if number else []
        response += between + said
        mask += [0] * len(between) + [1] * len(said)
        log_probs += [0.0] * len(between) + sure
    left, right = prompt_length - len(prompt), response_length - len(response)
    ids = torch.tensor([[pad] * left + prompt + response + [pad] * right])
    attention = torch.tensor([[0] * left + [1] * (len(prompt) + len(response)) + [0] * right])
    return _InternalAgentLoopOutput(
        prompt_ids=ids[:, :prompt_length],
        response_ids=ids[:, prompt_length:],
        input_ids=ids,
        position_ids=(attention.cumsum(-1) - 1).clamp(min=0),
        response_mask=torch.tensor([mask + [0] * right]),
        attention_mask=attention,
        response_logprobs=torch.tensor([log_probs + [0.0] * right]),
        reward_score=rollout["reward"],
        num_turns=len(turns),
        metrics=AgentLoopMetrics(),
    )


@pytest.fixture
def policy(mock_run_helper: type[RunHelper], tokenizer: Any) -> FakePolicy:
    """Turns of every kind: reasoning alone, with a call, several calls, and at last a text or a refusal."""
    made = FakePolicy(tokens=tokenizer, routed_experts=(2, 2))
    script = [[think("Hm.")], [think("So."), call("look", at=1)], [call("one"), call("other")]]

    def said(request: Any) -> Any:
        if request.step < len(script):
            return script[request.step]
        return refuse("No.") if request.prompt[-1].text.endswith("1") else say("Done.")

    made.bind("policy", said)
    mock_run_helper.policy = made
    return made


def test_verls_batch_of_a_mock_gym_and_a_step_on_it(
    policy: FakePolicy, head_port: int, tokenizer: Any, model: Any
) -> None:
    """Masks where the policy spoke, scores on the last token, and a gradient that is not zero."""
    from verl.experimental.agent_loop.agent_loop import AgentLoopWorker  # noqa: PLC0415

    helper = started(head_port)
    helper.poll()
    found = asyncio.run(collected(head_port, rows_of(16)))
    helper.shutdown()
    found.sort(key=lambda pair: pair[0]["_rowidx"])
    rollouts = [rollout for _, rollout in found]
    turns = [turns_of(rollout) for rollout in rollouts]
    assert {len(each) for each in turns} == {4}
    prompt_length = max(len(each[0][0]) for each in turns)
    response_length = max(sum(len(read) + len(said) for read, said, _ in each) - len(each[0][0]) for each in turns)
    outputs = [output_of(rollout, tokenizer.pad_token_id, prompt_length, response_length) for rollout in rollouts]
    loop = SimpleNamespace(reward_loop_worker_handles=None, distillation_enabled=False)
    batch = AgentLoopWorker._postprocess(loop, outputs).batch  # noqa: SLF001 - it is what the recipe calls
    assert batch["rm_scores"].sum(-1).tolist() == [0.0 if number % 10 == 1 else 1.0 for number in range(16)]
    spoken = [batch["responses"][i][batch["response_mask"][i].bool()].tolist() for i in range(16)]
    assert spoken == [[token for _, said, _ in each for token in said] for each in turns]
    assert tokenizer.decode(spoken[0]).startswith("<think>\nHm.\n</think>\n\n<|im_end|><think>\nSo.")
    assert tokenizer.decode(spoken[0]).endswith("Done.<|im_end|>")
    assert policy.calls.count == 64
    logits = model(
        batch["input_ids"], attention_mask=batch["attention_mask"], position_ids=batch["position_ids"]
    ).logits
    logits = logits[:, prompt_length - 1 : -1]
    chosen = torch.log_softmax(logits, -1).gather(-1, batch["responses"].unsqueeze(-1)).squeeze(-1)
    scores = batch["rm_scores"].sum(-1)
    loss = -(chosen * batch["response_mask"] * (scores - scores.mean()).unsqueeze(-1)).sum()
    loss.backward()
    assert float(torch.stack([each.grad.norm() for each in model.parameters() if each.grad is not None]).norm()) > 1e-3


def test_what_nemo_rl_holds_a_rollout_to(policy: FakePolicy, head_port: int) -> None:
    """Trainable turns are those with generated tokens; each has an expert's route for every token that it saw or said."""
    policy.fail(PolicyFault("no_tokens", turn=1))
    helper = started(head_port)
    found = asyncio.run(collected(head_port, rows_of(4)))
    helper.shutdown()
    for _, rollout in found:
        bare = [item for item in rollout["response"]["output"] if item.get("generation_token_ids") == []]
        assert len(bare) == 1
        assert len(turns_of(rollout)) == 3
        for item in rollout["response"]["output"]:
            if item.get("generation_token_ids"):
                everything = len(item["prompt_token_ids"]) + len(item["generation_token_ids"])
                assert torch.as_tensor(item["routed_experts"], dtype=torch.int16).shape == (everything, 2, 2)


def test_a_refused_rollout_reaches_the_trainer_as_an_error(mock_run_helper: type[RunHelper], head_port: int) -> None:
    from aiohttp import ClientResponseError  # noqa: PLC0415

    from gym_mocks.rollout_faults import RolloutFault  # noqa: PLC0415 - beside what it is for

    helper = started(head_port)
    mock_run_helper.gyms[-1].fail(RolloutFault("status", status=503))
    with pytest.raises(ClientResponseError) as error:
        asyncio.run(collected(head_port, rows_of(1)))
    assert error.value.status == 503
    helper.shutdown()


def test_a_lost_rollout_is_asked_for_again_by_nemo_gyms_client(
    mock_run_helper: type[RunHelper], head_port: int
) -> None:
    """It never gives up: a fault without `times` would keep it for ever."""
    from gym_mocks.rollout_faults import RolloutFault  # noqa: PLC0415 - as above

    helper = started(head_port)
    gym = mock_run_helper.gyms[-1]
    gym.fail(RolloutFault("lost", times=2))
    ((_, rollout),) = asyncio.run(collected(head_port, rows_of(1)))
    assert rollout["reward"] == 1.0
    assert gym.policy.calls.count == 3
    helper.shutdown()
