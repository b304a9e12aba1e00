"""What counts as new: statuses, forms of replies and rewards, not values."""

import json

import pytest

from gym_conformance.session.exchange import Exchange, Reply, Request
from gym_conformance.trajectories.novelty import Novelty


def _answered(body: object, status: int = 200, path: str = "/read") -> Exchange:
    headers = (("content-type", "application/json"),)
    return Exchange(1, Request("POST", path), Reply(status, headers, json.dumps(body).encode(), 0.0))


@pytest.mark.parametrize(
    ("later", "new"),
    [
        (_answered({"id": 2, "items": [{"name": "b"}]}), False),
        (_answered({"items": [{"name": "c"}, {"name": "d"}], "id": 3}), False),
        (_answered({"id": "2", "items": [{"name": "b"}]}), True),
        (_answered({"id": 2, "items": []}), True),
        (_answered({"id": 2, "items": [{"name": "b"}]}, 404), True),
        (_answered({"id": 2, "items": [{"name": "b"}]}, path="/write"), True),
        (_answered({"id": 2, "items": [{"name": "b"}], "reward": 1.0}), True),
        (Exchange(1, Request("POST", "/read")), True),
    ],
)
def test_what_is_new(later: Exchange, new: bool) -> None:
    novelty = Novelty()
    novelty.take([_answered({"id": 1, "items": [{"name": "a"}]})])
    novelty.take([later])
    assert novelty.quiet == (0 if new else 1)


def test_another_reward_is_new_and_the_same_is_not() -> None:
    novelty = Novelty()
    for reward, quiet in ((1.0, 0), (0.5, 0), (1.0, 1), (0.5, 2)):
        novelty.take([_answered({"reward": reward}, path="/verify")])
        assert novelty.quiet == quiet
