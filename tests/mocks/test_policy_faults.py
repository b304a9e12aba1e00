"""What goes wrong on purpose, and only where it should."""

import json
import time
from typing import Any

import httpx
import pytest

from gym_mocks.policy import FakePolicy, PolicyFault, call
from gym_mocks.rollout_faults import RolloutFault
from gym_mocks.serving import serve

BODY: dict[str, object] = {"input": "hi", "messages": [{"role": "user", "content": "hi"}], "model": "m"}
AFTER_ONE_TURN = BODY | {
    "input": [
        {"role": "user", "content": "hi"},
        {"type": "function_call", "name": "add", "arguments": "{}", "call_id": "c"},
        {"type": "function_call_output", "call_id": "c", "output": "ok"},
    ]
}


@pytest.fixture
def policy() -> FakePolicy:
    policy = FakePolicy()
    policy.script("m", [call("add", number=1), "Done."])
    return policy


def test_a_status_with_retry_after(policy: FakePolicy, client: httpx.Client) -> None:
    policy.fail(PolicyFault("status", status=429, retry_after=1.5, times=1))
    refused = client.post("/v1/responses", json=BODY)
    assert (refused.status_code, refused.headers["retry-after"]) == (429, "1.5")
    assert refused.json()["error"]["type"] == "rate_limit_error"
    assert client.post("/v1/responses", json=BODY).status_code == 200
    assert [call.status for call in policy.calls] == [429, 200]


def test_only_at_a_turn(policy: FakePolicy, client: httpx.Client) -> None:
    policy.fail(PolicyFault("status", turn=1))
    assert client.post("/v1/responses", json=BODY).status_code == 200
    assert client.post("/v1/responses", json=AFTER_ONE_TURN).status_code == 500


def test_only_on_a_route(policy: FakePolicy, client: httpx.Client) -> None:
    policy.script("other", ["Done."])
    policy.fail(PolicyFault("status", route="other"))
    assert client.post("/v1/responses", json=BODY).status_code == 200
    assert client.post("/v1/responses", json=BODY | {"model": "other"}).status_code == 500


def test_by_rate_and_seed() -> None:
    def statuses(seed: int) -> list[int]:
        policy = FakePolicy(seed=seed)
        policy.fail(PolicyFault("status", rate=0.5))
        with serve(policy) as url, httpx.Client(base_url=url) as client:
            return [client.post("/v1/responses", json=BODY).status_code for _ in range(40)]

    assert statuses(1) == statuses(1) != statuses(2)
    assert set(statuses(1)) == {200, 500}


def test_latency_fixed_and_drawn(policy: FakePolicy, client: httpx.Client) -> None:
    policy.fail(PolicyFault("latency", seconds=0.1))
    policy.fail(PolicyFault("latency", seconds=lambda random: random.uniform(0.1, 0.2)))
    start = time.monotonic()
    client.post("/v1/responses", json=BODY)
    assert 0.2 <= time.monotonic() - start < 20


@pytest.mark.parametrize("kind", ["drop", "truncate"])
@pytest.mark.parametrize("path", ["/v1/responses", "/v1/chat/completions", "/v1/messages"])
def test_a_reply_that_breaks_off(policy: FakePolicy, client: httpx.Client, kind: str, path: str) -> None:
    policy.fail(PolicyFault(kind))  # type: ignore[arg-type]  # a parameter of the test
    with pytest.raises(httpx.RemoteProtocolError):
        client.post(path, json=BODY)


def test_a_stream_that_breaks_off_and_one_that_ends_early(policy: FakePolicy, client: httpx.Client) -> None:
    policy.fail(PolicyFault("truncate", times=1))
    assert "response.completed" not in client.post("/v1/responses", json=BODY | {"stream": True}).text
    policy.fail(PolicyFault("drop", times=1))
    with pytest.raises(httpx.RemoteProtocolError):
        client.post("/v1/responses", json=BODY | {"stream": True})
    assert "response.completed" in client.post("/v1/responses", json=BODY | {"stream": True}).text


def test_json_that_is_none(policy: FakePolicy, client: httpx.Client) -> None:
    policy.fail(PolicyFault("invalid_json"))
    reply = client.post("/v1/responses", json=BODY)
    with pytest.raises(ValueError, match="Expecting"):
        reply.json()


def is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


@pytest.mark.parametrize("path", ["/v1/responses", "/v1/chat/completions", "/generate"])
def test_one_event_of_a_stream_is_none(policy: FakePolicy, client: httpx.Client, path: str) -> None:
    policy.fail(PolicyFault("invalid_json"))
    asked = {"text": "hi"} if path == "/generate" else BODY
    lines = client.post(path, json=asked | {"stream": True}).text.splitlines()
    events = [line.removeprefix("data: ") for line in lines if line.startswith("data: {")]
    [broken] = [event for event in events if not is_json(event)]
    assert is_json(broken + "}")


def test_an_error_has_the_code_by_which_clients_know_it(policy: FakePolicy, client: httpx.Client) -> None:
    policy.fail(PolicyFault("status", status=400, code="context_length_exceeded", times=1))
    assert client.post("/v1/responses", json=BODY).json()["error"]["code"] == "context_length_exceeded"


def test_what_the_policy_says_is_changed(policy: FakePolicy, client: httpx.Client) -> None:
    def item(kind: str, body: object = BODY) -> dict[str, object]:
        policy.faults.clear()
        policy.fail(PolicyFault(kind))  # type: ignore[arg-type]  # one of the kinds
        output: list[dict[str, object]] = client.post("/v1/responses", json=body).json()["output"]
        return output[-1]

    assert item("malformed_arguments")["arguments"] == '{"number": 1,'
    assert item("unknown_tool")["name"] == "no_such_add"
    assert item("no_final_message", AFTER_ONE_TURN)["type"] == "reasoning"
    policy.faults.clear()
    policy.fail(PolicyFault("cut"))
    cut = client.post("/v1/responses", json=BODY).json()
    assert (cut["status"], cut["incomplete_details"]) == ("incomplete", {"reason": "max_output_tokens"})


@pytest.mark.parametrize(
    "values", [{"kind": "droop"}, {"rate": 1.1}, {"times": -1}, {"status": 200}, {"status": 1000}, {"status": "503"}]
)
@pytest.mark.parametrize("fault", [PolicyFault, RolloutFault])
def test_a_fault_that_can_never_happen_is_refused(fault: Any, values: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(values))):
        fault(**({"kind": "status"} | values))
