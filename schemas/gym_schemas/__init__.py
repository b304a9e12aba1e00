"""JSON Schema for the suite and the mocks alike: pure functions, no I/O. Importing it does not import Hypothesis.

- `upgrade` brings a schema of any draft, or of OpenAPI, to 2020-12; `walk`, `rewrite`, `properties_of` and `Document` go
  through it.
- `Acceptance` holds values to an upgraded schema, and says where and why one is refused.
- `contains` and `subtract` compare two upgraded schemas; `too_large` says beforehand that they are too large for that.
- `admits`, `minimal`, `sampled`, `near_sample` and `boundary_values` take a schema as people write it, sound or not: what
  it admits, its smallest value, one by chance, one that it refuses for one reason, those at its bounds; `understood` says
  whether it was read as it stands; `strategies` and `hostile`, which import Hypothesis, have strategies for valid values,
  near misses and hostile ones. All values are made by one reading of the schema (`making`), whoever makes the choices
  (`choices`).
- `differences`, `same`, `distance` and `without` compare JSON values and take them apart; `scalars` and `mapped` go
  through one.
"""

from gym_schemas.acceptance import Acceptance, SchemaRefusal
from gym_schemas.boundaries import boundary_values, constants
from gym_schemas.containment import contains, subtract
from gym_schemas.json_values import (
    ABSENT,
    Change,
    Json,
    Way,
    differences,
    distance,
    identity,
    is_numeric,
    mapped,
    name_of,
    pointer,
    same,
    scalars,
    whole,
    without,
)
from gym_schemas.making import NoValue, minimal, sampled
from gym_schemas.near_misses import near_sample
from gym_schemas.schema_reading import admits, understood
from gym_schemas.size import MOST_NODES, depth, too_large
from gym_schemas.tree import Document, Schema, properties_of, rewrite, walk
from gym_schemas.upgrade import upgrade

__all__ = [
    "ABSENT",
    "MOST_NODES",
    "Acceptance",
    "Change",
    "Document",
    "Json",
    "NoValue",
    "Schema",
    "SchemaRefusal",
    "Way",
    "admits",
    "boundary_values",
    "constants",
    "contains",
    "depth",
    "differences",
    "distance",
    "identity",
    "is_numeric",
    "mapped",
    "minimal",
    "name_of",
    "near_sample",
    "pointer",
    "properties_of",
    "rewrite",
    "same",
    "sampled",
    "scalars",
    "subtract",
    "too_large",
    "understood",
    "upgrade",
    "walk",
    "whole",
    "without",
]
