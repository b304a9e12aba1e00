"""A gym's global configuration: plain nested dicts in, YAML out; interpolations are left as they stand."""

import json
import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
NOT_PLAIN = {
    "y",
    "n",
    "yes",
    "no",
    "on",
    "off",
    "true",
    "false",
    "null",
    "none",
}  # YAML 1.1 reads these otherwise

LARGEST = 2**24  # bytes of a file
NODES = 100_000  # values in a file, each as often as it is referred to
DEEPEST = 100  # levels of it


def to_yaml(config: Mapping[str, Any], indent: int = 0) -> str:
    """A configuration as block YAML, for YAML 1.1 and 1.2 readers alike; every string is quoted."""
    lines: list[str] = []
    pad = "  " * indent
    for key, value in config.items():
        name = key if PLAIN.fullmatch(key) and key.lower() not in NOT_PLAIN else json.dumps(key)
        if isinstance(value, Mapping) and value:
            lines += [f"{pad}{name}:\n", to_yaml(value, indent + 1)]
        elif isinstance(value, list) and value and all(isinstance(item, Mapping) for item in value):
            lines.append(f"{pad}{name}:\n")
            for item in value:
                block = to_yaml(item, indent + 2)
                lines.append(f"{pad}  - {block.lstrip(' ')}" if item else f"{pad}  - {{}}\n")
        else:
            lines.append(f"{pad}{name}: {_flow(value)}\n")
    return "".join(lines)


def _flow(value: Any) -> str:
    """A value on one line: JSON, but for the numbers that only YAML has, or that it reads in its own form alone."""
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{json.dumps(str(key))}: {_flow(each)}' for key, each in value.items())}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(_flow, value))}]"
    if not isinstance(value, float):
        return json.dumps(value)
    if not math.isfinite(value):
        return ".nan" if math.isnan(value) else f"{'-' if value < 0 else ''}.inf"
    text = repr(value)
    return text if "." in text else text.replace("e", ".0e")


def load_config(path: Path) -> dict[str, Any]:
    """An env's own `configs/*.yaml`, as OmegaConf reads it: a date is the text that stands there.

    Raises:
        ValueError: the file holds no mapping, or what no configuration can hold: values of other kinds than JSON's, or
            aliases that make it larger than `NODES`, or endless.
        OSError: it cannot be read.
    """
    import yaml  # noqa: PLC0415 - only where a file is read: it costs start-up time

    class Loader(yaml.SafeLoader):
        """Knows no dates."""

        yaml_implicit_resolvers = {  # noqa: RUF012 - PyYAML's own form
            first: [each for each in resolvers if each[0] != "tag:yaml.org,2002:timestamp"]
            for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
        }

    with path.open("rb") as file:
        text = file.read(LARGEST + 1)
    if len(text) > LARGEST:
        raise ValueError(f"{path} is longer than {LARGEST} bytes")
    try:
        config = yaml.load(text, Loader)  # noqa: S506 - a SafeLoader
    except (yaml.YAMLError, ValueError, RecursionError, AttributeError, LookupError, TypeError) as error:
        raise ValueError(f"{path} is not YAML: {error!s:.500}") from error
    if not isinstance(config, dict):
        raise ValueError(f"{path} holds no mapping of server names")  # noqa: TRY004 - the file's fault, no type's
    try:
        plain: dict[str, Any] = _plain(config, [NODES])
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error
    return plain


def _plain(value: Any, left: list[int], around: tuple[int, ...] = ()) -> Any:
    """A value as JSON has it, keys as texts; an alias becomes what it stands for.

    Raises:
        ValueError: a value of another kind, one that holds itself, or one node more than are `left`.
    """
    left[0] -= 1
    if left[0] < 0:
        raise ValueError(f"more than {NODES} values")
    if isinstance(value, dict | list):
        if id(value) in around or len(around) == DEEPEST:
            raise ValueError("an alias that holds itself" if id(value) in around else f"deeper than {DEEPEST} levels")
        inside = (*around, id(value))
        if isinstance(value, dict):
            return {str(key): _plain(each, left, inside) for key, each in value.items()}
        return [_plain(each, left, inside) for each in value]
    if value is None or isinstance(value, str | bool | int | float):
        return value
    raise ValueError(f"{value!r:.100} is of a kind that no configuration holds")


def merged(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """Two configurations as one; where both say something, `other` wins, key by key."""
    result = dict(one)
    for key, value in other.items():
        mine = result.get(key)
        both = isinstance(mine, Mapping) and isinstance(value, Mapping)
        result[key] = merged(mine, value) if both else value  # type: ignore[arg-type]  # both are mappings
    return result
