"""Definitions of a long dataset: deduplicated, traced to their rows, and bounded."""

import random
from pathlib import Path
from typing import Any

from gym_conformance.contract.dataset_rows import Source
from gym_conformance.drift.definitions import Definitions, read_definition
from gym_conformance.drift.tool_drift import SOURCES

FILE = Path("rows.jsonl")


def flat(name: str, **parameters: Any) -> dict[str, Any]:
    return {"type": "function", "name": name, "parameters": {"type": "object", "properties": parameters}}


def fed(*lists: Any, bound: int = 100) -> Definitions:
    definitions = Definitions(bound)
    for line, tools in enumerate(lists, start=1):
        definitions.add(tools, Source(FILE, line))
    return definitions


def test_equal_definitions_are_one_with_its_places() -> None:
    (one,) = fed(*[[flat("a", x={"type": "string"})]] * 50)
    assert (one.name, one.count) == ("a", 50)
    assert one.sources == tuple(Source(FILE, line) for line in range(1, SOURCES + 1))


def test_a_definition_in_different_lists_is_counted_over_all() -> None:
    a, b = flat("a"), flat("b")
    counts = {one.name: one.count for one in fed([a], [a, b], [b, a], [a])}
    assert counts == {"a": 4, "b": 2}


def test_key_order_does_not_make_a_difference() -> None:
    a = flat("a", x={"type": "string", "title": "X"})
    assert len(list(fed([a], [dict(reversed(a.items()))]))) == 1


def test_equal_numbers_of_other_types_make_a_difference() -> None:
    """True == 1 == 1.0 in Python, and are three values in JSON."""
    assert len(list(fed(*([flat("a", x={"const": value})] for value in (True, 1, 1.0))))) == 3


def test_forms() -> None:
    nested = {"type": "function", "function": {"name": "a", "strict": True, "description": "d", "parameters": {}}}
    one = read_definition(nested)
    assert one
    assert (one.name, one.nested, one.strict, one.description) == ("a", True, True, "d")
    bare = read_definition({"name": "a"})
    assert bare
    assert bare.schema == {"type": "object", "properties": {}}
    assert read_definition({"type": "web_search"}) is None
    assert read_definition("a") is None
    assert [*fed(None, "text", {}, [1, None])] == []


def test_several_of_one_name() -> None:
    definitions = fed([flat("a")], [flat("a", x={})], [flat("b")])
    assert [one.name for one in definitions] == ["a", "a", "b"]


def test_what_is_beyond_the_bound_is_counted() -> None:
    definitions = fed(*([flat(f"tool{number}")] for number in range(30)), bound=10)
    assert len(list(definitions)) == 10
    assert definitions.left_out == 20


def test_many_lists_of_few_definitions_are_counted_right() -> None:
    """More distinct lists than the bound: the lists are forgotten, the definitions and their counts are not."""
    tools = [flat(f"tool{number}") for number in range(5)]
    shuffled = random.Random(1)
    lists = [shuffled.sample(tools, 5) for _ in range(300)]
    assert {one.count for one in fed(*lists, bound=20)} == {300}


def test_a_known_list_can_be_counted_by_its_number() -> None:
    definitions = Definitions()
    number = definitions.add([flat("a")], Source(FILE, 1))
    definitions.again(number, Source(FILE, 2))
    definitions.again(-1, Source(FILE, 3))
    (one,) = definitions
    assert (one.count, one.sources) == (2, (Source(FILE, 1), Source(FILE, 2)))
