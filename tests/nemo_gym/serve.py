"""Serve one of NeMo Gym's bundled resources servers, unmodified, on loopback and without Ray.

    python serve.py SERVER_NAME
    python serve.py              # forks one for each `NAME LOG` on standard input

`python` must have nemo-gym. The server's own entry point runs as `gym env start` runs it (nemo-gym 0.4.0
and 0.7.0, `nemo_gym/cli/setup_command.py`): as `__main__`, in its own folder, with its YAML in the
environment. So its own `run_webserver()` builds the app, with every middleware and handler in nemo-gym's
order. Three things differ: Ray is not started; the socket is bound here, to a free port, so that no other
process can take the port first; and no head or model server is up, so that a server which calls a judge
fails only when it does.

`READY http://127.0.0.1:PORT`, once requests are accepted, is all of standard output; whatever the server
prints goes to standard error.
"""

import argparse
import importlib
import importlib.util
import os
import runpy
import signal
import socket
import sys
import traceback
from pathlib import Path
from typing import Any

import uvicorn
import yaml

LOOPBACK = "127.0.0.1"

# Stands for the policy model that most YAMLs point to (nemo-gym 0.4.0, `NO_MODEL_GLOBAL_CONFIG_DICT`).
NO_MODEL = {
    "policy_base_url": "",
    "policy_api_key": "",
    "policy_model_name": "",
    "policy_model": {"responses_api_models": {"dummy_model": {"entrypoint": "app.py"}}},
}


def bundle() -> Path:
    """The folder that holds nemo-gym and, in its wheels, `resources_servers/`."""
    spec = importlib.util.find_spec("nemo_gym")
    if spec is None or spec.origin is None:
        sys.exit(f"{sys.executable} has no nemo-gym")
    return Path(spec.origin).parents[1]


def instance(folder: Path) -> tuple[str, dict[str, Any]]:
    """The first server instance that the folder's YAML files declare for it, and that whole file.

    The file that bears the folder's name comes first, then the others by name.

    Returns:
        The instance's name (the YAML's outer key, half of the cookie's name) and the file's content.
    """
    files = sorted(folder.glob("configs/*.yaml"), key=lambda file: (file.stem != folder.name, file.name))
    for file in files:
        config = yaml.safe_load(file.read_text()) or {}
        for name, entry in config.items():
            if isinstance(entry, dict) and folder.name in (entry.get("resources_servers") or {}):
                return name, config
    sys.exit(f"no file of {folder / 'configs'} declares resources_servers.{folder.name}")


class ReadyServer(uvicorn.Server):
    """A uvicorn server that announces its address once it accepts requests."""

    def __init__(self, config: uvicorn.Config, announcement: int) -> None:
        super().__init__(config)
        self._announcement = announcement

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start as uvicorn does, then say so."""
        await super().startup(sockets)
        if sockets and self.started:
            host, port = sockets[0].getsockname()
            with os.fdopen(self._announcement, "w") as out:
                out.write(f"READY http://{host}:{port}\n")


def serve(name: str, announcement: int) -> None:
    """Serve one bundled server in this process until it is killed; its address goes to the descriptor `announcement`."""
    folder = bundle() / "resources_servers" / name
    if not folder.is_dir():
        sys.exit(f"no such server: {folder}")
    key, config = instance(folder)
    # The protocol is named: asyncio turns Nagle's delay off only where it is, as it is where uvicorn binds itself.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.bind((LOOPBACK, 0))
    server = config[key]["resources_servers"][folder.name]
    server |= {"host": LOOPBACK, "port": listener.getsockname()[1]}
    head = {"head_server": {"host": LOOPBACK, "port": 1}, "dry_run": False}
    os.environ["NEMO_GYM_CONFIG_DICT"] = yaml.safe_dump(NO_MODEL | head | config)
    os.environ["NEMO_GYM_CONFIG_PATH"] = key

    def run(**options: Any) -> None:  # whatever this nemo-gym passes to uvicorn.run
        ReadyServer(uvicorn.Config(**options), announcement).run(sockets=[listener])

    os.chdir(folder)
    sys.path[0] = str(folder)
    vars(uvicorn)["run"] = run
    vars(importlib.import_module("nemo_gym.server_utils"))["initialize_ray"] = lambda: None
    runpy.run_path(server["entrypoint"], run_name="__main__")


def serve_many(out: int) -> None:
    """Fork a server for each line of standard input, `NAME LOG`, and answer `PID` before its own announcement.

    nemo-gym's imports cost ten seconds of processor time; forked, a server has them already.
    """
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    importlib.import_module("nemo_gym.base_resources_server")
    for line in sys.stdin:
        name, log = line.split(maxsplit=1)
        if child := os.fork():
            os.write(out, f"{child}\n".encode())
            continue
        os.setsid()
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.dup2(os.open(log.strip(), os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 2)
        try:
            serve(name, out)
        except BaseException:  # noqa: BLE001 - the child ends here whatever happens; its log says why
            traceback.print_exc()
            sys.stderr.flush()
            os.write(out, b"FAILED\n")
        os._exit(1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("server", metavar="SERVER_NAME", nargs="?", help="a folder of resources_servers/")
    name = parser.parse_args().server
    announcement = os.dup(1)
    os.dup2(2, 1)
    if name:
        serve(name, announcement)
    else:
        serve_many(announcement)


if __name__ == "__main__":
    main()
