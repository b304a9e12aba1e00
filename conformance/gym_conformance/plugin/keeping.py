"""What findings leave behind as files, in a folder where pytest was started."""

from dataclasses import dataclass, replace
from pathlib import Path
from shlex import quote
from typing import Final

from gym_conformance.documents import own_folder, write_whole
from gym_conformance.findings import Finding

FOLDER: Final = ".gym-conformance"


@dataclass(frozen=True)
class Keeper:
    """Keeps what belongs to findings on one target.

    Attributes:
        start: where pytest was started: never the common parent of data that parallel runs share.
        name: the target's, as a folder; '' for none.
        option: how the command line names the target.
    """

    start: Path
    name: str
    option: str

    def keep(self, finding: Finding) -> Finding:
        """Write a finding's schedule to `.gym-conformance/CHECK.json`, and say in the finding how to replay it.

        Where nothing can be written there, the finding stays as it is: its commands reproduce it, too.
        """
        if not finding.replay:
            return finding
        path = Path(FOLDER, self.name, f"{finding.check}.json")
        try:
            write_whole(own_folder(self.start / FOLDER) / ".gitignore", "*\n")
            write_whole(own_folder((self.start / path).parent) / path.name, finding.replay)
        except OSError:
            return finding
        command = f"pytest {self.option} --gym-replay {quote(str(path))}"
        return replace(finding, reproduce=(command, *finding.reproduce))
