"""The agent's endpoints beside `/run`."""

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from gym_conformance.contract.policy_output import response
from gym_mocks.examples import weather
from gym_mocks.gym import MockGym
from gym_mocks.policy import call
from gym_mocks.wire import App, HttpReply, HttpRequest
from gym_mocks.wire.messages import JSON


@pytest.fixture
def gym() -> Iterator[MockGym]:
    with MockGym() as gym:
        gym.add_env(weather.server(), weather.ROWS)
        gym.policy.script("weather", weather.SOLUTIONS[0])
        yield gym


def test_responses_plays_without_seed_and_verify_and_hands_the_session_on(gym: MockGym) -> None:
    """The cookies of the last tool go back to the caller, who may verify with them."""
    params = weather.ROWS[0]["responses_create_params"]
    reply = httpx.post(f"{gym.url('weather_simple_agent')}/v1/responses", json=params)
    output = reply.json()["output"]
    assert [item["type"] for item in output] == ["function_call", "function_call_output", "message"]
    body = weather.ROWS[0] | {"response": reply.json()}
    with httpx.Client(base_url=gym.url("weather"), cookies=reply.cookies) as resources:
        assert resources.post("/verify", json=body).json()["reward"] == 1.0
    assert httpx.post(f"{gym.url('weather')}/verify", json=body).json()["reward"] == 0.0


def test_steps_are_bounded_where_that_is_asked(gym: MockGym) -> None:
    gym.policy.default = lambda _: call("get_weather", city="x")
    gym.policy.routes.release(gym.policy.routes.bind("weather", gym.policy.default))
    url = gym.add_agent("short", resources="weather", max_steps=3)
    output = httpx.post(f"{url}/run", json=weather.ROWS[0]).json()["response"]["output"]
    assert [item["type"] for item in output].count("function_call") == 3


def test_a_row_that_is_none_is_refused(gym: MockGym) -> None:
    bodies: list[Any] = [{}, {"responses_create_params": {"input": 3}}, []]
    for body in bodies:
        assert httpx.post(f"{gym.url('weather_simple_agent')}/run", json=body).status_code == 422


RESPONSE = response([])
ECHO = (("content-type", JSON),)
COOKIE = ("set-cookie", "id=1; Path=/; HttpOnly")


class OddServer(App):
    """A resources server that answers anything with `{}` and a cookie, a verify with an echo, and some paths otherwise."""

    def __init__(self, **replies: HttpReply) -> None:
        super().__init__({})
        self.replies = replies
        self.asked: list[tuple[str, str, str]] = []

    async def dispatch(self, request: HttpRequest) -> HttpReply:
        own = [each for each in request.headers.get("cookie", "").split("; ") if "SimpleAgent" not in each]
        self.asked.append((request.method, request.path, "; ".join(own)))
        echo = request.body[:-1] + b', "reward": 1.0}' if request.path == "/verify" else b"{}"
        return self.replies.get(request.path.strip("/").replace("/", "_"), HttpReply(200, echo, ECHO).plus(COOKIE))


def played(server: OddServer) -> httpx.Response:
    """A rollout of two calls of a tool."""
    with MockGym() as gym:
        gym.add_resources("odd", server)
        url = gym.add_agent("agent", resources="odd")
        gym.policy.script("any", [call("tool"), call("tool"), "Done."])
        return httpx.post(f"{url}/run", json={"responses_create_params": {"input": "x"}})


@pytest.mark.parametrize(
    ("fields", "wanted"),
    [
        ({"reward": "0.5"}, 0.5),
        ({"reward": True}, 1.0),
        ({"reward": "nan"}, None),
        ({"reward": "good"}, "reward: Input should be a valid number"),
        ({"reward": None}, "reward: Input should be a valid number"),
        ({"reward": 1.0, "response": None}, "response: Input should be a valid dictionary"),
    ],
)
def test_what_verify_replies_is_read_as_nemo_gym_reads_it(fields: dict[str, Any], wanted: Any) -> None:
    """`SimpleAgentVerifyResponse` of every version: texts that are numbers are rewards, and all else is a 500 that says why."""
    body = {"responses_create_params": {"input": "x"}, "response": RESPONSE} | fields
    reply = played(OddServer(verify=HttpReply.json(body)))
    if isinstance(wanted, str):
        assert reply.status_code == 500
        assert wanted in reply.text
    else:
        assert reply.json()["reward"] == wanted


@pytest.mark.parametrize("body", [b"null", b"", b"ok", b"[]"])
def test_of_a_seeds_reply_only_status_and_cookies_count(body: bytes) -> None:
    assert played(OddServer(seed_session=HttpReply(200, body, (COOKIE,)))).json()["reward"] == 1.0


