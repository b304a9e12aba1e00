"""A page of which some elements can be typed into, and others only clicked: nothing is recorded."""

from dataclasses import dataclass, field
from typing import Any

import pytest

from gym_conformance.scouting.learn import find
from gym_mocks.resources import ResourcesServer
from gym_mocks.wire import HttpRefusal
from tests.twins.judging import judge, on_gym, telling
from tests.twins.twin import said_by_users

_NAMES = {1: "Home", 2: "Name", 3: "Email", 4: "News", 5: "Send"}


@dataclass
class Page:
    """One session: what was typed, whether the box is ticked, and what was sent."""

    habit: str
    typed: dict[int, str] = field(default_factory=dict)
    ticked: bool = False

    def shown(self) -> dict[str, Any]:
        values = {**self.typed, 4: self.ticked}
        return {"elements": [{"id": at, "name": name, "value": values.get(at, "")} for at, name in _NAMES.items()]}

    def type(self, element: int, text: str) -> dict[str, Any]:
        if element not in (2, 3):
            raise HttpRefusal(422, "nothing can be typed there")
        if element == 3 and "@" not in text:
            if self.habit == "types what it refuses":
                self.typed[element] = text
            raise HttpRefusal(422, "that is no address")
        self.typed[element] = text
        return self.shown()

    def click(self, element: int) -> dict[str, Any]:
        if element == 4:
            self.ticked = not self.ticked
            return self.shown()
        if element == 5 and self.habit == "unticks what it does not send":
            self.ticked = False
        raise HttpRefusal(422, "fill in the page first" if element == 5 else "that cannot be clicked")


def _pages(habit: str) -> ResourcesServer:
    for_all = Page(habit)

    def observe(state: Page) -> dict[str, Any]:
        """See the page."""
        return state.shown()

    def type_text(state: Page, element: int, text: str) -> dict[str, Any]:
        """Type into an element."""
        return state.type(element, text)

    def click(state: Page, element: int) -> dict[str, Any]:
        """Click an element."""
        return state.click(element)

    def page() -> Page:
        return for_all if habit == "one page for all" else Page(habit)

    return ResourcesServer("pages", tools=[observe, type_text, click], verify=lambda: 0.0, state=page)


@pytest.mark.parametrize(
    ("habit", "told"),
    [
        ("sound", set()),
        ("one page for all", {"isolation-earlier"}),
        pytest.param("types what it refuses", {"calls-refused-harmless"}, marks=pytest.mark.twins),
        ("unticks what it does not send", {"calls-refused-harmless"}),
    ],
)
def test_what_further_elements_do_is_told(habit: str, told: set[str]) -> None:
    server = _pages(habit)
    rows = said_by_users(("Fill in the page.", "Send it."), server.declarations)
    assert telling(judge(server, rows, checks={"isolation-earlier", "calls-refused-harmless", "calls-valid"})) == told


def test_an_element_that_can_be_acted_on_is_found_among_those_that_a_page_lists() -> None:
    server = _pages("sound")
    found = on_gym(server, find, said_by_users(("Fill in the page.",), server.declarations))
    assert {"type_text", "click"} <= {call.name for call in found.taken[0].calls}
