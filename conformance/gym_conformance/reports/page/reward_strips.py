"""The rewards on the page: how they spread by what was handed in, a strip for each row, and the worst with commands."""

from collections.abc import Sequence
from typing import Final

from gym_conformance.findings import RewardSpread, RowPay
from gym_conformance.reports.page.markup import Markup, element
from gym_conformance.reports.page.parts import WIDTH, commands, plot, section, table, wide
from gym_conformance.reports.shown_text import script

_HEIGHT: Final = 44
_MARGIN: Final = 10

#: The classes of a row's verdict.
_TONES: Final = {"fails": "should", "unchecked": "none", "holds": "pass"}


def rewards(spread: RewardSpread) -> Markup:
    """The section of the page."""
    many = sum(spread.verdicts.values())
    shown = "each row" if many == len(spread.rows) else f"the worst {len(spread.rows):,} of {many:,} rows"
    by_answer = table(("Handed in", "Scored", _axis(spread)), [_spread_row(spread, name) for name in spread.counts])
    by_row = table(("Row", _axis(spread), "Own answer", "Most else"), [_row(spread, row) for row in spread.rows])
    return section(
        "Rewards",
        element("p", _sentence(spread)),
        wide("How rewards spread", by_answer),
        element("p", f"Of {shown}, the worst first: the reward of its own answer is the full dot.", class_="more"),
        wide("Rewards of rows", by_row),
        *(_reproduction(row) for row in spread.rows if row.reproduce),
    )


def _sentence(spread: RewardSpread) -> str:
    holds, fails, unchecked = (spread.verdicts[verdict] for verdict in ("holds", "fails", "unchecked"))
    return (
        f"{holds:,} rows pay their own answer alone, {fails:,} do not, and {unchecked:,} are unchecked. "
        f"The top is {spread.top:g}, and answers look like this: {spread.answers}"
    )


def _axis(spread: RewardSpread) -> str:
    return f"Rewards from {spread.low:g} to {spread.high:g}"


def _spread_row(spread: RewardSpread, name: str) -> Markup:
    counts = spread.counts[name]
    return element(
        "tr",
        element("th", name, scope="row"),
        element("td", f"{sum(counts):,}", class_="number"),
        element("td", _histogram(counts, f"Rewards of {name}")),
    )


def _histogram(counts: Sequence[int], label: str) -> Markup:
    most, step = max(counts) or 1, (WIDTH - 2 * _MARGIN) / len(counts)
    bars = [
        element(
            "rect",
            x=round(_MARGIN + number * step + 0.5, 1),
            y=round(_HEIGHT - max(count / most * (_HEIGHT - 4), 2), 1),
            width=round(step - 1, 1),
            height=round(max(count / most * (_HEIGHT - 4), 2), 1),
            class_="step",
        )
        for number, count in enumerate(counts)
        if count
    ]
    base = element("line", x1=_MARGIN, x2=WIDTH - _MARGIN, y1=_HEIGHT, y2=_HEIGHT, class_="grid")
    viewed = f"0 0 {WIDTH} {_HEIGHT}"
    return element("svg", base, *bars, viewBox=viewed, preserveAspectRatio="none", role="img", aria_label=label)


def _row(spread: RewardSpread, row: RowPay) -> Markup:
    name, most = max(row.others.items(), key=lambda other: other[1], default=("", None))
    return element(
        "tr",
        element("th", element("code", row.place), f" {row.verdict}", scope="row", class_=_TONES[row.verdict]),
        element("td", _strip(spread, row)),
        element("td", "-" if row.own is None else f"{row.own:g}", class_="number"),
        element("td", "-" if most is None else f"{most:g} for {name}"),
    )


def _strip(spread: RewardSpread, row: RowPay) -> Markup:
    """A reward is a place from left to right: a full dot of the row's own answer, a mark for each other."""

    def at(reward: float) -> float:
        part = (reward - spread.low) / (spread.high - spread.low)
        return round(_MARGIN + min(max(part, 0.0), 1.0) * (WIDTH - 2 * _MARGIN), 1)

    middle = _HEIGHT / 2
    line = element("line", x1=_MARGIN, x2=WIDTH - _MARGIN, y1=middle, y2=middle, class_="grid")
    marks = [
        element("line", x1=at(reward), x2=at(reward), y1=6, y2=_HEIGHT - 6, class_="most")
        for reward in sorted(set(row.others.values()))
    ]
    own = [] if row.own is None else [element("circle", cx=at(row.own), cy=middle, r=7, class_="own")]
    label = f"Rewards of {row.place}: {'none' if row.own is None else f'{row.own:g}'} for its own answer"
    return plot(label, _HEIGHT, line, *marks, *own)


def _reproduction(row: RowPay) -> Markup:
    name = f"Reproduce {row.place}"
    shown = commands(name, script(row.reproduce))
    return element("details", element("summary", f"{name}: {row.amiss}"), shown, class_="all")
