"""What an OpenAPI document says of a server's kind and tools."""

from typing import Any

import pytest

from gym_conformance.contract.openapi import Api, ServerKind, read_openapi

CORE = ("/seed_session", "/verify", "/aggregate_metrics")


def document(*posts: str) -> dict[str, Any]:
    return {"paths": {"/": {"get": {}}} | {path: {"post": {}} for path in posts}}


@pytest.mark.parametrize(
    ("posts", "kind"),
    [
        (CORE, ServerKind.SINGLE_TURN),
        ((*CORE, "/close_session", "/mcp", "/sandbox_access/open"), ServerKind.SINGLE_TURN),
        ((*CORE, "/stats"), ServerKind.TOOLS),  # the framework's own is a GET
        ((*CORE, "/add"), ServerKind.TOOLS),
        ((*CORE, "/{path}"), ServerKind.CATCH_ALL),
        ((*CORE, "/{tool_name:path}", "/add"), ServerKind.CATCH_ALL),
        ((*CORE, "/items/{id}"), ServerKind.SINGLE_TURN),
        (("/seed_session",), ServerKind.SINGLE_TURN),
        (("/reset", "/step", "/aggregate_metrics"), ServerKind.GYMNASIUM),
        (("/run", "/aggregate_metrics"), ServerKind.ENVIRONMENT),
        (("/run", "/aggregate_metrics", "/v1/responses"), ServerKind.OTHER),
        (("/run", "/v1/responses"), ServerKind.OTHER),
        ((*CORE, "/run"), ServerKind.TOOLS),
        (("/run", "/reset", "/step"), ServerKind.GYMNASIUM),
        ((), ServerKind.OTHER),
    ],
)
def test_routes_make_the_kind(posts: tuple[str, ...], kind: ServerKind) -> None:
    assert read_openapi(document(*posts)).kind is kind


def test_tools_are_the_other_posts() -> None:
    api = read_openapi(document(*CORE, "/add", "/deep/tool", "/{any}") | {"info": {}})
    assert api.tools == {"add", "deep/tool"}
    assert "get" not in api.posts


@pytest.mark.parametrize("other", [None, [], "text", {}, {"paths": None}, {"paths": []}])
def test_what_is_no_document_is_unknown(other: Any) -> None:
    assert read_openapi(other) == Api()
    assert not read_openapi(other).known


def test_odd_routes_are_left_out() -> None:
    assert read_openapi({"paths": {"/a": None, "/b": [], "/c": {"post": None}}}).posts == {"/c"}


TYPED = {"$ref": "#/components/schemas/ResourcesSeedSessionRequest"}
OLDER = {"type": "object", "properties": {"note": {"type": "string"}}}


@pytest.mark.parametrize(
    ("body", "closes", "typed", "only"),
    [
        (TYPED, True, True, True),
        ({"anyOf": [TYPED, OLDER]}, True, True, False),
        ({"anyOf": [TYPED, {"$ref": "#/components/schemas/Gone"}]}, True, False, False),
        (OLDER, True, False, False),
        (TYPED, False, False, False),
        ({}, True, False, False),
        ([], True, False, False),
    ],
)
def test_typed_seeds_are_read_from_the_seed_s_body(body: Any, closes: bool, typed: bool, only: bool) -> None:
    """nemo-gym 0.7.0 declares the typed form beside the older one, or alone."""
    found = document(*CORE, *(["/close_session"] if closes else []))
    found["paths"]["/seed_session"]["post"]["requestBody"] = {"content": {"application/json": {"schema": body}}}
    found["components"] = {"schemas": {"ResourcesSeedSessionRequest": {"properties": {"resources_session_id": {}}}}}
    api = read_openapi(found)
    assert (api.typed, api.typed_only) == (typed, only)


@pytest.mark.parametrize(("fields", "episodes"), [({"episode_id", "task"}, True), ({"task"}, False), (set(), False)])
def test_episode_requests_are_read_from_the_body_of_run(fields: set[str], *, episodes: bool) -> None:
    found = document("/run")
    assert not read_openapi(found).episodes
    schema: dict[str, Any] = {"properties": {key: {} for key in fields}}
    found["paths"]["/run"]["post"]["requestBody"] = {"content": {"application/json": {"schema": schema}}}
    assert read_openapi(found).episodes is episodes
