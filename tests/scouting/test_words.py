"""A server that looks things up is reached by the names that its rows know, where nobody recorded a rollout."""

from collections.abc import Mapping
from pathlib import Path

from fastapi import FastAPI, HTTPException, Response

from gym_conformance.contract.dataset_rows import Row, Source
from gym_conformance.dataset import Dataset
from gym_conformance.gym_under_test import Gym
from gym_conformance.scouting.words import known_arguments, words_of
from tests.twins.judging import on_gym

_LEND = {
    "type": "function",
    "name": "lend",
    "parameters": {
        "type": "object",
        "properties": {"title": {"type": "string"}, "shelf": {"enum": ["old", "new"]}},
        "required": ["title", "shelf"],
    },
}


def _row(**fields: object) -> Row:
    params = {"input": [{"role": "user", "content": 'Lend me "War and Peace", and then Emma.'}], "tools": [_LEND]}
    return Row({"responses_create_params": params, **fields}, Source(Path("rows.jsonl"), 1))


_MOVE = {
    "type": "function",
    "name": "move",
    "parameters": {
        "type": "object",
        "properties": {"to": {"type": "string", "pattern": "^[a-h][1-8]$"}},
        "required": ["to"],
    },
}


def _library() -> FastAPI:
    app = FastAPI()

    @app.post("/move")
    def move(call: dict[str, str]) -> dict[str, bool]:
        return {"moved": call["to"] == "b3"}

    @app.post("/seed_session")
    def seed(response: Response) -> dict[str, str]:
        response.set_cookie("session", "1")
        return {}

    @app.post("/lend")
    def lend(call: dict[str, str]) -> dict[str, str]:
        if call["title"] not in ("Dune", "War and Peace"):
            raise HTTPException(404, f"no book is called {call['title']}")
        return {"lent": call["title"]}

    @app.post("/find_reader")
    def find_reader(call: dict[str, str]) -> dict[str, list[str]]:
        asked = list(call.values())
        return {"found": ["R-1"] if asked in (["Ann", "Lee", "78712"], ["Ann Lee", "78712"]) else []}

    @app.post("/get_ticket")
    def get_ticket(call: dict[str, int]) -> dict[str, str]:
        return {"ticket": "a lamp"} if call["ticket"] == 1042 else {"error": f"no ticket {call['ticket']}"}

    @app.post("/catalogue")
    def catalogue() -> dict[str, list[str]]:
        return {"titles": ["Dune"]}

    @app.post("/order")
    def order(call: dict[str, dict[str, str]]) -> dict[str, str]:
        return lend(call["order"])

    @app.post("/order_all")
    def order_all(call: dict[str, list[dict[str, str]]]) -> list[dict[str, str]]:
        return [lend(each) for each in call["books"]]

    return app


def test_words_come_from_fields_in_turn_with_what_the_user_says() -> None:
    row = _row(wanted={"Dune": 7, "Ulysses": 2})
    assert words_of(row) == ("Dune", "Lend", "Ulysses", "War and Peace", "Emma")


def test_tables_are_lists_of_lists() -> None:
    assert words_of(_row(table=[["Ann", 31], ["Bo", [25]]])) == ("Ann", "Lend", "Bo", "War and Peace", "Emma")


def test_a_long_prompt_leaves_room_for_what_the_user_says_and_for_what_is_listed() -> None:
    rules = "".join(f"Rule{number} holds. " for number in range(40))
    messages = [{"role": "system", "content": rules}, {"role": "user", "content": "Lend me the one by Emma."}]
    catalogue = {"type": "function", "name": "catalogue", "parameters": {"type": "object", "properties": {}}}
    row = Row(
        {"responses_create_params": {"input": messages, "tools": [_LEND, catalogue]}}, Source(Path("rows.jsonl"), 1)
    )
    assert words_of(row)[:4] == ("Rule0", "Lend", "Rule1", "Emma")
    assert [call["title"] for call in _asked(row)["lend"] if isinstance(call, dict)] == ["Dune"]


def test_what_listed_things_call_their_properties_comes_last() -> None:
    words = ("b-1", "Lend", "Herbert", "War and Peace", "Dune", "Emma", "id", "title")
    assert words_of(_row(books=[{"id": "b-1", "title": "Dune"}], authors={"Herbert": 1})) == words


def _asked(row: Row) -> dict[str, tuple[object, ...]]:
    async def ask(gym: Gym) -> dict[str, tuple[object, ...]]:
        return dict((await known_arguments(gym, gym.rows)).arguments)

    return on_gym(_library(), ask, Dataset((row,)))


