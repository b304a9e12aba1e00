"""Zero wrong answers on the pairs; what stays unknown is listed with them."""

from typing import Any

import pytest

from gym_conformance.drift.compare import compare
from gym_conformance.drift.definitions import read_definition
from gym_conformance.drift.served import ServedTool
from gym_conformance.drift.tool_drift import Drift, DriftKind, Weight
from gym_schemas import Acceptance, upgrade
from tests.drift.pairs import CALLS, LEAVES, NULL, STRING, either, of, shut


def compared(definition: Any, served: Any, *, strict: bool = False) -> tuple[Drift, ...]:
    tool = read_definition({"type": "function", "name": "tool", "parameters": definition, "strict": strict})
    assert tool is not None
    drifts = compare(tool, ServedTool("tool", request=upgrade(served), route="/tool"))
    for drift in drifts:
        believe(drift, definition, served)
    return drifts


def believe(drift: Drift, definition: Any, served: Any) -> None:
    """A witness is what it claims to be, by the schemas as they were given."""
    if drift.kind is DriftKind.ARGUMENT_REFUSED and drift.witness:
        assert Acceptance(upgrade(definition)).accepts(drift.witness.value)
        assert not Acceptance(upgrade(served)).accepts(drift.witness.value)
    if drift.kind in (DriftKind.ARGUMENT_REFUSED, DriftKind.ARGUMENT_IGNORED) and drift.counterpart:
        assert Acceptance(upgrade(definition)).accepts(drift.counterpart.value)
        assert Acceptance(upgrade(served)).accepts(drift.counterpart.value)
    if drift.kind is DriftKind.ARGUMENT_REFUSED and drift.shown:
        assert drift.witness


def answers(drifts: tuple[Drift, ...]) -> set[str]:
    return {f"{'' if drift.shown else '?'}{drift.kind} {drift.path}" for drift in drifts}


def test_there_are_enough_pairs() -> None:
    assert 2 * len(LEAVES) + len(CALLS) >= 140


@pytest.mark.parametrize("name", LEAVES)
def test_narrow_definition(name: str) -> None:
    narrow, wide = LEAVES[name]
    drifts = compared(of("a", a=narrow), of("a", a=wide))
    assert not [drift for drift in drifts if drift.weight is Weight.BREAKING]


@pytest.mark.parametrize("name", LEAVES)
def test_wide_definition(name: str) -> None:
    narrow, wide = LEAVES[name]
    breaking = [drift for drift in compared(of("a", a=wide), of("a", a=narrow)) if drift.weight is Weight.BREAKING]
    assert breaking
    assert all(drift.kind is DriftKind.ARGUMENT_REFUSED and drift.shown for drift in breaking)
    assert all(drift.path.startswith("/a") for drift in breaking)


@pytest.mark.parametrize("name", CALLS)
def test_calls(name: str) -> None:
    definition, served, expected = CALLS[name]
    assert answers(compared(definition, served)) == expected


def test_a_strict_definition_requires_what_the_server_may_do_without() -> None:
    definition = shut("a", "b", a=either(STRING, NULL), b={"enum": ["x"]})
    served = of(a=either(STRING, NULL), b={"enum": ["x", "y"]})
    assert answers(compared(definition, served)) == {"argument-widened /a", "argument-widened /b"}
    assert answers(compared(definition, served, strict=True)) == {"argument-widened /b"}


@pytest.mark.parametrize("name", CALLS)
def test_the_same_twice(name: str) -> None:
    """The answer hangs on nothing but the pair."""
    definition, served, _ = CALLS[name]
    assert compared(definition, served) == compared(definition, served)
