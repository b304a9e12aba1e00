"""The command line as pytest gives it: our options, the ini file's where it is silent, and which arguments are ours."""

import os
from pathlib import Path

import pytest

from gym_conformance.checks.registry import CHECKS, LAUNCHED
from gym_conformance.options import BadOption, Options, read_options
from gym_conformance.plugin.items import nodes_of
from gym_conformance.plugin.target import names_of


def options_of(config: pytest.Config) -> Options:
    """The command line's options, and the ini file's where it is silent.

    Raises:
        BadOption: a value cannot be used.
    """
    option = config.option
    url, demo, envs = option.gym_url, option.gym_demo, option.gym_env
    if url is None and not demo and not envs:
        url, demo, envs = config.getini("gym_url") or None, config.getini("gym_demo"), config.getini("gym_env")
    return read_options(
        url=url,
        demo=demo,
        data=option.gym_data or ([] if option.gym_demo else config.getini("gym_data")),
        strict=option.gym_strict or config.getini("gym_strict"),
        reports=option.gym_report or config.getini("gym_report"),
        timeout=option.gym_timeout or config.getini("gym_timeout"),
        headers=option.gym_header or config.getini("gym_header"),
        contract=option.gym_contract or config.getini("gym_contract"),
        profile=option.gym_profile or config.getini("gym_profile"),
        seed=option.gym_seed or config.getini("gym_seed"),
        replay=option.gym_replay or config.getini("gym_replay"),
        pid=option.gym_pid or config.getini("gym_pid"),
        in_flight=option.gym_in_flight or config.getini("gym_in_flight"),
        baseline=option.gym_baseline or _one_path(config, "gym_baseline"),
        baseline_write=option.gym_baseline_write,
        drift=option.gym_drift or config.getini("gym_drift"),
        lock=option.gym_lock or _one_path(config, "gym_lock"),
        lock_update=option.gym_lock_update,
        envs=envs or (),
        python=option.gym_python or config.getini("gym_python"),
        settings=option.gym_env_set or config.getini("gym_env_set"),
        launch_timeout=option.gym_launch_timeout or config.getini("gym_launch_timeout"),
        launch=option.gym_launch or config.getini("gym_launch"),
        resume=option.gym_resume,
        ray=option.gym_ray,
    )


def _one_path(config: pytest.Config, name: str) -> Path | None:
    paths: list[Path] = config.getini(name)
    if len(paths) > 1:
        raise BadOption(f"{name}: {len(paths)} paths; give one")
    return paths[0] if paths else None


def write_junit(config: pytest.Config, options: Options) -> None:
    """`--gym-report FILE.xml` is `--junitxml FILE.xml`, whose plugin is configured after ours.

    Raises:
        pytest.UsageError: pytest is to write another file already.
    """
    for path in options.reports:
        if path.suffix == ".xml":
            if getattr(config.option, "xmlpath", None) not in (None, str(path)):
                raise pytest.UsageError(f"--gym-report '{path}': pytest writes one JUnit file; give one .xml")
            config.option.xmlpath = str(path)


def _nodes(options: Options) -> frozenset[str]:
    """What can be chosen by node id: a target where there are several, a section, or a check in it."""
    names = names_of(options)
    every = (node for check in CHECKS + LAUNCHED for name in names for node in nodes_of(check, name))
    return frozenset(every)


def choose_paths(config: pytest.Config, options: Options) -> None:
    """Asked for a gym and given no path, collect no tests but ours; node ids of ours are no paths."""
    nodes = _nodes(options)
    chosen = {arg: node for arg in config.args if (node := _own_node(config, arg, nodes))}
    # travels to xdist workers
    config.option.gym_chosen = [*getattr(config.option, "gym_chosen", []), *chosen.values()]
    asked = config.option.gym_url or config.option.gym_env or config.option.gym_demo
    if config.args_source is pytest.Config.ArgsSource.ARGS:
        config.args = [arg for arg in config.args if arg not in chosen]
    elif asked:
        config.args = []


def _own_node(config: pytest.Config, arg: str, nodes: frozenset[str]) -> str | None:
    """The node id that an argument names, if it is one of ours; below the root pytest shows them with `../`."""
    path, colons, check = arg.partition("::")
    for node in (path, os.path.relpath(config.invocation_params.dir / path, config.rootpath)):
        if node + colons + check in nodes:
            return node + colons + check
    return None
