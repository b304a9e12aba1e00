"""Where nobody recorded a rollout, ids, cursors and words are found by asking, as a careful policy would."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

from fastapi import Cookie, Depends, FastAPI, HTTPException, Request, Response

from gym_conformance.contract.dataset_rows import Call, Rollout, Row, Source
from gym_conformance.contract.openapi import ServerKind
from gym_conformance.contract.policy_output import function_call, response
from gym_conformance.dataset import Dataset
from gym_conformance.gym_under_test import Gym
from gym_conformance.scouting.learn import learn, quiet_tools
from gym_conformance.scouting.scout import Scouted, scouted
from gym_conformance.session.channel import Channel
from gym_conformance.trajectories.bounds import with_bounds
from gym_conformance.trajectories.execute import run
from gym_conformance.trajectories.generate import Knowledge
from gym_conformance.trajectories.made_up import bare_reads
from gym_conformance.trajectories.trajectory import Trajectory
from tests.twins.judging import on_gym

_TEXT = {"type": "string"}
_NULLABLE = {"type": ["string", "null"]}


def _tool(name: str, **properties: Any) -> dict[str, Any]:
    parameters = {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }
    return {"type": "function", "name": name, "parameters": parameters}


TOOLS = [
    _tool("annotate", star_id=_TEXT, note=_TEXT),
    _tool("list_stars", near=_NULLABLE, cursor=_NULLABLE),
    _tool("get_star", star_id=_TEXT),
]

_NOTE = _tool("", star_id=_TEXT, note=_TEXT)["parameters"]

#: Takes several notes, and at least one.
ANNOTATES_ALL = _tool("annotate_all", notes={"type": "array", "items": _NOTE})

#: Takes the id of a note, which comes after the ids of stars.
PRINTS = _tool("print_note", note_id=_TEXT)


def _row(tools: list[dict[str, Any]]) -> Row:
    return Row({"responses_create_params": {"input": "Look.", "tools": tools}}, Source(Path("rows.jsonl"), 1))


ROW = _row(TOOLS)


def _print_note(call: dict[str, str]) -> dict[str, Any]:
    if call["note_id"] != "N-1":
        raise HTTPException(404, "there is no such note")
    return {"printed": True}


def _annotate_all(call: dict[str, list[dict[str, str]]]) -> dict[str, Any]:
    if not call["notes"] or call["notes"][0]["star_id"] != "S-1":
        return {"error": "there is no such star"}
    return {"done": True}


def _stars(*, fails: bool = False, says: str = "") -> FastAPI:
    """A catalogue; where it `fails`, it crashes on a note that is no number. It `says` something of each star that it lists."""
    app = FastAPI()
    notes: dict[str, str] = {}

    @app.post("/seed_session")
    def seed(response: Response) -> dict[str, str]:
        notes.clear()
        response.set_cookie("session", "1")
        return {}

    @app.post("/list_stars")
    def list_stars(call: dict[str, str | None]) -> dict[str, Any]:
        if call["cursor"] not in (None, "page-2") or call["near"]:
            raise HTTPException(404, "unknown cursor")
        ids, more = (["S-1", "S-2"], "page-2") if call["cursor"] is None else (["S-3"], None)
        told = dict.fromkeys(("name", "seen", "kind", "light", "place", "note"), says) if says else {}
        return {"stars": [{"id": each, **told} for each in ids], "next_cursor": more}

    @app.post("/get_star")
    def get_star(call: dict[str, str]) -> dict[str, Any]:
        if call.get("star_id") not in ("S-1", "S-2", "S-3"):
            raise HTTPException(404, "there is no such star")
        return {"id": call["star_id"], "note": notes.get(call["star_id"])}

    @app.post("/annotate")
    def annotate(call: dict[str, str]) -> dict[str, Any]:
        if call["star_id"] not in ("S-1", "S-2", "S-3"):
            return {"error": "there is no such star"}
        if fails and not call["note"].isdigit():
            raise HTTPException(500, "invalid literal for int()")
        notes[call["star_id"]] = call["note"]
        return {"done": True, "note_id": "N-1"}

    app.post("/annotate_all")(_annotate_all)
    app.post("/print_note")(_print_note)

    @app.post("/verify")
    def verify(body: dict[str, Any]) -> dict[str, Any]:
        return {**body, "reward": 0.0}

    return app


def test_what_crashes_is_kept_and_words_of_other_tools_are_tried() -> None:
    words = {"get_star": [{"star_id": "S-3"}], "annotate": [{"star_id": "near", "note": "near"}]}

    async def find(gym: Gym) -> Scouted:
        return await scouted(gym, ROW, ROW.tools, {**words, "star_of_night": [{"star_id": "S-3"}]})

    found = on_gym(_stars(fails=True), find, Dataset((ROW,)))
    assert [call.name for call in found.taken.calls] == ["list_stars", "get_star", "list_stars"]
    assert {"star_id": "S-3", "note": "near"} in [each.calls[-1].arguments for each in found.crashing]


def _found(row: Row = ROW, says: str = "") -> tuple[Trajectory, list[int], list[Any]]:
    """What is found, and the statuses and replies of running it again."""

    async def find(gym: Gym) -> tuple[Trajectory, list[int], list[Any]]:
        found = (await scouted(gym, row, row.tools, {})).taken
        outcome = await run(gym, Channel(gym.endpoint), found)
        return found, [step.status for step in outcome.calls], [step.body for step in outcome.calls]

    return on_gym(_stars(says=says), find, Dataset((row,)))


def test_what_is_returned_is_asked_for_within_lists_of_objects() -> None:
    found, statuses, _ = _found(_row([*TOOLS[1:], ANNOTATES_ALL]))
    [noted] = [call.arguments["notes"] for call in found.calls if call.name == "annotate_all"]
    assert [each["note"] for each in noted] == ["text"]
    assert set(statuses) == {200}


def test_a_session_is_found_in_which_every_tool_takes_its_call() -> None:
    found, statuses, replies = _found()
    assert [call.name for call in found.calls] == [
        *("list_stars", "get_star", "annotate"),
        "annotate",  # another star
        "list_stars",  # the next page
        *("list_stars", "get_star"),  # and what was written
    ]
    assert statuses == [200] * 7
    assert replies[4]["stars"] == [{"id": "S-3"}]
    assert replies[-1] == {"id": "S-1", "note": "text"}


def test_what_is_not_said_to_be_required_may_be() -> None:
    look, get = TOOLS[1:]
    lax = {**get, "parameters": {"type": "object", "properties": {"star_id": _TEXT}}}
    found, statuses, _ = _found(_row([look, lax]))
    assert "get_star" in [call.name for call in found.calls]
    assert set(statuses) == {200}


def test_data_that_speaks_of_errors_is_no_refusal() -> None:
    """A list of mails, of which one says that a parcel has not arrived."""
    found, _, _ = _found(says="It is not where it should be: something is wrong.")
    assert [call.name for call in found.calls][:3] == ["list_stars", "get_star", "annotate"]


def test_an_id_is_that_of_its_own_name_where_one_was_returned() -> None:
    found, statuses, _ = _found(_row([*TOOLS, PRINTS]))
    assert "print_note" in [call.name for call in found.calls]
    assert set(statuses) == {200}


def test_no_read_is_made_again_where_nothing_was_written() -> None:
    found, _, _ = _found(_row([_tool("explode", star_id=_TEXT), *TOOLS[1:]]))
    assert [call.name for call in found.calls] == ["list_stars", "get_star", "list_stars"]


def test_a_call_that_works_is_varied_in_one_argument_at_a_time() -> None:
    found, _, _ = _found()
    schedules = with_bounds(Knowledge((ROW,), known_trajectories=(found,)))
    # what the others show comes after each
    names = ["list_stars", "get_star", "annotate"] * 2
    found_so = [one.trajectories[0].calls for one in schedules]
    varied = next(calls for calls in found_so if [call.name for call in calls[:6]] == names)
    for call in (call for call in varied if call.name == "annotate"):
        changed = [key for key, value in found.calls[2].arguments.items() if call.arguments[key] != value]
        assert len(changed) <= 1


def test_what_acts_on_what_was_added_is_done_again_and_an_amount_is_more_than_nothing() -> None:
    app = FastAPI()
    cart: list[int] = []

    @app.post("/seed_session")
    def seed(response: Response) -> dict[str, str]:
        cart.clear()
        response.set_cookie("session", "1")
        return {}

    @app.post("/pay")
    def pay() -> dict[str, int]:
        return {"paid": sum(cart)}

    @app.post("/take")
    def take(body: dict[str, int]) -> dict[str, str]:
        cart.append(body["amount"])
        return {"taken": "yes"}

    row = _row([_tool("pay"), _tool("take", amount={"type": "integer"})])

    async def find(gym: Gym) -> Scouted:
        return await scouted(gym, row, row.tools, {})

    found = on_gym(app, find, Dataset((row,)))
    assert found.taken.calls == (Call("pay", {}), Call("take", {"amount": 1}), Call("pay", {}))


def test_what_was_added_is_taken_away_and_added_again_and_the_end_comes_last() -> None:
    app = FastAPI()
    notes: dict[int, str] = {}
    closed = list[bool]()

    @app.post("/seed_session")
    def seed(response: Response) -> dict[str, str]:
        notes.clear()
        closed.clear()
        response.set_cookie("session", "1")
        return {}

    @app.post("/add_note")
    def add_note(body: dict[str, str]) -> dict[str, int]:
        if closed:
            raise HTTPException(409)
        notes[len(notes) + 1] = body["text"]
        return {"note": len(notes)}

    @app.post("/withdraw_note")
    def withdraw_note(body: dict[str, int]) -> dict[str, str]:
        if closed or body["note"] not in notes:
            raise HTTPException(404)
        return {"withdrawn": notes.pop(body["note"])}

    @app.post("/submit_notes")
    def submit_notes() -> dict[str, int]:
        closed.append(True)
        return {"submitted": len(notes)}

    row = _row([_tool("submit_notes"), _tool("withdraw_note", note={"type": "integer"}), _tool("add_note", text=_TEXT)])

    async def find(gym: Gym) -> Scouted:
        return await scouted(gym, row, row.tools, {})

    found = on_gym(app, find, Dataset((row,)))
    assert [call.name for call in found.taken.calls] == ["add_note", "withdraw_note", "add_note"]
    assert [[call.name for call in one.calls][-1] for one in found.ended] == ["submit_notes"]


def test_a_tool_whose_name_says_nothing_reads_where_nothing_changes_without_it() -> None:
    app, booked = FastAPI(), list[list[str]]()

    @app.post("/seed_session")
    def seed(response: Response) -> dict[str, str]:
        booked.append([])
        response.set_cookie("session", str(len(booked) - 1))
        return {}

    def mine(response: Response, session: Annotated[str, Cookie()]) -> list[str]:
        response.set_cookie("session", session)
        return booked[int(session)]

    @app.post("/book")
    def book(body: dict[str, str], own: Annotated[list[str], Depends(mine)]) -> int:
        own.append(body["title"])
        return len(own)

    @app.post("/agenda")
    def agenda(own: Annotated[list[str], Depends(mine)]) -> list[str]:
        return own

    @app.post("/strike")
    def strike(body: dict[str, str], own: Annotated[list[str], Depends(mine)]) -> dict[str, str]:
        if body["title"] not in own:
            raise HTTPException(404, "there is no such title")
        own.remove(body["title"])
        return {"struck": body["title"], "was": "booked"}

    @app.post("/bell")
    def bell() -> dict[str, bool]:
        return {"rung": True}

    @app.post("/verify")
    def verify() -> dict[str, float]:
        return {"reward": 0.0}

    row = _row([_tool("book", title=_TEXT), _tool("agenda"), _tool("strike", title=_TEXT), _tool("bell")])
    calls = (
        *(Call("agenda", {}), Call("book", {"title": "one"}), Call("agenda", {}), Call("book", {"title": "two"})),
        *(Call("agenda", {}), Call("strike", {"title": "two"}), Call("bell", {})),
    )

    async def learned(gym: Gym) -> Knowledge:
        return Knowledge((row,), quiet=await quiet_tools(gym, [Trajectory(row, calls)]))

    knowledge = on_gym(app, learned, Dataset((row,)))
    asked = ("agenda", "book", "list_stars", "strike", "bell")
    assert [knowledge.reads(name) for name in asked] == [True, False, True, False, False]


def test_calls_that_are_written_and_never_made_read_nothing() -> None:
    app = FastAPI()

    @app.post("/seed_session")
    def seed() -> dict[str, str]:
        return {}

    @app.post("/verify")
    def verify() -> dict[str, float]:
        return {"reward": 1.0}

    row = _row([_tool("book", title=_TEXT), _tool("agenda")])
    turns = [("book", {"title": "one"}), ("agenda", {}), ("book", {"title": "two"})]
    output = [function_call(name, json.dumps(said), f"call_{at}") for at, (name, said) in enumerate(turns)]
    rollout = Rollout({**row.data, "response": response(output), "reward": 1.0}, row.source)

    async def learned(gym: Gym) -> Knowledge:
        assert gym.kind is ServerKind.SINGLE_TURN
        return await learn(gym)

    knowledge = on_gym(app, learned, Dataset((row,), (rollout,)))
    assert len(knowledge.known_trajectories[0].calls) == len(turns)
    assert knowledge.quiet == frozenset()


def test_a_read_that_may_be_told_nothing_is_bare() -> None:
    assert [(call.name, call.arguments) for call in bare_reads(ROW)] == [("list_stars", {"near": None, "cursor": None})]


def test_a_tool_that_does_not_take_an_enum_s_first_member_now_is_asked_for_the_others() -> None:
    """As a rule of logic, which fits some lines only; a list of numbers has one."""
    app = FastAPI()

    @app.post("/seed_session")
    def seed(response: Response) -> dict[str, str]:
        response.set_cookie("session", "1")
        return {}

    @app.post("/derive")
    def derive(body: dict[str, Any]) -> dict[str, str]:
        if body != {"rule": "left", "lines": [1]}:
            raise HTTPException(400, "this rule does not fit these lines")
        return {"line": "p"}

    rule, lines = {"type": "string", "enum": ["both", "left", "right"]}, {"type": "array", "items": {"type": "integer"}}
    row = _row([_tool("derive", rule=rule, lines=lines)])

    async def find(gym: Gym) -> Scouted:
        return await scouted(gym, row, row.tools, {})

    found = on_gym(app, find, Dataset((row,)))
    assert found.taken.calls == (Call("derive", {"rule": "left", "lines": [1]}),)


def _stamps() -> FastAPI:
    """An album of one stamp, which can be swapped until it is sold."""
    app, sold = FastAPI(), set[int]()

    @app.post("/seed_session")
    def seed(response: Response) -> dict[str, str]:
        sold.clear()
        response.set_cookie("session", "1")
        return {}

    @app.post("/sell")
    @app.post("/swap")
    def act(call: dict[str, Any], request: Request) -> dict[str, Any]:
        if call["stamp"] != "Z7" or sold:
            raise HTTPException(404, "there is no such stamp")
        sold.update([7] if request.url.path == "/sell" else [])
        return {"done": True}

    @app.post("/verify")
    def verify(body: dict[str, Any]) -> dict[str, Any]:
        return {**body, "reward": 0.0}

    return app


def test_a_tool_that_took_nothing_in_one_session_comes_first_in_the_next() -> None:
    tools = [_tool("sell", stamp=_TEXT), _tool("swap", stamp=_TEXT)]
    rows = tuple(replace(_row(tools), data={**_row(tools).data, "stamp": "Z7", "task": task}) for task in range(2))

    async def find(gym: Gym) -> list[list[str]]:
        return [[call.name for call in each.calls] for each in (await learn(gym)).known_trajectories]

    assert on_gym(_stamps(), find, Dataset(rows)) == [["sell"], ["swap", "sell"]]
