"""Consistency checks of an env's files, without a launch."""

import asyncio
import os
import signal
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from secrets import token_hex
from typing import Any, Final

from gym_conformance.documents import is_file, parse_json, yaml_mapping
from gym_conformance.launch.env import datasets, places, references
from gym_conformance.launch.launched_server import LOG_LIMIT
from gym_conformance.launch.leftovers import MARK, end_marked

#: Seconds for importing nemo-gym's validator and an env's schema.
_TIMEOUT: Final = 60.0

_SERVERS: Final = ("resources_servers", "responses_api_agents")


def missing_references(folder: Path, root: Path) -> list[str]:
    """What the YAML files of an env's folder refer to but does not exist, one line each; unreadable files are skipped.

    `root`: what paths in them are relative to.
    """
    configs = {file: yaml_mapping(file) for file in sorted(folder.glob("configs/*.yaml"))}
    found = []
    for file, config in configs.items():
        named = {name for kind, name in references(config) if kind in _SERVERS and name not in config and name != "???"}
        unknown = named - set(_elsewhere(config, folder, root)) if named else ()
        found += [f"{file.name}: the server {name}" for name in sorted(unknown)]
        examples = [path for kind, path in datasets(config) if kind == "example"]  # other types are downloaded
        found += [f"{file.name}: the dataset {path}" for path in examples if not _is_there(path, folder, root)]
    return found


def _elsewhere(config: Mapping[str, Any], folder: Path, root: Path) -> Iterator[str]:
    """The servers declared in other files: those that it includes, other YAMLs of the env, and envs beside it."""
    for path in config.get("config_paths") or ():
        yield from yaml_mapping(root / str(path))
    for file in folder.parent.glob("*/configs/*.yaml"):
        yield from yaml_mapping(file)


def _is_there(path: str, folder: Path, root: Path) -> bool:
    """Whether a dataset exists."""
    *_, alone = where = places(path, folder, root)
    if alone == folder / "data" / "example.jsonl":
        return True  # `env-examples` checks that
    return "${" in path or any(map(is_file, where))


async def hold_to_task_data(python: str, folder: Path, root: Path, rows: Path) -> Mapping[str, Any]:
    """The answer of `task_rows.py` in the env's interpreter; `broken` if there is none."""
    script = Path(__file__).with_name("task_rows.py")
    pipe = asyncio.subprocess.PIPE
    try:
        process = await asyncio.create_subprocess_exec(
            python,
            script,
            folder,
            root,
            rows,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=pipe,
            stderr=pipe,
            start_new_session=True,
            env=os.environ | {MARK: (mark := token_hex(16))},
        )
    except OSError as error:
        return {"unknown": f"a working interpreter: {python}: {error.strerror}"}
    try:
        answer, said = await asyncio.wait_for(_outputs(process), _TIMEOUT)
    except TimeoutError:
        return {"broken": f"it is not imported within {_TIMEOUT:g} s"}
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()
        end_marked(mark)
    try:
        found = parse_json(answer)
    except ValueError:
        found = None
    match found:
        case {"unknown": str()} | {"broken": str()}:
            return dict(found)
        case {
            "rows": int(),
            "errors": list(),
            "unknown_keys": dict(),
            "conflicting_keys": dict(),
            "misplaced_keys": dict(),
        }:
            return dict(found)
    last = (said.decode(errors="replace").strip().splitlines() or ["nothing"])[-1]
    return {"broken": f"the validator ends with: {last}"}


async def _outputs(process: asyncio.subprocess.Process) -> tuple[bytes, bytes]:
    """The end of both output streams, as much as we keep of a log: the env's own module writes there, too."""
    assert process.stdout is not None  # noqa: S101 - they are pipes
    assert process.stderr is not None  # noqa: S101
    answer, said = await asyncio.gather(_end(process.stdout), _end(process.stderr))
    return answer, said


async def _end(stream: asyncio.StreamReader) -> bytes:
    kept = b""
    while data := await stream.read(1 << 16):
        kept = (kept + data)[-LOG_LIMIT:]
    return kept
