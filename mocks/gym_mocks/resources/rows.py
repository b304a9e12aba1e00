from typing import Any

from pydantic import BaseModel, ConfigDict

from gym_mocks.resources.models import Objects, Text

# Reference: NeMoGymResponseCreateParamsNonStreaming, NeMoGymResponse (nemo_gym/openai_utils.py, 0.4.0) and
# BaseRunRequest, BaseVerifyRequest (base_resources_server.py). The policy's output is held to less here than
# there: whatever a policy may produce must score. Models are built at first use; a server is ready sooner.


class CreateParams(BaseModel):
    """A Responses API request as nemo-gym 0.2.1 to 0.5.1 know it, with nothing unknown in it."""

    model_config = ConfigDict(extra="forbid", defer_build=True)

    background: bool | None = None
    include: list[Any] | None = None
    input: Text | Objects
    instructions: Text | None = None
    max_output_tokens: int | None = None
    max_tool_calls: int | None = None
    metadata: dict[str, Text] | None = None
    model: Text | None = None
    parallel_tool_calls: bool = True
    previous_response_id: Text | None = None
    prompt: dict[str, Any] | None = None
    reasoning: dict[str, Any] | None = None
    service_tier: Text | None = None
    store: bool | None = None
    temperature: float | None = None
    text: dict[str, Any] | None = None
    tool_choice: Text | dict[str, Any] = "auto"
    tools: Objects = []
    top_logprobs: int | None = None
    top_p: float | None = None
    truncation: Text | None = None
    user: Text | None = None
    stream: bool | None = None


class LaterCreateParams(CreateParams):
    """A row's `responses_create_params`: with what nemo-gym 0.6.0 added, whose agents send all of it, as nulls."""

    context_management: Objects | None = None
    conversation: Text | dict[str, Any] | None = None
    moderation: dict[str, Any] | None = None
    prompt_cache_key: Text | None = None
    prompt_cache_retention: Text | None = None
    safety_identifier: Text | None = None
    stream_options: dict[str, Any] | None = None


class TaskRow(BaseModel):
    """A dataset row. Subclass it to type the fields that `verify` needs; other fields are kept."""

    model_config = ConfigDict(extra="allow", defer_build=True)

    responses_create_params: LaterCreateParams


class PolicyResponse(BaseModel):
    """What the policy answered over the whole rollout: an OpenAI Response, of which only `output` matters."""

    model_config = ConfigDict(extra="allow", defer_build=True)

    output: Objects
