"""What two sets of JSON reports say differently of the same servers, check by check.

    python benchmarks/verdicts.py before.json after.json
    python benchmarks/verdicts.py before/ after/       # folders: reports of the same file name belong together

Made with `pytest --gym-env ... --gym-report before/NAME.json`, by two versions of the suite, with the same settings. Levels
are read as today's: a MAY that failed was what is now a note. A check's verdicts are those of all its subjects, each
once. Exit status 1 where a check that both know has other verdicts, or is of another level, or is gone.
"""

import argparse
import json
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

#: A server's checks: the level of each, and what its subjects came to.
Verdicts = Mapping[str, tuple[str, frozenset[str]]]


@dataclass
class Compared:
    """What came of one server."""

    name: str
    same: int
    changed: list[tuple[str, str, str]]
    new: dict[str, str]


def read_reports(path: Path) -> dict[str, Verdicts]:
    """The verdicts of each server in a report, or in a folder of them."""
    if path.is_dir():
        return {name: found for file in sorted(path.glob("*.json")) for name, found in read_reports(file).items()}
    report = json.loads(path.read_text("utf-8"))
    if "servers" in report:
        return {server["name"]: _verdicts(server["report"]) for server in report["servers"]}
    return {path.stem: _verdicts(report)}


def _verdicts(report: Mapping[str, Any]) -> Verdicts:
    levels: dict[str, str] = {}
    verdicts: dict[str, set[str]] = defaultdict(set)
    for finding in report["findings"]:
        check, was_may = finding["check"], finding["level"] == "MAY"
        levels[check] = "NOTE" if was_may else finding["level"]
        verdicts[check].add("note" if was_may and finding["verdict"] == "fail" else finding["verdict"])
    return {check: (level, frozenset(verdicts[check])) for check, level in levels.items()}


def compare(name: str, before: Verdicts, after: Verdicts) -> Compared:
    """One server before and after."""
    changed = [
        (check, _said(was), _said(after[check]) if check in after else "gone")
        for check, was in before.items()
        if after.get(check) != was
    ]
    new = {check: _said(found) for check, found in after.items() if check not in before}
    return Compared(name, len(before) - len(changed), changed, new)


def _said(found: tuple[str, frozenset[str]]) -> str:
    level, verdicts = found
    return f"{level} {', '.join(sorted(verdicts)).replace('_', ' ')}"


def table(compared: list[Compared]) -> Iterator[str]:
    """A line for each server, and one for each difference."""
    yield "| server | same | differ | new checks |"
    yield "|---|---|---|---|"
    for one in compared:
        counts = Counter(one.new.values())
        new = ", ".join(f"{count} x {said}" for said, count in sorted(counts.items()))
        yield f"| `{one.name}` | {one.same} | {len(one.changed)} | {new} |"
    if any(one.changed for one in compared):
        yield from ("", "| server | check | before | after |", "|---|---|---|---|")
        yield from (
            f"| `{one.name}` | `{check}` | {was} | {now} |" for one in compared for check, was, now in one.changed
        )


def main() -> int:
    """Print what differs, in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", type=Path)
    parser.add_argument("after", type=Path)
    given = parser.parse_args()
    before, after = read_reports(given.before), read_reports(given.after)
    if given.before.is_file() and given.after.is_file() and len(before) == len(after) == 1:
        after = dict(zip(before, after.values(), strict=True))
    alone = sorted(before.keys() ^ after.keys())
    compared = [compare(name, before[name], after[name]) for name in before if name in after]
    print("\n".join(table(compared)))
    if alone:
        print(f"\nOnly in one of the two: {', '.join(alone)}")
    return 1 if alone or any(one.changed for one in compared) else 0


if __name__ == "__main__":
    sys.exit(main())
