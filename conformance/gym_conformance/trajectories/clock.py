"""Texts that tell the present time: they are the same for as long as a clock shows the same. Pure, but for the clock."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, Final

_MOMENT: Final = re.compile(r"\d{4}-\d\d-\d\d|\d{1,2}:\d\d(?::\d\d(?:\.\d+)?)?")

#: A run may be so old when its replies are looked at, and a clock without seconds may be so far off.
_RECENT: Final = timedelta(minutes=5)


def both_tell_the_time(before: Any, after: Any) -> bool:
    """Whether two texts differ in a date or time alone, and `after` tells the present one, here or in UTC."""
    if not isinstance(before, str) or not isinstance(after, str) or not _MOMENT.search(before):
        return False
    if _MOMENT.sub("", before) != _MOMENT.sub("", after):
        return False
    now = set(_now())
    told = [moment.partition(".")[0].zfill(5) for moment in _MOMENT.findall(after)]
    return bool(told) and all(moment in now for moment in told)


def _now() -> Iterator[str]:
    """How clocks show the moments of late."""
    for here in (datetime.now(UTC), datetime.now().astimezone()):
        for second in range(int(_RECENT.total_seconds()) + 1):
            moment = here - timedelta(seconds=second)
            yield from (f"{moment:%Y-%m-%d}", f"{moment:%H:%M:%S}", f"{moment:%H:%M}")
