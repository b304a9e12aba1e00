"""A fake policy: an OpenAI-compatible server that says what a test tells it to."""

from gym_mocks.policy.cassettes import Cassette, Proxy
from gym_mocks.policy.conversation import PolicyRequest
from gym_mocks.policy.fake_policy import FakePolicy
from gym_mocks.policy.faults import PolicyFault
from gym_mocks.policy.items import Refuse, Say, Think, ToolCall, call, raw_call, refuse, say, think
from gym_mocks.policy.judge_policy import judging
from gym_mocks.policy.policies import Policy, echo, generated, replayed, scripted, scripted_rows
from gym_mocks.policy.policy_calls import PolicyCall
from gym_mocks.policy.routes import Route
from gym_mocks.policy.tokens import Vocabulary

__all__ = [
    "Cassette",
    "FakePolicy",
    "Policy",
    "PolicyCall",
    "PolicyFault",
    "PolicyRequest",
    "Proxy",
    "Refuse",
    "Route",
    "Say",
    "Think",
    "ToolCall",
    "Vocabulary",
    "call",
    "echo",
    "generated",
    "judging",
    "raw_call",
    "refuse",
    "replayed",
    "say",
    "scripted",
    "scripted_rows",
    "think",
]
