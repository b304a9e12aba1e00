"""What to say to tools that take a language, such as SQL, a shell's commands, Python or arithmetic, if nothing is recorded. Pure.

Such a tool knows no word of the row by itself, and does nothing with made-up texts.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final

from gym_conformance.contract.dataset_rows import Tool
from gym_schemas import properties_of


@dataclass(frozen=True)
class Language:
    """A language, and what may be said in it.

    Attributes:
        argument: what an argument in this language is called.
        named: what the name of its tool, its own name or its description says otherwise.
        script: what leaves something behind, and then asks for it.
        lists: what asks for the names of what is there, in one dialect or another.
        about: what asks for a thing that has this name, if anything does.
        asks: what looks like this only asks.
        changes: what begins like this does not.
        sleeps: what does nothing for so many seconds.
    """

    argument: re.Pattern[str]
    named: re.Pattern[str]
    script: tuple[str, ...]
    lists: tuple[str, ...] = ()
    about: str = ""
    asks: re.Pattern[str] | None = None
    changes: re.Pattern[str] | None = None
    sleeps: str = ""


#: A longer text is not looked at: it would take long, and few queries are as long.
_LONG: Final = 2_000

#: What is left behind is called so.
_LEFT: Final = "jottings"

_SQL: Final = Language(
    re.compile(r"sql", re.IGNORECASE),
    re.compile(r"sql", re.IGNORECASE),
    (
        f"CREATE TABLE {_LEFT} (word TEXT)",
        f"INSERT INTO {_LEFT} VALUES ('text')",  # noqa: S608 - what a policy would say
        f"SELECT word FROM {_LEFT}",  # noqa: S608 - the same
    ),
    (
        "SELECT name FROM sqlite_master WHERE type = 'table'",
        "SELECT table_name FROM information_schema.tables WHERE table_schema = 'public'",
        "SHOW TABLES",
    ),
    "SELECT * FROM {}",
    re.compile(
        r"\s*(?:EXPLAIN\s+)?(?:SELECT\b[^;]*\bFROM\b[^;]*|SHOW\s+TABLES|DESC(?:RIBE)?\s+\w+|PRAGMA\s+table_info\b[^;=]*);?\s*\Z",
        re.IGNORECASE,
    ),
    re.compile(r"\s*(?:INSERT\s+INTO|UPDATE\s+\S+\s+SET|DELETE\s+FROM|(?:CREATE|DROP|ALTER)\s+TABLE)\b", re.IGNORECASE),
)

_SHELL: Final = Language(
    re.compile(r"(?:bash|shell|command|cmd)(?:_?line)?", re.IGNORECASE),
    re.compile(r"bash|shell|terminal", re.IGNORECASE),
    (f"echo text >> {_LEFT}.txt", f"cat {_LEFT}.txt", "ls", r"printf '\377'"),
    asks=re.compile(r"\s*(?:ls|pwd|(?:ls|cat|head|tail|wc|grep|find)\s(?=[^;&|>`$\n]*[./-])[^;&|>`$\n]*)\Z"),
    sleeps="sleep {:g}",
)

_PYTHON: Final = Language(
    re.compile(r"(?:python_?)?(?:code|program|script)", re.IGNORECASE),
    re.compile(r"python", re.IGNORECASE),
    (f"{_LEFT} = 'text'", f"print({_LEFT})"),
    sleeps="import time\n\ntime.sleep({:g})\n",
)

_ARITHMETIC: Final = Language(
    re.compile(r"expr(?:ession)?|formula|calculation", re.IGNORECASE),
    re.compile(r"calculat", re.IGNORECASE),
    ("1 + 2",),
)

_LANGUAGES: Final = (_SQL, _SHELL, _PYTHON, _ARITHMETIC)


def language_of(tool: Tool) -> tuple[str, Language] | None:
    """The argument of a tool that takes a language, by its name or by what is said of it, and the language."""
    texts = {key: schema for key, schema in properties_of(tool.parameters).items() if _is_free(schema)}
    for language in _LANGUAGES:
        for key in texts:
            if language.argument.fullmatch(key):
                return key, language
        for key, schema in texts.items() if len(texts) == 1 else ():
            if language.named.search(f"{tool.name} {key} {schema.get('description', '')}"):
                return key, language
    return None


def lists_of(tool: Tool) -> tuple[dict[str, Any], ...]:
    """Arguments that ask a tool for the names of what is there; none if it takes no language that can."""
    return _arguments(tool, lambda language: language.lists)


def asking_for(tool: Tool, name: str) -> str:
    """What asks a tool for a thing of this name in its language; the name itself if nothing does."""
    found = language_of(tool)
    return found[1].about.format(name) if found and found[1].about else name


def script_for(tool: Tool) -> tuple[dict[str, Any], ...]:
    """Arguments that leave something behind, and ask for it; none if the tool takes no language."""
    return _arguments(tool, lambda language: language.script)


def sleeping_for(tool: Tool, seconds: float) -> dict[str, Any] | None:
    """The argument with which a tool that runs programs or commands does nothing for so long; None if it takes none."""
    found = _arguments(tool, lambda language: (language.sleeps.format(seconds),) if language.sleeps else ())
    return found[0] if found else None


def sleeping_answer(seconds: float) -> str:
    """A Python program that does nothing for so long, as a policy answers with one."""
    return f"```python\n{_PYTHON.sleeps.format(seconds)}```"


def _arguments(tool: Tool, texts: Callable[[Language], tuple[str, ...]]) -> tuple[dict[str, Any], ...]:
    found = language_of(tool)
    return tuple({found[0]: text} for text in texts(found[1])) if found else ()


def asks(texts: Iterable[str]) -> bool:
    """Whether one of a call's texts looks like a query in one of these languages."""
    return _matches(texts, [language.asks for language in _LANGUAGES])


def changes(texts: Iterable[str]) -> bool:
    """Whether one of a call's texts is a statement that changes something, in one of these languages."""
    return _matches(texts, [language.changes for language in _LANGUAGES])


def _matches(texts: Iterable[str], patterns: Iterable[re.Pattern[str] | None]) -> bool:
    brief = [text for text in texts if len(text) <= _LONG]
    return any(pattern.match(text) for pattern in patterns if pattern for text in brief)


def _is_free(schema: Any) -> bool:
    return (
        isinstance(schema, dict) and schema.get("type") == "string" and not schema.keys() & {"enum", "const", "pattern"}
    )