def test_a_tool_is_asked_for_what_it_knows() -> None:
    known = _asked(_row(wanted={"Dune": 7}))
    assert [call["title"] for call in known["lend"] if isinstance(call, dict)] == ["Dune", "War and Peace"]


def test_words_of_a_form_are_held_to_others_of_that_form() -> None:
    params = {"input": "Move!", "tools": [_MOVE]}
    row = Row({"responses_create_params": params, "board": {"start": "a1", "target": "b3"}}, Source(Path("r"), 1))
    assert _asked(row) == {"move": ({"to": "b3"},)}


def test_a_word_is_said_within_an_object() -> None:
    order = {"type": "object", "properties": {"title": {"type": "string"}}, "required": ["title"]}
    parameters = {"type": "object", "properties": {"order": order}, "required": ["order"]}
    row = Row(
        {
            "responses_create_params": {"tools": [{**_LEND, "name": "order", "parameters": parameters}]},
            "wanted": "Dune",
        },
        Source(Path("rows.jsonl"), 1),
    )
    assert _asked(row) == {"order": ({"order": {"title": "Dune"}},)}


def test_a_word_is_said_within_a_list() -> None:
    order = {"type": "object", "properties": {"title": {"type": "string"}}, "required": ["title"]}
    properties = {"books": {"type": "array", "items": order}}
    tool = {
        **_LEND,
        "name": "order_all",
        "parameters": {"type": "object", "properties": properties, "required": ["books"]},
    }
    row = Row({"responses_create_params": {"tools": [tool]}, "wanted": "Dune"}, Source(Path("rows.jsonl"), 1))
    assert _asked(row) == {"order_all": ({"books": [{"title": "Dune"}]},)}


def test_parameters_that_are_no_schema_have_no_words() -> None:
    tool = {"type": "function", "name": "lend", "parameters": {"type": "object", "properties": [1]}}
    params = {"input": "Dune", "tools": [tool]}
    assert _asked(Row({"responses_create_params": params, "title": "Dune"}, Source(Path("rows.jsonl"), 1))) == {}


def _said(text: str, *tools: Mapping[str, object]) -> Row:
    return Row({"responses_create_params": {"input": text, "tools": [*tools]}}, Source(Path("rows.jsonl"), 1))


def test_ids_days_and_addresses_that_the_user_says_are_words_too() -> None:
    said = (
        "I'm ann_lee_36, ann.lee@ex-ample.co.uk, and don't want order #W23 or sku-7a from 2026-05-20; it's 'too red'."
    )
    assert words_of(_said(said)) == (
        "ann_lee_36",
        "ann.lee@ex-ample.co.uk",
        "#W23",
        "W23",
        "sku-7a",
        "2026-05-20",
        "too red",
    )


def test_capitalized_words_in_a_row_are_one_name_and_each_alone() -> None:
    said = "I am Nora Blum (7421). Move it to DE-1."
    params = {"input": [{"role": "user", "content": said}], "tools": [_LEND]}
    row = Row({"responses_create_params": params, "agent_ref": {"name": "simple_agent"}}, Source(Path("rows.jsonl"), 1))
    assert words_of(row) == ("Nora Blum", "Nora", "Blum", "7421", "Move", "DE-1")


def test_a_tool_that_knows_no_word_alone_is_asked_for_several() -> None:
    names = ("first_name", "last_name", "zip")
    parameters = {"type": "object", "properties": {name: {"type": "string"} for name in names}, "required": list(names)}
    find = {"type": "function", "name": "find_reader", "parameters": parameters}
    known = {"first_name": "Ann", "last_name": "Lee", "zip": "78712"}
    assert _asked(_said("The reader is Ann Lee, who lives in 78712.", find)) == {"find_reader": (known,)}
    assert _asked(_said("The reader is Bo Lee, who lives in 78712.", find)) == {}


def test_a_person_may_be_known_by_a_whole_name_and_a_number() -> None:
    properties = {name: {"type": "string"} for name in ("name", "zip")}
    parameters = {"type": "object", "properties": properties, "required": ["name", "zip"]}
    find = {"type": "function", "name": "find_reader", "parameters": parameters}
    said = "Ann Lee would like to renew Emma, Dune and Ivanhoe. She lives in 78712."
    assert _asked(_said(said, find)) == {"find_reader": ({"name": "Ann Lee", "zip": "78712"},)}


def test_a_read_that_takes_a_number_is_asked_for_those_that_the_user_says() -> None:
    parameters = {"type": "object", "properties": {"ticket": {"type": "integer"}}, "required": ["ticket"]}
    get = {"type": "function", "name": "get_ticket", "parameters": parameters}
    assert _asked(_said("Close ticket 1042, which Ann wrote in 2026.", get)) == {"get_ticket": ({"ticket": 1042},)}
