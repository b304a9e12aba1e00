"""Secrets that are not shown, and files and requests that mean harm or are broken."""

import json
import resource
import stat
import subprocess
from base64 import b64encode
from pathlib import Path
from urllib.parse import quote

import httpx
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from gym_mocks.gym import MockGym
from gym_mocks.head import load_config
from gym_mocks.hidden_keys import REDACTED, is_secret_name, keys_in, redacted
from gym_mocks.policy import Cassette, FakePolicy, Proxy
from gym_mocks.serving import serve
from tests.hostile.small_process import of_a_small_process

ENV = """
judge:
  responses_api_models:
    openai_model:
      entrypoint: app.py
      openai_api_key: sk-live-1
      openai_base_url: https://user:pw-live-2@host/v1
      headers: {Authorization: Bearer live-3, x-trace: shown}
      apiKey: ${policy_api_key}
      max_output_tokens: 5
      released: 2026-01-01
hf_token: live-4
credentials: {a: [live-5]}
policy_api_key: dummy_key
"""


def test_the_head_shows_no_secret_and_the_written_file_has_them_all(tmp_path: Path) -> None:
    path = tmp_path / "env.yaml"
    path.write_text(ENV, encoding="utf-8")
    with MockGym() as gym:
        gym.add_config(path)
        shown = httpx.get(f"{gym.head_url}/global_config_dict_yaml").json()
        written = gym.write_config().read_text(encoding="utf-8")
        assert gym.config == yaml.safe_load(shown)
    assert "live" not in shown
    assert all(f"live-{number}" in written for number in range(1, 6))
    config = yaml.safe_load(shown)
    model = config["judge"]["responses_api_models"]["openai_model"]
    assert (config["policy_api_key"], model["apiKey"], model["max_output_tokens"]) == (
        "dummy_key",
        "${policy_api_key}",
        5,
    )
    assert (model["openai_base_url"], model["headers"]["x-trace"]) == (f"https://{REDACTED}@host/v1", "shown")
    assert model["released"] == "2026-01-01"


@pytest.mark.parametrize(
    "name", ["api_key", "OPENAI_API_KEY", "apiKey", "x-api-key", "hf_token", "PAT", "DB_PASSWD", "Authorization", "dsn"]
)
def test_names_of_secrets(name: str) -> None:
    assert is_secret_name(name)


@pytest.mark.parametrize(
    "name", ["max_tokens", "max_output_tokens", "return_token_id_information", "sort_key", "author", "path", "keys"]
)
def test_names_of_none(name: str) -> None:
    assert not is_secret_name(name)


SECRET = 'sk-"a/b\\é🌦+live'  # noqa: S105 - not a real one


@pytest.mark.parametrize(
    "spelled",
    [
        SECRET,
        SECRET.upper(),
        json.dumps(SECRET)[1:-1],
        json.dumps(SECRET, ensure_ascii=False)[1:-1],
        json.dumps(json.dumps({"key": SECRET})),
        "".join(f"\\u{ord(letter):04X}" for letter in SECRET if ord(letter) < 0x10000),
        quote(SECRET),
        quote(SECRET, safe=""),
        quote(quote(SECRET, safe=""), safe=""),
        b64encode(SECRET.encode()).decode(),
        b64encode(f"user:{SECRET}".encode()).decode(),
        b64encode(f"me:{SECRET}.".encode()).decode(),
    ],
)
def test_a_key_is_redacted_however_it_is_spelled(spelled: str) -> None:
    key = SECRET.replace("🌦", "") if "\\u" in spelled and "\\ud83c" not in spelled.lower() else SECRET
    assert REDACTED in redacted(f"before {spelled} after", [key])


@given(
    st.text(alphabet=st.characters(exclude_categories=["Cs"]), min_size=5, max_size=30),
    st.text(max_size=20),
    st.text(max_size=20),
)
def test_any_key_in_any_json_is_redacted(key: str, before: str, after: str) -> None:
    for text in (json.dumps({"a": before + key + after}), json.dumps({key: 1}, ensure_ascii=False)):
        assert REDACTED in redacted(text, [key])


