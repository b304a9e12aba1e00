"""How drift is worded for an env's author."""

import json
from typing import Any

from gym_conformance.drift.argument_places import Places
from gym_conformance.drift.search import RefusedValue
from gym_schemas import SchemaRefusal

_SHORT = 120


def why_refused(one: RefusedValue, refusal: SchemaRefusal, ours: Places, theirs: Places) -> str:
    """Why the server refuses what the definition allows; `refusal` is that of its schema as written."""
    if refusal.missing:
        name = argument(one.path)
        if ours.names(one.way):
            return f"the server requires {name}, but the definition makes it optional"
        unknown = [known for known in ours.arguments() if known not in theirs.arguments()]
        renamed = f"; renamed? it offers {', '.join(unknown)}" if unknown else ""
        return f"the server requires {name}, which the definition does not offer{renamed}"
    return f"the definition allows {short(one.value)}, but the server refuses it: {short(refusal.reason)}"


def argument(path: str) -> str:
    """The path of an argument as an author would write it."""
    return path.removeprefix("/").replace("~1", "/").replace("~0", "~") or "the call"


def short(value: Any) -> str:
    """A JSON value or a text, shortened to a readable length."""
    text = value if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= _SHORT else f"{text[:_SHORT]}..."


def descriptions_differ(ours: Any, theirs: Any) -> bool:
    """Whether both sides have a description, and these differ in more than white space."""
    texts = [str(one.get("description") or "") if isinstance(one, dict) else "" for one in (ours, theirs)]
    return all(texts) and texts[0].split() != texts[1].split()
