"""Requests that any resources server answers in its own way, and what a client can see of the replies."""

import json
from typing import Any

import httpx
import pytest

from tests.nemo_gym.mocks.notes_twin import NOTES_ENV

JSON = {"content-type": "application/json"}
ROW = json.loads((NOTES_ENV / "data" / "example.jsonl").read_text().splitlines()[1])
ROLLOUT = json.loads((NOTES_ENV / "data" / "example_rollouts.jsonl").read_text().splitlines()[1])
VERIFY = ROW | {"response": ROLLOUT["response"]}

CLOSE = b'{"resources_session_id": "s1", "episode_id": {"rollout_id": "r1", "attempt": 0}}'

PROBES: dict[str, tuple[str, str, bytes | None, dict[str, str]]] = {
    "liveness": ("GET", "/", None, {}),
    "liveness-head": ("HEAD", "/", None, {}),
    "liveness-post": ("POST", "/", b"{}", JSON),
    "exception": ("POST", "/divide", b'{"number": 0}', JSON),
    "unknown": ("POST", "/no_such_tool", b"{}", JSON),
    "unknown-get": ("GET", "/no_such_tool", None, {}),
    "tool-get": ("GET", "/read_note", None, {}),
    "slash": ("POST", "/read_note/", b'{"title": "a"}', JSON),
    "slash-query": ("POST", "/read_note/?a=1", b'{"title": "a"}', JSON),
    "tool": ("POST", "/read_note", b'{"title": "shopping"}', JSON),
    "tool-query": ("POST", "/read_note?a=1", b'{"title": "shopping"}', JSON),
    "tool-without-arguments": ("POST", "/list_notes", b"{}", JSON),
    "charset": ("POST", "/read_note", b'{"title": "a"}', {"content-type": "application/json; charset=utf-8"}),
    "json-suffix": ("POST", "/read_note", b'{"title": "a"}', {"content-type": "application/x+json"}),
    "empty": ("POST", "/read_note", b"", JSON),
    "no-body": ("POST", "/read_note", None, {}),
    "no-type": ("POST", "/read_note", b'{"title": "a"}', {}),
    "form": ("POST", "/read_note", b"title=a", {"content-type": "application/x-www-form-urlencoded"}),
    "text": ("POST", "/read_note", b'{"title": "a"}', {"content-type": "text/plain"}),
    "null": ("POST", "/read_note", b"null", JSON),
    "list": ("POST", "/read_note", b'[{"title": "a"}]', JSON),
    "string": ("POST", "/read_note", b'"title"', JSON),
    "number": ("POST", "/read_note", b"3", JSON),
    "not-json": ("POST", "/read_note", b'{"title": ', JSON),
    "not-json-2": ("POST", "/read_note", b"{'title': 'a'}", JSON),
    "not-utf-8": ("POST", "/read_note", b'{"title": "\xff"}', JSON),
    "nested": ("POST", "/read_note", b"[" * 100_000, JSON),
    "missing": ("POST", "/read_note", b"{}", JSON),
    "extra": ("POST", "/read_note", b'{"title": "a", "more": [1]}', JSON),
    "wrong-type": ("POST", "/read_note", b'{"title": 3}', JSON),
    "null-argument": ("POST", "/read_note", b'{"title": null}', JSON),
    "too-short": ("POST", "/read_note", b'{"title": ""}', JSON),
    "too-long": ("POST", "/read_note", json.dumps({"title": "x" * 41}).encode(), JSON),
    "enum": ("POST", "/write_note", b'{"title": "a", "text": "b", "mode": "other"}', JSON),
    "several": ("POST", "/write_note", b'{"text": 1, "mode": "other", "more": null}', JSON),
    "unicode": ("POST", "/write_note", '{"title": "é", "text": "日本", "mode": "append"}'.encode(), JSON),
    "seed": ("POST", "/seed_session", json.dumps(ROW).encode(), JSON),
    "seed-empty": ("POST", "/seed_session", b"{}", JSON),
    "seed-null": ("POST", "/seed_session", b"null", JSON),
    "seed-wrong": ("POST", "/seed_session", b'{"initial_notes": {"a": 1}}', JSON),
    "verify-no-response": ("POST", "/verify", json.dumps(ROW).encode(), JSON),
    "verify-list": ("POST", "/verify", b"[]", JSON),
    "verify-no-row-field": (
        "POST",
        "/verify",
        json.dumps({key: VERIFY[key] for key in ("responses_create_params", "response")}).encode(),
        JSON,
    ),
    "aggregate-nothing": ("POST", "/aggregate_metrics", b'{"verify_responses": []}', JSON),
    "aggregate-missing": ("POST", "/aggregate_metrics", b"{}", JSON),
    "aggregate-wrong": ("POST", "/aggregate_metrics", b'{"verify_responses": [1]}', JSON),
    "reverify": ("GET", "/reverify_mode", None, {}),
    "close": ("POST", "/close_session", CLOSE, JSON),
    "livez": ("GET", "/livez", None, {}),
    "readyz": ("GET", "/readyz", None, {}),
    "health": ("GET", "/health", None, {}),
    "rollout-prefix": ("POST", "/ng-rollout/r1/read_note", b'{"title": "a"}', JSON),
    "mcp": ("POST", "/mcp", b'{"jsonrpc": "2.0", "id": 1, "method": "ping"}', JSON),
}


def seen(reply: httpx.Response) -> dict[str, Any]:
    """What a client can see of a reply, without the signed value of its cookie."""
    cookie = reply.headers.get("set-cookie", "")
    name, _, rest = cookie.partition("=")
    try:
        body = reply.json()
    except ValueError:
        body = reply.content
    return {
        "status": reply.status_code,
        "body": body,
        "cookie": (name, rest.partition(";")[2]),
        **{name: reply.headers.get(name) for name in ("content-type", "vary", "allow")},
        "location": httpx.URL(reply.headers.get("location", "")).raw_path,
    }


def ask(client: httpx.Client, probe: tuple[str, str, bytes | None, dict[str, str]]) -> httpx.Response:
    method, path, body, headers = probe
    client.cookies.clear()
    return client.request(method, path, content=body, headers=headers)


TASK, ROLLOUT_INDEX = "_ng_task_index", "_ng_rollout_index"
AGGREGATES: dict[str, list[dict[str, Any]]] = {
    "one": [{TASK: 0, ROLLOUT_INDEX: 0, "reward": 1.0}],
    "two-tasks": [
        {TASK: task, ROLLOUT_INDEX: rollout, "reward": task + rollout / 3, "ok": rollout == 1, "name": "x"}
        for task in (3, 1)
        for rollout in (1, 0, 2)
    ],
    "gaps": [
        {TASK: 0, ROLLOUT_INDEX: 0, "reward": 1.0, "a": 1},
        {TASK: 0, ROLLOUT_INDEX: 1, "reward": 0.0},
        {TASK: 1, ROLLOUT_INDEX: 0, "reward": 0.5, "b": 2, "nothing": None},
    ],
    "one-each": [{TASK: task, ROLLOUT_INDEX: 0, "reward": 0.5 * task} for task in range(3)],
    "usage": [
        {TASK: 0, ROLLOUT_INDEX: n, "reward": 1, "response": {"usage": {"input_tokens": 5 + n, "x": {}}}}
        for n in range(2)
    ],
}


def approximately(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: approximately(item) for key, item in value.items()}
    if isinstance(value, list):
        return [approximately(item) for item in value]
    return pytest.approx(value) if isinstance(value, float) else value
