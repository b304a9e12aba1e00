"""An OpenAPI document that was written by hand, and says what the rows say, whatever the server does."""

from typing import Any

import pytest

from gym_conformance.dataset import Dataset
from gym_mocks.resources import ResourcesServer
from gym_mocks.wire import HttpRefusal
from tests.twins.judging import judge, telling
from tests.twins.unrecorded import rows_of

COLOURS = ["red", "green", "blue"]
CHECKS = {"tool-routed", "drift-argument-refused"}


def painter(*, known: list[str], sweeps: bool) -> ResourcesServer:
    """Paints in the colours that it knows."""

    def paint(state: list[str], colour: str) -> dict[str, Any]:
        """Paint the wall."""
        if colour not in known:
            raise HttpRefusal(400, f"colour must be one of {', '.join(known)}")
        state.append(colour)
        return {"coats": len(state)}

    def sweep(state: list[str]) -> dict[str, Any]:
        """Sweep the floor."""
        return {"coats": len(state)}

    server = ResourcesServer("painter", tools=[paint, sweep], verify=lambda: 0.0, state=list)
    schemas = server.openapi["components"]["schemas"]
    schemas["paint_arguments"]["properties"]["colour"]["enum"] = COLOURS
    del schemas["HTTPValidationError"]
    if not sweeps:
        del server.handlers["POST", "/sweep"]
    return server


def _data() -> Dataset:
    data = rows_of(painter(known=COLOURS, sweeps=True))
    for row in data.rows:
        [paint, _] = row.data["responses_create_params"]["tools"]
        paint["parameters"]["properties"]["colour"] = {"type": "string", "enum": COLOURS}
    return data


@pytest.mark.parametrize(
    ("known", "sweeps", "told"),
    [
        (COLOURS, True, set()),
        (COLOURS[:2], True, {"drift-argument-refused"}),
        (COLOURS, False, {"tool-routed"}),
    ],
)
def test_a_document_written_by_hand_is_not_believed(known: list[str], sweeps: bool, told: set[str]) -> None:
    assert telling(judge(painter(known=known, sweeps=sweeps), _data(), checks=CHECKS)) == told
