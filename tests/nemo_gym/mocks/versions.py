"""What differs between versions of nemo-gym: `python -m tests.nemo_gym.mocks.versions` writes docs/versions.md.

`versions.json` has for each version the replies that are not as those of the reference, how its agent plays where the
mock agent plays otherwise, and what the suite finds on a few bundled servers. `test_versions.py` and
`test_agent_to_the_letter.py` hold the version that is installed to it.
"""

import json
import os
from importlib.metadata import version
from pathlib import Path
from typing import Any

SEEN = Path(__file__).with_name("versions.json")
PAGE = Path(__file__).parents[3] / "docs" / "versions.md"

#: Why an agent plays otherwise than the mock agent; where the requests differ, the replies do, and are not compared.
WHY = {
    "status 500": "0.2.1 fails where a call's arguments are no JSON",
    "requests": "0.7.0 ends where a turn has neither a message nor a call, which the others ask again",
    "cookies": "0.7.0 adds a reply's cookies to those it has; with the others a tool's 500, which sets none, loses the session",
    "usage": "0.2.1 counts the first turn twice; 0.6.0 and 0.7.0 keep the number of reasoning tokens",
    "mask_sample": "a field that 0.7.0 adds",
}

_HEAD = """# Versions of nemo-gym

How nemo-gym's own class answers, where it is not as the reference server of `gym_mocks` does (`=` where it is), how its
`simple_agent` plays, and what the suite finds on the same bundled servers. This page is made from runs on each version:
`tox -m versions`, and `python -m tests.nemo_gym.mocks.versions`.
"""

_AGENT = """## Its agent

Where a run with `simple_agent` is not to the letter as one with the mock agent: the runs of
`tests/nemo_gym/mocks/test_agent_to_the_letter.py`, on the same resources server and policy."""

FEW = 3


def known(part: str, name: str, found: Any) -> Any:
    """What is written down for the version that is installed; GYM_RECORD=1 writes `found` there (without xdist)."""
    everything = json.loads(SEEN.read_text())
    ours = everything.setdefault(version("nemo-gym"), {}).setdefault(part, {})
    if os.environ.get("GYM_RECORD"):
        ours.pop(name, None)
        ours |= {} if found is None else {name: found}
        numbers = sorted(everything, key=lambda each: tuple(map(int, each.split("."))))
        SEEN.write_text(json.dumps({number: everything[number] for number in numbers}, indent=1) + "\n")
    return ours.get(name)


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
    kinds = [kind for kind in WHY if any(kind in runs for each in seen.values() for runs in each["agent"].values())]
    played = [[kind, *(_runs(each["agent"], kind) for each in seen.values()), WHY[kind]] for kind in kinds]
    sections = {
        "## Replies": _table(["probe", *seen], replies),
        _AGENT: _table(["what", *seen, "why"], played),
        "## Findings\n\nMUST and SHOULD, properties left out.": _table(["server", *seen], found),
    }
    return "\n".join([_HEAD, *(line for title, table in sections.items() for line in (title, "", *table, ""))])


def _runs(agent: dict[str, list[str]], kind: str) -> str:
    """Which runs differ in this."""
    names = [name for name, kinds in agent.items() if kind in kinds]
    return (", ".join(names) if len(names) <= FEW else f"{len(names)} runs") or "="


def _table(head: list[str], rows: list[list[str]]) -> list[str]:
    return [_line(head), _line(["---"] * len(head)), *map(_line, rows)]


def _line(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    PAGE.write_text(page())
