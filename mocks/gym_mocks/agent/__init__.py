"""The mock agent: plays a row with a policy and a resources server, as the default agent does."""

from gym_mocks.agent.mock_agent import MockAgent

__all__ = ["MockAgent"]
