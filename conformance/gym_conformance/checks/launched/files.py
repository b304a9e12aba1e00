"""Files of an env's folder, as `gym env test` wants them. Nothing is sent, so they are checked even if the launch fails.

Source: `_validate_data_single` in nemo_gym/cli/env.py (0.4.0, 0.7.0; `+should_validate_data=true`), and
`validate_domain_for_resources_server` in nemo_gym/config_types.py.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from gym_conformance.documents import is_file, parse_json, read_lines, read_text
from gym_conformance.launch.env import ENVIRONMENT, BadConfig, Env, chained
from gym_conformance.launch.env_files import hold_to_task_data, missing_references
from gym_conformance.launch.not_launched import NotLaunched
from gym_conformance.trials.check import check
from gym_conformance.trials.ending import NotApplicable, Violation
from gym_conformance.trials.trial import Trial

_EXAMPLES: Final = 5


def _env(trial: Trial) -> Env:
    env = trial.launched.env
    if env is None or env.application:
        raise NotApplicable("the env's files are known only if its folder is given as --gym-env")
    return env


def _folder(trial: Trial) -> Path:
    env = _env(trial)
    if env.home != env.folder:
        raise NotApplicable("its server lives elsewhere; these rules are about the server's own folder")
    return env.folder


@check(
    "env-config",
    "An env's YAML SHOULD declare its server, with a domain and an existing entry point",
    why="`gym env start` and `gym eval run` refuse the config, or read no data from it.",
)
async def env_config(trial: Trial, _: object) -> None:
    """Reads `configs/*.yaml`; one file must declare the folder's server, give it a domain and name a file to run.

    Environment servers have no domain.

    Source: `validate_domain_for_resources_server` in nemo_gym/config_types.py (0.4.0).
    """
    folder = _folder(trial)
    try:
        server = _env(trial).configured
    except BadConfig as bad:
        wanted, _, actual = str(bad).partition("; ")
        raise Violation(wanted, actual, "NeMo Gym knows a server only by its YAML.") from None
    entry = chained(server.path, _root(trial))[server.name][server.group][server.inner]
    if server.group != ENVIRONMENT and not entry.get("domain"):
        raise Violation(f"a domain in {server.path.name}", "none", "Add `domain: agent`, or another of its Domain.")
    if not is_file(folder / server.entrypoint):
        raise Violation(
            f"the file {server.entrypoint}", "no such file", "`entrypoint` is relative to the env's folder."
        )


@check(
    "env-servers",
    "The env's YAML declares several servers, of which one is judged",
    why="each has a config of its own, so what holds for one need not hold for the others.",
)
async def env_servers(trial: Trial, _: object) -> None:
    """Reads the YAML file, or all of `configs/*.yaml` if none has the folder's name, and looks for further servers of the folder.

    If one is named, as in `--gym-env FOLDER:SERVER`, or its YAML file is given, it is clear which one is meant.

    Source: NeMo Gym starts all servers of the YAML files that it is given (`global_config.py`).
    """
    env = _env(trial)
    try:
        judged, others = env.configured, env.others
    except BadConfig:
        raise NotApplicable("no YAML declares its server; see env-config") from None
    if others:
        named = ", ".join(
            dict.fromkeys(
                each.name if each.path == judged.path else f"{each.name} ({each.path.name})" for each in others
            )
        )
        raise Violation(
            "one server, or one that is named",
            f"{judged.name} of {judged.path.name} is judged, and not {named}",
            f"To judge another, name it: --gym-env FOLDER:{others[0].name}",
        )


def _expect_data(trial: Trial) -> Path:
    """The env's folder, where it is to have data: rows are about resources servers.

    Raises:
        NotApplicable: it is an environment server's.
    """
    folder = _folder(trial)
    group = folder.parent.name
    with suppress(BadConfig):
        group = _env(trial).configured.group
    if group == ENVIRONMENT:
        raise NotApplicable("an environment server plays the rows of other envs")
    return folder


def _lines(path: Path) -> int:
    return sum(map(_is_object, read_lines(path)))


def _is_object(line: bytes) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False


def _expect_five(trial: Trial, name: str, count: Callable[[Path], int], hint: str) -> None:
    path = _expect_data(trial) / "data" / name
    if not is_file(path):
        raise Violation(f"{_EXAMPLES} examples in data/{name}", "no such file", hint)
    found = count(path)
    if found != _EXAMPLES:
        raise Violation(f"{_EXAMPLES} examples in data/{name}", f"{found:,}", hint)


@check(
    "env-examples",
    "An env SHOULD have five example rows",
    why="without them nobody can try out the env, and `gym env test` fails.",
)
async def env_examples(trial: Trial, _: object) -> None:
    """Counts the lines of `data/example.jsonl` that are JSON objects.

    Source: `_validate_data_single` in nemo_gym/cli/env.py (0.4.0).
    """
    _expect_five(trial, "example.jsonl", _lines, "They are usually the first five rows of the training data.")


@check(
    "env-metrics",
    "The env has no metrics for its five example rows",
    why="NeMo Gym accepts an env into its repo only with them.",
)
async def env_metrics(trial: Trial, _: object) -> None:
    """Reads `Number of examples` in `data/example_metrics.json`.

    Source: `_validate_data_single` in nemo_gym/cli/env.py (0.4.0).
    """

    def count(path: Path) -> int:
        try:
            return int(parse_json(read_text(path))["Number of examples"])
        except (OSError, ValueError, TypeError, KeyError):
            return 0

    _expect_five(trial, "example_metrics.json", count, "`gym dataset collate +mode=example_validation` writes it.")


@check(
    "env-rollouts",
    "Some of the env's five example rows have no recorded rollout",
    why="they show what the env is like, and tell the suite which calls are meaningful.",
)
async def env_rollouts(trial: Trial, _: object) -> None:
    """Counts the lines of `data/example_rollouts.jsonl` that are JSON objects.

    Source: `_validate_data_single` in nemo_gym/cli/env.py (0.4.0).
    """
    _expect_five(trial, "example_rollouts.jsonl", _lines, "`gym eval run` on data/example.jsonl writes it.")


@check(
    "env-references",
    "Servers and example files that an env's YAML names SHOULD exist",
    why="`gym env start` refuses a dangling reference, and `gym dataset collate` a missing example file.",
)
async def env_references(trial: Trial, _: object) -> None:
    """Looks up each resources server, agent and example dataset that any of `configs/*.yaml` refers to.

    A server may be declared in these files, in files that their `config_paths` name, or in the folders of other envs.
    Models are left out, because they are often chosen on the command line, and our mocks answer for them.

    Source: `ServerRefNotFoundError` and `validate_and_populate_defaults` in nemo_gym/global_config.py (0.4.0) for
    servers; our inference for datasets.
    """
    folder = _folder(trial)
    missing = missing_references(folder, _root(trial))
    if missing:
        raise Violation("references that exist", "; ".join(missing), "A name or path was changed in one place only.")


@check(
    "env-task-data",
    "An env's example rows SHOULD match its task_data.py",
    why="`gym dataset collate` refuses them otherwise, and verify never sees a field that is in the wrong place.",
)
async def env_task_data(trial: Trial, _: object) -> None:
    """Validates the example rows with nemo-gym's own validator in the env's interpreter, without starting a server.

    Reports fields of the wrong type, unknown fields, and fields in two places or in the wrong one.

    Source: nemo_gym/task_data.py, and `task_data_validation` in nemo_gym/train_data_utils.py (0.7.0).
    """
    folder = _folder(trial)
    rows = folder / "data" / "example.jsonl"
    if not (folder / "task_data.py").is_file():
        raise NotApplicable("the env has no task_data.py")
    if not rows.is_file():
        raise NotApplicable("there are no example rows; see env-examples")
    try:
        python = trial.launched.interpreter()
    except NotLaunched as refused:
        raise NotApplicable(f"it takes {refused.needs}") from None
    said = await hold_to_task_data(python, folder, _root(trial), rows)
    if "unknown" in said:
        raise NotApplicable(f"it takes {said['unknown']}")
    if "broken" in said:
        raise Violation(
            "a TaskData that can be read", said["broken"], "It may import only nemo_gym, pydantic and the like."
        )
    problems = list(_problems(said))
    if problems:
        raise Violation(
            f"{said['rows']} rows that are valid",
            "; ".join(problems),
            "The schema was changed without the rows, or the rows without the schema.",
        )


def _problems(said: Mapping[str, Any]) -> Iterator[str]:
    yield from (f"row {error}" for error in said["errors"])
    for name, problem in (
        ("conflicting_keys", "differ between the row and its verifier_metadata or task_data"),
        ("misplaced_keys", "are in the row, but verify reads them from verifier_metadata"),
        ("unknown_keys", "are unknown to the schema"),
    ):
        if keys := said[name]:
            yield f"{', '.join(sorted(keys))}: {problem}"


def _root(trial: Trial) -> Path:
    env = trial.launched.env
    return env.root if env else Path()
