"""Two replies are compared by their words, but for what each was asked about."""

import json
from typing import Any

import pytest

from gym_conformance.session.exchange import Reply
from gym_conformance.session.likeness import Answer, alike


def answer(body: Any, about: Any = (), status: int = 400) -> Answer:
    text = body if isinstance(body, str) else json.dumps(body)
    return Answer(Reply(status, (), text.encode(), 0.0), (about,) if about != () else ())


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (answer("no tool get_it here", "get_it"), answer("no tool nobody here", "nobody")),
        (answer({"error": "no such room: attic"}, "attic"), answer({"error": "no such room: x y"}, "x y")),
        (answer({"input": 3}, 3), answer({"input": {"a": []}}, {"a": []})),
        (answer({"errors": {"city": ["unknown"]}}, "city"), answer({"errors": {"town": ["unknown"]}}, "town")),
        (answer("Choose one of tea, jam.", "tea"), answer("Choose one of tea, jam.", "nobody")),
        (answer("tea is not one of tea, jam", "tea"), answer("nobody is not one of tea, jam", "nobody")),
        (answer("'true' or 'false', please", True), answer("'true' or 'false', please", "nobody")),
        (
            answer(
                {"error": "no", "request_id": "16a17db6-45aa-4edb-a3cb-b1f3dbd01186", "at": "2026-11-26T15:52:31.5Z"}
            ),
            answer(
                {"error": "no", "request_id": "93b56553-a7b2-4ae5-a7de-c3f05fffc001", "at": "2026-11-26T15:53:02.1Z"}
            ),
        ),
    ],
)
def test_alike_but_for_what_it_is_about(one: Answer, other: Answer) -> None:
    assert alike(one, other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (answer("no account named bob", "transfer"), answer("Not Found", "nobody")),
        (answer("no", status=404), answer("no", status=400)),
        (answer("a cat", "a"), answer("b cat b", "b")),
        (answer("not before 2026-11-26"), answer("not before 2026-11-27")),
        (answer({"detail": "Not Found"}), answer({"detail": "Not Found", "path": "/x"})),
        (answer({"open": True}), answer({"open": 1})),
    ],
)
def test_other_words_are_another_answer(one: Answer, other: Answer) -> None:
    assert not alike(one, other)


def test_what_differs_between_equals_is_not_compared() -> None:
    """A request id is in every reply, and another one each time."""
    one, other, third = (answer({"detail": "Not Found", "request": text}) for text in ("a1", "b2", "c3"))
    assert not alike(one, other)
    assert alike(one, other, third)
    assert not alike(answer({"detail": "No such order", "request": "d4"}), other, third)
