"""Finds the applications that Python files define, without running them, outside NeMo Gym's layout."""

import ast
import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Final

from gym_conformance.documents import read_text

#: Framework classes whose objects are ASGI or WSGI applications.
_CLASSES: Final = frozenset({"FastAPI", "Starlette", "Litestar", "Quart", "Sanic", "BlackSheep", "Flask", "Bottle"})

#: Names of functions that make one.
_MAKES_ONE: Final = re.compile(r"(?:create|make|build|get|init)_(?:app|application|server|asgi|wsgi)|app_factory")

#: A route that every such server has.
_ROUTE: Final = re.compile(r"""["'`]/?verify\b""")

#: Folders without a server; the most files to look at; and the most characters of one.
_SKIPPED_FOLDERS: Final = re.compile(
    r"\.|tests?$|docs$|examples?$|scripts$|(?:site-packages|node_modules|venv|build|dist|__pycache__)$"
)
_FILES, _LARGEST = 400, 1 << 20

#: The most levels below the folder.
_DEEPEST: Final = 4


def applications(folder: Path) -> tuple[str, ...]:
    """The `module:attribute`s of applications in a folder, or in its `src`, that has the route /verify.

    Those made at import come before those that a function makes.
    """
    texts = {}
    for file in islice(_python_files(folder, _DEEPEST), _FILES):
        try:
            texts[file] = read_text(file, _LARGEST)
        except (OSError, ValueError):
            continue
    if not any(map(_ROUTE.search, texts.values())):
        return ()
    made = {f"{_module(file, folder)}:{name}": at_once for file, text in texts.items() for name, at_once in _made(text)}
    return tuple(sorted(each for each in made if made[each])) or tuple(sorted(made))


def flaw_of(file: Path) -> str:
    """Why Python cannot read a file; '' if it can, or if there is none."""
    try:
        ast.parse(read_text(file, _LARGEST))
    except SyntaxError as error:
        return f"line {error.lineno}: {error.msg}" if error.lineno else error.msg
    except FileNotFoundError:
        return ""
    except OSError as error:
        return str(error.strerror)
    except (ValueError, RecursionError, MemoryError) as error:
        return str(error)
    return ""


def _python_files(folder: Path, levels: int) -> Iterator[Path]:
    try:
        entries = sorted(folder.iterdir(), key=lambda each: (each.is_dir(), each.name))
    except OSError:
        return
    for entry in entries:
        if entry.suffix == ".py" and entry.is_file():
            yield entry
        elif levels and entry.is_dir() and not entry.is_symlink() and not _SKIPPED_FOLDERS.match(entry.name):
            yield from _python_files(entry, levels - 1)


def _module(file: Path, folder: Path) -> str:
    parts = file.relative_to(folder).with_suffix("").parts
    return ".".join(parts[parts[0] == "src" : len(parts) - (parts[-1] == "__init__")])


def _made(text: str) -> Iterator[tuple[str, bool]]:
    """The names of applications in a module, each with whether it is made at import and not by a function."""
    try:
        body = ast.parse(text).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    for node in body:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call(func=made)) if _called(made) in _CLASSES:
                yield name, True
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.Call(func=made)) if _called(made) in _CLASSES:
                yield name, True
            case ast.FunctionDef(name=name, args=given) if _MAKES_ONE.fullmatch(name):
                if len(given.args) == len(given.defaults) and None not in given.kw_defaults:
                    yield name, False


def _called(made: ast.expr) -> str:
    match made:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
    return ""
