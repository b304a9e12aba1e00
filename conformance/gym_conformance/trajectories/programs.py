"""Python programs that a policy writes, as tool arguments or as its answer. Pure."""

import ast
import warnings

#: A program has at least one of these statements; a single word parses as an expression too.
_STATEMENTS = ast.Assign | ast.Import | ast.ImportFrom | ast.FunctionDef | ast.ClassDef | ast.For


def is_program(text: str) -> bool:
    """Whether the text is a program that does something: it assigns, imports, defines or calls."""
    return any(
        isinstance(one, _STATEMENTS) or (isinstance(one, ast.Expr) and isinstance(one.value, ast.Call))
        for one in _statements(text)
    )


def defined_in(text: str) -> frozenset[str]:
    """The functions and classes that the text defines; hardly any text but a program defines any."""
    return frozenset(one.name for one in _statements(text) if isinstance(one, ast.FunctionDef | ast.ClassDef))


def _statements(text: str) -> list[ast.stmt]:
    try:
        with warnings.catch_warnings(action="ignore"):  # warnings about escapes do not concern the user
            return ast.parse(text).body if set(text) & set("=(\n ") else []
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return []
