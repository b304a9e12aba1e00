"""A worker that dies of a call is back at once, and knows no session: what is sent again is only refused."""

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from gym_conformance.contract.dataset_rows import Row, Source
from gym_conformance.dataset import Dataset
from gym_conformance.findings import Verdict
from tests.twins.judging import judge

NOTE = {
    "type": "function",
    "name": "put_note",
    "parameters": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
    "strict": False,
}


class Worker(BaseHTTPRequestHandler):
    """Keeps its connections, and the number of its life in the cookie."""

    protocol_version = "HTTP/1.1"
    lives = 0

    def do_POST(self) -> None:
        said = json.loads(self.rfile.read(int(self.headers["content-length"])))
        known = f"life={Worker.lives}" in self.headers.get("cookie", "")
        if self.path == "/put_note" and known and not isinstance(said.get("text"), str):
            Worker.lives += 1
            self.close_connection = True
            return
        status = 200 if known or self.path == "/seed_session" else 409
        reply = json.dumps({**said, "reward": 0.0} if self.path == "/verify" else {}).encode()
        self.send_response(status)
        self.send_header("set-cookie", f"life={Worker.lives}; path=/")
        self.send_header("content-length", str(len(reply)))
        self.end_headers()
        self.wfile.write(reply)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def url() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Worker) as server:
        server.daemon_threads = True
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_a_call_that_a_worker_dies_of_is_told(url: str) -> None:
    params = {"input": [{"role": "user", "content": "Note it."}], "tools": [NOTE]}
    data = Dataset((Row({"responses_create_params": params}, Source(Path("notes.jsonl"), 1)),), (), 1)
    [finding] = judge(url, data, checks={"tool-wrong-arguments"})["tool-wrong-arguments"]
    assert finding.verdict is Verdict.FAIL, finding
    assert "connection broke" in finding.actual
