"""Python programs that a policy writes, as tool arguments or as its answer. Pure."""

import ast
import re
import warnings
from typing import Final

#: A program has at least one of these statements; a single word parses as an expression too.
_STATEMENTS = ast.Assign | ast.Import | ast.ImportFrom | ast.FunctionDef | ast.ClassDef | ast.For

#: The first line of a block of code in a language whose comments begin so.
_FENCE: Final = re.compile(r"^[ \t]*```(?:python|py|bash|sh)\w*[ \t]*\n", re.IGNORECASE | re.MULTILINE)


def is_program(text: str) -> bool:
    """Whether the text is a program that does something: it assigns, imports, defines or calls."""
    return any(
        isinstance(one, _STATEMENTS) or (isinstance(one, ast.Expr) and isinstance(one.value, ast.Call))
        for one in _statements(text)
    )


def defined_in(text: str) -> frozenset[str]:
    """The functions and classes that the text defines; hardly any text but a program defines any."""
    return frozenset(one.name for one in _statements(text) if isinstance(one, ast.FunctionDef | ast.ClassDef))


def with_comment(text: str, comment: str) -> str:
    """The text with this comment at the beginning of each of its programs, which do what they did."""
    return _FENCE.sub(lambda fence: f"{fence[0]}# {comment}\n", text)


def _statements(text: str) -> list[ast.stmt]:
    try:
        with warnings.catch_warnings(action="ignore"):  # warnings about escapes do not concern the user
            return ast.parse(text).body if set(text) & set("=(\n ") else []
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return []
