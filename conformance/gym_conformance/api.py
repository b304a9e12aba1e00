"""The public API for checks in other packages, described in docs/api.md.

Everything in this distribution that docs/api.md does not name may change in any release.
"""

from gym_conformance.contract.dataset_rows import Call, Rollout, Row, Tool
from gym_conformance.contract.policy_output import function_call, function_call_output, message, reasoning, response
from gym_conformance.findings import Finding, Verdict
from gym_conformance.gym_under_test import Gym
from gym_conformance.session.contracts import Session
from gym_conformance.session.exchange import Reply, Request
from gym_conformance.trials.check import Check, Need, check
from gym_conformance.trials.ending import NotApplicable, Untestable, Violation
from gym_conformance.trials.needs import RESOURCES_SERVER, ROLLOUTS, SCORE, SERVED_TOOLS, TOOLS, each_row, each_tool
from gym_conformance.trials.trial import Trial, describe, expect_no_crash, expect_object, expect_status

__all__ = [
    "RESOURCES_SERVER",
    "ROLLOUTS",
    "SCORE",
    "SERVED_TOOLS",
    "TOOLS",
    "Call",
    "Check",
    "Finding",
    "Gym",
    "Need",
    "NotApplicable",
    "Reply",
    "Request",
    "Rollout",
    "Row",
    "Session",
    "Tool",
    "Trial",
    "Untestable",
    "Verdict",
    "Violation",
    "check",
    "describe",
    "each_row",
    "each_tool",
    "expect_no_crash",
    "expect_object",
    "expect_status",
    "function_call",
    "function_call_output",
    "message",
    "reasoning",
    "response",
]