@pytest.mark.parametrize(
    ("cookie", "sent"),
    [
        ("id=a==; Path=/; SameSite=lax", 'id="a=="'),
        ('id="a b"', 'id="a b"'),
        ("id=a; Path=/; Secure", ""),
        ("id=a; Path=/tool", ""),
        ("id=a; Domain=example.com", ""),
        ("id=null; Path=/; expires=Thu, 01 Jan 1970 00:00:00 GMT;", ""),
        ("id=a; Max-Age=0", ""),
        ("id=a; Max-Age=60; Expires=0; Partitioned", "id=a"),
    ],
)
def test_a_cookie_goes_back_where_aiohttp_sends_it_back(cookie: str, sent: str) -> None:
    """To an address, by plain HTTP: a secure one never does, and the session is lost."""
    server = OddServer(seed_session=HttpReply(200, b"{}", (("set-cookie", cookie),)))
    played(server)
    assert server.asked[1] == ("POST", "/tool", sent)


@pytest.mark.parametrize(("status", "method"), [(307, "POST"), (308, "POST"), (302, "GET"), (303, "GET")])
def test_redirects_are_followed(status: int, method: str) -> None:
    """As by FastAPI from a route without its last slash; one to another server is not."""
    server = OddServer(tool=HttpReply(status, b"", (("location", "/elsewhere"),)))
    assert played(server).json()["response"]["output"][1]["output"] == "{}"
    assert [asked[:2] for asked in server.asked[1:3]] == [("POST", "/tool"), (method, "/elsewhere")]
    away = OddServer(tool=HttpReply(status, b"away", (("location", "http://example.com/tool"),)))
    assert played(away).json()["response"]["output"][1]["output"] == "away"
    round_and_round = OddServer(tool=HttpReply(307, b"", (("location", "/tool"),)))
    assert "more than 10 redirects" in played(round_and_round).text


@pytest.mark.parametrize(
    ("changed", "wrong"),
    [
        ({"tools": None}, "tools: Input should be a valid list"),
        ({"output": [{"type": "web_search_call"}]}, "output.0: Input tag"),
        ({"output": [{"type": "reasoning", "summary": []}]}, "output.0.reasoning.id: Field required"),
    ],
)
def test_a_models_reply_that_nemo_gym_would_not_take_is_named(changed: dict[str, Any], wrong: str) -> None:
    """A trainer's own model server, of which nemo-gym's agents make a 500."""
    with MockGym() as gym:
        gym.add_resources("odd", OddServer())
        reply = HttpReply.json(RESPONSE | changed)

        async def answer(_: HttpRequest) -> HttpReply:
            return reply

        gym.add_model("own", App({("POST", "/v1/responses"): answer}))
        url = gym.add_agent("agent", resources="odd", model="own")
        run = httpx.post(f"{url}/run", json={"responses_create_params": {"input": "x"}})
    assert run.status_code == 500
    assert f"Received an invalid response from model server, {wrong}" in run.json()


@pytest.mark.parametrize(
    ("name", "path"),
    [("../verify", "/verify"), ("a/./b/../tool?x=1#y", "/a/tool"), ("to%6Fl", "/tool"), ("//tool", "///tool")],
)
def test_a_tools_name_is_read_as_a_path(name: str, path: str) -> None:
    """As aiohttp reads it: what a policy makes up may reach other routes than a tool's."""
    server = OddServer()
    with MockGym() as gym:
        gym.add_resources("odd", server)
        url = gym.add_agent("agent", resources="odd")
        gym.policy.script("any", [call(name), "Done."])
        assert httpx.post(f"{url}/run", json={"responses_create_params": {"input": "x"}}).status_code == 200
    assert server.asked[1][1] == path


@pytest.mark.parametrize(
    ("params", "wrong"),
    [
        ({"tools": [{"type": "function", "function": {"name": "tool", "parameters": {}}}]}, "name is missing"),
        ({"tools": [{"type": "function", "name": "tool", "parameters": {}}]}, "strict is missing"),
        ({"input": [{"role": "user", "content": [{"type": "text", "text": "x"}]}]}, "'input_text' is expected"),
        ({"tool_choice": "any"}, "'none', 'auto' or 'required'"),
        ({"stream": True}, "False"),
    ],
)
def test_a_row_in_the_form_of_chat_completions_is_refused(params: dict[str, Any], wrong: str) -> None:
    """As in every version of nemo-gym, by whose agents it would never be played."""
    with MockGym() as gym:
        gym.add_resources("odd", OddServer())
        url = gym.add_agent("agent", resources="odd")
        for path, body in (("run", {"responses_create_params": {"input": "x"} | params}), ("v1/responses", params)):
            reply = httpx.post(f"{url}/{path}", json={"input": "x"} | body)
            assert reply.status_code == 422
            assert wrong in reply.text
