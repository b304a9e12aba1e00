"""What the sections of pages are made of: headings, tables, what scrolls by itself, plots, and filters."""

from collections.abc import Iterable, Sequence
from typing import Final

from gym_conformance.reports.page.markup import Child, Markup, element, preformatted

#: How wide plots are.
WIDTH: Final = 720


def section(title: str, *parts: Child, anchor: str = "") -> Markup:
    """A section of the page, which links lead to."""
    anchor = anchor or title.lower()
    return element("section", element("h2", title, id=anchor), *parts, aria_labelledby=anchor)


def table(
    heads: Iterable[str], rows: Iterable[Child], class_: str | None = "latency", numbers: str | None = None
) -> Markup:
    """A table with one line of heads; `numbers` is their class."""
    head = element("tr", *(element("th", name, scope="col", class_=numbers) for name in heads))
    return element("table", element("thead", head), element("tbody", *rows), class_=class_)


def numbers(cells: Iterable[str]) -> list[Markup]:
    """Cells of a row that stand to the right."""
    return [element("td", cell, class_="number") for cell in cells]


def wide(label: str, *parts: Child) -> Markup:
    """What may be wider than the page, and scrolls by itself."""
    return element("div", *parts, class_="wide", tabindex="0", role="region", aria_label=label)


def plot(label: str, height: int, *parts: Child) -> Markup:
    """A drawing."""
    return element("svg", *parts, viewBox=f"0 0 {WIDTH} {height}", role="img", aria_label=label)


def curve(label: str, places: Sequence[tuple[float, float]], radii: Iterable[int]) -> Markup:
    """Dots of these places, each between 0 and 1 from left to right and from below, of these radii, and what joins them."""
    height, margin = 200, 14
    drawn = [
        (round(margin + x * (WIDTH - 2 * margin), 1), round(height - margin - y * (height - 2 * margin), 1))
        for x, y in places
    ]
    grid = [
        element("line", x1=margin, x2=WIDTH - margin, y1=y, y2=y, class_="grid")
        for y in (margin, height / 2, height - margin)
    ]
    line = element("polyline", points=" ".join(f"{x},{y}" for x, y in drawn), class_="slope")
    dots = [element("circle", cx=x, cy=y, r=radius) for (x, y), radius in zip(drawn, radii, strict=True)]
    return plot(label, height, *grid, line, *dots)


def commands(name: str, lines: str) -> Markup:
    """A block of commands that is called so."""
    return element("pre", element("code", preformatted(lines)), tabindex="0", role="region", aria_label=name)


def filters(noun: str, kinds: Iterable[tuple[str, int, str]], count: int, *more: Child) -> Markup:
    """What finds things of a list, by kinds, each with its class; shown by the script, which it takes."""
    boxes = [
        element(
            "label",
            element("input", type="checkbox", checked=True, value=word),
            f"{word} ",
            element("span", f"{many:,}"),
            class_=class_,
        )
        for word, many, class_ in kinds
    ]
    search = element(
        "input", type="search", id="search", placeholder=f"Search {noun} ( / )", autocomplete="off", spellcheck="false"
    )
    return element(
        "form",
        element("label", element("span", "Search", class_="unseen"), search),
        element("fieldset", element("legend", "Show", class_="unseen"), *boxes),
        *more,
        element("output", f"{count:,} {noun}", id="count", for_="search"),
        id="filter",
        role="search",
        hidden=True,
        data_noun=noun,
    )
