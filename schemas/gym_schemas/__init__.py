"""JSON Schema tools for the suite and the mocks: pure functions without I/O. Importing them does not import Hypothesis.

- `upgrade` converts a schema of any draft, or of OpenAPI, to 2020-12; `walk`, `rewrite`, `properties_of` and `Document`
  traverse it.
- `Acceptance` validates values against an upgraded schema, and says where and why one is refused.
- `contains` and `subtract` compare two upgraded schemas; `too_large` says beforehand whether they are too large for
that.
- `admits`, `minimal`, `sampled`, `near_sample` and `boundary_values` take a schema as people write it, sound or not:
  what it admits, its smallest value, a random value, a value refused for one reason, and its boundary values;
  `understood` says whether it was read as it is; `strategies` and `hostile`, which import Hypothesis, have strategies
  for valid values, near misses and hostile values. All values are made from one reading of the schema (`making`),
  whatever makes the choices (`choices`).
- `differences`, `same`, `distance`, `without` and `filled` compare and edit JSON values; `scalars` and `mapped` traverse them.
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
    filled,
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
    "filled",
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
