"""The reply of `/verify`, and how it says that its reward does not measure the policy."""

import math
import sys
from typing import Any, Final, TypeGuard

from gym_schemas import is_numeric

#: `_ng_failure_class` from 0.5.0 on, the others from 0.7.0 on (nemo_gym/base_resources_server.py).
MASKS: Final = ("_ng_failure_class", "mask_sample", "failure_kind", "failure_reason")

#: Digits of a reward that count: the last ones of a sum depend on the order of its terms.
_DIGITS: Final = 10


#: What a rollout earns that did all of its task, in most environments.
WHOLE: Final = 1.0


def is_masked(body: Any) -> bool:
    """Whether the reply says that its sample must not be trained on, or names what failed."""
    return isinstance(body, dict) and any(body.get(key) for key in MASKS)


def is_number(value: object) -> TypeGuard[float]:
    """Whether the value is a finite number that a float can hold; bools are not, though Python calls them numbers."""
    return is_numeric(value) and abs(value) <= sys.float_info.max


def rounded(reward: Any) -> Any:
    """The reward as it is compared: a float without its last digits, anything else as it is."""
    return float(f"{reward:.{_DIGITS}g}") if isinstance(reward, float) else reward


def is_summed(body: Any) -> bool:
    """Whether `reward_components`, if they are numbers, sum to the reward (`BaseMultiRewardVerifyResponse`, 0.7.0)."""
    components, reward = (body.get("reward_components"), body.get("reward")) if isinstance(body, dict) else (None, None)
    if not is_number(reward) or not isinstance(components, dict) or not all(map(is_number, components.values())):
        return True
    return math.isclose(sum(components.values()), reward, rel_tol=1e-6, abs_tol=1e-6)
