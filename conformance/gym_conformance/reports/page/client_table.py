"""Clients on the page: which of them the server works with, and which checks speak against it."""

from collections.abc import Iterable
from typing import Final

from gym_conformance.reports.known_clients import Compatibility, Works
from gym_conformance.reports.page.markup import Markup, element, join
from gym_conformance.reports.page.parts import section, table, wide

_CLASSES: Final = {Works.YES: "pass", Works.NO: "must"}


def clients(compatibilities: Iterable[Compatibility]) -> Markup:
    """The section of the page."""
    return section("Clients", wide("Clients", table(("Client", "", "Because of"), map(_row, compatibilities))))


def _row(one: Compatibility) -> Markup:
    checks = [element("a", check, href=f"#{check}") for check in one.because]
    spaced = [part for check in checks for part in (check, " ")]
    return element(
        "tr",
        element("th", one.client, scope="row"),
        element("td", one.works.value, class_=_CLASSES.get(one.works)),
        element("td", join(spaced) if one.works is Works.NO else ", ".join(one.because)),
    )
