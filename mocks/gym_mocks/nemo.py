"""nemo-gym's own servers in a mock gym, where nemo-gym is installed; no Ray is started.

nemo-gym keeps one HTTP client for a whole process. So, while one of its agents or models runs in a gym, its
clients (`RolloutCollectionHelper`, `ServerClient`) must run in another process, and only one such gym may run
at a time.
"""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from importlib import import_module
from importlib.util import find_spec
from typing import Any, ClassVar
from urllib.parse import urlsplit

from gym_mocks.gym import POLICY, MockGym
from gym_mocks.policy import FakePolicy
from gym_mocks.run_helper import AnyTools, RunHelper, tell_nemo_gym
from gym_mocks.wire.client import ASGIApp

__all__ = [
    "AnyTools",
    "RunHelper",
    "add_environment_server",
    "add_openai_model",
    "add_simple_agent",
    "add_vllm_model",
    "asgi_app",
    "patched_run_helper",
]


def add_simple_agent(
    gym: MockGym, name: str, *, resources: str, model: str = POLICY, max_steps: int | None = None
) -> str:
    """Serve nemo-gym's default agent between a resources server and a policy; its base URL."""
    from responses_api_agents.simple_agent.app import SimpleAgent, SimpleAgentConfig  # noqa: PLC0415

    refs = {
        "resources_server": {"type": "resources_servers", "name": resources},
        "model_server": {"type": "responses_api_models", "name": model},
    }
    steps = {} if max_steps is None else {"max_steps": max_steps}
    server = _configured(gym, SimpleAgent, SimpleAgentConfig, name, **refs, **steps)
    url = gym.add_agent(name, resources=resources, model=model, app=asgi_app(server))
    server.server_client = _client(gym)  # now with the agent's own address in it
    return url


def add_environment_server(gym: MockGym, name: str, *, agent: str, resources: str) -> str:
    """Serve nemo-gym 0.7.0's environment server, which opens typed sessions with both for each row; its base URL."""
    from environment_servers.single_agent_turn.app import SingleAgentTurnEnvironmentServerConfig  # noqa: PLC0415
    from environment_servers.single_agent_turn_legacy.app import SingleAgentTurnLegacyEnvironmentServer  # noqa: PLC0415

    server = _configured(
        gym,
        SingleAgentTurnLegacyEnvironmentServer,
        SingleAgentTurnEnvironmentServerConfig,
        name,
        resources_server={"type": "resources_servers", "name": resources},
        agent_server={"type": "responses_api_agents", "name": agent},
        resources_tool_transports=["direct_http"],
        cleanup_timeout_seconds=60,
    )
    return gym.add_environment_server(name, asgi_app(server), agent=agent, resources=resources)


def add_openai_model(gym: MockGym, name: str, upstream: str) -> str:
    """Serve nemo-gym's `openai_model` server, with an OpenAI base URL behind it; its base URL."""
    from responses_api_models.openai_model.app import SimpleModelServer, SimpleModelServerConfig  # noqa: PLC0415

    openai = {"openai_base_url": upstream, "openai_api_key": "none", "openai_model": "policy"}
    return gym.add_model(name, asgi_app(_configured(gym, SimpleModelServer, SimpleModelServerConfig, name, **openai)))


def add_vllm_model(gym: MockGym, name: str, upstream: str) -> str:
    """Serve nemo-gym's `vllm_model` server as trainers run it, with token ids; its base URL."""
    from responses_api_models.vllm_model.app import VLLMModel, VLLMModelConfig  # noqa: PLC0415

    server = _configured(
        gym,
        VLLMModel,
        VLLMModelConfig,
        name,
        base_url=upstream,
        api_key="none",
        model="policy",
        return_token_id_information=True,
        uses_reasoning_parser=False,
    )
    return gym.add_model(name, asgi_app(server))


def _configured(gym: MockGym, kind: Any, config: Any, name: str, **fields: Any) -> Any:
    """A server of nemo-gym's with such a config."""
    fields |= {"host": "127.0.0.1", "port": 1, "name": name, "entrypoint": "app.py"}
    return kind(config=config(**fields), server_client=_client(gym))


@contextmanager
def patched_run_helper() -> Iterator[type[RunHelper]]:
    """A `RunHelper` of its own, with a policy that sends token ids, in nemo-gym's place while the block lasts.

    Where nemo-gym is not installed, nothing is replaced.
    """

    class MockRunHelper(RunHelper):
        policy = FakePolicy(token_fields=True)
        resources: ClassVar[dict[str, ASGIApp]] = {}
        options: ClassVar[dict[str, Any]] = {}
        gyms: ClassVar[list[MockGym]] = []

    names = ("nemo_gym.cli", "nemo_gym.cli.env")
    modules = [vars(import_module(name)) for name in names if find_spec("nemo_gym") and _is_there(name)]
    before = [module.get("RunHelper") for module in modules]
    for module in modules:
        module["RunHelper"] = MockRunHelper
    try:
        yield MockRunHelper
    finally:
        for module, own in zip(modules, before, strict=True):
            if own is None:  # nemo_gym.cli finds it when it is asked for
                del module["RunHelper"]
            else:
                module["RunHelper"] = own
        tell_nemo_gym(None)
        for gym in MockRunHelper.gyms:
            gym.close()


def _is_there(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:  # its parent is a module, no package
        return False


def asgi_app(server: Any) -> ASGIApp:
    """A nemo-gym server as the application that its `run_webserver` would serve."""
    from nemo_gym import server_utils  # noqa: PLC0415

    app = server.setup_webserver()
    for step in ("setup_liveness", "setup_exception_middleware", "setup_cancellation_middleware"):
        if hasattr(server, step):  # 0.2.1 knows no liveness, and 0.7.0 was the first to cancel
            getattr(server, step)(app)
    inner = app.router.lifespan_context

    @asynccontextmanager
    async def lifespan(app: Any) -> AsyncIterator[Any]:
        """Keep nemo-gym's one HTTP client on this gym's event loop while the server runs."""
        mine = None
        if not server_utils.is_global_aiohttp_client_setup():
            mine = server_utils.set_global_aiohttp_client(server_utils.GlobalAIOHTTPAsyncClientConfig())
        try:
            async with inner(app) as state:
                yield state
        finally:
            if mine is not None:
                await mine.close()
                server_utils._GLOBAL_AIOHTTP_CLIENT = None  # noqa: SLF001 - it has no other way

    app.router.lifespan_context = lifespan
    served: ASGIApp = app
    return served


def _client(gym: MockGym) -> Any:
    from nemo_gym.config_types import BaseServerConfig  # noqa: PLC0415
    from nemo_gym.server_utils import ServerClient  # noqa: PLC0415
    from omegaconf import OmegaConf  # noqa: PLC0415

    parts = urlsplit(gym.head_url)
    head = BaseServerConfig(host=parts.hostname, port=parts.port)
    return ServerClient(head_server_config=head, global_config_dict=OmegaConf.create(gym.config))
