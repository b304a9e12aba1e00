"""The mcp block as an agent reads it, and what is wrong with one."""

from typing import Any

import pytest

from gym_conformance.contract.mcp_block import McpEndpoint, bare_name, block_of, faults, read_endpoint
from gym_conformance.mcp.result import McpResult

GOOD = {"server_name": "weather", "url_path": "/mcp", "transport": "http", "headers": {"X-Token": "abc.def"}}


def test_a_good_block_has_no_fault() -> None:
    assert list(faults(GOOD)) == []
    assert read_endpoint(GOOD) == McpEndpoint("weather", "/mcp", {"X-Token": "abc.def"})
    assert block_of({"mcp": GOOD}) == block_of({"mcp": None, "resources_tools": GOOD}) == GOOD
    assert block_of([]) is block_of({"mcp": None}) is None


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"server_name": ""}, "server_name"),
        ({"url_path": "http://elsewhere/mcp"}, "url_path"),
        ({"url_path": "/"}, "url_path"),
        ({"url_path": 5}, "url_path"),
        ({"transport": "stdio"}, "transport"),
        ({"headers": None}, "headers"),
        ({"headers": []}, "headers"),
        ({"headers": 5}, "headers"),
        ({"headers": {}}, "headers"),
        ({"headers": {"X-Token": "a\nb"}}, "headers"),
        ({"headers": {"X Token": "a"}}, "headers"),
        ({"headers": {"X-Token": 5}}, "headers"),
    ],
)
def test_what_an_agent_cannot_use_is_named(changed: Any, said: str) -> None:
    ((expected, actual),) = faults({**GOOD, **changed})
    assert expected.startswith(said)
    assert actual


def test_a_block_that_is_no_object() -> None:
    assert list(faults("/mcp")) == [("an object", "str '/mcp'")]
    assert read_endpoint("/mcp") is None


def test_left_out_parts_have_the_agent_s_defaults() -> None:
    assert read_endpoint({}) == McpEndpoint("", "/mcp", {})
    assert read_endpoint({"url_path": "tools"}) == McpEndpoint("", "/tools", {})


def test_names_are_freed_of_their_server() -> None:
    assert bare_name("mcp__weather__get_weather", "weather") == bare_name("get_weather", "weather") == "get_weather"


@pytest.mark.parametrize(
    ("text", "structured", "like", "value"),
    [
        ('{"a": 1}', {"a": 1}, {"a": 1}, {"a": 1}),
        ("sunny", {"result": "sunny"}, "sunny", "sunny"),
        ("sunny", {"result": "sunny"}, None, "sunny"),
        ('{"result": 1}', {"result": 1}, {"result": 1}, {"result": 1}),
        ("5", None, "5", "5"),
        ("5", None, 5, 5),
        ("[1, 2]", None, [1, 2], [1, 2]),
        ("no JSON", None, None, "no JSON"),
    ],
)
def test_a_result_is_what_a_route_would_have_answered(text: str, structured: Any, like: Any, value: Any) -> None:
    assert McpResult(is_error=False, text=text, structured=structured).as_route(like) == value
