"""Every twin."""

from tests.twins import cookies, drift, innocent, metrics, seed, tools, unseen, verify, whatever
from tests.twins.twin import Twin

TWINS: tuple[Twin, ...] = tuple(
    twin
    for module in (seed, cookies, tools, drift, verify, metrics, whatever, innocent, unseen)
    for twin in module.TWINS
)
