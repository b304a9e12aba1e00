"""Arguments for the policies that call tools: of a JSON Schema, valid ones and ones that are broken on purpose."""

import json
from collections.abc import Iterator, Mapping
from functools import lru_cache
from random import Random
from typing import Any

from gym_mocks.policy.sampler import Sampler

TRIES = 200


def sample(schema: Mapping[str, Any], random: Random) -> Any:
    """A value that a schema allows.

    Raises:
        LookupError: none was found, or the schema is none.
    """
    text = json.dumps(schema)
    for _ in range(TRIES):
        try:
            value = Sampler(schema, random).value()
        except LookupError:  # a choice that leads nowhere
            continue
        if allows(text, value):
            return value
    raise LookupError(f"no value was found that this schema allows: {text:.500}")


def broken(schema: Mapping[str, Any], arguments: Any, random: Random) -> str:
    """The text of arguments that the schema does not allow, near to some that it does.

    A schema that allows any value leaves texts that are no JSON.
    """
    text = json.dumps(schema)
    candidates = [*_no_json(json.dumps(arguments)), *_no_object(), *map(json.dumps, _near(arguments))]
    random.shuffle(candidates)
    return next((each for each in candidates if not _allowed(text, each)), "")


def allows(schema: str, value: Any) -> bool:
    """Whether a schema, given as its text, allows a value."""
    try:
        return bool(_validator(schema).is_valid(value))
    except (ValueError, RecursionError):  # a name with a lone surrogate cannot be validated
        return False


@lru_cache(256)
def _validator(schema: str) -> Any:
    import jsonschema_rs  # noqa: PLC0415 - only where a policy generates

    try:
        return jsonschema_rs.validator_for(json.loads(schema), offline=True)
    except jsonschema_rs.ValidationError as error:
        raise LookupError(f"no JSON Schema: {schema:.500}") from error


def _allowed(schema: str, arguments: str) -> bool:
    try:
        return allows(schema, json.loads(arguments))
    except ValueError:
        return False


def _no_json(text: str) -> Iterator[str]:
    yield from (text[:-1], "", "{'a': 1}", f"```json\n{text}\n```", text + text)


def _no_object() -> Iterator[str]:
    yield from ("null", "[]", "3", '"text"', '"\\ud800"')


def _near(arguments: Any) -> Iterator[Any]:
    """Objects with one thing wrong: something missing, something more, something of another type."""
    if not isinstance(arguments, dict):
        return
    yield arguments | {"no_such_argument": 1}
    for name, value in arguments.items():
        yield {key: kept for key, kept in arguments.items() if key != name}
        for wrong in (None, str(value), -1, 10**20, "x" * 10_000, [value], {"value": value}, "\ud800", ""):
            yield arguments | {name: wrong}
