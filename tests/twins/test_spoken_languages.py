"""Tools that take SQL, Python or a shell's commands, where nobody recorded what may be said to them."""

import contextlib
import io
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from gym_conformance.scouting.learn import find
from gym_mocks.resources import ResourcesServer
from gym_mocks.wire import HttpRefusal
from tests.twins.judging import judge, on_gym, telling
from tests.twins.twin import said_by_users

_CHECKS = {"isolation-earlier", "isolation-told", "calls-valid", "calls-refused-harmless"}

_SAID = ("Who earns most?", "How many are there?")


def _database() -> sqlite3.Connection:
    made = sqlite3.connect(":memory:", check_same_thread=False)
    made.executescript("CREATE TABLE people (name TEXT, pay INTEGER); INSERT INTO people VALUES ('Ada', 5), ('Ken', 4)")
    return made


def _said(database: sqlite3.Connection, statement: str) -> str:
    try:
        return "\n".join(str(row) for row in database.execute(statement)) or "done"
    except sqlite3.Error as error:
        return f"Error: {error}"


def _of_sql(habit: str) -> ResourcesServer:
    for_all, answers = _database(), dict[str, str]()

    def run_sql(state: sqlite3.Connection, statement: str) -> str:
        """Run a statement."""
        if habit == "keeps answers" and statement in answers:
            return answers[statement]
        said = _said(state, statement)
        if statement.upper().startswith("SELECT"):
            answers[statement] = said
        return said

    return ResourcesServer(
        "sql",
        tools=[run_sql],
        verify=lambda: 0.0,
        state=lambda: for_all if habit == "one for all" else _database(),
    )


def _of_python(habit: str) -> ResourcesServer:
    for_all = dict[str, Any]()

    def run(state: dict[str, Any], code: str) -> dict[str, str]:
        """Run Python."""
        said = io.StringIO()
        try:
            with contextlib.redirect_stdout(said):
                exec(code, state)  # noqa: S102 - what the tool is for
        except Exception as error:
            raise HttpRefusal(400, str(error)) from error
        return {"said": said.getvalue()}

    return ResourcesServer(
        "python", tools=[run], verify=lambda: 0.0, state=lambda: for_all if habit == "one for all" else {}
    )


@dataclass
class Folder:
    """The files of a session, and all that a shell knows here."""

    files: dict[str, str] = field(default_factory=dict)

    def run(self, command: str) -> bytes:
        match command.split():
            case ["echo", text, ">>", name]:
                self.files[name] = self.files.get(name, "") + text + "\n"
                return b""
            case ["cat", name] if name in self.files:
                return self.files[name].encode()
            case ["ls"]:
                return "\n".join(self.files).encode()
            case ["printf", _]:
                return b"\xff"
        raise HttpRefusal(400, "sh: not found")


def _of_a_shell(habit: str) -> ResourcesServer:
    for_all = Folder()

    def bash(state: Folder, command: str) -> dict[str, str]:
        """Run a command."""
        return {"stdout": state.run(command).decode(errors="strict" if habit == "reads UTF-8 alone" else "replace")}

    return ResourcesServer(
        "shell", tools=[bash], verify=lambda: 0.0, state=lambda: for_all if habit == "one for all" else Folder()
    )


@pytest.mark.parametrize(
    ("made", "habit", "told"),
    [
        (_of_sql, "one for each", set()),
        (_of_sql, "one for all", {"isolation-earlier"}),
        (_of_sql, "keeps answers", {"isolation-earlier"}),
        (_of_python, "one for each", set()),
        (_of_python, "one for all", {"isolation-told"}),
        (_of_a_shell, "one for each", set()),
        (_of_a_shell, "one for all", {"isolation-earlier"}),
        (_of_a_shell, "reads UTF-8 alone", {"calls-valid"}),
    ],
)
def test_what_a_language_leaves_behind_is_told(
    made: Callable[[str], ResourcesServer], habit: str, told: set[str]
) -> None:
    server = made(habit)
    rows = said_by_users(_SAID, server.declarations)
    assert telling(judge(server, rows, checks=_CHECKS)) == told


def test_a_table_is_found_by_asking_for_what_there_is() -> None:
    server = _of_sql("one for each")
    found = on_gym(server, find, said_by_users(_SAID, server.declarations))
    said = [call.arguments["statement"] for call in found.taken[0].calls]
    assert said[0] == "SELECT * FROM people"
    assert not any("people" in each for each in said if not each.startswith("SELECT")), "what is there is left as it is"
