"""A stateful sandbox that is made when a tool first needs it, be that with or without a seed before."""

from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BaseModel, Field

from gym_mocks.policy.items import call, say
from gym_mocks.resources import ResourcesServer, Score, TaskRow

Path = Annotated[str, Field(min_length=1, max_length=80)]
FILES = (
    ("a.txt", "one"),
    ("b.txt", "two\nlines"),
    ("notes/c.md", "# three"),
    ("d", "4"),
    ("e.json", '{"e": 5}'),
)


@dataclass
class Sandbox:
    """A session's sandbox. A real one would start a container in `opened`: a rollout without calls costs none.

    Attributes:
        files: contents by path; None until the first use.
    """

    files: dict[str, str] | None = None

    def opened(self) -> dict[str, str]:
        """The files, of a sandbox that is there from now on."""
        if self.files is None:
            self.files = {}
        return self.files


class FileAnswer(BaseModel):
    """What every tool answers."""

    ok: bool
    output: str


class SandboxRow(TaskRow):
    """A row: the files that should be there in the end."""

    expected_files: dict[str, str]


def write_file(state: Sandbox, path: Path, content: str) -> FileAnswer:
    """Write a file."""
    state.opened()[path] = content
    return FileAnswer(ok=True, output=f"{len(content)} characters")


def read_file(state: Sandbox, path: Path) -> FileAnswer:
    """Read a file."""
    content = state.opened().get(path)
    return FileAnswer(ok=content is not None, output="no such file" if content is None else content)


async def list_files(state: Sandbox) -> FileAnswer:
    """List all files."""
    return FileAnswer(ok=True, output="\n".join(sorted(state.opened())))


def verify(state: Sandbox, row: SandboxRow) -> Score:
    """One for the files as they should be."""
    return Score(float(state.files == row.expected_files), fields={"files": len(state.files or {})})


def server() -> ResourcesServer:
    """A fresh server."""
    return ResourcesServer("sandbox", tools=[write_file, read_file, list_files], verify=verify, state=Sandbox)


def _row(path: str, content: str, tools: list[dict[str, Any]]) -> dict[str, Any]:
    prompt = {"role": "user", "content": f"Write {content!r} into {path}, and check it."}
    return {
        "responses_create_params": {"input": [prompt], "tools": tools},
        "expected_files": {path: content},
    }


TOOLS = server().declarations
ROWS = [_row(path, content, TOOLS) for path, content in FILES]
SOLUTIONS: list[list[Any]] = [
    [call("write_file", path=path, content=content), call("read_file", path=path), say("Done.")]
    for path, content in FILES
]
