"""JSON Schema for the suite and the mocks alike: pure functions, no I/O. Importing it does not import Hypothesis.

- `upgrade` brings a schema of any draft, or of OpenAPI, to 2020-12; `walk`, `rewrite` and `Document` go through it.
- `Acceptance` holds values to an upgraded schema, and says where and why one is refused.
- `contains` and `subtract` compare two upgraded schemas; `too_large` says beforehand that they are too large for that.
- `differences`, `same`, `distance` and `without` compare JSON values and take them apart.
"""

from gym_schemas.acceptance import Acceptance, Refusal
from gym_schemas.containment import contains, subtract
from gym_schemas.json_values import ABSENT, Change, Json, Way, differences, distance, pointer, same, without
from gym_schemas.size import depth, too_large
from gym_schemas.tree import Document, Schema, rewrite, walk
from gym_schemas.upgrade import upgrade

__all__ = [
    "ABSENT",
    "Acceptance",
    "Change",
    "Document",
    "Json",
    "Refusal",
    "Schema",
    "Way",
    "contains",
    "depth",
    "differences",
    "distance",
    "pointer",
    "rewrite",
    "same",
    "subtract",
    "too_large",
    "upgrade",
    "walk",
    "without",
]
