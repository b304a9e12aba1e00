"""What several targets lack, by kind, with its remedy; and the violations that several of them share."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from gym_conformance.findings import Finding, Verdict
from gym_conformance.reports.fleet_table import FleetRow
from gym_conformance.reports.report import Conclusion


@dataclass(frozen=True)
class FleetNeed:
    """One kind of missing thing.

    Attributes:
        what: completes "need ...".
        mend: what to do about it.
        servers: which ones lack it, and what exactly.
    """

    what: str
    mend: str
    servers: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        """The kind, with how many servers lack it."""
        return f"{len(self.servers):,} need{'s' if len(self.servers) == 1 else ''} {self.what}"


#: Kinds by the text of the reason; the first match counts.
_KINDS: Final = tuple(
    (re.compile(pattern, re.IGNORECASE), FleetNeed(what, mend))
    for pattern, what, mend in (
        (r"requirements that", "requirements that can be installed", "the reason is uv's; mend them, or give --gym-python"),
        (r"sandbox", "a sandbox", "give its config a sandbox provider, with --gym-env-set"),
        (r"\bRay\b", "Ray", "--gym-launch real"),
        (r"\bmodule\b|pip install", "Python modules", "--gym-install installs what an env requires"),
        (r"config keys? ", "settings", "--gym-env-set KEY=VALUE"),
        (r"environment variable", "environment variables", "set them where pytest runs"),
        (r"network|download", "the network, or files from there", "fetch the files first, or let the machine reach them"),
        (r"^the program|program that", "a program", "install it on the machine"),
        (r"rollouts? ", "the other rollouts of a prompt", "only nemo-gym's own rollout collection sends them together"),
        (r"\brows\b", "rows", "data/example.jsonl beside it, or --gym-data"),
        (r"^(?:the file|a file that) ", "files", "fetch or make them, as its README says"),
        (r"config", "another config", "see what its page says of the config"),
        (r"^to (start|answer)|within", "to start, and to answer in time", "see its log on its page; --gym-launch-timeout"),
    )
)  # fmt: skip
_OTHER: Final = FleetNeed("something else", "see its page")


def needs(rows: Iterable[FleetRow]) -> list[FleetNeed]:
    """What the targets that could not be tested lack, most frequent first."""
    found: dict[str, tuple[FleetNeed, dict[str, str]]] = {}
    for row in rows:
        if row.report.conclusion is Conclusion.UNTESTABLE:
            first = next(group.first for group in row.report.groups if row.report.breaks(group))
            kind = next((kind for pattern, kind in _KINDS if pattern.search(first.reason)), _OTHER)
            found.setdefault(kind.what, (kind, {}))[1][row.name] = first.reason
    kinds = [FleetNeed(kind.what, kind.mend, servers) for kind, servers in found.values()]
    return sorted(kinds, key=lambda kind: -len(kind.servers))


@dataclass(frozen=True)
class SharedViolation:
    """A violation that several targets have in the same way: one finding, and their names."""

    first: Finding
    servers: tuple[str, ...]


def shared_violations(rows: Iterable[FleetRow]) -> list[SharedViolation]:
    """Violations with the same likely cause on several targets, MUST first, then by how many have them."""
    found: dict[tuple[str, str], tuple[Finding, dict[str, None]]] = {}
    for row in rows:
        for group in row.report.groups:
            first = group.first
            if first.verdict is Verdict.FAIL and not first.accepted:
                found.setdefault((first.check, first.hint), (first, {}))[1][row.name] = None
    shared = [SharedViolation(first, tuple(names)) for first, names in found.values() if len(names) > 1]
    return sorted(shared, key=lambda one: (one.first.level != "MUST", -len(one.servers)))
