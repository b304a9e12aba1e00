"""The head: where clients find the gym's servers."""

from gym_mocks.head.config import load_config, merged, to_yaml
from gym_mocks.head.mock_head import Head, Instance

__all__ = ["Head", "Instance", "load_config", "merged", "to_yaml"]
