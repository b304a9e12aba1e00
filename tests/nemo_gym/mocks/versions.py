"""What differs between versions of nemo-gym: `python -m tests.nemo_gym.mocks.versions` writes docs/versions.md.

`versions.json` has for each version the replies that are not as those of the reference, and what the suite finds on a
few bundled servers. `test_versions.py` holds the version that is installed to it.
"""

import json
from pathlib import Path
from typing import Any

SEEN = Path(__file__).with_name("versions.json")
PAGE = Path(__file__).parents[3] / "docs" / "versions.md"

_HEAD = """# Versions of nemo-gym

How nemo-gym's own class answers, where it is not as the reference server of `gym_mocks` does (`=` where it is), and
what the suite finds on the same bundled servers. This page is made from runs on each version:
`tox -m versions`, and `python -m tests.nemo_gym.mocks.versions`.
"""


def page() -> str:
    """The page as Markdown."""
    seen: dict[str, Any] = json.loads(SEEN.read_text())
    probes = dict.fromkeys(probe for version in seen.values() for probe in version["probes"])
    servers = dict.fromkeys(server for version in seen.values() for server in version["findings"])
    replies = [[f"`{probe}`", *(version["probes"].get(probe, "=") for version in seen.values())] for probe in probes]
    found = [
        [f"`{server}`", *(", ".join(version["findings"].get(server, ["not there"])) for version in seen.values())]
        for server in servers
    ]
    replied, judged = _table(["probe", *seen], replies), _table(["server", *seen], found)
    findings = ("", "## Findings", "", "MUST and SHOULD, properties left out.", "")
    return "\n".join([_HEAD, "## Replies", "", *replied, *findings, *judged, ""])


def _table(head: list[str], rows: list[list[str]]) -> list[str]:
    return [_line(head), _line(["---"] * len(head)), *map(_line, rows)]


def _line(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    PAGE.write_text(page())
