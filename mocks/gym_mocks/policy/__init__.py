"""A fake policy: an OpenAI-compatible server that says what a test tells it to."""

from gym_mocks.policy.calls import PolicyCall
from gym_mocks.policy.cassettes import Cassette, Proxy
from gym_mocks.policy.conversation import PolicyRequest
from gym_mocks.policy.faults import PolicyFault
from gym_mocks.policy.items import Refuse, Say, Think, ToolCall, call, raw_call, refuse, say, think
from gym_mocks.policy.policies import Policy, echo, generated, replayed, scripted, scripted_rows
from gym_mocks.policy.routes import Route
from gym_mocks.policy.server import FakePolicy
from gym_mocks.policy.tokens import Vocabulary

Fault = PolicyFault  # its name before 0.2, as tests of trainers have it

__all__ = [
    "Cassette",
    "FakePolicy",
    "Fault",
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
    "raw_call",
    "refuse",
    "replayed",
    "say",
    "scripted",
    "scripted_rows",
    "think",
]
