"""One spelling for equivalent schemas, so that a newer FastAPI or pydantic changes nothing in a lock file."""

from typing import Any

from gym_schemas import Schema, rewrite, upgrade

_NOISE = ("title", "examples", "example", "$comment")
_TYPES = {str: "string", bool: "boolean", int: "integer", float: "number", type(None): "null"}


def plain(schema: Schema, *, descriptions: bool = True) -> Schema:
    """The schema without titles and redundant keywords, with `required` sorted.

    With `descriptions=False`, descriptions are removed too.
    """

    def spell(node: dict[str, Any]) -> Schema:
        for key in _NOISE if descriptions else (*_NOISE, "description"):
            node.pop(key, None)
        if isinstance(required := node.pop("required", None), list) and required:
            node["required"] = sorted(required, key=str)
        if node.get("additionalProperties") is True and "properties" not in node:
            del node["additionalProperties"]
        if "const" in node:  # a one-member Literal: versions add its type, its enum, or neither
            if node.get("enum") == [node["const"]]:
                del node["enum"]
            if node.get("type") == _TYPES.get(type(node["const"])):
                node.pop("type", None)
        return node

    return rewrite(upgrade(schema), spell)
