"""Values for tool calls, from the tools' JSON Schemas: valid, nearly valid, hostile, smallest. No I/O, nothing of pytest.

A schema is read once (`reading`): made sound (`soundness`), brought to canonical form by jsonschema_rs, and compiled.
Its canonical views become strategies (`build`) and faults (`faults`) at places (`places`). Whatever is given as valid
or as wrong has been held to the schema's own validator.
"""

from gym_conformance.values.arguments import (
    NearMiss,
    Parameters,
    admits,
    minimal,
    near_misses,
    unsupported,
    valid_arguments,
)
from gym_conformance.values.build import Mined
from gym_conformance.values.hostile import Hostile, hostile_arguments
from gym_conformance.values.json_values import Json
from gym_conformance.values.smallest import NoValue

__all__ = [
    "Hostile",
    "Json",
    "Mined",
    "NearMiss",
    "NoValue",
    "Parameters",
    "admits",
    "hostile_arguments",
    "minimal",
    "near_misses",
    "unsupported",
    "valid_arguments",
]
