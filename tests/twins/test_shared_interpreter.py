"""A server that runs programs, each in names of its own, and a twin with one interpreter for all sessions."""

import re
from dataclasses import replace

import pytest

from gym_conformance.findings import Verdict
from gym_conformance.trajectories.programs import defined_in, is_program
from gym_mocks.resources import ResourcesServer
from tests.twins.judging import found_by
from tests.twins.twin import rollout_of
from tests.twins.unrecorded import rows_of


def interpreter(*, shared: bool) -> ResourcesServer:
    """One that knows how to set a name and to print one; whatever else it runs prints 42."""
    common: dict[str, str] = {}

    def run(code: str) -> dict[str, str]:
        names = common if shared else {}
        if found := re.fullmatch(r'(\w+) = "(\w+)"', code):
            names[found[1]] = found[2]
            return {"printed": ""}
        found = re.fullmatch(r"print\((\w+)\)", code)
        return {"printed": names.get(found[1], "NameError") if found else "42"}

    return ResourcesServer("interpreter", tools=[run], verify=lambda: 0.0)


@pytest.mark.parametrize("shared", [False, True])
def test_a_name_that_one_session_s_program_sets_is_known_to_no_other(shared: bool) -> None:
    data = rows_of(interpreter(shared=shared))
    played = rollout_of(data.rows[0], ("run", {"code": "print(6 * 7)"}, {"printed": "42"}), said="42")
    [finding] = found_by("isolation-told", interpreter(shared=shared), replace(data, rollouts=(played,)))
    assert finding.verdict is (Verdict.FAIL if shared else Verdict.PASS), finding


@pytest.mark.parametrize(
    "text", ["import os", "x = 1", "print(6 * 7)", "def f(n):\n    return n\n", "for x in (1, 2):\n    pass"]
)
def test_what_does_something_is_a_program(text: str) -> None:
    assert is_program(text)


@pytest.mark.parametrize(
    "text", ["", "shelf", "all is well (so far)", "3 - 4", "print(", "x == 1", "re('\\d') is 1", "\0 = (", "(" * 9999]
)
def test_words_are_no_program(text: str) -> None:
    assert not is_program(text)
    assert not defined_in(text)
