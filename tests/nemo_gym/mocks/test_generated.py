"""The generating policy on every tool that nemo-gym's bundled rows declare."""

from random import Random

import jsonschema_rs
import pytest

from gym_mocks.policy.samples import sample
from tests.nemo_gym.test_tool_schemas import every_schema

pytestmark = pytest.mark.nemo_gym

#: Schemas that are none: `required` is an object there.
UNSOUND = 1


def test_every_bundled_tool_gets_valid_arguments() -> None:
    _, schemas = every_schema()
    assert len(schemas) > 100
    unsound = 0
    for _, schema in schemas.values():
        try:
            validator = jsonschema_rs.validator_for(schema)
        except jsonschema_rs.ValidationError:
            unsound += 1
            continue
        assert all(validator.is_valid(sample({"type": "object"} | schema, Random(seed))) for seed in range(5)), schema
    assert unsound == UNSOUND
