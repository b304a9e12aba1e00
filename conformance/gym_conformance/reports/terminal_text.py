"""Findings as plain text for a terminal."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from shlex import quote
from textwrap import indent

from gym_conformance.findings import Cause, Finding, Verdict
from gym_conformance.reports.finding_groups import Group
from gym_conformance.session.curl import with_bodies_at

#: How many subjects with equal findings to name; further ones are counted.
_NAMED = 6

#: How many commands to show if a file has them all; further ones are counted.
_COMMANDS = 12

#: How many steps to show of where a trajectory begins, and of where it ends; those between are counted.
_STEPS = 12

#: How many different findings of a check to show; further ones are counted.
_SHOWN = 3


def explain(findings: Iterable[Finding]) -> Iterator[str]:
    """A text for each check with findings other than passes: the rule once, then each finding once.

    Subjects with equal findings share a paragraph; of many different findings the first few are shown.
    """
    checks: dict[str, dict[tuple[str, ...], list[Finding]]] = {}
    for finding in findings:
        if finding.red:
            said = (finding.verdict, finding.expected, finding.actual, finding.hint, finding.reason)
            checks.setdefault(finding.check, {}).setdefault(said, []).append(finding)
    for alike in checks.values():
        yield _text(sorted(alike.values(), key=lambda group: group[0].verdict is Verdict.UNTESTABLE))


def _text(groups: list[list[Finding]]) -> str:
    """The text of one check; `groups` are equal findings, violations first."""
    first = groups[0][0]
    rule = [first.title, *([f"Why it matters: {first.why}"] if first.why else [])]
    head = ["\n".join(rule)] if first.verdict is Verdict.FAIL else []
    more = sum(len(group) for group in groups[_SHOWN:])
    rest = [f"  ... and {more} more findings of this rule; --gym-report FILE.json has them all"] if more else []
    return "\n\n".join([*head, *map(_paragraph, groups[:_SHOWN]), *rest])


def _paragraph(group: list[Finding]) -> str:
    finding = group[0]
    subject = "" if finding.subject == "server" else finding.subject + _and_also([other.subject for other in group[1:]])
    if finding.verdict is Verdict.UNTESTABLE:
        lines = [f"Untestable: needs {finding.reason}", *([f"  for {subject}"] if subject else [])]
        lines += ["  it printed last:", indent("\n".join(finding.log), "    ")] if finding.log else []
        return "\n".join([*lines, *(_reproduction(finding) if finding.reproduce else [])])
    facts = {
        "subject": subject,
        "expected": finding.expected,
        "actual": finding.actual,
        "likely": finding.hint,
    }
    width = max(len(name) for name, value in facts.items() if value) + 1
    lines = [f"  {name + ':':<{width}} {value}" for name, value in facts.items() if value]
    if finding.trajectory:
        lines += ["  trajectory:", indent("\n".join(_both_ends(finding.trajectory)), "    ")]
    return "\n".join([*lines, *(_reproduction(finding) if finding.reproduce else [])])


def _both_ends(steps: Sequence[str]) -> Sequence[str]:
    """A trajectory without most of its middle if it is long: what broke shows at its end, and what led there at its start."""
    between = len(steps) - 2 * _STEPS
    if between <= 1:
        return steps
    return [*steps[:_STEPS], f"... and {between} more steps, which the replay makes", *steps[-_STEPS:]]


def _reproduction(finding: Finding) -> list[str]:
    """The commands, or only the first ones if a file has all, with the names of their long bodies."""
    if not finding.script:
        return ["  reproduce (bash):", indent("\n".join(finding.reproduce), "    ")]
    commands = with_bodies_at(finding.reproduce, finding.script.removesuffix("sh"))
    shown = commands[:_COMMANDS] if len(commands) > _COMMANDS + 1 else commands
    more = [f"    # ... and {len(commands) - len(shown)} more"] if len(shown) < len(commands) else []
    return [f"  reproduce (bash): bash {quote(finding.script)}", indent("\n".join(shown), "    "), *more]


def _and_also(others: list[str]) -> str:
    if not others:
        return ""
    named = ", ".join(others[:_NAMED])
    return f"; and alike: {named}" + (f" and {len(others) - _NAMED} more" if len(others) > _NAMED else "")


def cause_lines(causes: Mapping[Cause, Sequence[str]]) -> Iterator[str]:
    """The causes that several checks share, each with its checks."""
    for cause, checks in causes.items():
        yield f"One cause, found by {len(checks)} checks: {cause.headline}.\n  {', '.join(checks)}"


def framework_line(checks: Mapping[str, int]) -> str:
    """Faults that every stock NeMo Gym server has, in one line; '' if there are none."""
    if not checks:
        return ""
    return f"NeMo Gym itself: {', '.join(checks)}; these are in every stock server, and not yours to fix."


def caution_lines(cautions: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """The checks that pass, but mean less than they seem to, one line per reason."""
    for reason, checks in cautions.items():
        yield f"Caution: {', '.join(checks)} {'pass' if len(checks) > 1 else 'passes'}, but {reason}"


def untestable_lines(groups: Iterable[Group]) -> Iterator[str]:
    """What several checks lack, one line each; the first of them is among the failures."""
    for group in groups:
        if group.label == Verdict.UNTESTABLE and len(group.checks) > 1:
            yield f"Untestable: {len(group.checks)} checks, which need {group.first.reason}."


def not_examined_lines(missing: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """What was not examined, one line for each missing prerequisite."""
    for reason, checks in missing.items():
        named = checks[0] if len(checks) == 1 else f"{len(checks)} checks"
        yield f"Not examined: {named}, because {reason}."
