"""fixtures/notes_env, made with gym_mocks: what the differential tests compare."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, Field

from gym_mocks.resources import ResourcesServer, SignedCookie, TaskRow

NOTES_ENV = Path(__file__).parents[3] / "fixtures" / "notes_env"

Title = Annotated[str, Field(min_length=1, max_length=40)]


class NotesSeed(BaseModel):
    initial_notes: dict[str, str] = {}


class NotesRow(TaskRow):
    expected_notes: dict[str, str]


class Written(BaseModel):
    length: int


class Read(BaseModel):
    text: str | None


class Listed(BaseModel):
    titles: list[str]


def open_notes(row: NotesSeed) -> dict[str, str]:
    return dict(row.initial_notes)


def write_note(state: dict[str, str], title: Title, text: str, mode: Literal["replace", "append"]) -> Written:
    """Write a note; says how long it is now."""
    state[title] = (state.get(title, "") if mode == "append" else "") + text
    return Written(length=len(state[title]))


def read_note(state: dict[str, str], title: Title) -> Read:
    """Read a note; null where there is none."""
    return Read(text=state.get(title))


def list_notes(state: dict[str, str]) -> Listed:
    """List the titles of all notes."""
    return Listed(titles=sorted(state))


def divide(number: int) -> float:
    """Divide one by a number: the tool that fails."""
    return 1 / number


def verify(state: dict[str, str], row: NotesRow) -> float:
    return float(state == row.expected_notes)


def notes_twin() -> ResourcesServer:
    return ResourcesServer(
        "notes",
        tools=[write_note, read_note, list_notes, divide],
        verify=verify,
        state=open_notes,
        cookie=SignedCookie("NotesResourcesServer___notes"),
    )
