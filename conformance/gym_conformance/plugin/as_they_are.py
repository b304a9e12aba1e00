"""Imports the suite as it is written, past pytest's assertion rewriting.

pytest rewrites the assertions in every module of a distribution that brings a plugin, which are all of ours and
Hypothesis's. It keeps what it compiled; but where no bytecode is written (PYTHONDONTWRITEBYTECODE, as in many containers)
and in each new environment it parses and compiles hundreds of modules that are installed compiled, for three seconds.
"""

import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType

_PACKAGES = {"gym_conformance", "gym_mocks", "gym_schemas", "hypothesis"}


class _AsTheyAre:
    """Finds what these packages hold where Python itself would; not the packages themselves.

    pytest warns in a second run of the same process of each of those that it has not rewritten.
    """

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        package, dot, _ = name.partition(".")
        return PathFinder.find_spec(name, path, target) if dot and package in _PACKAGES else None


def import_as_they_are() -> None:
    """Let what is imported from now on be found so."""
    if _AsTheyAre not in sys.meta_path:
        sys.meta_path.insert(0, _AsTheyAre)
