"""Which clients a server works with, judged by the checks of what each client depends on."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from gym_conformance.findings import NOT_SELECTED, Finding, Verdict, worst
from gym_conformance.grouping import grouped


class Works(StrEnum):
    """Whether a server works with a client."""

    YES = "works"
    NO = "does not work"
    UNKNOWN = "not known"
    NOT_FOR_IT = "not for this kind of server"


@dataclass(frozen=True)
class KnownClient:
    """An existing client, and the checks of what it depends on according to its source.

    `never` are notes that rule it out, and `passed` are checks that must also apply, not just pass.
    """

    name: str
    needs: tuple[str, ...]
    never: tuple[str, ...] = ()
    passed: tuple[str, ...] = ()


@dataclass(frozen=True)
class Compatibility:
    """The result for one client; `because` are the checks that failed, or whose outcome is unknown."""

    client: str
    works: Works
    because: tuple[str, ...] = ()

    def __str__(self) -> str:
        return self.client + (f" ({', '.join(self.because)})" if self.because else "")

    def as_json(self) -> dict[str, Any]:
        """As a JSON object."""
        return {"client": self.client, "works": self.works.value, "because": list(self.because)}


_AGENT: Final = (
    *("live-endpoints", "seed-accepts-rows", "seed-accepts-rollout-keys", "seed-sets-cookie", "seed-cookie-usable"),
    *("seed-no-redirects", "cookie-sent-again", "cookie-replacing-client", "tool-routed"),
    *("verify-scores-rows", "verify-reward-finite"),
)

#: Passed by servers of any kind: the server answers.
_OF_ANY_KIND: Final = frozenset({"live-root"})

#: It verifies without a session.
_UNSEEDED: Final = ("verify-without-session",)

#: It verifies one rollout at a time.
_ALONE: Final = ("verify-in-groups",)

#: Sources: responses_api_agents/simple_agent/app.py and nemo_gym/rollout_collection.py (0.2.1 to 0.7.0); the NeMo Gym
#: taskset of verifiers 0.3.0 and 0.4.0; NeMo RL's and verl's NeMo Gym integrations; Unsloth's NeMo Gym notebook;
#: environment_servers/single_agent_turn/app.py (0.7.0); responses_api_agents/gymnasium_agent/app.py (0.4.0 to 0.7.0);
#: nemo_gym/rollout_collection.py (0.7.0).
CLIENTS: Final = (
    KnownClient("nemo-gym's simple_agent (0.2.1 to 0.7.0)", _AGENT),
    KnownClient("gym eval run (0.3.0 to 0.7.0)", (*_AGENT, "metrics-shape", "metrics-empty")),
    KnownClient("NeMo RL and verl", (*_AGENT, "verify-echoes", "verify-echoes-tokens", "verify-reward-components")),
    KnownClient(
        "Verifiers' taskset (0.3.0, 0.4.0)",
        (
            *("live-root", "seed-accepts-rows", "seed-replies-object", "seed-sets-cookie", "seed-no-redirects"),
            *("cookie-keeping-client", "tool-routed", "verify-scores-rows", "verify-reward-finite"),
        ),
        _ALONE,
    ),
    KnownClient("Unsloth's notebook", ("live-root", *_UNSEEDED, "verify-scores-rows"), _ALONE, _UNSEEDED),
    KnownClient("environment servers (0.7.0)", ("typed-seed", "typed-seed-repeat", "typed-close", "typed-close-busy")),
    KnownClient("gymnasium_agent (0.4.0, 0.5.1)", ("step-resets", "step-answers", "step-cookie")),
    KnownClient("gymnasium_agent (0.6.0, 0.7.0)", ("step-resets", "step-answers")),
    KnownClient("gym eval run, of environment servers (0.7.0)", ("run-answers", "run-rewards", "run-aggregates")),
)


def compatibilities(findings: Iterable[Finding]) -> tuple[Compatibility, ...]:
    """The result for each client, given the findings."""
    ran = (finding for finding in findings if finding.reason != NOT_SELECTED)
    found = grouped(lambda finding: finding.check, ran)
    verdicts = {check: worst(each) for check, each in found.items()}
    return tuple(_compatible(client, verdicts) for client in CLIENTS)


def _compatible(client: KnownClient, verdicts: Mapping[str, Verdict]) -> Compatibility:
    def ended(verdict: Verdict) -> tuple[str, ...]:
        return tuple(check for check in client.needs if verdicts.get(check, Verdict.UNTESTABLE) is verdict)

    noted = tuple(check for check in client.never if verdicts.get(check) is Verdict.NOTE)
    if failed := ended(Verdict.FAIL) + noted:
        return Compatibility(client.name, Works.NO, failed)
    if missing := ended(Verdict.UNTESTABLE):
        return Compatibility(client.name, Works.UNKNOWN, missing)
    if all(check in _OF_ANY_KIND for check in ended(Verdict.PASS)):
        return Compatibility(client.name, Works.NOT_FOR_IT)
    if left_out := tuple(check for check in client.passed if verdicts.get(check) is not Verdict.PASS):
        return Compatibility(client.name, Works.NO, left_out)
    return Compatibility(client.name, Works.YES)