@pytest.mark.parametrize(
    ("headers", "keys"),
    [
        ({"authorization": "Bearer sk-live"}, {"sk-live"}),
        ({"authorization": "bearer sk-live"}, {"sk-live"}),
        ({"authorization": "BEARER   sk-live"}, {"sk-live"}),
        ({"authorization": "sk-live"}, {"sk-live"}),
        ({"x-api-key": "sk-live", "api-key": "other-live"}, {"sk-live", "other-live"}),
        (
            {"authorization": f"Basic {b64encode(b'user:pw-live').decode()}"},
            {"dXNlcjpwdy1saXZl", "user:pw-live", "pw-live"},
        ),
        ({"authorization": "Bearer dummy_key", "accept": "application/json"}, set()),
    ],
)
def test_the_keys_that_headers_carry(headers: dict[str, str], keys: set[str]) -> None:
    assert keys_in(headers) == keys


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER"])
def test_a_cassette_is_its_owners_and_holds_no_key(tmp_path: Path, scheme: str) -> None:
    cassette = tmp_path / "cassette.jsonl"
    key = "sk-live/1"
    headers = {"authorization": f"{scheme} {key}", "content-type": "application/json"}
    body = json.dumps({"model": "m", "input": f"{key} {quote(key, safe='')}"}).replace("live", "\\u006cive").encode()
    with serve(FakePolicy()) as upstream, serve(Proxy(f"{upstream}/v1", cassette)) as url:
        said = httpx.post(f"{url}/v1/responses", content=body, headers=headers).text
    text = cassette.read_text(encoding="utf-8")
    assert key in said
    assert "sk-" not in text
    assert text.count(REDACTED) >= 3
    assert stat.S_IMODE(cassette.stat().st_mode) == 0o600
    with serve(Cassette(cassette)) as url:
        again = httpx.post(f"{url}/v1/responses", content=body, headers=headers)
        assert again.status_code == 200


BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join([f'*{before}'] * 9)}]\n"
    for before, name in zip("abcdefghi", "bcdefghij", strict=True)
)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (BOMB, "more than 100000 values"),
        ("a: &a {b: *a}", "an alias that holds itself"),
        ("a: &a [*a]", "an alias that holds itself"),
        ("a: !!binary aGVsbG8=", "is of a kind that no configuration holds"),
        ("a: !!set {b}", "is of a kind that no configuration holds"),
        ("a: !!python/object/apply:os.system [id]", "is not YAML"),
        ("[" * 5000, "is not YAML"),
        ("a: " + "[" * 150 + "]" * 150, "deeper than 100 levels"),
        ("- a", "holds no mapping"),
        ("\x00", "is not YAML"),
        ("a: {responses_api_agents: 5}", "responses_api_agents must be a mapping"),
        ("a: {responses_api_agents: {b: [c]}}", "must be a mapping, not"),
        (
            "a: {responses_api_agents: {b: {resources_server: env, model_server: model}}}",
            "resources_server must be a mapping",
        ),
        ("a: {responses_api_agents: {b: {resources_server: {name: [1]}}}}", "resources_server must be a mapping"),
        ("a: {responses_api_agents: {b: {resources_server: {name: env}}}}", "model_server must be a mapping"),
        ("a: {responses_api_models: model}", "responses_api_models must be a mapping"),
        (
            "a: {responses_api_agents: {b: {resources_server: {name: e}, model_server: {name: m}}}}",
            "no server is named 'e'",
        ),
    ],
)
def test_a_configuration_that_cannot_be_is_one_clear_error(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "env.yaml"
    path.write_text(text, encoding="utf-8")
    with MockGym() as gym, pytest.raises(ValueError, match=r"env\.yaml") as error:
        gym.add_config(path)
    assert message in str(error.value)
    assert len(str(error.value)) < 1000


def test_values_that_yaml_reads_its_own_way_are_served_as_they_stand(tmp_path: Path) -> None:
    path = tmp_path / "env.yaml"
    path.write_text("1: {2026-01-01: 2026-01-01, true: [.nan, .inf, -.inf, 1e3]}\n", encoding="utf-8")
    assert load_config(path) == {
        "1": {
            "2026-01-01": "2026-01-01",
            "True": [pytest.approx(float("nan"), nan_ok=True), float("inf"), -float("inf"), "1e3"],
        }
    }
    with MockGym() as gym:
        gym.add_config(path)
        shown = yaml.safe_load(httpx.get(f"{gym.head_url}/global_config_dict_yaml").json())
    assert shown["1"]["True"][1:3] == [float("inf"), -float("inf")]


@pytest.mark.parametrize(
    "line",
    [
        "null",
        "[]",
        "{}",
        "[" * 100_000,
        '{"path": 1, "request": "", "status": "200", "content_type": "a", "reply": ""}',
        '{"path": "/", "request": "", "status": 99, "content_type": "a", "reply": ""}',
        '{"path": "/", "request": "", "status": 200, "content_type": "\\u2028", "reply": ""}',
        '{"path": "/", "request": "{", "status": 200, "content_type": "a", "reply": ""}',
        '{"path": "/", "request": "", "status": 200, "content_type": "a", "reply": 5}',
        "\udcff",
    ],
)
def test_a_broken_line_of_a_cassette_is_named(tmp_path: Path, line: str) -> None:
    cassette = tmp_path / "cassette.jsonl"
    cassette.write_bytes(line.encode(errors="surrogateescape") + b"\n")
    with pytest.raises(ValueError, match=r"cassette\.jsonl:1 is no recorded exchange"):
        Cassette(cassette)


MANY_KEYS = """
import asyncio, json, resource, sys
from gym_mocks.reference import reference_app
from gym_mocks.wire import HttpRequest
unknown = {f"unknown_{number}": number for number in range(250_000)}
bodies = {
    "tool": ("/add_stock", {"amount": {"item": "a", "quantity": 1}, "category": "fruit", "place": "van", **unknown}),
    "nested": ("/add_stock", {"amount": {"item": "a", "quantity": 1, **unknown}, "category": "fruit", "place": "van"}),
    "params": ("/verify", {"responses_create_params": {"input": "a", **unknown}, "response": {"output": []}}),
    "row": ("/seed_session", {"responses_create_params": {"input": "a"}, **unknown}),
    "items": ("/verify", {"responses_create_params": {"input": [5] * 125_000}, "response": {"output": [5] * 125_000}}),
    "replies": ("/aggregate_metrics", {"verify_responses": [5] * 250_000}),
}
path, body = bodies[sys.argv[1]]
request = HttpRequest("POST", path, {"content-type": "application/json"}, json.dumps(body).encode())
del body, bodies, unknown
reply = asyncio.run(reference_app().answer(request))
print(reply.status, len(reply.body), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
"""


@pytest.mark.parametrize(
    ("where", "wanted"),
    [("tool", 422), ("nested", 422), ("params", 422), ("row", 200), ("items", 422), ("replies", 422)],
)
def test_hundreds_of_thousands_of_wrong_keys_or_items_cost_little(where: str, wanted: int) -> None:
    done = subprocess.run(
        of_a_small_process("-c", MANY_KEYS, where), capture_output=True, text=True, check=True, timeout=120
    )
    status, size, megabytes = map(int, done.stdout.split())
    assert status == wanted
    assert size < 2**25
    assert megabytes < 300


def used() -> int:
    """Megabytes of this process at most so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def test_an_alias_bomb_costs_little(tmp_path: Path) -> None:
    path = tmp_path / "env.yaml"
    path.write_text(BOMB, encoding="utf-8")
    before = used()
    with pytest.raises(ValueError, match="more than"):
        load_config(path)
    assert used() - before < 100


def test_a_file_without_end_is_refused() -> None:
    with pytest.raises(ValueError, match="is longer than"):
        load_config(Path("/dev/zero"))
