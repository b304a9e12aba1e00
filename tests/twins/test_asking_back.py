"""What rollouts write and never read is asked for, by what the write has said or was told."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from gym_conformance.contract.dataset_rows import Row, Source
from gym_conformance.dataset import Dataset
from gym_conformance.scouting.learn import learn
from gym_mocks.resources import ResourcesServer, TaskRow
from gym_mocks.wire import HttpRefusal
from tests.twins.judging import judge, on_gym, telling
from tests.twins.twin import rollout_of

CALLS: list[tuple[str, dict[str, Any], Any]] = [
    ("write_file", {"path": "todo.txt", "content": "buy milk"}, {"written": 8}),
    ("add_tag", {"label": "home"}, {"tag_id": 1}),
]


class FolderRow(TaskRow):
    """A row whose sessions begin with an empty folder of that name."""

    folder: str


@dataclass
class Folder:
    """Files, tags, and what was read before, under what is known of a file without reading it."""

    name: str
    files: dict[str, str] = field(default_factory=dict)
    tags: dict[int, str] = field(default_factory=dict)
    read: dict[tuple[str, int], str] = field(default_factory=dict)
    views: dict[int, dict[str, str]] = field(default_factory=dict)
    asked: int = 0


def folders(fault: str = "") -> ResourcesServer:
    """One that keeps files.

    Faults: all sessions of a row have the same files, or all sessions have and replace them, one reads a file of a size
    only once, or each of five threads keeps what it saw first.
    """
    shared: dict[str, dict[str, str]] = {}

    def folder(row: FolderRow) -> Folder:
        common = {"shared": row.folder, "common": ""}.get(fault)
        return Folder(row.folder, {} if common is None else shared.setdefault(common, {}))

    def write_file(state: Folder, path: str, content: str) -> dict[str, int]:
        """Add a line to a file."""
        state.files[path] = (state.files.get(path, "") if fault == "shared" else "") + content
        return {"written": len(content)}

    def read_file(state: Folder, path: str) -> dict[str, str]:
        """Read a file."""
        if fault == "threads":
            state.asked += 1
            return {"content": state.views.setdefault(state.asked % 5, dict(state.files)).get(path, "")}
        if path not in state.files:
            raise HttpRefusal(404, "no such file")
        content = state.files[path]
        remembered = state.read.setdefault((path, len(content)), content)
        return {"content": remembered if fault == "remembered" else content}

    def add_tag(state: Folder, label: str) -> dict[str, int]:
        """Add a tag."""
        state.tags[len(state.tags) + 1] = label
        return {"tag_id": len(state.tags)}

    def get_tag(state: Folder, tag_id: int) -> dict[str, str]:
        """Tell what a tag says."""
        if tag_id not in state.tags:
            raise HttpRefusal(404, "no such tag")
        return {"label": state.tags[tag_id]}

    tools: list[Callable[..., Any]] = [write_file, read_file, add_tag, get_tag]
    return ResourcesServer("folders", tools=tools, verify=lambda: 1.0, state=folder)


def written() -> Dataset:
    """Rollouts that write, and read nothing."""
    tools = [tool | {"strict": False} for tool in folders().declarations]
    rows, rollouts = [], []
    for at, name in enumerate(("home", "work"), 1):
        row = {"responses_create_params": {"input": f"Fill {name}.", "tools": tools}, "folder": name}
        rows.append(Row(row, Source(Path("rows.jsonl"), at)))
        rollouts.append(rollout_of(rows[-1], *CALLS, said="Done.", reward=1.0))
    return Dataset(tuple(rows), tuple(rollouts), len(rows))


def test_reads_speak_of_what_was_written_just_after_it_and_in_the_end() -> None:
    first = on_gym(folders(), learn, written()).known_trajectories[0]
    names = [call.name for call in first.calls]
    assert names == ["write_file", "read_file", "add_tag", "get_tag", "read_file", "get_tag"]
    assert first.calls[1].arguments == {"path": "todo.txt"}
    assert first.calls[3].arguments == {"tag_id": {"$reply": {"call": 2, "path": ["tag_id"], "otherwise": 1}}}


@pytest.mark.parametrize(
    ("fault", "told"),
    [
        ("", ""),
        ("shared", "isolation-earlier"),
        ("common", "isolation-told"),
        ("remembered", "calls-complete"),
        ("threads", "isolation-two-clients"),
    ],
)
def test_what_is_written_and_never_read_is_told(fault: str, told: str) -> None:
    findings = judge(folders(fault), written(), checks={told or "isolation-two-clients", "isolation-earlier"})
    assert told in {"", *telling(findings)}
    assert bool(telling(findings)) == bool(told)
