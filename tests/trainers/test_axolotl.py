"""axolotl's own NeMo Gym integration against a mock gym: how it finds the servers, and what it makes of rollouts."""

from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit

import pytest
import torch

from gym_mocks.examples import weather
from gym_mocks.gym import MockGym
from gym_mocks.policy import FakePolicy, call, say
from gym_mocks.rollout_faults import RolloutFault

Json = dict[str, Any]


@pytest.fixture
def gym(tokenizer: Any) -> Any:
    with MockGym(policy=FakePolicy(tokens=tokenizer)) as gym:
        gym.add_env(weather.server(), weather.ROWS)
        gym.policy.script("any", [call("get_weather", city="Paris"), say("Sunny.")])
        yield gym


@pytest.fixture
def head_port(gym: MockGym) -> int:
    return urlsplit(gym.head_url).port or 0


def rolled_out(gym: MockGym, head_port: int, tokenizer: Any, timeout: float = 30) -> Json:
    """What its rollout function gives the trainer, for one prompt and two generations."""
    from axolotl.integrations.nemo_gym.multi_turn import create_nemo_gym_rollout_func  # noqa: PLC0415
    from axolotl.integrations.nemo_gym.server import get_agent_servers, get_server_configs  # noqa: PLC0415

    agents = get_agent_servers(get_server_configs(head_port))
    assert agents == {"weather_simple_agent": gym.url("weather_simple_agent")}
    lookup: Any = {"What is the weather?": gym.rows[0]}
    trainer = SimpleNamespace(
        model=SimpleNamespace(training=True),
        num_generations=2,
        temperature=1.0,
        top_p=0.9,
        max_completion_length=256,
        processing_class=tokenizer,
        _tokenizer=tokenizer,
    )
    found: Json = create_nemo_gym_rollout_func(agents, lookup, request_timeout=timeout)(
        ["What is the weather?"], trainer
    )
    return found


def test_it_finds_the_servers_and_starts_none(gym: MockGym, head_port: int, tmp_path: Any) -> None:
    from axolotl.integrations.nemo_gym import server  # noqa: PLC0415

    server.start_servers(str(tmp_path), ["no/such.yaml"], head_port=head_port)
    config = server.get_server_configs(head_port)
    server.wait_for_resource_servers(config, timeout=10)
    assert server.get_verify_endpoint(config, "weather") == f"{gym.url('weather')}/verify"


def test_its_rollouts_have_ids_masks_and_rewards(gym: MockGym, head_port: int, tokenizer: Any, model: Any) -> None:
    found = rolled_out(gym, head_port, tokenizer)
    assert (found["env_reward"], found["num_turns"]) == ([1.0, 1.0], [2, 2])
    ids, mask = torch.tensor(found["completion_ids"][:1]), torch.tensor(found["env_mask"][:1])
    assert ids.shape == mask.shape == torch.tensor(found["logprobs"][:1]).shape[:2]
    said = tokenizer.decode(ids[mask.bool()])
    assert said.endswith("</tool_call><|im_end|>Sunny.<|im_end|>")
    assert "sunny" in tokenizer.decode(ids[~mask.bool()])
    prompt = torch.tensor(found["prompt_ids"])
    logits = model(torch.cat([prompt, ids], 1)).logits[:, prompt.shape[1] - 1 : -1]
    chosen = torch.log_softmax(logits, -1).gather(-1, ids.unsqueeze(-1)).squeeze(-1)
    (-(chosen * mask).sum()).backward()
    assert float(model.lm_head.weight.grad.norm()) > 1e-3


@pytest.mark.parametrize(
    "fault", [RolloutFault("lost"), RolloutFault("status", status=503), RolloutFault("late", seconds=30)]
)
def test_what_goes_wrong_is_a_reward_of_zero_without_an_error(
    gym: MockGym, head_port: int, tokenizer: Any, fault: RolloutFault
) -> None:
    """What it does silently: the mask is zero too, so that nothing is learned from it."""
    gym.fail(fault)
    found = rolled_out(gym, head_port, tokenizer, timeout=1)
    assert (found["env_reward"], found["env_mask"]) == ([0.0, 0.0], [[0], [0]])


def test_without_token_ids_nothing_is_learned_and_nothing_said(head_port: int, gym: MockGym, tokenizer: Any) -> None:
    gym.policy.token_fields = False
    found = rolled_out(gym, head_port, tokenizer)
    assert (found["env_reward"], found["env_mask"]) == ([0.0, 0.0], [[0], [0]])
