"""The reference server: its own rows and rollouts, and the faults of nemo-gym that it must not have."""

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from gym_mocks.reference import DATA, ROLLOUTS, ReferenceServer, reference_app
from gym_mocks.reference.record import recorded
from gym_mocks.serving import serve

ROWS = [json.loads(line) for line in DATA.read_text().splitlines()]
RECORDED = [json.loads(line) for line in ROLLOUTS.read_text().splitlines()]


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with serve(reference_app()) as url:
        yield url


@pytest.fixture
def client(url: str) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=url) as client:
        yield client


def test_data_is_what_the_tasks_make() -> None:
    rows, rollouts = asyncio.run(recorded())
    assert rows == ROWS
    assert rollouts == RECORDED


def test_rows_declare_exactly_the_tools_that_are_routed(client: httpx.Client) -> None:
    server = reference_app()
    assert all(row["responses_create_params"]["tools"] == server.declarations for row in ROWS)
    paths = client.get("/openapi.json").json()["paths"].keys()
    assert {f"/{tool['name']}" for tool in server.declarations} <= paths


@pytest.mark.parametrize("index", range(len(ROWS)))
def test_recorded_rollouts_earn_one_again(client: httpx.Client, index: int) -> None:
    output = RECORDED[index]["response"]["output"]
    assert client.post("/seed_session", json=ROWS[index]).json() == {}
    results = {item["call_id"]: item["output"] for item in output if item["type"] == "function_call_output"}
    for item in output:
        if item["type"] == "function_call":
            reply = client.post(f"/{item['name']}", json=json.loads(item["arguments"]))
            assert reply.text == results[item["call_id"]]
    verified = client.post("/verify", json=ROWS[index] | {"response": RECORDED[index]["response"]}).json()
    assert verified["reward"] == sum(verified["reward_components"].values()) == 1.0


@pytest.mark.parametrize("index", range(len(ROWS)))
def test_claims_without_the_tools_earn_nothing(client: httpx.Client, index: int) -> None:
    """The recorded output alone, with no call made, is what a policy that makes up tool results sends."""
    client.post("/seed_session", json=ROWS[index])
    made_up: list[Any] = RECORDED[index]["response"]["output"]
    for output in ([], made_up):
        body = ROWS[index] | {"response": RECORDED[index]["response"] | {"output": output}}
        assert client.post("/verify", json=body).json()["reward"] == 0.0


TOKENS = {"prompt_token_ids": [1, 2], "generation_token_ids": [3], "generation_log_probs": [-0.25, -1e-9]}


def message(text: Any, **more: Any) -> dict[str, Any]:
    part = {"type": "output_text", "text": text, "annotations": []}
    return {
        "id": "m",
        "type": "message",
        "role": "assistant",
        "status": "completed",
        "content": [part],
    } | more


OUTPUTS: dict[str, list[dict[str, Any]]] = {
    "empty": [],
    "reasoning-only": [{"id": "r", "type": "reasoning", "summary": []}],
    "unknown-tool": [{"type": "function_call", "name": "no_such", "arguments": "{}", "call_id": "c"}],
    "malformed-arguments": [{"type": "function_call", "name": "add_stock", "arguments": '{"a', "call_id": "c"}],
    "nul": [message("a\0b")],
    "refusal": [message("") | {"content": [{"type": "refusal", "refusal": "no"}]}],
    "list-output": [{"type": "function_call_output", "call_id": "c", "output": [{"type": "input_text"}]}],
    "hosted": [{"id": "w", "type": "web_search_call", "status": "completed", "action": {"type": "search"}}],
    "unknown-type": [{"type": "from_the_future", "x": None}],
    "no-type": [{}],
    "text-is-no-string": [message(None), message(3), message([])],
    "content-is-a-string": [message("") | {"content": "19"}],
    "content-is-odd": [message("") | {"content": [None, 1, "a", {}]}],
    "lone-surrogate": [message("\ud800 19")],
    "surrogate-escape": [{"type": "function_call", "name": "a", "arguments": '{"a": "\\ud800"}', "call_id": "c"}],
    "long": [message("a" * 2_000_000)],
    "tokens": [message("19", **TOKENS)],
    "many-digits": [message("9" * 5000)],
}


@pytest.mark.parametrize("name", OUTPUTS)
def test_whatever_a_policy_sends_scores_and_is_echoed(client: httpx.Client, name: str) -> None:
    response = RECORDED[0]["response"] | {"output": OUTPUTS[name], "incomplete_details": {"reason": "length"}}
    body = ROWS[0] | {"response": response, "unknown": {"field": [None, 1.5]}}
    client.post("/seed_session", json=ROWS[0])
    reply = client.post("/verify", content=json.dumps(body), headers={"content-type": "application/json"})
    assert reply.status_code == 200
    echo = reply.json()
    assert {key: echo[key] for key in body} == body
    assert echo["reward"] == 0.0


