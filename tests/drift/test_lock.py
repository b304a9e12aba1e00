"""The lock file: the same text for the same tools, and one clear answer to anything else."""

import json
from pathlib import Path

import pytest

from gym_conformance.contract.dataset_rows import Source
from gym_conformance.drift.definitions import Definitions
from gym_conformance.drift.lock import BadLock, Lock, lock_of, parse_lock
from gym_conformance.drift.served import served_tools
from tests.drift.pairs import INTEGER, STRING, Schema, of
from tests.drift.test_pydantic import CORPUS


def rows(**schemas: Schema) -> Definitions:
    definitions = Definitions()
    for line, (name, schema) in enumerate(schemas.items(), start=1):
        definitions.add([{"name": name, "parameters": schema}], Source(Path("rows.jsonl"), line))
    return definitions


def test_round_trip() -> None:
    for corpus in CORPUS:
        lock = lock_of(rows(a=of(a=STRING)), served_tools(json.loads(corpus.read_text())))
        assert parse_lock(lock.render()) == lock
        assert parse_lock(lock.render()).render() == lock.render()
        assert lock.outdated(parse_lock(lock.render())) == ()


def test_order_and_titles_make_no_difference() -> None:
    here = lock_of(rows(a=of("x", "y", x=STRING, y=INTEGER), b=of()), None)
    there = lock_of(rows(b=of(), a=of("y", "x", y=INTEGER | {"title": "Y"}, x=STRING)), None)
    assert here.render() == there.render()


def test_fastapi_of_any_version_writes_the_same() -> None:
    """Else an upgrade of FastAPI would turn every lock red."""
    locks = {lock_of(None, served_tools(json.loads(corpus.read_text()))).render() for corpus in CORPUS}
    assert len(locks) == 1


def test_either_side_may_change() -> None:
    served = served_tools(json.loads(CORPUS[-1].read_text()))
    before = lock_of(rows(a=of(x=STRING), gone=of()), {name: served[name] for name in ("plain", "free")})
    after = lock_of(rows(a=of(x=INTEGER), new=of()), {"plain": served["forbid"], "tree": served["tree"]})
    said = {(drift.tool, drift.message.split(": ", 1)[1].split(" since")[0]) for drift in before.outdated(after)}
    assert said == {
        ("a", "the rows' definition has changed"),
        ("gone", "the rows' definition is gone"),
        ("new", "the rows' definition is new"),
        ("plain", "the server's schema has changed"),
        ("free", "the server's schema is gone"),
        ("tree", "the server's schema is new"),
    }
    (changed,) = [drift for drift in before.outdated(after) if drift.tool == "a"]
    assert changed.path == "/0/parameters/properties/x/type"


def test_a_side_that_is_not_known_is_not_compared() -> None:
    assert lock_of(rows(a=of()), None).outdated(lock_of(None, {})) == ()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "not JSON"),
        ("<<<<<<< HEAD\n", "fix the merge"),
        ("[]", "no version"),
        ("{}", "no version"),
        ('{"version": 99}', "version is 99"),
        ('{"version": 1, "rows": []}', "rows is not"),
        ('{"version": 1, "server": {"a": 1}}', "server is not"),
    ],
)
def test_bad_lock(text: str, says: str) -> None:
    with pytest.raises(BadLock, match=says) as caught:
        parse_lock(text)
    assert "\n" not in str(caught.value)


def test_the_empty_lock() -> None:
    assert parse_lock(Lock().render()) == Lock()
