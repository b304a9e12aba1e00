"""A server whose drafts other sessions find, by the task's id and a name or by what a read has cached, and a sound one."""

from itertools import count

import pytest

from gym_mocks.resources import ResourcesServer, TaskRow
from gym_mocks.wire import HttpRefusal
from tests.twins.judging import judge, telling
from tests.twins.twin import recorded_in_each
from tests.twins.unrecorded import rows_of


def drafts(kept: str) -> ResourcesServer:
    """Saving a draft replaces what was called so, so that whoever saves before it opens one finds its own.

    Drafts are kept under the session, the `task`, or under the session while what was opened is `cached` under its name.
    """
    saved: dict[tuple[int, str], str] = {}
    opened: dict[str, str] = {}
    sessions = count(1)

    def save_draft(state: int, name: str, body: str) -> dict[str, int]:
        """Save a draft under a name."""
        saved[state, name] = body
        return {"length": len(body)}

    def open_draft(state: int, name: str) -> dict[str, str]:
        """The draft of this name."""
        if (state, name) not in saved:
            raise HttpRefusal(404, "there is no such draft")
        body = saved[state, name]
        return {"body": opened.setdefault(name, body) if kept == "cached" else body}

    def owner(_: TaskRow) -> int:
        return 0 if kept == "task" else next(sessions)

    return ResourcesServer("drafts", tools=[save_draft, open_draft], verify=lambda: 0.0, state=owner)


@pytest.mark.parametrize("kept", ["session", "task", "cached"])
def test_a_name_that_another_session_gave_leads_to_nothing_of_it(kept: str) -> None:
    server = drafts(kept)
    calls = (
        ("save_draft", {"name": "poem", "body": "In spring"}, {"length": 9}),
        ("open_draft", {"name": "poem"}, {"body": "In spring"}),
    )
    data = recorded_in_each(rows_of(server), *calls)
    assert telling(judge(server, data, checks={"isolation-earlier"})) == (
        set() if kept == "session" else {"isolation-earlier"}
    )
