"""Files that accompany findings, in the folder where pytest was started."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from shlex import quote
from typing import Final

from gym_conformance.documents import own_folder, write_whole
from gym_conformance.findings import Finding
from gym_conformance.session.curl import bodies_of, with_bodies_at

FOLDER: Final = ".gym-conformance"

#: How many commands, and characters of them, fit on a screen.
_COMMANDS: Final = 12
_CHARACTERS: Final = 2_000

#: A comment above commands for a server that has ended.
_ENDED: Final = "# its server ended with the run: start it and put its address here, or run again with -k {}"


@dataclass(frozen=True)
class Keeper:
    """Saves files that accompany the findings on one target.

    Attributes:
        start: where pytest was started, since a common parent of the data may be shared by parallel runs.
        name: the target's name, as a folder; '' for none.
        option: the command-line option that names the target.
        launched: whether its server ends with the run.
    """

    start: Path
    name: str
    option: str
    launched: bool = False

    def keep(self, findings: Sequence[Finding], *, again: bool = False) -> list[Finding]:
        """Write the files of one check's findings, and add their paths to the findings.

        A schedule is written to CHECK.json, for `--gym-replay`; commands that do not fit on a screen to CHECK.sh, with
        their long bodies beside it; of a schedule that is tried `again`, all this in a folder of its own, so that what
        the first finding named stays as it is. If nothing can be written, a finding stays as it is, with all its
        commands.
        """
        kept: list[Finding] = []
        folder = Path(FOLDER, self.name, "replayed" if again else "")
        for finding in findings:
            number = f"-{len(kept) + 1}" if kept else ""
            try:
                kept.append(self._keep(finding, folder / (finding.check + number)))
            except OSError:
                kept.append(finding)
        return kept

    def _keep(self, finding: Finding, path: Path) -> Finding:
        long = _is_long(finding.reproduce)
        if self.launched and finding.reproduce:
            finding = replace(finding, reproduce=(_ENDED.format(finding.check), *finding.reproduce))
        if long:
            script = path.with_suffix(".sh")
            for name, body in bodies_of(finding.reproduce).items():
                self._write(path.with_name(f"{path.name}.{name}"), body)
            back = "/".join(".." for _ in path.parent.parts)
            head = ["#!/usr/bin/env bash", f"# {finding.check}: {finding.subject}"]
            start = f'cd "$(dirname "${{BASH_SOURCE[0]}}")"/{back} || exit'
            self._write(script, "\n".join([*head, start, *with_bodies_at(finding.reproduce, f"{path}.")]) + "\n")
            finding = replace(finding, script=str(script))
        if finding.replay:
            schedule = path.with_suffix(".json")
            self._write(schedule, finding.replay)
            command = f"pytest {self.option} --gym-replay {quote(str(schedule))}"
            finding = replace(finding, reproduce=(command, *finding.reproduce))
        return finding

    def _write(self, path: Path, content: str | bytes) -> None:
        write_whole(own_folder(self.start / FOLDER) / ".gitignore", "*\n")
        write_whole(own_folder((self.start / path).parent) / path.name, content)


def _is_long(commands: Sequence[str]) -> bool:
    """Whether a reader would have to scroll, or to read past a compressed body."""
    return len(commands) > _COMMANDS or sum(map(len, commands)) > _CHARACTERS or bool(bodies_of(commands))
