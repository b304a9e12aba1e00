"""A tool that reads formulas, and calls itself for each bracket."""

from typing import Any

import pytest

from gym_conformance.findings import Verdict, worst
from gym_mocks.resources import ResourcesServer
from gym_mocks.wire import HttpRefusal
from tests.twins.judging import found_by
from tests.twins.twin import recorded_in_each
from tests.twins.unrecorded import rows_of

MOST, DEEPEST = 200, 500


def _read(text: str, depth: int = 0) -> str:
    if depth > DEEPEST:  # of its own: Hypothesis raises the interpreter's limit, and runs in this process, too
        raise RecursionError("maximum recursion depth exceeded")
    return _read(text[1:-1], depth + 1) if text.startswith("(") and text.endswith(")") else text


def formulas(*, bounded: bool) -> ResourcesServer:
    def simplify(formula: str) -> dict[str, Any]:
        """Leave out the outer brackets."""
        if bounded and formula.count("(") > MOST:
            raise HttpRefusal(400, "too deep")
        return {"formula": _read(formula)}

    return ResourcesServer("formulas", tools=[simplify], verify=lambda: 0.0)


@pytest.mark.parametrize(("bounded", "verdict"), [(True, Verdict.PASS), (False, Verdict.FAIL)])
def test_a_text_may_have_more_brackets_than_a_parser_holds(*, bounded: bool, verdict: Verdict) -> None:
    server = formulas(bounded=bounded)
    call = ("simplify", {"formula": "(p & q)"}, {"formula": "p & q"})
    data = recorded_in_each(rows_of(server), call)
    found = [*found_by("calls-valid", server, data), *found_by("calls-invalid", server, data)]
    assert worst(found) is verdict, [one.actual for one in found]
