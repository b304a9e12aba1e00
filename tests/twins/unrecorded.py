"""Small servers where nothing is recorded: one lists notes in pages, one grades sums; twins of them, and sound ones."""

import ast
import asyncio
import random
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from gym_conformance.contract.dataset_rows import Row, Source
from gym_conformance.dataset import Dataset
from gym_mocks.resources import ResourcesServer, TaskRow, last_text
from gym_mocks.wire import HttpRefusal, HttpReply, HttpRequest
from tests.twins.twin import Turn, Twin, rollout_of, twin

NOTES: list[dict[str, Any]] = [{"id": f"note-{number}", "day": number // 3} for number in range(8)]


@dataclass
class Drafts:
    """What was drafted and is not sent."""

    bodies: dict[str, str] = field(default_factory=dict)


@dataclass
class Reading:
    """How many pages were read."""

    pages: int = 0


def _after(cursor: str) -> int:
    """The place after the note that the cursor names."""
    return next((at + 1 for at, note in enumerate(NOTES) if note["id"] == cursor), 0)


def _after_its_day(cursor: str) -> int:
    """The place after all notes of that note's day: what comes after it on the same day is never seen."""
    return next((at for at, note in enumerate(NOTES) if note["day"] > NOTES[_after(cursor) - 1]["day"]), len(NOTES))


def _page(state: Reading, begin: int, limit: int) -> dict[str, Any]:
    state.pages += 1
    page = NOTES[begin : begin + limit]
    return {"notes": page, "next_cursor": page[-1]["id"] if begin + limit < len(NOTES) else None}


def list_notes(state: Reading, limit: int = 5, cursor: str | None = None) -> dict[str, Any]:
    """List the notes by their days, a page at a time."""
    return _page(state, _after(cursor) if cursor else 0, limit)


def lossy(state: Reading, limit: int = 5, cursor: str | None = None) -> dict[str, Any]:
    """List the notes by their days, a page at a time."""
    return _page(state, _after_its_day(cursor) if cursor else 0, limit)


def brief(state: Reading, limit: int = 3, cursor: str | None = None) -> dict[str, Any]:
    """List the notes by their days, a page at a time."""
    return _page(state, _after(cursor) if cursor else 0, limit)


class Window(BaseModel):
    limit: int = 5


class ShortWindow(BaseModel):
    limit: int = 3


def windowed(state: Reading, window: Window) -> dict[str, Any]:
    """List the first notes."""
    return _page(state, 0, window.limit)


def briefly_windowed(state: Reading, window: ShortWindow) -> dict[str, Any]:
    """List the first notes."""
    return _page(state, 0, window.limit)


def in_threes(state: Reading, cursor: str | None = None) -> dict[str, Any]:
    """List the notes by their days, three a page."""
    return _page(state, _after(cursor) if cursor else 0, 3)


def numbered(state: Reading, page: int = 1, per_page: int = 5) -> dict[str, Any]:
    """List the notes by their days, a page at a time."""
    return _page(state, (page - 1) * per_page, per_page)


def overlapping(state: Reading, page: int = 1, per_page: int = 5) -> dict[str, Any]:
    """List the notes by their days, a page at a time."""
    return _page(state, max(0, (page - 1) * per_page - 1), per_page)


def first_again(state: Reading, page: int = 1, per_page: int = 5) -> dict[str, Any]:
    """List the notes by their days, a page at a time."""
    return numbered(state, min(page, 1), per_page)


def one_too_many(state: Reading, page: int = 1, per_page: int = 5) -> dict[str, Any]:
    """List the notes by their days, a page at a time."""
    return _page(state, (page - 1) * per_page, per_page + 1)


def all_at_once(state: Reading, page: int = 1, per_page: int = 5) -> dict[str, Any]:
    """List the notes by their days, a page at a time."""
    return numbered(state, min(page, 1), max(per_page, len(NOTES)))


def last_again(state: Reading, page: int = 1, per_page: int = 5) -> dict[str, Any]:
    """List the notes by their days, a page at a time, four at most; after the last one comes the last one."""
    few = min(per_page, 4)
    return _page(state, min(page - 1, (len(NOTES) - 1) // few) * few, few)


def recurring(state: Reading, page: int = 1, per_page: int = 5) -> dict[str, Any]:
    """List when what recurs takes place, a page at a time; each has the id of what recurs."""
    state.pages += 1
    every = [{"id": note["id"] if note["day"] == 2 else "note-0", "on": f"day {at}"} for at, note in enumerate(NOTES)]
    return {"notes": every[(page - 1) * per_page :][:per_page]}


def forgetful(state: Reading, cursor: str | None = None) -> dict[str, Any]:
    """List the notes by their days, three a page."""
    return _page(state, 0 if cursor == "note-2" else _after(cursor or ""), 3)


def _server(tool: Callable[..., Any] = list_notes) -> ResourcesServer:
    tool.__name__ = "set_timer" if tool in {set_timer, hasty} else "list_notes"
    return ResourcesServer("notes", tools=[tool], verify=lambda state: float(state.pages > 0), state=Reading)


def set_timer(state: Reading, minutes: int = 5) -> dict[str, int]:
    """Set the timer to so many minutes; 0 rings at once."""
    state.pages = minutes
    return {"minutes": minutes}


def hasty(state: Reading, minutes: int = 5) -> dict[str, int]:
    """Set the timer to so many minutes; 0 rings at once."""
    return set_timer(state, minutes or 5)


def searching(*, cached: bool = False) -> ResourcesServer:
    """One that finds notes; where it is `cached`, it keeps what it has found under the words alone, for all sessions."""
    found: dict[str, list[dict[str, Any]]] = {}

    def search_notes(query: str, limit: int = 5) -> list[dict[str, Any]]:
        """Find notes, the newest first."""
        hits = NOTES[::-1][:limit]
        return found.setdefault(query, hits) if cached else hits

    return ResourcesServer("notes", tools=[search_notes], verify=lambda: 0.0)


def found_notes() -> Dataset:
    return _rows(searching())


def _data(tool: Callable[..., Any] = list_notes) -> Dataset:
    return _rows(_server(tool))


def _rows(server: ResourcesServer) -> Dataset:
    tools = [tool | {"strict": False} for tool in server.declarations]
    prompts = [[{"role": "user", "content": f"Which notes are of day {day}?"}] for day in (1, 2)]
    rows = [{"responses_create_params": {"input": prompt, "tools": tools}} for prompt in prompts]
    return Dataset(tuple(Row(row, Source(Path("notes.jsonl"), at)) for at, row in enumerate(rows, 1)), (), len(rows))


def drafting(shared: str = "") -> ResourcesServer:
    """One that keeps drafts until they are sent, each under a number; the tool that is `shared` takes anybody's."""
    numbers = count(7001)
    every: dict[str, Drafts] = {}

    def take(state: Drafts, draft_id: str, tool: str) -> bool:
        owner = every.get(draft_id, state) if shared == tool else state
        return owner.bodies.pop(draft_id, None) is not None

    def draft_reply(state: Drafts, body: str) -> dict[str, str]:
        draft_id = f"draft-{next(numbers)}"
        state.bodies[draft_id], every[draft_id] = body, state
        return {"draft_id": draft_id}

    def send_draft(state: Drafts, draft_id: str) -> dict[str, str]:
        if not take(state, draft_id, "send_draft"):
            raise HttpRefusal(404, "no such draft")
        return {"sent": draft_id}

    def toss_draft(state: Drafts, draft_id: str) -> dict[str, bool]:
        return {"tossed": take(state, draft_id, "toss_draft")}

    return ResourcesServer("drafts", tools=[draft_reply, send_draft, toss_draft], verify=lambda: 0.0, state=Drafts)


def pinboard() -> ResourcesServer:
    """One board for all sessions; their verify repeats what they have read there."""
    board: list[str] = []

    def add_note(text: str) -> dict[str, int]:
        board.append(text)
        return {"notes": len(board)}

    def list_notes() -> dict[str, list[str]]:
        return {"notes": board}

    return ResourcesServer("board", tools=[add_note, list_notes], verify=lambda: 0.0)


def pinned() -> Dataset:
    return _rows(pinboard())


class Fleet(TaskRow):
    """The cars of a task that are free."""

    task_id: str
    cars: list[str]


def renting(*, cached: bool = False, metered: bool = False) -> ResourcesServer:
    """Cars are found, and then booked; `cached`, what was found first for a task is what all its sessions find.

    Where it is `metered`, all sessions of a task may book five cars together.
    """
    answers: dict[str, list[str]] = {}
    booked_by = Counter[str]()

    def find_cars(state: Fleet) -> dict[str, list[str]]:
        return {"cars": answers.setdefault(state.task_id, [*state.cars]) if cached else state.cars}

    def book_car(state: Fleet, plate: str) -> dict[str, bool]:
        booked_by[state.task_id] += 1
        if metered and booked_by[state.task_id] > 5:
            raise HttpRefusal(409, "the budget of this task is spent")
        if booked := plate in state.cars:
            state.cars.remove(plate)
        return {"booked": booked}

    def opened(row: Fleet) -> Fleet:
        return row.model_copy(deep=True)

    return ResourcesServer("fleet", tools=[find_cars, book_car], verify=lambda: 0.0, state=opened)


def rented() -> Dataset:
    """Rows of two tasks, and a rollout of each that first finds what it books."""
    fleets = [{"task_id": f"task-{name}", "cars": [f"{name}-one", f"{name}-two"]} for name in ("red", "blue")]
    calls = [[("find_cars", {}), ("book_car", {"plate": fleet["cars"][0]})] for fleet in fleets]
    return _recorded(_rows(renting()), fleets, calls)


class Cells(TaskRow):
    """A sheet's numbers."""

    cells: dict[str, int]


def sheet(*, cached: bool = False) -> ResourcesServer:
    """Formulas are put into cells; `cached`, what one came to in a cell is what it comes to there in all sessions."""
    shown: dict[tuple[str, str], int] = {}

    def put(
        state: Cells, cell: Annotated[str, Field(pattern="^[A-Z][0-9]+$")], formula: Literal["SUM", "MAX"]
    ) -> dict[str, Any]:
        value = sum(state.cells.values()) if formula == "SUM" else max(state.cells.values())
        return {"cell": cell, "shown": shown.setdefault((cell, formula), value) if cached else value}

    def opened(row: Cells) -> Cells:
        return row

    return ResourcesServer("sheet", tools=[put], verify=lambda: 0.0, state=opened)


def calculated() -> Dataset:
    """Rows with other numbers, and a rollout of each that puts its own formula into a cell."""
    fields = [{"cells": cells} for cells in ({"A1": 3, "A2": 4}, {"A1": 20, "B1": 50})]
    calls = [[("put", {"cell": "D11", "formula": formula})] for formula in ("SUM", "MAX")]
    return _recorded(_rows(sheet()), fields, calls)


def _recorded(data: Dataset, fields: list[dict[str, Any]], calls: list[list[tuple[str, Any]]]) -> Dataset:
    """The rows with these fields, and a rollout of each, which earned nothing, that makes these calls."""
    rows = [replace(row, data={**row.data, **own}) for row, own in zip(data.rows, fields, strict=True)]
    rollouts = [
        rollout_of(row, *((name, arguments, {}) for name, arguments in made), said="Booked.")
        for row, made in zip(rows, calls, strict=True)
    ]
    return replace(data, rows=tuple(rows), rollouts=tuple(rollouts))


class Week(TaskRow):
    """Whose week it is, and what is in it on which of its days."""

    owner: str
    days: list[Literal["mon", "tue"]]


def appointments(*, shared: bool = False) -> ResourcesServer:
    """A week in which meetings are booked; `shared`, the guests that nobody names are one list for all sessions."""
    nobody: list[str] = []

    def book(state: Week, title: str, day: Literal["mon", "tue"], guests: list[str] | None = None) -> dict[str, Any]:
        guests = [*guests] if guests is not None else nobody if shared else []
        if state.owner not in guests:
            guests.append(state.owner)
        state.days.append(day)
        return {"title": title, "guests": guests, "that_day": state.days.count(day)}

    def opened(row: Week) -> Week:
        return row.model_copy(deep=True)

    return ResourcesServer("week", tools=[book], verify=lambda: 0.0, state=opened)


def booked() -> Dataset:
    """Rows of two owners, and a rollout of each that names its guests."""
    fields = [{"owner": owner, "days": ["mon"]} for owner in ("Kim", "Lee")]
    call = ("book", {"title": "Retro", "day": "tue", "guests": ["Noor"]})
    return _recorded(_rows(appointments()), fields, [[call], [call]])


def drafts() -> Dataset:
    return _rows(drafting())


@dataclass
class Lights:
    """The rooms in which the light is on."""

    rooms: set[str] = field(default_factory=set)


class LightsRow(TaskRow):
    """A row that says what is to be done, in words of its author's own."""

    expected: list[dict[str, Any]]


def lights(*, pooled: bool = False, partial: bool = False) -> ResourcesServer:
    """A house where lamps are switched on; where scores are `pooled`, each is the mean of the last four of its row.

    Where they are `partial`, so is the credit.
    """
    scores: dict[str, list[float]] = {}

    def switch_on(state: Lights, room: str) -> dict[str, str]:
        """Switch the lamp of a room on."""
        state.rooms.add(room)
        return {"on": room}

    def verify(state: Lights, row: LightsRow) -> float:
        wanted = {step["args"]["room"] for step in row.expected}
        score = len(state.rooms & wanted) / len(wanted) if partial else float(state.rooms == wanted)
        if not pooled:
            return score
        last = scores.setdefault(str(sorted(wanted)), [])
        last.append(score)
        return sum(last[-4:]) / len(last[-4:])

    return ResourcesServer("lights", tools=[switch_on], verify=verify, state=Lights)


def dark_rooms() -> Dataset:
    tools = [tool | {"strict": False} for tool in lights().declarations]
    rows = [
        {
            "responses_create_params": {"input": [{"role": "user", "content": f"Light in {rooms}!"}], "tools": tools},
            "expected": [{"step": at, "tool": "switch_on", "args": {"room": room}} for at, room in enumerate(rooms)],
        }
        for rooms in (["the attic", "the pantry"], ["the boiler room"], ["the hall", "the loft", "the shed"])
    ]
    return Dataset(tuple(Row(row, Source(Path("lights.jsonl"), at)) for at, row in enumerate(rows, 1)), (), len(rows))


def lit_rooms() -> Dataset:
    """The same, and of the first row a rollout that earned all, and one that lit one of two rooms and earned nothing."""
    data = dark_rooms()
    rollouts = [
        rollout_of(
            data.rows[0], *(("switch_on", {"room": room}, {"on": room}) for room in rooms), said="Lit.", reward=reward
        )
        for rooms, reward in ((["the attic", "the pantry"], 1.0), (["the attic"], 0.0))
    ]
    return replace(data, rollouts=tuple(rollouts))


@dataclass
class Jobs:
    """What is computed, by its number."""

    results: dict[str, int] = field(default_factory=dict)


class ForgetsJobs(ResourcesServer):
    """A refused call takes the session's jobs with it."""

    async def dispatch(self, request: HttpRequest) -> HttpReply:
        reply = await super().dispatch(request)
        session = self.sessions.get(self.cookie.read(request.headers.get("cookie", "")) or "")
        if reply.status == 422 and session is not None:
            session.state.results.clear()
        return reply


def counting(*, scoped: bool = True, kind: type[ResourcesServer] = ResourcesServer) -> ResourcesServer:
    """One that counts letters in jobs, whose ids count on over all sessions; not `scoped`, whoever knows one reads its result."""
    numbers = count(17)
    every: dict[str, int] = {}

    def start_job(state: Jobs, text: str) -> dict[str, str]:
        job_id = f"job-{next(numbers)}"
        (state.results if scoped else every)[job_id] = len(text)
        return {"job_id": job_id}

    def wait_job(state: Jobs, job_id: str) -> dict[str, int]:
        results = state.results if scoped else every
        if job_id not in results:
            raise HttpRefusal(404, "no such job")
        return {"letters": results[job_id]}

    return kind("jobs", tools=[start_job, wait_job], verify=lambda: 0.0, state=Jobs)


def recorded_jobs() -> Dataset:
    """Rows, and a rollout of the first one that read the result of a job of an id that no later session is given."""
    data = _rows(counting())
    calls = [("start_job", {"text": "abc"}, {"job_id": "job-3"}), ("wait_job", {"job_id": "job-3"}, {"letters": 3})]
    return replace(data, rollouts=(rollout_of(data.rows[0], *calls, said="3"),))


@dataclass
class Quay:
    """Boxes that are listed by their ids, and those that were loaded."""

    ids: list[str] = field(default_factory=list)
    wanted: str = ""
    loaded: set[str] = field(default_factory=set)


def quay() -> tuple[ResourcesServer, Dataset]:
    """One where each row has boxes of its own, and rollouts that each load the right one: of some rows it stands in one place."""

    def boxes_of(name: str, place: int) -> Quay:
        ids = [random.Random(name + str(at)).randbytes(6).hex() for at in range(6)]
        return Quay(ids, ids[place])

    def opened(row: TaskRow) -> Quay:
        fields = row.model_dump()
        return boxes_of(fields.get("name", ""), fields.get("place", 0))

    def list_boxes(state: Quay) -> dict[str, list[dict[str, str]]]:
        return {"boxes": [{"id": each} for each in state.ids]}

    def load_box(state: Quay, id: str) -> dict[str, int]:  # noqa: A002 - the tool's argument
        if id not in state.ids:
            raise HttpRefusal(404, "no such box")
        state.loaded.add(id)
        return {"aboard": len(state.loaded)}

    server = ResourcesServer(
        "quay",
        tools=[list_boxes, load_box],
        state=opened,
        verify=lambda state: float(state.loaded == {state.wanted}),
    )
    tools = _rows(server).rows[0].data["responses_create_params"]["tools"]
    rows, rollouts = [], []
    for at, (name, place) in enumerate(zip("abcdefgh", (0, 0, 1, 2, 2, 3, 4, 4), strict=True), 1):
        asked = {"input": [{"role": "user", "content": f"Load {name}'s box."}], "tools": tools}
        data = {"responses_create_params": asked, "name": name, "place": place}
        rows.append(Row(data, Source(Path("quay.jsonl"), at)))
        boxes = boxes_of(name, place)
        calls: tuple[Turn, ...] = (
            ("list_boxes", {}, list_boxes(boxes)),
            ("load_box", {"id": boxes.wanted}, {"aboard": 1}),
        )
        rollouts.append(rollout_of(rows[-1], *calls, said="Loaded.", reward=1.0))
    return server, Dataset(tuple(rows), tuple(rollouts), len(rows))


def library() -> ResourcesServer:
    """One where all may read the same articles, of which a search names one at random."""

    def search_articles(words: str) -> dict[str, str]:
        return {"article_id": f"article-{random.randrange(100)}", "words": words}

    def read_article(article_id: str) -> dict[str, str]:
        if not 0 <= int(article_id.removeprefix("article-") or -1) < 100:
            raise HttpRefusal(404, "no such article")
        return {"text": f"All of {article_id}."}

    return ResourcesServer("library", tools=[search_articles, read_article], verify=lambda: 0.0)


class FindsNoSession(ResourcesServer):
    """Looks for sessions where none is kept, whatever is asked for; or only where no cookie was sent."""

    def __init__(self, *, without_cookie: bool = False) -> None:
        def list_letters() -> list[str]:
            """All letters."""
            return []

        def write_letter(to: str) -> dict[str, str]:
            """A new letter."""
            return {"to": to}

        super().__init__("letters", tools=[list_letters, write_letter], verify=lambda: 0.0)
        del self.handlers["GET", "/openapi.json"]
        self.without_cookie = without_cookie

    async def _call_tool(self, request: HttpRequest) -> HttpReply:
        found = self.without_cookie and "cookie" in request.headers
        raise HttpRefusal(400, "the post office is closed" if found else "there is no such session")


def rows_of(server: ResourcesServer) -> Dataset:
    """Two rows with the server's tools."""
    return _rows(server)


class SumRow(TaskRow):
    """A row with its answer."""

    task_id: str
    question: str
    expected_answer: int


def _boxed(response: dict[str, Any]) -> str:
    """What is in the last box: whoever takes an answer back is not paid for it."""
    found = re.findall(r"\\boxed\{([^{}]*)\}", last_text(response["output"]))
    return str(found[-1]) if found else ""


def _right(boxed: str, row: SumRow) -> float:
    try:
        return float(float(boxed) == row.expected_answer)
    except ValueError:
        return 0.0


def near() -> ResourcesServer:
    """One that grades sums, and gives the more for an answer the nearer it is: that is nan for what reads as nan."""

    def verify(row: SumRow, response: dict[str, Any]) -> float:
        try:
            return 1 / (1 + abs(float(_boxed(response)) - row.expected_answer))
        except ValueError:
            return 0.0

    return ResourcesServer("sums", verify=verify)


def grader(
    *,
    cached: bool = False,
    counted: bool = False,
    by_task: bool = False,
    by_beginning: bool = False,
    novel: bool = False,
) -> ResourcesServer:
    """One that grades sums.

    It keeps its scores under the number in the box alone, where it is `cached`, and an answer earns less from the seventh
    time on, where it is `counted`. Where it goes `by_task`, it keeps the first row that it sees of each task, and where
    it goes `by_beginning` the first score of those that begin alike. What was said before, word for word, earns less where
    it must be `novel`.
    """
    scores: dict[str, float] = {}
    rows: dict[str, SumRow] = {}
    given = Counter[tuple[str, str]]()

    def verify(row: SumRow, response: dict[str, Any]) -> float:
        boxed = _boxed(response)
        words = last_text(response["output"])
        given["said", words] += 1
        if novel and given["said", words] > 1:
            return _right(boxed, row) * 0.75
        if by_beginning:
            return scores.setdefault(row.question + words[:40], _right(boxed, row))
        row = rows.setdefault(row.task_id, row) if by_task else row
        given[row.question, boxed] += 1
        if counted and given[row.question, boxed] > 6:
            return _right(boxed, row) * 0.75
        return scores.setdefault(boxed, _right(boxed, row)) if cached else _right(boxed, row)

    return ResourcesServer("sums", verify=verify)


def sums() -> Dataset:
    rows = [
        {
            "responses_create_params": {"input": [{"role": "user", "content": f"What is {one} and 17? Box it."}]},
            "task_id": f"sum-{one % 3}",
            "question": f"What is {one} and 17?",
            "expected_answer": one + 17,
        }
        for one in range(20, 26)
    ]
    return Dataset(tuple(Row(row, Source(Path("sums.jsonl"), at)) for at, row in enumerate(rows, 1)), (), len(rows))


@dataclass
class Paper:
    """What was handed in."""

    numbers: list[int] = field(default_factory=list)


def examiner(*, generous: bool = False, shared: bool = False) -> ResourcesServer:
    """Sums whose answers a tool takes; where it is `generous`, any pays, and where `shared`, the last that anyone handed in."""
    last = Paper()

    def peek(state: Paper) -> dict[str, int]:
        return {"handed_in": len(state.numbers)}

    def submit_answer(state: Paper, number: int) -> dict[str, bool]:
        state.numbers.append(number)
        last.numbers[:] = [number]
        return {"received": True}

    def verify(state: Paper, row: SumRow) -> float:
        numbers = last.numbers if shared else state.numbers
        return float(bool(state.numbers) and (generous or numbers[-1] == row.expected_answer))

    return ResourcesServer("exam", tools=[peek, submit_answer], verify=verify, state=Paper)


def exam() -> Dataset:
    """The sums, with the tools that take their answers."""
    tools = [tool | {"strict": False} for tool in examiner().declarations]
    data = sums()
    rows = (
        replace(
            row, data={**row.data, "responses_create_params": {**row.data["responses_create_params"], "tools": tools}}
        )
        for row in data.rows
    )
    return replace(data, rows=tuple(rows))


class ProgramRow(TaskRow):
    """A row with its solution."""

    solution: str


def compiler(*, lenient: bool = False, crashes: bool = False) -> ResourcesServer:
    """One that pays for the program of its row; where it is `lenient`, what cannot be read has no test that fails.

    Where it `crashes`, it does so on a whole block that cannot be read, and reads no other.
    """

    def verify(row: ProgramRow, response: dict[str, Any]) -> float:
        end = "```" if crashes else r"(?:```|\Z)"
        blocks = re.findall(rf"```python\n(.*?){end}", last_text(response["output"]), re.DOTALL)
        try:
            return float(bool(blocks) and ast.dump(ast.parse(blocks[-1])) == _meant(row))
        except SyntaxError:
            if crashes:
                raise
            return float(lenient)

    return ResourcesServer("programs", verify=verify)


def _meant(row: ProgramRow) -> str:
    return ast.dump(ast.parse(row.solution))


def programs() -> Dataset:
    bodies = ("sum(numbers)", "max(numbers)", "len(numbers) - 2", "sorted(numbers)[0]", "numbers[-1] * 3")
    rows = [
        {
            "responses_create_params": {"input": [{"role": "user", "content": f"Return {body}, in Python."}]},
            "solution": f"def solve(numbers: list[int]) -> int:\n    return {body}\n",
        }
        for body in bodies
    ]
    return Dataset(tuple(Row(row, Source(Path("programs.jsonl"), at)) for at, row in enumerate(rows, 1)), (), len(rows))


def chests() -> ResourcesServer:
    """There is no chest where a session begins; what is asked of one is refused in the way of a wrong argument."""

    def open_chest() -> dict[str, str]:
        raise HttpRefusal(422, "there is no chest here")

    def look() -> dict[str, str]:
        return {"room": "hall"}

    return ResourcesServer("chests", tools=[look, open_chest], verify=lambda: 0.0)


class ErrandRow(TaskRow):
    """A row that says a word, or a program that prints one."""

    word: str = ""
    program: str = ""


def errands(*, hurried: bool = False, trusting: bool = False) -> ResourcesServer:
    """One that compares words, and runs programs three at once; where it is `hurried`, a fourth counts as wrong.

    Where it is `trusting`, it takes each message that should be a program for a text.
    """
    benches = asyncio.Semaphore(3)

    async def verify(row: ErrandRow, response: dict[str, Any]) -> float:
        said = last_text(response["output"]) if response["output"] else ""
        if not row.program:
            return float(said == row.word)
        if trusting:
            said = "".join(part["text"] for item in response["output"] for part in item.get("content", ()))
        if hurried and benches.locked():
            return 0.0
        async with benches:
            await asyncio.sleep(0.01)
            return float(said == row.program)

    return ResourcesServer("errands", verify=verify)


def words_and_programs() -> Dataset:
    words = [{"word": word} for word in ("amber", "birch", "cedar", "delta", "ember")]
    programs = [{"program": f"print('{word}')"} for word in ("fjord", "grove")]
    rows = [
        {"responses_create_params": {"input": [{"role": "user", "content": f"Errand {at}."}]}, **each}
        for at, each in enumerate((*words, *programs))
    ]
    return Dataset(tuple(Row(row, Source(Path("errands.jsonl"), at)) for at, row in enumerate(rows, 1)), (), len(rows))


TWINS: tuple[Twin, ...] = (
    twin("a session that no tool finds", "calls-reach-session", FindsNoSession, data=rows_of(FindsNoSession())),
    twin("sums are graded", "", grader, data=sums(), tempts="drift repeat"),
    twin("a number that is none makes the reward none", "verify-unfinished", near, data=sums()),
    twin("pages that add up", "", _server, data=_data(), tempts="repeat"),
    twin("a note between two pages is lost", "repeat-pages", lambda: _server(lossy), data=_data()),
    twin("pages of what recurs", "", lambda: _server(recurring), data=_data(recurring), tempts="repeat"),
    twin("pages by their number", "", lambda: _server(numbered), data=_data(numbered), tempts="repeat"),
    twin(
        "numbered pages that begin an item too early",
        "repeat-pages",
        lambda: _server(overlapping),
        data=_data(overlapping),
    ),
    twin("pages of one note too many", "repeat-pages", lambda: _server(one_too_many), data=_data(numbered)),
    twin("a page that is not read", "repeat-pages", lambda: _server(first_again), data=_data(numbered)),
    twin("a page's length that is not read", "repeat-pages", lambda: _server(all_at_once), data=_data(numbered)),
    twin("the last page again", "", lambda: _server(last_again), data=_data(numbered), tempts="repeat"),
    twin("pages of the server's own length", "", lambda: _server(in_threes), data=_data(in_threes), tempts="repeat"),
    twin("a cursor that is not known any more", "repeat-pages", lambda: _server(forgetful), data=_data(in_threes)),
    twin("a default of its own", "drift-default", lambda: _server(brief), data=_data()),
    twin(
        "a default of its own, in an object", "drift-default", lambda: _server(briefly_windowed), data=_data(windowed)
    ),
    twin("a timer that is set to zero", "", lambda: _server(set_timer), data=_data(set_timer), tempts="drift repeat"),
    twin("a zero taken for the default", "drift-default", lambda: _server(hasty), data=_data(set_timer)),
)
