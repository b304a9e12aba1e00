"""TRL's own GRPOTrainer on a CPU: a step on the mock gym's rollouts, by a rollout function as its NeMo Gym example has one."""

from pathlib import Path
from typing import Any

import httpx
import pytest
import torch
import yaml
from datasets import Dataset
from trl import GRPOConfig, GRPOTrainer

from gym_mocks.examples import weather
from gym_mocks.gym import MockGym
from gym_mocks.policy import FakePolicy, call, say

Json = dict[str, Any]


def agents(head_url: str) -> dict[str, str]:
    """Where the agents are, as the example finds them."""
    config = yaml.safe_load(yaml.safe_load(httpx.get(f"{head_url}/global_config_dict_yaml").text))
    found: dict[str, str] = {}
    for name, kinds in config.items():
        for agent in (kinds.get("responses_api_agents") or {}).values() if isinstance(kinds, dict) else ():
            found[name] = f"http://{agent['host']}:{agent['port']}"
    return found


def packed(rollout: Json) -> tuple[list[int], list[int], list[int], list[float]]:
    """A rollout's prompt, completion, mask and log probabilities; each prompt begins with all tokens seen."""
    seen: list[int] = []
    prompt: list[int] = []
    completion: list[int] = []
    mask: list[int] = []
    log_probs: list[float] = []
    for item in rollout["response"]["output"]:
        if "generation_token_ids" not in item:
            continue
        asked, said = item["prompt_token_ids"], item["generation_token_ids"]
        assert asked[: len(seen)] == seen
        between = asked[len(seen) :] if seen else []
        prompt = prompt or asked
        completion += between + said
        mask += [0] * len(between) + [1] * len(said)
        log_probs += [0.0] * len(between) + item["generation_log_probs"]
        seen = asked + said
    return prompt, completion, mask, log_probs


class Watching(GRPOTrainer):  # type: ignore[misc]  # TRL is not typed
    """Keeps what the step learned from."""

    norms: list[float]
    trained: list[int]

    def training_step(self, model: Any, inputs: Any, *args: Any) -> Any:
        loss = super().training_step(model, inputs, *args)
        gradients = [each.grad for each in model.parameters() if each.grad is not None]
        self.norms.append(float(torch.stack([gradient.norm() for gradient in gradients]).norm()))
        return loss

    def _generate_and_score_completions(self, inputs: Any) -> Any:
        batch = super()._generate_and_score_completions(inputs)
        self.trained.append(int(batch["completion_mask"].sum()))
        return batch


def trained(gym: MockGym, model: Any, tokenizer: Any, folder: Path) -> tuple[Watching, list[Json]]:
    """A trainer after a step on two rows, two rollouts of each, of which the policy does one well."""
    rollouts: list[Json] = []
    rows = gym.rows[:2]
    found = agents(gym.head_url)

    def roll_out(prompts: list[Any], _trainer: Any) -> Json:
        played: list[Json] = []
        for number, text in enumerate(prompts):
            row = rows[int(text)]
            params = row["responses_create_params"] | {"model": f"rollout-{number % 2}", "temperature": 1.0}
            url = f"{found[row['agent_ref']['name']]}/run"
            played.append(httpx.post(url, json=row | {"responses_create_params": params}, timeout=30).json())
        rollouts.extend(played)
        columns = [list(column) for column in zip(*map(packed, played), strict=True)]
        return {
            "prompt_ids": columns[0],
            "completion_ids": columns[1],
            "env_mask": columns[2],
            "logprobs": columns[3],
            "env_reward": [rollout["reward"] for rollout in played],
        }

    def reward(completions: list[Any], env_reward: list[float], **_: Any) -> list[float]:
        assert len(completions) == len(env_reward)
        return env_reward

    arguments = GRPOConfig(
        output_dir=str(folder),
        max_steps=1,
        per_device_train_batch_size=4,
        num_generations=2,
        max_completion_length=1024,
        mask_truncated_completions=True,
        use_cpu=True,
        bf16=False,
        report_to=[],
        save_strategy="no",
        logging_steps=1,
        beta=0.0,
    )
    trainer = Watching(
        model=model,
        processing_class=tokenizer,
        reward_funcs=reward,
        train_dataset=Dataset.from_list([{"prompt": str(number)} for number in range(len(rows))]),
        rollout_func=roll_out,
        args=arguments,
    )
    trainer.norms, trainer.trained = [], []
    trainer.train()
    return trainer, rollouts


def serve(policy: FakePolicy) -> MockGym:
    """A gym in which the first rollout of each row calls the tool, and the second does not."""
    gym = MockGym(policy=policy)
    gym.add_env(weather.server(), weather.ROWS)
    policy.script("rollout-0", [call("get_weather", city="Paris"), say("Sunny.")])
    policy.script("rollout-1", [say("No idea.")])
    return gym


def test_a_step_has_a_gradient(tokenizer: Any, model: Any, tmp_path: Path) -> None:
    """Of the tokenizer's own ids, which end in its end token; the loss is masked where the environment spoke."""
    with serve(FakePolicy(tokens=tokenizer)) as gym:
        trainer, rollouts = trained(gym, model, tokenizer, tmp_path)
    assert sorted(rollout["reward"] for rollout in rollouts) == [0.0, 0.0, 1.0, 1.0]
    assert trainer.norms[0] > 1e-4
    said = [item["generation_token_ids"] for rollout in rollouts for item in rollout["response"]["output"][-1:]]
    assert {tokenizer.decode(ids) for ids in said} == {"Sunny.<|im_end|>", "No idea.<|im_end|>"}


def test_a_vocabulary_with_the_models_end_has_a_gradient_too(tokenizer: Any, model: Any, tmp_path: Path) -> None:
    with serve(FakePolicy(tokens=(len(tokenizer), tokenizer.eos_token_id))) as gym:
        trainer, _ = trained(gym, model, tokenizer, tmp_path)
    assert trainer.norms[0] > 1e-4


def test_another_end_token_trains_on_nothing_and_says_nothing(tokenizer: Any, model: Any, tmp_path: Path) -> None:
    """What TRL does silently: every completion is taken for a truncated one."""
    with serve(FakePolicy(tokens=(len(tokenizer) - 3, 6))) as gym:
        trainer, rollouts = trained(gym, model, tokenizer, tmp_path)
    assert any(rollout["reward"] for rollout in rollouts)
    assert trainer.trained == [0]
    assert trainer.norms[0] == pytest.approx(0.0)
