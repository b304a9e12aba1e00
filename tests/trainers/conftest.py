"""Left out where no trainer is installed. Tox's environment for them sets GYM_NEEDS_TRAINERS; there they fail."""

import os
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent

collect_ignore_glob = [] if find_spec("trl") or os.environ.get("GYM_NEEDS_TRAINERS") else ["**/test_*.py", "test_*.py"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A trainer's warnings are its own."""
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.filterwarnings("ignore"))


@pytest.fixture(autouse=True)
def _no_hub(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything is made here: nothing is looked for on a hub, and nothing is reported to anybody."""
    for name in (
        "HF_HUB_OFFLINE",
        "WANDB_DISABLED",
        "TRL_EXPERIMENTAL_SILENCE",
        "DO_NOT_TRACK",
        "AXOLOTL_DO_NOT_TRACK",
    ):
        monkeypatch.setenv(name, "1")


@pytest.fixture
def tokenizer() -> Any:
    """A Hugging Face tokenizer whose tokens are bytes; `<|im_end|>` ends a turn."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers  # noqa: PLC0415 - in this environment alone
    from transformers import PreTrainedTokenizerFast  # noqa: PLC0415

    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    byte_pairs = Tokenizer(models.BPE(vocab={letter: number for number, letter in enumerate(letters)}, merges=[]))
    byte_pairs.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    byte_pairs.decoder = decoders.ByteLevel()
    made = PreTrainedTokenizerFast(
        tokenizer_object=byte_pairs,
        eos_token="<|im_end|>",  # noqa: S106 - a token of text
        pad_token="<|endoftext|>",  # noqa: S106 - likewise
        additional_special_tokens=["<|im_start|>"],
    )
    made.chat_template = (
        "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
        "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
    )
    return made


@pytest.fixture
def model(tokenizer: Any) -> Any:
    """A causal model with random weights for a tokenizer's ids."""
    import torch  # noqa: PLC0415
    from transformers import LlamaConfig, LlamaForCausalLM  # noqa: PLC0415

    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=2,
        max_position_embeddings=4096,
        pad_token_id=tokenizer.pad_token_id,
        eos_token_id=tokenizer.eos_token_id,
        bos_token_id=None,
    )
    return LlamaForCausalLM(config)
