"""Imports the suite from its bytecode, bypassing pytest's assertion rewriting.

pytest rewrites the assertions in every module of a distribution that has a plugin, which includes all of ours and of
Hypothesis. It caches the result; but where no bytecode is written (PYTHONDONTWRITEBYTECODE, as in many containers), and
in each new environment, it parses and compiles hundreds of modules that are installed compiled, which takes 3 s.
"""

import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType

_PACKAGES = {"gym_conformance", "gym_mocks", "gym_schemas", "hypothesis"}


class _AsTheyAre:
    """Finds the modules inside these packages where Python would find them, but not the packages themselves.

    For a package that it has not rewritten, pytest would warn in a second run in the same process.
    """

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        package, dot, _ = name.partition(".")
        return PathFinder.find_spec(name, path, target) if dot and package in _PACKAGES else None


def import_as_they_are() -> None:
    """Install the finder for all later imports."""
    if _AsTheyAre not in sys.meta_path:
        sys.meta_path.insert(0, _AsTheyAre)
