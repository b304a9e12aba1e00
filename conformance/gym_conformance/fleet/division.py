"""Splits the options of a run of several servers into the options of each."""

from dataclasses import replace
from pathlib import Path
from typing import Final

from gym_conformance.option_readers import BadOption
from gym_conformance.options import TABLE, Options, ensure_lock

#: Fields of `Options` that apply to a single server.
_OF_ONE: Final = ("data", "replay", "pid")


def divide(options: Options, *, lock_in_ini: bool) -> tuple[Options, ...]:
    """The options of each env.

    Here `lock` is a file name, looked up in the folder of each env. A lock set in the ini file, which pytest reads as a
    path relative to that file, is reduced to its name.

    Raises:
        BadOption: an option applies to one server only, or a lock is missing.
    """
    for name in _OF_ONE:
        if getattr(options, name):
            raise BadOption(f"{TABLE[name].name}: this is about one server, but --gym-env names several; give only one")
    lock = _lock_name(options, lock_in_ini=lock_in_ini) if options.lock else None
    each = tuple(replace(options, envs=(env,), lock=env.home / lock if lock else None) for env in options.envs)
    for one in each:
        ensure_lock(one)
    return each


def _lock_name(options: Options, *, lock_in_ini: bool) -> str:
    lock = options.lock or Path()
    if lock.name != str(lock) and not lock_in_ini:
        raise BadOption(f"--gym-lock {str(lock)!r}: with several servers, give the name of a file in each one's folder")
    if without := next((env for env in options.envs if env.application), None):
        raise BadOption(f"--gym-lock: {without.application} has no folder for its own lock; judge it alone")
    return lock.name


def ensure_several(options: Options) -> None:
    """Refuse options for several servers if there is only one.

    Raises:
        BadOption: such an option was given.
    """
    if options.resume and options.rows is None and len(options.envs) < 2:  # noqa: PLR2004 - several
        raise BadOption("--gym-resume: this is for several servers; give several with --gym-env")
    if options.ray is not None and not (options.ray and (options.envs or options.load)):
        raise BadOption(
            "--gym-ray: give a cluster's address, such as 10.0.0.1:6379, and envs to launch with --gym-env, or --gym-load"
        )
