"""How much there is to read: lines, modules, complexity, and names that mean two things, of one tree or several.

    python benchmarks/economy.py                         # this checkout as it lies here
    python benchmarks/economy.py fd1daaf .               # a commit of it beside that
    python benchmarks/economy.py ~/before ~/after v0.1.0 # folders and commits, a column each

It reads the shipped packages below conformance/, schemas/ and mocks/, no tests. Complexity is McCabe's as radon counts
it, of functions and methods; a function's lines are those from its `def` to its end, docstring included.
"""

import argparse
import ast
import io
import subprocess
import tarfile
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median, quantiles

from radon.complexity import cc_visit
from radon.visitors import Function

_ROOTS = ("conformance", "schemas", "mocks")
_REPO = Path(__file__).parents[1]

#: Modules that every package has.
_USUAL = frozenset({"__init__", "__main__"})


@dataclass(frozen=True)
class Measured:
    """A function, its lines and its complexity."""

    name: str
    lines: int
    complexity: int


@dataclass(frozen=True)
class Module:
    """A module, below one of the roots."""

    path: Path
    lines: int
    functions: tuple[Measured, ...]
    classes: frozenset[str]


def read_module(path: Path, root: Path) -> Module:
    """Measure one file."""
    text = path.read_text("utf-8")
    where = path.relative_to(root)
    functions = [
        Measured(f"{where}:{found.lineno} {found.name}", found.endline - found.lineno + 1, found.complexity)
        for block in cc_visit(text)
        for found in _functions(block)
    ]
    classes = {node.name for node in ast.parse(text).body if isinstance(node, ast.ClassDef)}
    return Module(where, text.count("\n"), tuple(functions), frozenset(classes))


def _functions(block: object) -> Iterator[Function]:
    """The functions of what radon found: methods of a class, and closures, which it counts with what they stand in."""
    if isinstance(block, Function) and not block.is_method:
        yield block
    yield from getattr(block, "methods", ())


def measure(root: Path) -> dict[str, str]:
    """The rows of one column, in words."""
    paths = [path for name in _ROOTS for path in sorted((root / name).rglob("*.py"))]
    modules = [read_module(path, root) for path in paths]
    functions = [function for module in modules for function in module.functions]
    complexities, lengths = ([getattr(each, name) for each in functions] for name in ("complexity", "lines"))
    worst = max(functions, key=lambda each: each.complexity)
    longest = max(functions, key=lambda each: each.lines)
    sizes = [module.lines for module in modules]
    classes: dict[str, set[Path]] = defaultdict(set)
    for module in modules:
        for name in module.classes:
            classes[name].add(module.path)
    twice = sorted(name for name, places in classes.items() if len(places) > 1 and not name.startswith("_"))
    names = Counter(module.path.stem for module in modules if module.path.stem not in _USUAL)
    same = sorted(name for name, count in names.items() if count > 1)
    return {
        "lines": f"{sum(sizes):,}",
        "modules": f"{len(modules)}",
        "module, lines: median / longest": f"{median(sizes):g} / {max(sizes)}",
        "functions": f"{len(functions):,}",
        "function, lines: p95 / longest": f"{_p95(lengths)} / {longest.lines} ({longest.name})",
        "complexity: p95 / worst": f"{_p95(complexities)} / {worst.complexity} ({worst.name})",
        "functions above complexity 15": str(sum(each > 15 for each in complexities)),  # noqa: PLR2004 - the aim
        "class names in two modules": _listed(twice),
        "module names that occur twice": _listed(same),
    }


def _p95(values: list[int]) -> str:
    return f"{quantiles(values, n=20)[-1]:.0f}"


def _listed(names: list[str]) -> str:
    return f"{len(names)}" + (f" ({', '.join(names)})" if names else "")


@contextmanager
def _tree(given: str) -> Iterator[Path]:
    """A folder as it is, or a commit of this repo in a temporary one."""
    if Path(given).is_dir():
        yield Path(given)
        return
    command = ["git", "-C", str(_REPO), "archive", given]
    packed = subprocess.run(command, check=True, capture_output=True, timeout=60).stdout
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
            archive.extractall(folder, filter="data")
        yield Path(folder)


def main() -> None:
    """Print a table in Markdown, a column for each tree."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trees", nargs="*", default=[str(_REPO)], help="folders, or commits of this repo")
    given = parser.parse_args().trees
    columns = []
    for each in given:
        with _tree(each) as root:
            columns.append(measure(root))
    print(f"| | {' | '.join(given)} |")
    print("|---" * (len(given) + 1) + "|")
    for name in columns[0]:
        print(f"| {name} | {' | '.join(column[name] for column in columns)} |")


if __name__ == "__main__":
    main()
