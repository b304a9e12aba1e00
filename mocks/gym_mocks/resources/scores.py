import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, SupportsFloat


@dataclass(frozen=True)
class Score:
    """What `verify` finds.

    Attributes:
        reward: a finite number.
        components: the parts that sum to `reward` (`reward_components`); left out of the reply where empty.
        fields: further fields of the reply, such as the extracted answer.
    """

    reward: float
    components: Mapping[str, float] = field(default_factory=dict)
    fields: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not math.isfinite(self.reward):
            raise ValueError(f"reward must be a finite number, not {self.reward}")

    @classmethod
    def of(cls, found: "Score | float") -> "Score":
        """The score of what a verify function returned: a score already, or the bare reward.

        Raises:
            TypeError: it is neither.
        """
        if isinstance(found, Score):
            return found
        if isinstance(found, SupportsFloat):
            return cls(float(found))
        raise TypeError(f"verify returns a Score, or a number as reward: not {found!r:.80}")

    @classmethod
    def summed(cls, components: Mapping[str, float], **fields: Any) -> "Score":
        """The score whose reward is the sum of its components."""
        return cls(math.fsum(components.values()), components, fields)

    @property
    def reply(self) -> dict[str, Any]:
        """The fields it adds to verify's echo."""
        components = {"reward_components": dict(self.components)} if self.components else {}
        return {**self.fields, "reward": self.reward, **components}
