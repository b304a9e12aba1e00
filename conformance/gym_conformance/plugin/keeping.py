"""The shortest schedules that broke a property, kept as files beside the project to be tried again."""

from dataclasses import replace
from shlex import quote

import pytest

from gym_conformance.documents import own_folder, write_whole
from gym_conformance.findings import Finding
from gym_conformance.plugin.resuming import FOLDER
from gym_conformance.plugin.target import Target


def keep(config: pytest.Config, finding: Finding, target: Target) -> Finding:
    """Write a finding's schedule to `.gym-conformance/CHECK.json`, and say in the finding how to replay it.

    Where nothing can be written there, the finding stays as it is: its commands reproduce it, too.
    """
    if not finding.replay:
        return finding
    folder = config.rootpath / FOLDER / target.name
    path = folder / f"{finding.check}.json"
    try:
        write_whole(own_folder(config.rootpath / FOLDER) / ".gitignore", "*\n")
        write_whole(own_folder(folder) / path.name, finding.replay)
    except OSError:
        return finding
    shown = (
        path.relative_to(config.invocation_params.dir) if path.is_relative_to(config.invocation_params.dir) else path
    )
    return replace(finding, reproduce=(f"pytest {target.option} --gym-replay {quote(str(shown))}", *finding.reproduce))
