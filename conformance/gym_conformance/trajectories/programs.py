"""Python programs among what a policy writes: as arguments of a tool, or as its answer. Pure."""

import ast
import warnings

#: Statements of which one at least is in a program; a word alone is an expression, too.
_STATEMENTS = ast.Assign | ast.Import | ast.ImportFrom | ast.FunctionDef | ast.ClassDef | ast.For


def is_program(text: str) -> bool:
    """Whether it may be run for what it does: it assigns, imports, defines or calls something."""
    return any(
        isinstance(one, _STATEMENTS) or (isinstance(one, ast.Expr) and isinstance(one.value, ast.Call))
        for one in _statements(text)
    )


def defined_in(text: str) -> frozenset[str]:
    """The functions and classes that it defines; hardly any other text than a program defines something."""
    return frozenset(one.name for one in _statements(text) if isinstance(one, ast.FunctionDef | ast.ClassDef))


def _statements(text: str) -> list[ast.stmt]:
    try:
        with warnings.catch_warnings(action="ignore"):  # of a text's escapes, which are no concern of the user's
            return ast.parse(text).body if set(text) & set("=(\n ") else []
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return []
