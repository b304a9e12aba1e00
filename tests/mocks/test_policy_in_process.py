"""The policy without a socket, through respx; and what a proxy records and a cassette replays."""

import asyncio
import json
from pathlib import Path

import httpx
import pytest
import respx

from gym_mocks.policy import Cassette, FakePolicy, PolicyFault, Proxy, call
from gym_mocks.serving import serve

OPENAI = "https://api.openai.com/v1"
BODY = {"model": "m", "input": "hi"}


@pytest.fixture
def policy() -> FakePolicy:
    policy = FakePolicy()
    policy.script("m", [call("add", number=1)])
    return policy


@pytest.mark.parametrize("base_url", [OPENAI, "https://api.openai.com", "https://a.b/c/v1"])
def test_sync_and_async_clients_are_answered_without_a_socket(policy: FakePolicy, base_url: str) -> None:
    url = f"{base_url.removesuffix('/v1')}/v1/responses"

    async def later() -> httpx.Response:
        async with httpx.AsyncClient() as client:
            httpx.post(url, json=BODY)  # noqa: ASYNC210 - a sync client inside a loop, as some libraries do
            return await client.post(url, json=BODY)

    with respx.mock() as router:
        route = policy.mount(router, base_url=base_url)
        now = httpx.post(url, json=BODY)
        assert now.json()["output"] == asyncio.run(later()).json()["output"]
    assert route.call_count == policy.calls.count == 3
    assert now.json()["output"][0]["name"] == "add"


def test_streams_and_faults_through_respx(policy: FakePolicy) -> None:
    with respx.mock() as router, httpx.Client(base_url=OPENAI) as client:
        policy.mount(router, base_url=OPENAI)
        streamed = client.post(
            "/chat/completions", json={"messages": [{"role": "user", "content": "a"}], "stream": True}
        )
        assert streamed.text.endswith("data: [DONE]\n\n")
        policy.fail(PolicyFault("drop"))
        with pytest.raises(httpx.RemoteProtocolError):
            client.post("/responses", json=BODY)


def test_a_cassette_replays_what_the_proxy_recorded(policy: FakePolicy, tmp_path: Path) -> None:
    cassette = tmp_path / "cassette.jsonl"
    secret = {"authorization": "Bearer sk-secret"}
    turns = [BODY, BODY | {"input": "sk-secret"}, BODY | {"stream": True}]
    with serve(policy) as upstream, serve(Proxy(f"{upstream}/v1", cassette)) as url:
        recorded = [httpx.post(f"{url}/v1/responses", json=body, headers=secret).text for body in turns]
        assert httpx.get(f"{url}/v1/models").json()["data"][0]["id"] == "m"
    assert policy.calls.count == 3
    assert "sk-secret" not in cassette.read_text()
    with serve(Cassette(cassette)) as url:
        assert httpx.post(f"{url}/v1/responses", json=turns[0]).text == recorded[0]
        assert httpx.post(f"{url}/v1/responses", json=turns[2]).text == recorded[2]
        assert httpx.post(f"{url}/v1/responses", json=BODY | {"input": "new"}).status_code == 404
        assert httpx.get(f"{url}/v1/models").status_code == 200


def test_the_proxys_own_key_goes_upstream(policy: FakePolicy, tmp_path: Path) -> None:
    policy.script("keyed", ["by key"], api_key="sk-own")
    with serve(policy) as upstream, serve(Proxy(f"{upstream}/v1", tmp_path / "c", api_key="sk-own")) as url:
        reply = httpx.post(f"{url}/v1/responses", json={"input": "hi"})
    assert reply.json()["output"][0]["content"][0]["text"] == "by key"


def test_an_upstream_that_is_not_there_is_a_502(tmp_path: Path) -> None:
    with serve(Proxy("http://127.0.0.1:1/v1", tmp_path / "c")) as url:
        assert httpx.post(f"{url}/v1/responses", json=BODY).status_code == 502


def test_a_reply_without_end_is_a_502(policy: FakePolicy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gym_mocks.policy.cassettes.BODY_LIMIT", 100)
    with serve(policy) as upstream, serve(Proxy(f"{upstream}/v1", tmp_path / "c")) as url:
        assert httpx.post(f"{url}/v1/responses", json=BODY).status_code == 502
    assert not (tmp_path / "c").exists()


def test_a_broken_cassette_names_the_line(tmp_path: Path) -> None:
    cassette = tmp_path / "cassette.jsonl"
    good = {"path": "/responses", "request": "{}", "status": 200, "content_type": "a", "reply": ""}
    cassette.write_text(json.dumps(good) + "\n{}\n")
    with pytest.raises(ValueError, match=r"cassette\.jsonl:2 is no recorded exchange"):
        Cassette(cassette)
