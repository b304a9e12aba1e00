"""A house rule as a check, and the broken twin that shows that it sees what it is for: `pytest house_rules.py`."""

from fastapi import FastAPI

from gym_conformance.api import SCORE, Row, Trial, Violation, check, each_row, message, response
from gym_conformance.testing import Twin, assert_twins


@check(
    "house-reward-steps",
    "A reward MUST be a multiple of 0.25",
    why="our curriculum sorts tasks by quarters, and drops every other reward.",
    url="https://example.com/house-rules#house-reward-steps",
    needs=[SCORE],
    subjects=each_row,
)
async def house_reward_steps(trial: Trial, row: Row) -> None:
    """Verifies a plain answer to each row, and looks at its reward.

    Source: our guide for environments, section 3.
    """
    verdict = await trial.scored(await trial.open(row), response([message("The answer is 42.")]))
    if verdict["reward"] % 0.25:
        raise Violation("a multiple of 0.25", f"reward {verdict['reward']}", "Round it in verify.")


def server(reward: float) -> FastAPI:
    app = FastAPI()
    app.post("/seed_session")(lambda: {"seeded": True})
    app.post("/verify")(lambda: {"reward": reward})
    return app


def test_the_rule_sees_its_twin() -> None:
    assert_twins([house_reward_steps], server(0.75), [Twin("a third", server(1 / 3), {"house-reward-steps"})])
