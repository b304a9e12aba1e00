"""Texts that tell the present time, which stay the same only as long as the clock does. Pure, but for the clock."""

import re
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any, Final

_MOMENT: Final = re.compile(r"\d{4}-\d\d-\d\d|\d{1,2}:\d\d(?::\d\d(?:\.\d+)?)?")

#: Dates in the usual notations, and names of weekdays, which change with them.
_DATE: Final = re.compile(
    r"\d{4}-\d\d-\d\d|\b\d{1,2}\.? [A-Z][a-z]{2,8},? \d{4}\b|\b[A-Z][a-z]{2,8} \d{1,2},? \d{4}\b"
    r"|\b\d{1,2}[./]\d{1,2}[./]\d{4}\b"
)
_WRITTEN: Final = ("%Y-%m-%d", "%d %B %Y", "%d %b %Y", "%B %d %Y", "%b %d %Y", "%d.%m.%Y", "%m/%d/%Y", "%d/%m/%Y")
_WEEKDAY: Final = re.compile(r"\b(?:Mon|Tues?|Wed(?:nes)?|Thu(?:rs)?|Fri|Sat(?:ur)?|Sun)(?:day)?\b")

#: How old a run may be when its replies are compared, and how far off a clock without seconds may be.
_RECENT: Final = timedelta(minutes=5)


def without_moments(text: str) -> str:
    """Remove dates and times from the text."""
    return _MOMENT.sub("", text)


def both_tell_the_time(before: Any, after: Any) -> bool:
    """Whether two texts differ only in dates or times, and `after` tells the present one, in local time or UTC."""
    if not isinstance(before, str) or not isinstance(after, str) or not _MOMENT.search(before):
        return False
    if without_moments(before) != without_moments(after):
        return False
    now = set(_now())
    moments = [moment.partition(".")[0].zfill(5) for moment in _MOMENT.findall(after)]
    return bool(moments) and all(moment in now for moment in moments)


def same_but_for_dates(before: Any, after: Any) -> bool:
    """Whether two texts differ only in dates and days of the week."""
    if not isinstance(before, str) or not isinstance(after, str):
        return False
    one, two = (_WEEKDAY.sub("", _DATE.sub("", text)) for text in (before, after))
    return one == two


def days_later(before: str, after: str) -> int | None:
    """The number of days by which every date of a text moved on; None if they moved differently, or there is none."""
    pairs = list(zip(_DATE.findall(before), _DATE.findall(after), strict=False))
    ways = [{(late - early).days for late in _read(two) for early in _read(one)} for one, two in pairs]
    agreed = set[int].intersection(*ways) if ways else set()
    return min((days for days in agreed if days > 0), default=None)


def _read(text: str) -> Iterator[datetime]:
    plain = text.replace(",", "").replace(". ", " ")
    for form in _WRITTEN:
        with suppress(ValueError):
            yield datetime.strptime(plain, form).replace(tzinfo=UTC)


def _now() -> Iterator[str]:
    """The notations in which clocks show the last few minutes."""
    for here in (datetime.now(UTC), datetime.now().astimezone()):
        for second in range(int(_RECENT.total_seconds()) + 1):
            moment = here - timedelta(seconds=second)
            yield from (f"{moment:%Y-%m-%d}", f"{moment:%H:%M:%S}", f"{moment:%H:%M}")
