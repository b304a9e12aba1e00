"""Whoever an environment server asks, as one application."""

from typing import Any

import httpx
import pytest

from gym_mocks.participants import Participants
from gym_mocks.policy import FakePolicy, PolicyFault, Say
from gym_mocks.serving import serve

PARAMS = {"input": "What now?"}


def policy(said: str = "Go on.") -> FakePolicy:
    return FakePolicy(lambda _: Say(said))


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/seed_session", "resources_session_id"),
        ("/close_session", "resources_session_id"),
        ("/v1/agent_sessions", "agent_session_id"),
        ("/v1/agent_sessions/close", "agent_session_id"),
    ],
)
def test_sessions_are_opened_and_closed_by_name(path: str, name: str) -> None:
    with serve(Participants(policy())) as url:
        reply = httpx.post(url + path, json={name: "s1", "episode_id": {}})
    assert reply.json() == {name: "s1"}
    assert "participants=" in reply.headers["set-cookie"]


def test_a_policy_s_words_are_worth_something() -> None:
    for said, reward in (("Go on.", 1.0), ("", 0.0)):
        with serve(Participants(policy(said))) as url:
            played = httpx.post(url + "/run", json={"responses_create_params": PARAMS, "own": 1}).json()
            again = httpx.post(url + "/verify", json=played).json()
            summed = httpx.post(url + "/aggregate_metrics", json={"verify_responses": [again]}).json()
        assert (played["reward"], again["reward"], played["own"]) == (reward, reward, 1)
        assert summed["key_metrics"]["mean/reward"] == reward


@pytest.mark.parametrize("prefix", ["", "/ng-rollout/r.1-a2", "/ng-rollout/r1/training-token-capture"])
def test_all_else_goes_to_the_policy(prefix: str) -> None:
    with serve(Participants(policy())) as url:
        reply: dict[str, Any] = httpx.post(f"{url}{prefix}/v1/responses", json=PARAMS).json()
        assert httpx.post(f"{url}{prefix}/elsewhere").status_code == 404
    assert reply["output"][0]["content"][0]["text"] == "Go on."


def test_a_policy_that_fails_is_handed_on() -> None:
    failing = policy()
    failing.fail(PolicyFault("status", status=503))
    with serve(Participants(failing)) as url:
        assert httpx.post(url + "/v1/responses", json=PARAMS).status_code == 503
        reply = httpx.post(url + "/run", json={"responses_create_params": PARAMS})
        assert httpx.post(url + "/run", json={}).status_code == 422
    assert (reply.status_code, "a fault on purpose" in reply.json()) == (500, True)


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/close_session", []),
        ("/verify", {"responses_create_params": PARAMS, "response": {}}),
        ("/verify", {"responses_create_params": PARAMS, "response": {"output": [1.5]}}),
        ("/aggregate_metrics", {"verify_responses": 5}),
        ("/aggregate_metrics", {"verify_responses": ["x"]}),
    ],
)
def test_what_cannot_be_read_is_refused(path: str, body: Any) -> None:
    """A 500 would look like a fault of the environment server that is judged."""
    with serve(Participants(policy())) as url:
        assert httpx.post(url + path, json=body).status_code == 422


def test_a_message_in_an_odd_form_scores() -> None:
    said = {"output": [{"type": "message", "role": "assistant", "content": ["x", {"text": 1}]}]}
    with serve(Participants(policy())) as url:
        reply = httpx.post(url + "/verify", json={"responses_create_params": PARAMS, "response": said})
    assert reply.json()["reward"] == 0.0
