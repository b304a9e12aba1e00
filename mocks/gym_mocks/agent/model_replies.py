"""What the agent takes for a model server's reply: NeMoGymResponse (nemo_gym/openai_utils.py of 0.4.0), as far as it refuses."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Discriminator, Tag


class _Part(BaseModel):
    model_config = ConfigDict(defer_build=True)


class _Summary(_Part):
    text: str
    type: Literal["summary_text"]


class _Reasoning(_Part):
    id: str
    summary: list[_Summary]


class _Text(_Part):
    annotations: list[dict[str, Any]]
    text: str
    type: Literal["output_text"] = "output_text"


class _Refusal(_Part):
    refusal: str
    type: Literal["refusal"] = "refusal"


class _Message(_Part):
    id: str
    content: list[_Text | _Refusal]
    role: Literal["assistant"] = "assistant"
    status: Literal["in_progress", "completed", "incomplete"] = "completed"


class _Given(_Part):
    type: Literal["input_text", "input_image", "input_file"]


class _InputMessage(_Part):
    content: str | list[_Given]
    role: Literal["user", "assistant", "system", "developer"]


class _Call(_Part):
    arguments: str
    call_id: str
    name: str


class _Result(_Part):
    call_id: str
    output: str


def _kind(item: Any) -> Any:
    """Which item it is: a message where it does not say."""
    return item.get("type", "message") if isinstance(item, dict) else None


_Item = Annotated[
    Annotated[_Reasoning, Tag("reasoning")]
    | Annotated[_Message | _InputMessage, Tag("message")]
    | Annotated[_Call, Tag("function_call")]
    | Annotated[_Result, Tag("function_call_output")],
    Discriminator(_kind),
]


class _Cached(_Part):
    cached_tokens: int


class _Reasoned(_Part):
    reasoning_tokens: int


class _Usage(_Part):
    input_tokens: int
    input_tokens_details: _Cached
    output_tokens: int
    output_tokens_details: _Reasoned
    total_tokens: int


class ModelReply(_Part):
    """A response with all that every version of nemo-gym requires of it."""

    id: str
    created_at: float
    model: str
    object: Literal["response"]
    output: list[_Item]
    parallel_tool_calls: bool
    tool_choice: Any
    tools: list[dict[str, Any]]
    usage: _Usage | None = None
