"""What an agent refuses of a row in every version of nemo-gym (NeMoGymResponseCreateParamsNonStreaming).

A resources server of ours is lenient there; but a row in the form of chat completions never gets past a real agent.
"""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from gym_mocks.resources.models import Objects, Text
from gym_mocks.resources.rows import LaterCreateParams, TaskRow

OF_CHAT = {"text": "input_text", "image_url": "input_image"}
OF_A_FUNCTION = {"name", "parameters", "strict"}


def _whole(tools: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Function tools as the Responses API has them, all of whose members are required; null will do."""
    for tool in tools:
        missing = sorted(OF_A_FUNCTION - tool.keys()) if tool.get("type") == "function" else []
        if missing:
            raise ValueError(
                f"a function tool has name, parameters and strict beside its type; {missing[0]} is missing"
            )
    return tools


def _no_parts_of_chat(items: str | list[dict[str, Any]]) -> str | list[dict[str, Any]]:
    contents = (item.get("content") for item in items if isinstance(item, dict))
    for part in (each for content in contents if isinstance(content, list) for each in content):
        if isinstance(part, dict) and (expected := OF_CHAT.get(str(part.get("type")))):
            raise ValueError(f"a part of type {part['type']!r} is of chat completions; {expected!r} is expected")
    return items


class RunParams(LaterCreateParams):
    """A row's parameters as agents take them."""

    input: Annotated[Text | Objects, AfterValidator(_no_parts_of_chat)]
    tools: Annotated[Objects, AfterValidator(_whole)] = Field(default_factory=list)
    tool_choice: Literal["none", "auto", "required"] | dict[str, Any] = "auto"
    truncation: Literal["auto", "disabled"] | None = None
    stream: Literal[False] | None = None


class RunRow(TaskRow):
    """A row as agents take it."""

    responses_create_params: RunParams
