"""A gym's global configuration: plain nested dicts in, YAML out; interpolations are left as they stand."""

import json
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
            lines.append(f"{pad}{name}: {json.dumps(value)}\n")
    return "".join(lines)


def load_config(path: Path) -> dict[str, Any]:
    """An env's own `configs/*.yaml`.

    Raises:
        ValueError: the file holds no mapping.
        OSError: it cannot be read.
    """
    import yaml  # noqa: PLC0415 - only where a file is read: it costs start-up time

    try:
        config = yaml.safe_load(path.read_text(encoding="utf-8"))
    except yaml.YAMLError as error:
        raise ValueError(f"{path} is not YAML: {error}") from error
    if not isinstance(config, dict):
        raise ValueError(f"{path} holds no mapping of server names")  # noqa: TRY004 - the file's fault, no type's
    return {str(name): value for name, value in config.items()}


def merged(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """Two configurations as one; where both say something, `other` wins, key by key."""
    result = dict(one)
    for key, value in other.items():
        mine = result.get(key)
        both = isinstance(mine, Mapping) and isinstance(value, Mapping)
        result[key] = merged(mine, value) if both else value  # type: ignore[arg-type]  # both are mappings
    return result
