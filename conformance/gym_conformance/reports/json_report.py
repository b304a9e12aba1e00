"""The JSON report. Its form is `report.schema.json` beside this file; a change to it is a new schema name."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from gym_conformance import __version__
from gym_conformance.findings import Finding, Verdict

SCHEMA: Final = "gym-conformance/1"


def as_report(target: Mapping[str, Any], findings: Sequence[Finding]) -> dict[str, Any]:
    """The report as a JSON object."""
    counts = Counter(finding.verdict for finding in findings)
    return {
        "schema": SCHEMA,
        "tool": {"name": "gym-conformance", "version": __version__},
        "target": dict(target),
        "summary": {verdict.value: counts[verdict] for verdict in Verdict},
        "findings": [finding.as_json() for finding in findings],
    }


def write_json(path: Path, target: Mapping[str, Any], findings: Sequence[Finding]) -> None:
    """Write the report whole or not at all: a reader never meets half a file."""
    half = path.with_name(path.name + ".part")
    half.write_text(json.dumps(as_report(target, findings), indent=2) + "\n")
    half.replace(path)
