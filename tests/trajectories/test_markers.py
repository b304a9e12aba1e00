"""The sessions with words of their own that `isolation-told` begins with."""

from pathlib import Path
from random import Random

from gym_conformance.contract.dataset_rows import Call, Row, Source
from gym_conformance.trajectories.generate import Knowledge
from gym_conformance.trajectories.markers import marked_sessions
from gym_conformance.trajectories.returned import Returned
from gym_conformance.trajectories.trajectory import Trajectory, asks_another


def _row(number: int) -> Row:
    def tool(name: str, key: str) -> dict[str, object]:
        parameters = {"type": "object", "properties": {key: {"type": "string"}}, "required": [key]}
        return {"type": "function", "name": name, "parameters": parameters}

    tools = [tool("look", "note_id"), tool("drop", "note_id"), tool("note", "text")]
    return Row({"responses_create_params": {"input": "x", "tools": tools}}, Source(Path("rows.jsonl"), number))


def test_what_a_later_trajectorys_tool_returns_is_asked_for_too() -> None:
    look, drop = Call("look", {"note_id": "n0"}), Call("drop", {"note_id": "n0"})
    dropped, again = [Trajectory(_row(number), (look, drop)) for number in (1, 2)]
    noted = Trajectory(_row(3), (Call("note", {"text": "buy milk"}),))
    knowledge = Knowledge(
        tuple(one.row for one in (dropped, again, noted)),
        known_trajectories=(dropped, again, noted),
        meaningful={"look": (look.arguments,), "drop": (drop.arguments,)},
        returned={"note": (Returned("5c4b6b3f", ("note_id",), ("note_id",)),)},
    )
    asked = {
        call.name
        for schedule in marked_sessions(knowledge, Random(0))
        for call in schedule.trajectories[-1].calls
        if schedule.trajectories[0].row is noted.row and asks_another(call.arguments)
    }
    assert {"look", "drop"} <= asked
