"""What a statement, a command or an expression is taken for, and what is said to a tool that takes some."""

import pytest

from gym_conformance.contract.dataset_rows import Call, Tool
from gym_conformance.trajectories.generate import is_reading
from gym_conformance.trajectories.languages import asking_for, language_of, script_for

_TEXT = {"type": "string"}


def _tool(name: str, **properties: object) -> Tool:
    return Tool(name, {"type": "object", "properties": properties})


@pytest.mark.parametrize(
    "said",
    [
        "SELECT * FROM a",
        "select b from a where c = 1;",
        "SHOW TABLES",
        "describe a",
        "ls",
        "ls -l",
        "cat a.txt",
        "grep -n b a.py",
    ],
)
@pytest.mark.parametrize("name", ["run_sql", "bash", "execute"])
def test_a_query_is_a_read(name: str, said: str) -> None:
    assert is_reading(Call(name, {"text": said}))


@pytest.mark.parametrize(
    "said",
    [
        "DELETE FROM a",
        "update a set b = 1",
        "SELECT 1; DROP TABLE a",
        "cat a.txt > b.txt",
        "rm a.txt",
        "cat",
        "find me a room",
    ],
)
def test_what_may_change_something_or_is_said_to_a_person_is_none(said: str) -> None:
    assert not is_reading(Call("run", {"text": said}))


def test_the_name_of_a_tool_says_what_a_query_does_not() -> None:
    assert not is_reading(Call("add_note", {"text": "SELECT * FROM a"}))
    assert is_reading(Call("query", {"text": "anything"}))
    assert not is_reading(Call("query", {"text": "DELETE FROM a"}))


@pytest.mark.parametrize(
    ("tool", "key"),
    [
        (_tool("run_sql", statement=_TEXT), "statement"),
        (_tool("ask", query={**_TEXT, "description": "A query in SQL"}), "query"),
        (_tool("bash", command=_TEXT, timeout={"type": "integer"}), "command"),
        (_tool("interpreter", code=_TEXT, title=_TEXT), "code"),
        (_tool("calculator", expression=_TEXT), "expression"),
        (_tool("act", command={"enum": ["go", "stop"], **_TEXT}), None),
        (_tool("search", query=_TEXT), None),
    ],
)
def test_a_language_is_known_by_the_names_of_a_tool_and_its_argument(tool: Tool, key: str | None) -> None:
    found = language_of(tool)
    assert (found and found[0]) == key
    assert all(each.keys() == {key} for each in script_for(tool))


def test_a_table_is_asked_for_by_its_name() -> None:
    assert asking_for(_tool("run_sql", statement=_TEXT), "people") == "SELECT * FROM people"
    assert asking_for(_tool("search", query=_TEXT), "people") == "people"
