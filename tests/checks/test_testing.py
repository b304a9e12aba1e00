"""The public helpers for those who write checks of their own."""

from pathlib import Path

import pytest

from gym_conformance.api import NotApplicable, Trial, Untestable, Verdict, check
from gym_conformance.dataset import BadData
from gym_conformance.session.server_fault import Fault, ServerFault
from gym_conformance.testing import Twin, assert_twins, judge
from gym_mocks.reference import DATA, reference_app
from gym_mocks.serving import serve
from tests.example_plugin.house_rules import house_reward_steps, server


@check("house-odd", "It SHOULD be so", why="it is a fact", url="https://example.com/odd")
async def odd(trial: Trial, _: object) -> None:
    """Looks at nothing but whether there are rows."""
    if not trial.gym.rows:
        raise NotApplicable("there are no rows")
    if len(trial.gym.rows) > 1:
        raise Untestable("one row")


def test_an_application_is_judged_in_a_line() -> None:
    assert [one.verdict for one in judge(server(0.25), house_reward_steps)] == [Verdict.PASS]
    [finding] = judge(server(1 / 3), house_reward_steps)
    assert (finding.verdict, finding.expected) == (Verdict.FAIL, "a multiple of 0.25")
    assert any("/verify" in command for command in finding.reproduce)


@pytest.mark.parametrize("rows", [DATA, [{"responses_create_params": {"input": []}, "answer": "4"}], []])
def test_so_is_a_server_by_its_url_with_rows_and_any_check_by_its_id(rows: Path | list[dict[str, object]]) -> None:
    with serve(reference_app()) as url:
        assert {one.verdict for one in judge(url, "live-root", rows)} == {Verdict.PASS}


@pytest.mark.parametrize(
    ("title", "verdict"),
    [("It MUST be", Verdict.FAIL), ("It SHOULD be", Verdict.FAIL), ("A fact", Verdict.UNTESTABLE)],
)
def test_a_fact_that_no_answer_tells_is_untestable_and_no_note(title: str, verdict: Verdict) -> None:
    @check("house-hangs", title, why="it is a fact", framework=True)
    async def hangs(trial: Trial, _: object) -> None:
        await trial.open()
        raise ServerFault(Fault.HANG, "nothing in 1 s")

    [finding] = judge(server(1.0), hangs)
    assert (finding.verdict, finding.framework) == (verdict, False)
    assert "no complete answer came in time" in finding.actual
    assert any("/seed_session" in command for command in finding.reproduce)
    if verdict is Verdict.UNTESTABLE:
        assert finding.reason == "a server that answers: no complete answer came in time: nothing in 1 s"
        assert finding.breaks(strict=False)


def test_what_cannot_be_used_is_said() -> None:
    with pytest.raises(ValueError, match="no check has the id 'no-such'"):
        judge(server(1.0), "no-such")
    with pytest.raises(BadData, match=r"responses_create_params"):
        judge(server(1.0), house_reward_steps, [{"a": 1}])


def test_twins_are_held_to_what_they_declare() -> None:
    house = house_reward_steps.id
    thirds = Twin("thirds", server(1 / 3), {house})
    assert_twins([house_reward_steps], server(0.5), [thirds])
    with pytest.raises(AssertionError, match=r"(?s)^the sound application: house-.* ends with fail .*got reward 0\.3"):
        assert_twins([house_reward_steps], server(1 / 3), [thirds])
    with pytest.raises(AssertionError, match=r"^quarters: house-reward-steps ends with pass$"):
        assert_twins([house_reward_steps], server(0.5), [thirds, Twin("quarters", server(0.25), {house})])
    with pytest.raises(AssertionError, match=r"^fifths: house-reward-steps ends with fail \(expected a multiple"):
        assert_twins([house_reward_steps], server(0.5), [thirds, Twin("fifths", server(0.2), set())])
    with pytest.raises(AssertionError, match=r"^house-reward-steps: no twin is for it$"):
        assert_twins([house_reward_steps], server(0.5), [])


def test_a_check_that_tries_nothing_on_the_sound_application_is_wrong() -> None:
    with pytest.raises(AssertionError, match=r"house-odd does not apply \(there are no rows\), so that nothing"):
        assert_twins([odd], server(0.5), [])
    with pytest.raises(AssertionError, match=r"the sound application: house-odd ends with untestable \(one row\)"):
        assert_twins([odd], server(0.5), [], DATA)
