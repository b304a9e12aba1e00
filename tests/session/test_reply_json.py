"""What of a reply's body is taken for JSON."""

import json
import time

import pytest

from gym_conformance.session.exchange import Reply

BRACKETS = "[" * 20_000


def _reply(body: bytes) -> Reply:
    return Reply(200, (("content-type", "application/json"),), body, 0.0)


def test_signs_in_texts_are_no_values() -> None:
    """A server with a judge model echoes what a policy wrote three times and more, and may escape it."""
    echoed = {"response": BRACKETS, "judge": [json.dumps({"said": BRACKETS}), BRACKETS + "," * 600_000], "reward": 0.0}
    assert _reply(json.dumps(echoed).encode()).json() == echoed


@pytest.mark.parametrize(
    "body",
    [
        b"[" + b"[]," * 60_000 + b"0]",
        b"[" + b"1," * 600_000 + b"0]",
        b'["a", ' + b"{}," * 60_000 + b'"b"]',
        b'["' + b'\\"[' * 2_000_000,
        b'["' + b'"[' * 2_000_000,
    ],
    ids=["arrays", "values", "objects", "an unclosed text", "many texts"],
)
def test_what_makes_too_much_is_not_parsed(body: bytes) -> None:
    began = time.process_time()
    assert not _reply(body).is_json
    assert time.process_time() - began < 10  # seconds; a text that is read anew from each of its signs takes hours
