"""Names and paths of the wire contract.

Source: nemo_gym/base_resources_server.py, nemo_gym/server_utils.py, 0.2.0 to 0.7.0.
"""

import re
from typing import Final
from urllib.parse import quote

SEED_SESSION: Final = "/seed_session"
VERIFY: Final = "/verify"
CLOSE_SESSION: Final = "/close_session"
AGGREGATE_METRICS: Final = "/aggregate_metrics"
RESET: Final = "/reset"
STEP: Final = "/step"

#: The request that begins a session, or an episode of a gymnasium-style server.
OPENING: Final = (SEED_SESSION, RESET)
RUN: Final = "/run"
RESPONSES: Final = "/v1/responses"
LIVENESS: Final = "/"
REVERIFY_MODE: Final = "/reverify_mode"
OPENAPI: Final = "/openapi.json"
SANDBOX_ACCESS: Final = "/sandbox_access"

#: The prefix of paths served by NeMo Gym's main, such as checkpoints; not released.
CONTROL: Final = "/ng-control/"

#: Releases a web session in NeMo Gym's main, by the id that its client gave it and the capability to close it; not
#: released.
CLOSE: Final = "/close"
WEB_SESSION_ID: Final = "_ng_session_id"
CLOSE_CAPABILITY: Final = "_ng_session_close_token"

#: How sessions are created: as the OpenAPI document says, by cookie alone, or by typed requests.
CONTRACTS: Final = (AUTO := "auto", "cookie", "typed")

#: First path segments on which the framework itself answers POST, in any version: a tool of that name would shadow it
#: or be shadowed. What it serves by GET alone, such as /stats, shadows nothing, because Starlette also matches the
#: method.
RESERVED: Final = frozenset(
    {
        *("seed_session", "verify", "aggregate_metrics", "close_session", "mcp"),
        *("sandbox_access", "ng-control"),  # NeMo Gym's main, not released
    }
)

#: What the OpenAI API accepts as a function's name; vLLM and the SDKs follow it.
TOOL_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")

#: The key under which `SimpleServer.setup_session_middleware` keeps the session's id inside the signed cookie.
SESSION_ID_KEY: Final = "session_id"

#: The numbers that rollout collection gives to a row, and to each of its rollouts.
TASK_INDEX: Final = "_ng_task_index"
ROLLOUT_INDEX: Final = "_ng_rollout_index"

#: Keys that rollout collection adds to a row before it is seeded (nemo_gym/global_config.py, 0.4.0).
ROLLOUT_KEYS: Final[dict[str, object]] = {
    TASK_INDEX: 0,
    ROLLOUT_INDEX: 0,
    "agent_ref": {"type": "responses_api_agents", "name": "simple_agent"},
}

#: Per-token fields that trainers read from verify's echo (`*ForTraining` in nemo_gym/openai_utils.py).
TOKEN_FIELDS: Final = ("prompt_token_ids", "generation_token_ids", "generation_log_probs")


def tool_path(name: str) -> str:
    """The path that a call of this tool is posted to; `SimpleAgent` appends the name to a slash as it is."""
    return "/" + quote(name, safe="/", errors="surrogatepass")
