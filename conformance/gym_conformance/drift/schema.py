"""Parts of upgraded schemas, beside their `$defs`."""

from collections.abc import Mapping
from typing import Any

from gym_schemas import Document, Schema

Defs = Mapping[str, Any]


def resolve(node: Schema, defs: Defs) -> Schema:
    """The node itself, or what its `$ref` leads to, with the keywords that stand beside the reference."""
    return Document({"$defs": defs}).resolve(node)


def alone(node: Schema, defs: Defs) -> Schema:
    """The node as a document of its own."""
    return {**node, "$defs": dict(defs)} if isinstance(node, dict) and defs else node


def split(document: Schema) -> tuple[Schema, Defs]:
    """An upgraded document's own schema, and its `$defs`."""
    one = Document(document)
    return one.root, one.defs