def test_a_raw_lone_surrogate_scores_and_is_echoed(client: httpx.Client) -> None:
    body = ROWS[0] | {"response": RECORDED[0]["response"] | {"output": [message("SURROGATE")]}}
    raw = json.dumps(body).encode().replace(b"SURROGATE", b"\xed\xa0\x80")
    reply = client.post("/verify", content=raw, headers={"content-type": "application/json"})
    assert reply.status_code == 200
    assert reply.json()["response"]["output"][0]["content"][0]["text"] == "\ud800"


BODIES = [
    b"",
    b"null",
    b"[]",
    b'"a"',
    b"{",
    b"NaN",
    b'{"item": NaN, "place": null}',
    b'{"item": 1e400, "place": null}',
]


@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("path", ["/count_stock", "/seed_session", "/verify", "/aggregate_metrics"])
def test_bad_bodies_are_refused_and_the_session_goes_on(client: httpx.Client, path: str, body: bytes) -> None:
    if path == "/seed_session" and body.startswith(b'{"item"'):
        body = body.replace(b"item", b"stock")
    client.post("/seed_session", json=ROWS[0])
    before = client.cookies
    assert client.post(path, content=body, headers={"content-type": "application/json"}).status_code == 422
    assert client.post("/count_stock", json={"item": "apple", "place": None}).json() == {"quantity": 3}
    assert client.cookies == before


def test_numbers_that_are_too_large_to_sum_up_are_left_out(client: httpx.Client) -> None:
    """Where nemo-gym answers 500."""
    replies: list[dict[str, object]] = [
        {"reward": 1.0, "huge": 1e308, "long": 10**400},
        {"reward": 0.0, "huge": 1e308, "long": 10**400},
    ]
    summed = client.post("/aggregate_metrics", json={"verify_responses": replies})
    assert summed.json()["key_metrics"] == {"mean/reward": 0.5}


def test_the_cookie_of_any_reply_keeps_the_session(url: str) -> None:
    """The default agent replaces its cookies with those of each reply."""
    with httpx.Client(base_url=url) as client:
        client.post("/seed_session", json=ROWS[0])
        for path, body in (
            ("/no_such", {}),
            ("/add_stock", {}),
            ("/count_stock", {"item": "pear", "place": None}),
        ):
            reply = client.post(path, json=body)
            client.cookies = reply.cookies
        assert reply.json() == {"quantity": 4}


def test_two_sessions_do_not_meet(url: str) -> None:
    with httpx.Client(base_url=url) as one, httpx.Client(base_url=url) as other:
        for client in (one, other):
            client.post("/seed_session", json=ROWS[0])
        add = {"amount": {"item": "apple", "quantity": 1}, "category": "fruit", "place": "van"}
        assert one.post("/add_stock", json=add).json() == {"quantity": 1}
        counts = [client.post("/count_stock", json={"item": "apple", "place": None}) for client in (one, other)]
        assert [count.json()["quantity"] for count in counts] == [4, 3]


def test_a_repeated_seed_keeps_the_state_until_verify_or_another_row(client: httpx.Client) -> None:
    add = {"amount": {"item": "apple", "quantity": 1}, "category": "fruit", "place": "shelf"}
    count = {"item": "apple", "place": None}
    client.post("/seed_session", json=ROWS[0])
    client.post("/add_stock", json=add)
    client.post("/seed_session", json=ROWS[0])
    assert client.post("/count_stock", json=count).json() == {"quantity": 4}
    client.post("/seed_session", json=ROWS[1])
    assert client.post("/count_stock", json=count).json() == {"quantity": 0}
    client.post("/add_stock", json=add)
    client.post("/verify", json=ROWS[1] | {"response": RECORDED[1]["response"]})
    client.post("/seed_session", json=ROWS[1])
    assert client.post("/count_stock", json=count).json() == {"quantity": 0}


def test_verify_twice_scores_the_same(client: httpx.Client) -> None:
    client.post("/seed_session", json=ROWS[0])
    body = ROWS[0] | {"response": RECORDED[0]["response"]}
    assert client.post("/verify", json=body).json() == client.post("/verify", json=body).json()


def test_one_step_can_be_broken() -> None:
    """How a broken twin is made: one method overridden."""

    class Forgetful(ReferenceServer):
        async def seed(self, session_id: str, row: dict[str, Any]) -> dict[str, Any]:  # noqa: ARG002
            return {}

    with serve(Forgetful()) as url, httpx.Client(base_url=url) as client:
        client.post("/seed_session", json=ROWS[0])
        assert client.post("/count_stock", json={"item": "apple", "place": None}).json() == {"quantity": 0}
