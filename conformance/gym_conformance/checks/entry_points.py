"""Checks of other packages, which name them in the entry-point group `gym_conformance.checks` (docs/extending.md).

An entry point is a module, whose checks are taken in the order in which they stand there; or one check, or several.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from importlib.metadata import EntryPoint, entry_points
from types import ModuleType
from typing import Any, Final

from gym_conformance.trials.check import Check, Need

GROUP: Final = "gym_conformance.checks"

#: As node ids, baselines and reports need it: a section, and a name within it.
_ID: Final = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)+")
_URL: Final = re.compile(r"https?://[\w.~:/?#@!$&*+,;=%-]+", re.ASCII)


class BadCheck(Exception):
    """Another package's check cannot be used; the message says whose, what is wrong and how to fix it."""


def foreign_checks(own: Iterable[Check]) -> tuple[Check, ...]:
    """The checks of all installed packages, by the name of their entry point; `own` are those that are there already.

    Raises:
        BadCheck: one of them cannot be imported, or is not sound, or has the id of another.
    """
    found: dict[str, Check] = {}
    known = {check.id: check for check in own}
    owners = dict.fromkeys(known, "gym-conformance")
    for entry in sorted(entry_points(group=GROUP), key=lambda entry: (entry.name, entry.value)):
        for check in _loaded(entry):
            if known.get(check.id) is check:  # imported from elsewhere, or named by two entry points
                continue
            for wrong in unsound(check, owners):
                raise BadCheck(f"{_place(entry)}: {wrong}")
            found[check.id] = known[check.id] = check
            owners[check.id] = _owner(entry)
    return tuple(found.values())


def unsound(check: Check, owners: Mapping[str, str]) -> Iterator[str]:
    """What is wrong with a check, and how to fix it. `owners` are the packages of the ids that are in use."""
    name = f"the check {check.id!r}"
    if not _ID.fullmatch(str(check.id)):
        yield f"{name} has no usable id; give a section and a name in kebab case, such as 'house-reward-steps'"
    if check.id in owners:
        yield f"{name} has the id of a check of {owners[check.id]}; choose another"
    if not all(text and text.isprintable() for text in (check.title, check.why)):
        yield f"{name} has no title or no why; give one printable line for each"
    if not check.doc.strip():
        yield f"{name} has no docstring; say what is sent, what must come back, and where the rule comes from"
    if not _URL.fullmatch(check.url):
        yield f"{name} has no documentation URL; give one that begins with https://"
    if not {type(need) for need in check.needs} <= {Need}:
        yield f"{name} needs something that is not a Need; use one of gym_conformance.api, or make one"


def _loaded(entry: EntryPoint) -> Iterator[Check]:
    try:
        value = entry.load()
    except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever another package raises when it is imported
        what = f"{type(error).__name__}: {error}".splitlines()[0]
        raise BadCheck(f"{_place(entry)}: it cannot be imported ({what}); fix it, or uninstall the package") from None
    checks = [one for one in _values(value) if isinstance(one, Check)]
    if not checks:
        raise BadCheck(f"{_place(entry)}: there is no check; name a module that has some, or a check")
    yield from checks


def _values(value: Any) -> Iterable[Any]:
    if isinstance(value, ModuleType):
        return vars(value).values()
    return value if isinstance(value, list | tuple) else (value,)


def _place(entry: EntryPoint) -> str:
    return f"checks of {_owner(entry)} ({entry.name} = {entry.value})"


def _owner(entry: EntryPoint) -> str:
    return f"{entry.dist.name} {entry.dist.version}" if entry.dist else "an unknown package"
