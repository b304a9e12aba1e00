from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal
from urllib.parse import urlsplit

from gym_mocks.head.config import to_yaml
from gym_mocks.hidden_keys import without_secrets
from gym_mocks.wire import App, HttpReply, HttpRequest, live

ServerType = Literal["resources_servers", "responses_api_agents", "responses_api_models", "environment_servers"]


@dataclass(frozen=True)
class Instance:
    """One server of a gym, as `/server_instances` shows it.

    Reference: ServerInstanceDisplayConfig (nemo_gym/server_utils.py, 0.4.0).

    Attributes:
        process_name: the name clients address it by.
        server_type: what it is.
        name: which one of that kind, the third level of the configuration.
        url: its base URL, without a last slash.
        pid: of the process that serves it.
        start_time: seconds since the epoch.
    """

    process_name: str
    server_type: ServerType
    name: str
    url: str
    pid: int
    start_time: float

    @property
    def address(self) -> dict[str, Any]:
        """Its `host` and `port`."""
        parts = urlsplit(self.url)
        return {"host": parts.hostname, "port": parts.port}

    @property
    def display(self) -> dict[str, Any]:
        """Its entry of `/server_instances`."""
        fixed = {"config_path": self.process_name, "dir_path": None, "entrypoint": "app.py", "status": None}
        return asdict(self) | self.address | fixed | {"uptime_seconds": None}


class Head(App):
    """A head server (HeadServer of nemo_gym/server_utils.py, 0.4.0, and the probes of 0.7.0).

    Attributes:
        config: the global configuration, which `/global_config_dict_yaml` sends as a JSON string of YAML, without secrets.
        instances: the servers, which `/server_instances` lists.
    """

    def __init__(self, config: Mapping[str, Any], instances: tuple[Instance, ...] = ()) -> None:
        self.config = config
        self.instances = instances
        super().__init__(
            {
                ("GET", "/global_config_dict_yaml"): self._global_config,
                ("GET", "/server_instances"): self._server_instances,
                **{("GET", path): live for path in ("/", "/livez", "/readyz", "/healthz", "/health")},
            }
        )

    @property
    def shown(self) -> dict[str, Any]:
        """The configuration as it is sent: without secrets."""
        shown: dict[str, Any] = without_secrets(self.config)
        return shown

    async def _global_config(self, _: HttpRequest) -> HttpReply:
        return HttpReply.json(to_yaml(self.shown))

    async def _server_instances(self, _: HttpRequest) -> HttpReply:
        return HttpReply.json([instance.display for instance in self.instances])
