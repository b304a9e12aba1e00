"""One endpoint for each action, and one that ends the episode: what is done after it counts for nothing."""

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from gym_mocks.policy.items import call, say
from gym_mocks.resources import ResourcesServer, Score, TaskRow

GOALS = ((2, 0), (0, 3), (-1, 1), (4, -2), (-3, -3))


@dataclass
class Robot:
    """Where the robot stands, and whether it has stopped."""

    x: int = 0
    y: int = 0
    stopped: bool = False


class Position(BaseModel):
    """Where the robot stands after an action."""

    x: int
    y: int
    stopped: bool


class RobotRow(TaskRow):
    """A row: where the robot should stop."""

    goal_x: int
    goal_y: int


Steps = Annotated[int, Field(ge=1, le=10)]


def move_sideways(state: Robot, steps: Steps, to: Literal["left", "right"]) -> Position:
    """Move left or right."""
    if not state.stopped:
        state.x += steps if to == "right" else -steps
    return look(state)


def move_along(state: Robot, steps: Steps, to: Literal["up", "down"]) -> Position:
    """Move up or down."""
    if not state.stopped:
        state.y += steps if to == "up" else -steps
    return look(state)


def look(state: Robot) -> Position:
    """Say where the robot stands."""
    return Position(x=state.x, y=state.y, stopped=state.stopped)


def terminate(state: Robot) -> Position:
    """Stop the robot for good."""
    state.stopped = True
    return look(state)


def verify(state: Robot, row: RobotRow) -> Score:
    """Half for having stopped, half for the place, if it has stopped."""
    there = (state.x, state.y) == (row.goal_x, row.goal_y)
    return Score.summed({"stopped": 0.5 * state.stopped, "place": 0.5 * (there and state.stopped)})


def server() -> ResourcesServer:
    """A fresh server."""
    return ResourcesServer("robot", tools=(move_sideways, move_along, look, terminate), verify=verify, state=Robot)


def _row(x: int, y: int, tools: list[dict[str, Any]]) -> dict[str, Any]:
    prompt = {"role": "user", "content": f"Bring the robot to {x} across, {y} up, then terminate."}
    return {"responses_create_params": {"input": [prompt], "tools": tools}, "goal_x": x, "goal_y": y}


def _solution(x: int, y: int) -> list[Any]:
    sideways = [call("move_sideways", steps=abs(x), to="right" if x > 0 else "left")] if x else []
    along = [call("move_along", steps=abs(y), to="up" if y > 0 else "down")] if y else []
    return [*sideways, *along, call("terminate"), say("There.")]


TOOLS = server().declarations
ROWS = [_row(x, y, TOOLS) for x, y in GOALS]
SOLUTIONS: list[list[Any]] = [_solution(x, y) for x, y in GOALS]
