"""Checks as pytest items: one item per check, one collector per section of the contract."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from gym_conformance.baseline import Stale
from gym_conformance.findings import Finding, Verdict, worst
from gym_conformance.plugin.gate import BASELINE, BEFORE, today
from gym_conformance.plugin.target import JudgedTarget
from gym_conformance.plugin.target_run import secrets_of
from gym_conformance.reports.changes import compare
from gym_conformance.reports.terminal_text import explain
from gym_conformance.trajectories.trajectory import Schedule
from gym_conformance.trials.check import Check

#: Lines that are kept of a traceback, and of what is logged or printed while a check runs, and characters of each.
_KEPT: Final = (200, 1_000)

#: A traceback without the exception at its end.
_FRAMES: Final = re.compile(r"^Traceback \(most recent call last\):\n(?: .*\n)*", re.MULTILINE)


class Fails(Exception):
    """A check failed, or could not be tested; carries the text to show."""


class Section(pytest.Collector):
    """The checks of one section of the contract, such as `gym/verify` in node ids."""

    def __init__(self, *, checks: tuple[Check, ...], target: JudgedTarget, **arguments: Any) -> None:
        super().__init__(**arguments)
        self.checks = checks
        self.target = target

    def collect(self) -> Iterator["CheckItem"]:
        """The section's checks, in order."""
        for check in self.checks:
            yield CheckItem.from_parent(self, name=check.id, check=check, target=self.target)


class CheckItem(pytest.Item):
    """One check of one target, or one replayed schedule of a check, as a pytest item."""

    def __init__(
        self, *, check: Check, target: JudgedTarget, schedule: Schedule | None = None, **arguments: Any
    ) -> None:
        super().__init__(**arguments)
        self.check = check
        self.target = target
        self.schedule = schedule
        self.findings: list[Finding] = []
        self.stale: list[Stale] = []
        self.add_marker(check.level.lower())
        docs = check.finding(Verdict.PASS).docs
        self.user_properties += [("gym_check", check.id), ("gym_level", check.level.value), ("gym_docs", docs)]

    def runtest(self) -> None:
        """Run the check.

        Raises:
            Fails: a MUST is violated (with --gym-strict also a SHOULD), or the check is untestable, and the baseline
                does not accept that; or the baseline accepts something that does not fail.
        """
        target = self.target
        baseline = self.config.stash[BASELINE].of(target.server)
        self.findings = baseline.accept(target.judge(self.check, self.schedule), today())
        if statistics := target.statistics(self.check):
            self.hypothesis_statistics = statistics  # shown by Hypothesis's plugin: --hypothesis-show-statistics
        self.stale = baseline.stale(self.check.id, self.findings, today())
        reasons = dict.fromkeys(finding.accepted for finding in self.findings if finding.accepted)
        self.user_properties += [("gym_accepted", reason) for reason in reasons]
        self.user_properties += [("gym_since", word) for word in self._changes()]
        if self.stale or any(finding.breaks(strict=target.options.strict) for finding in self.findings):
            raise Fails
        if worst(self.findings) is Verdict.NOT_APPLICABLE:
            raise pytest.skip.Exception(self.findings[0].reason, _use_item_location=True)

    def _changes(self) -> list[str]:
        """What is new, mended or changed since an earlier report."""
        earlier = self.config.stash[BEFORE].of(self.target.server)
        if earlier is None:
            return []
        before = [finding for finding in earlier if finding.check == self.check.id]
        return list(dict.fromkeys(change.word for change in compare("", before, self.findings).all))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """The text for a failure: the findings, or a traceback if the fault is in our code."""
        if isinstance(excinfo.value, Fails):
            stale = [f"stale: {entry}" for entry in self.stale]
            return "\n\n".join([*explain(finding for finding in self.findings if not finding.accepted), *stale])
        if isinstance(excinfo.value, pytest.fail.Exception):  # as of pytest-timeout: our traceback means nothing then
            return self._end_of(str(excinfo.value))
        trace = self._end_of(str(super().repr_failure(excinfo, style)))
        whom = f" to its authors ({self.check.url})" if self.check.url else ""
        return (
            f"{self.itself} itself failed; this is not a finding about the server. Please report it{whom}.\n\n{trace}"
        )

    @property
    def itself(self) -> str:
        """Whose code runs: ours, or a check of another package."""
        return self.check.id if self.check.url else "gym-conformance"

    def redacted(self, text: str) -> str:
        """A text of our own, such as a traceback with locals, with secrets redacted."""
        return secrets_of(self.target.options).redact(text)

    def add_report_section(self, when: str, key: str, content: str) -> None:
        """Keep the end of what was logged or printed meanwhile, safe to show: libraries quote what they cannot read.

        The MCP client logs where it came upon it, too, and the same for each reply: each line is kept once, without that.
        """
        if content:  # there is none nearly always, and to know the secrets takes milliseconds
            once = "\n".join(dict.fromkeys(_FRAMES.sub("", content).splitlines()))
            super().add_report_section(when, key, f"{self._end_of(once)}\n")

    def _end_of(self, text: str) -> str:
        """The last lines of a text, safe to show: an exception may quote megabytes, and have them in its frames."""
        show, (most, longest) = secrets_of(self.target.options).show, _KEPT
        return "\n".join(show(line, longest) for line in text.splitlines()[-most:])

    def reportinfo(self) -> tuple[Path, int, str]:
        """The check's location: its section, not a file."""
        return self.config.rootpath / self.nodeid.partition("::")[0], 0, self.name


def section_id(check: Check, target: str) -> str:
    """The node id of a check's collector, with the target's name if it has one."""
    return f"gym/{target}/{check.section}" if target else f"gym/{check.section}"


def target_of(node: str) -> str:
    """The target that an item's node id names; '' if it names none."""
    home, *names = node.partition("::")[0].split("/")
    return "/".join(names[:-1]) if home == "gym" else ""


def nodes_of(check: Check, target: str) -> frozenset[str]:
    """The node ids that select a check: its own, its section's, and its target's."""
    section = section_id(check, target)
    own = {f"{section}::{check.id}", section}
    return frozenset(own | {f"gym/{target}"} if target else own)


def is_chosen(item: CheckItem) -> bool:
    """Whether the command line selects it by node id, or has no node ids."""
    chosen: list[str] = item.config.option.gym_chosen
    return not chosen or not nodes_of(item.check, item.target.name).isdisjoint(chosen)


def collect_checks(session: pytest.Session, checks: tuple[Check, ...], target: JudgedTarget) -> list[CheckItem]:
    """An item for each check, under one collector for each section."""
    items: list[CheckItem] = []
    for name in dict.fromkeys(section_id(check, target.name) for check in checks):
        inside = tuple(check for check in checks if section_id(check, target.name) == name)
        section = Section.from_parent(session, name=name, nodeid=name, checks=inside, target=target)
        items += (item for item in session.genitems(section) if isinstance(item, CheckItem))
    return items
