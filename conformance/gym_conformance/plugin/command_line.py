"""The command line as pytest parsed it: our options, with defaults from the ini file, and our arguments."""

import os
from collections.abc import Iterable
from typing import Any, Final

import pytest

from gym_conformance.checks.registry import EVERY_ROW, LAUNCHED, LOAD, all_checks
from gym_conformance.option_readers import BadOption
from gym_conformance.options import TABLE, Option, Options, read_options
from gym_conformance.plugin.check_items import nodes_of

#: pytest's values for options that were not given.
_NOT_GIVEN: Final[tuple[Any, ...]] = (None, False, [])


def options_of(config: pytest.Config) -> Options:
    """The options of the command line, completed by those of the ini file.

    Raises:
        BadOption: a value is invalid.
    """
    line = {
        name: value for name, row in TABLE.items() if (value := getattr(config.option, row.ini_key)) not in _NOT_GIVEN
    }
    settled = {name for name, row in TABLE.items() if row.chooses} if chosen_on_line(config) else set()
    if config.option.gym_demo:
        settled.add("data")  # the demo brings its own rows
    silent = {name: row for name, row in TABLE.items() if row.ini and name not in settled | line.keys()}
    ini = {name: value for name, row in silent.items() if (value := _ini_value(config, row)) not in _NOT_GIVEN}
    return read_options(ini | line)


def chosen_on_line(config: pytest.Config) -> bool:
    """Whether the command line says what to judge."""
    return any(getattr(config.option, row.ini_key) not in _NOT_GIVEN for row in TABLE.values() if row.chooses)


def _ini_value(config: pytest.Config, row: Option) -> Any:
    value = config.getini(row.ini_key)
    if row.paths:
        value = [str(path) for path in value]
    if not row.paths or row.many:
        return value or None
    if len(value) > 1:
        raise BadOption(f"{row.ini_key}: {len(value)} paths; give one")
    return value[0] if value else None


def choose_paths(config: pytest.Config, targets: Iterable[str] = ("",)) -> None:
    """If a gym is to be judged and no path is given, collect only our checks: our node ids are not paths.

    `targets`: the names of the targets, as in node ids.
    """
    nodes = frozenset(
        node
        for check in all_checks() + LAUNCHED + LOAD + EVERY_ROW
        for name in targets
        for node in nodes_of(check, name)
    )
    chosen = {arg: node for arg in config.args if (node := _own_node(config, arg, nodes))}
    # xdist passes this on to its workers
    config.option.gym_chosen = [*getattr(config.option, "gym_chosen", []), *chosen.values()]
    if config.args_source is pytest.Config.ArgsSource.ARGS:
        config.args = [arg for arg in config.args if arg not in chosen]
    elif chosen_on_line(config):
        config.args = []


def _own_node(config: pytest.Config, arg: str, nodes: frozenset[str]) -> str | None:
    """The node id that an argument names, if it is ours; below the root, pytest shows node ids with `../`."""
    path, colons, check = arg.partition("::")
    for node in (path, os.path.relpath(config.invocation_params.dir / path, config.rootpath)):
        if node + colons + check in nodes:
            return node + colons + check
    return None
