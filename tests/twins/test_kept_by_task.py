"""A server that keeps drafts under the task's id, which the names that other sessions gave open, and a sound one."""

from itertools import count

import pytest

from gym_mocks.resources import ResourcesServer, TaskRow
from gym_mocks.wire import HttpRefusal
from tests.twins.judging import judge, telling
from tests.twins.unrecorded import rows_of


def drafts(*, by_task: bool) -> ResourcesServer:
    """Saving a draft replaces what was called so, so that whoever saves before it opens one finds its own."""
    saved: dict[tuple[int, str], str] = {}
    sessions = count(1)

    def save_draft(state: int, name: str, body: str) -> dict[str, int]:
        """Save a draft under a name."""
        saved[state, name] = body
        return {"length": len(body)}

    def open_draft(state: int, name: str) -> dict[str, int]:
        """How long the draft of this name is."""
        if (state, name) not in saved:
            raise HttpRefusal(404, "there is no such draft")
        return {"length": len(saved[state, name])}

    def owner(_: TaskRow) -> int:
        return 0 if by_task else next(sessions)

    return ResourcesServer("drafts", tools=[save_draft, open_draft], verify=lambda: 0.0, state=owner)


@pytest.mark.parametrize("by_task", [False, True])
def test_a_name_that_another_session_gave_opens_nothing(by_task: bool) -> None:
    server = drafts(by_task=by_task)
    assert telling(judge(server, rows_of(server), checks={"isolation-earlier"})) == (
        {"isolation-earlier"} if by_task else set()
    )
