"""Arguments for the policies that call tools: of a JSON Schema, valid ones and ones that are broken on purpose."""

import json
from collections.abc import Iterator, Mapping
from functools import lru_cache
from random import Random
from typing import Any


def sample(schema: Mapping[str, Any] | bool, random: Random) -> Any:
    """A value that a schema allows.

    Raises:
        LookupError: none was found, or the schema is not valid.
    """
    from gym_schemas import NoValue, sampled  # noqa: PLC0415 - only where a policy generates

    text = json.dumps(schema)
    _validator(text)
    try:
        return sampled(schema, random)
    except NoValue:
        raise LookupError(f"no value was found that this schema allows: {text:.500}") from None


def broken(schema: Mapping[str, Any] | bool, arguments: Any, random: Random) -> str:
    """The text of arguments that the schema does not allow, near to some that it does.

    A schema that allows any value leaves texts that are no JSON.
    """
    from gym_schemas import ABSENT, near_sample  # noqa: PLC0415 - only where a policy generates

    text, miss = json.dumps(arguments), near_sample(schema, arguments, random)
    kinds = (
        (text[:-1], "", "{'a': 1}", f"```json\n{text}\n```", text + text),
        ("null", "[]", "3", '"text"', '"\\ud800"'),
        map(json.dumps, _odd(arguments)),
        () if miss is ABSENT else (json.dumps(miss),),
    )
    validator = _validator(json.dumps(schema))
    wrong = [texts for kind in kinds if (texts := [each for each in kind if not _allowed(validator, each)])]
    return random.choice(random.choice(wrong))


def _odd(arguments: Any) -> Iterator[Any]:
    """The arguments with a value in one place that few servers expect."""
    if isinstance(arguments, dict):
        for name in arguments:
            yield from (arguments | {name: value} for value in (10**20, "x" * 10_000, "\ud800"))


def _allowed(validator: Any, text: str) -> bool:
    try:
        return bool(validator.is_valid(json.loads(text)))
    except (ValueError, RecursionError):  # no JSON, or a name with a lone surrogate, which no validator reads
        return False


@lru_cache(256)
def _validator(text: str) -> Any:
    """The validator of a schema, given as its text; formats are annotations to it, as to most servers."""
    import jsonschema_rs  # noqa: PLC0415 - only where a policy generates

    try:
        return jsonschema_rs.validator_for(json.loads(text), offline=True)
    except ValueError as error:  # its own ValidationError, or half a character
        raise LookupError(f"no JSON Schema: {text:.500}") from error
