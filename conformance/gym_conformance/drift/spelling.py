"""One spelling for schemas that say the same: without titles and defaults of the generator, in a fixed order."""

from typing import Any

from gym_conformance.drift.schema import Schema, modern, rewrite


def plain(schema: Schema, *, descriptions: bool = True) -> Schema:
    """The schema as a lock file keeps it: FastAPI and pydantic of any version spell it alike.

    Without titles, with `required` sorted, and without an `additionalProperties: true` that says nothing; without
    the descriptions too, if so asked.
    """
    dropped = ("title", "examples", "example", "$comment") if descriptions else ("title", "examples", "example", "$comment", "description")

    def spell(node: dict[str, Any]) -> Schema:
        for key in dropped:
            node.pop(key, None)
        if isinstance(required := node.get("required"), list):
            node["required"] = sorted(required, key=str)
            if not required:
                del node["required"]
        if node.get("additionalProperties") is True and "properties" not in node:
            del node["additionalProperties"]
        return node

    return rewrite(modern(schema), spell)
