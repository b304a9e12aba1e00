"""Serves one environment in this process: run by its path, in the env's own interpreter, which may lack our package.

    python child.py SOCKET ANNOUNCEMENT < specification

SOCKET and ANNOUNCEMENT are file descriptors. The specification is a line of JSON
(`gym_conformance.launch.specification`). It is answered by one line of JSON: `{"pid", "config"}` when the server is
about to accept, or `{"failed": ...}`.

The env's own entry point runs as `gym env start` runs it (nemo-gym 0.4.0 to 0.7.0, `nemo_gym/cli/env.py`): as
`__main__`, in its folder, with its config in the environment, resolved by nemo-gym's own parser. So its own
`run_webserver()` builds the app, with every middleware and handler in nemo-gym's order. The differences: Ray is not
started; the socket is given; workers are forked here, before the entry point runs in each, and there is only one unless
more are requested; and the specification overrides parts of the YAML, so that one mock replaces each model server that
the config names and, for an environment server (0.7.0), every server that it names.

With `real` in the specification, only the mocks and the address are overridden: this process becomes `python app.py`,
as `run_command` of nemo_gym/cli/setup_command.py (0.4.0) starts it, and starts Ray itself. Our socket then only
reserves the port.
"""

import contextlib
import importlib
import inspect
import json
import os
import runpy
import socket
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

_BASES = {  # by key in the YAML: module, class, and the method that authors extend
    "resources_servers": ("base_resources_server", "BaseResourcesServer", "SimpleResourcesServer"),
    "environment_servers": ("base_environment_server", "BaseEnvironmentServer", "BaseEnvironmentServer"),
}


class LaunchError(Exception):
    """The folder cannot be served, and that is not nemo-gym's fault."""


def serve_env(spec: dict[str, Any], serve: Callable[..., None], become: Callable[..., None]) -> None:
    """Serve an env in NeMo Gym's layout; if it is to run for real, become its own process and never return.

    Raises:
        LaunchError: its entry point serves nothing.
    """
    folder, root = Path(spec["folder"]), Path(spec["root"])
    sys.path[0] = str(folder)
    sys.path += [str(root), *spec["sources"]]
    os.chdir(root)  # config_paths are relative to the root
    config = resolve(spec)
    os.chdir(folder)
    omegaconf = importlib.import_module("omegaconf").OmegaConf
    os.environ["NEMO_GYM_CONFIG_DICT"] = omegaconf.to_yaml(config)
    os.environ["NEMO_GYM_CONFIG_PATH"] = spec["instance"]
    if spec["real"]:
        paths = (str(folder), str(root), *spec["sources"], os.environ.get("PYTHONPATH"))
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
        become(spec["entrypoint"], omegaconf.to_container(config, resolve=False))
    served = False

    def run(app: Any, **options: Any) -> None:  # takes whatever nemo-gym passes to uvicorn.run
        nonlocal served
        served = True
        serve(app, omegaconf.to_container(config, resolve=False), **options)

    vars(importlib.import_module("uvicorn"))["run"] = run
    keep_ray_out()
    register_sandboxes(spec)
    # an absolute path, as `__file__` has it in `python app.py`
    space = runpy.run_path(str(folder / spec["entrypoint"]), run_name="__main__")
    if not served:
        server_class(space, spec["group"]).run_webserver()


def framework(*names: str) -> Any:
    """A module of nemo-gym, under the names that it has had: that of the releases first, then those on its main branch.

    Raises:
        ModuleNotFoundError: there is no module of these names; the error names the first.
    """
    for name in names:
        try:
            return importlib.import_module(f"nemo_gym.{name}")
        except ModuleNotFoundError as missing:
            if not f"nemo_gym.{name}".startswith(missing.name or "?"):
                raise  # a module that it imports is missing
    return importlib.import_module(f"nemo_gym.{names[0]}")


def keep_ray_out() -> None:
    """Keep nemo-gym and Ray from starting a cluster; with nemo-gym's main, Ray need not be installed."""
    framework("server_utils", "server_runtime.base_server")
    for name, module in list(sys.modules.items()):
        if name.startswith("nemo_gym.") and "initialize_ray" in vars(module):
            vars(module)["initialize_ray"] = lambda *_, **__: None
    with contextlib.suppress(ModuleNotFoundError):
        vars(importlib.import_module("ray"))["init"] = refuse_ray


def refuse_ray(*_: Any, **__: Any) -> None:
    """Replaces `ray.init`, which Ray also calls by itself when a task is started, so that no cluster comes up unasked.

    Raises:
        LaunchError: always.
    """
    raise LaunchError("Ray, which is started only with --gym-launch real")


def server_class(space: dict[str, Any], group: str) -> Any:
    """The only server of this kind in a module that does not run it by itself.

    Raises:
        LaunchError: the module has none, or several.
    """
    module, name, extended = _BASES[group]
    base = vars(framework(module, f"server_runtime.{module}"))[name]
    own = [value for value in space.values() if isinstance(value, type) and issubclass(value, base)]
    own = [value for value in own if value.__module__ == "__main__"]
    if not own:
        raise LaunchError(f"a server class: app.py defines no {extended}, and runs none")
    if len(own) > 1:
        names = ", ".join(sorted(value.__name__ for value in own))
        raise LaunchError(f"to know its server class: app.py defines {names} and runs none of them")
    return own[0]


def resolve(spec: dict[str, Any]) -> Any:
    """The global config as nemo-gym's own parser resolves it from the YAML, our addresses and the user's settings."""
    module = framework("global_config", "config.global_config")
    omegaconf = importlib.import_module("omegaconf").OmegaConf
    settings = omegaconf.from_dotlist(spec["settings"])
    initial = omegaconf.merge(spec["overrides"], settings)
    wrong = almost_servers(vars(module))
    try:
        return module.GlobalConfigDictParser().parse_no_environment(initial_global_config_dict=initial)
    except ValueError as error:
        if type(error).__name__ != "AlmostServerError" or not wrong:
            raise
        refused = list(dict.fromkeys(wrong))
        if not all(".datasets." in each for each in refused):
            raise LaunchError(f"a YAML that nemo-gym accepts: {'; '.join(refused)}") from None
    spec["refused"] = refused  # servers do not read the description of their data sets
    anyway = omegaconf.merge(initial, spec["without_datasets"])
    return module.GlobalConfigDictParser().parse_no_environment(initial_global_config_dict=anyway)


def almost_servers(module: dict[str, Any]) -> list[str]:
    """What nemo-gym finds wrong with the servers in a YAML, filled in as it does: its own error does not say."""
    wrong: list[str] = []
    told: Any = module.get("format_almost_server_warning")

    def tell(server: str, error: Any) -> Any:
        errors = error.errors()
        own = [each for each in errors if each["type"] != "missing"] or errors  # others are about other kinds of server
        for each in own:
            place = ".".join(part for part in map(str, each["loc"][1:]) if part.isidentifier() or part.isdecimal())
            said = each["msg"] if isinstance(each["input"], dict | list) else f"it cannot be {each['input']!r}"
            wrong.append(f"{server}: {place}: {said}")
        return told(server, error)

    if told:
        module["format_almost_server_warning"] = tell
    return wrong


def register_sandboxes(spec: dict[str, Any]) -> None:
    """Register the mocks' sandbox provider with nemo-gym, which has none before 0.5.0; no package is needed for it."""
    if not spec["provider"]:
        return
    try:
        registry = importlib.import_module("nemo_gym.sandbox.providers")
    except ModuleNotFoundError:
        return
    provider = runpy.run_path(spec["provider"], run_name="gym_mocks_sandbox_provider")["ScriptedProvider"]
    registry.register_provider("gym_mocks", provider, override=True)


def serve_application(spec: dict[str, Any], serve: Callable[..., None]) -> None:
    """Serve any ASGI or WSGI application, or one that a function makes, as uvicorn does.

    Raises:
        LaunchError: there is no application of that name.
    """
    module, _, attribute = spec["application"].partition(":")
    sys.path[0] = spec["folder"]
    sys.path += spec["sources"]
    os.chdir(spec["folder"])
    app: Any = importlib.import_module(module)
    for name in attribute.split("."):
        if not hasattr(app, name):
            raise LaunchError(f"an application: {module} has no attribute {attribute}")
        app = getattr(app, name)
    if inspect.isroutine(app) and takes(app, 0) and not takes(app, 3):
        app = app()
    if takes(app, 2) and not takes(app, 3):
        app = importlib.import_module("uvicorn.middleware.wsgi").WSGIMiddleware(app)
    if not takes(app, 3):
        kind = "function" if inspect.isroutine(app) else f"{type(app).__name__} of {type(app).__module__}"
        anyway = "start it yourself, and give its address with --gym-url"
        raise LaunchError(f"an ASGI or WSGI application: {spec['application']} is a {kind}; {anyway}")
    serve(app, {}, timeout_keep_alive=30, timeout_graceful_shutdown=1)


def takes(app: Any, count: int) -> bool:
    """Whether it can be called with `count` arguments: ASGI has three, WSGI two; True if its signature is unknown."""
    if not callable(app):
        return False
    try:
        inspect.signature(app).bind(*[None] * count)
    except TypeError:
        return False
    except ValueError:
        return True
    return True


def closing_when_asked(app: Any, close: Callable[[], None]) -> Any:
    """The application, closing the network at its first request: it may fetch things while it starts."""

    async def closed(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "lifespan":
            close()
        await app(scope, receive, send)

    return closed


def failure(error: BaseException, folder: str) -> dict[str, Any]:
    """A description of the error, which `gym_conformance.launch.reasons` turns into words."""
    last = traceback.extract_tb(error.__traceback__)
    in_environment = (
        bool(last) and Path(last[-1].filename).name in ("os.py", "<frozen os>") and isinstance(error, KeyError)
    )
    return {
        "type": "EnvironKeyError" if in_environment else type(error).__name__,
        "bases": [base.__name__ for base in type(error).__mro__],
        "message": str(traceback.TracebackException.from_exception(error))[:4000],  # its own str may raise
        "name": str(getattr(error, "name", None) or ""),
        "file": str(getattr(error, "filename", None) or ""),
        "where": where(error, folder),
    }


def where(error: BaseException, folder: str) -> str:
    """The innermost line in the env's own folder; '' if there is none, or if the message names it itself."""
    if isinstance(error, (SyntaxError, LaunchError)):
        return ""
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        name = os.path.relpath(frame.filename, folder)
        if frame.filename != __file__ and not name.startswith("..") and "site-packages" not in name and "<" not in name:
            return f"{name}, line {frame.lineno}"
    return ""


def print_where(error: BaseException) -> None:
    """Print a traceback with only the env's own frames, without those of the import machinery."""
    said = traceback.TracebackException.from_exception(error)
    ours = (__file__, runpy.__file__, "<frozen", os.path.dirname(importlib.__file__))  # noqa: PTH120 - used as a prefix
    said.stack[:] = [frame for frame in said.stack if not frame.filename.startswith(ours)]
    sys.stderr.writelines(said.format())


def fork_workers(count: int, say: Callable[[dict[str, Any]], None]) -> Callable[[dict[str, Any]], None]:
    """Fork into `count` processes, which all continue from here.

    Returns:
        What each process calls when it accepts connections: the first announces the server once all of them do, or
            exits if one has ended before that.
    """
    reading, writing = os.pipe()
    for _ in range(count - 1):
        if os.fork() == 0:
            os.close(reading)
            return lambda _: os.close(writing) if os.write(writing, b".") else None
    os.close(writing)

    def first(what: dict[str, Any]) -> None:
        told = b""
        while len(told) < count - 1:
            if not (data := os.read(reading, count)):
                sys.exit(1)  # that one has reported why
            told += data
        os.close(reading)
        say(what)

    return first


def main() -> None:
    """Serve until told to stop; announce what prevents it."""
    listener = socket.socket(fileno=int(sys.argv[1]))
    announcement = int(sys.argv[2])
    spec = json.loads(sys.stdin.readline())
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)

    def say(what: dict[str, Any]) -> None:
        os.write(announcement, json.dumps(what, default=str).encode() + b"\n")

    def serve(app: Any, config: dict[str, Any], **options: Any) -> None:
        import uvicorn  # noqa: PLC0415 - it may be missing, which we report

        if spec["outside"]:
            here = runpy.run_path(str(Path(__file__).with_name("no_network.py")))
            app = closing_when_asked(app, here["closing"](tuple(spec["outside"])))
            options["loop"] = "asyncio"  # other loops do not connect through Python's sockets

        class Announced(uvicorn.Server):
            """Announces itself once it accepts: if a worker were late, the others would get all sessions."""

            async def startup(self, sockets: Any = None) -> None:
                await super().startup(sockets)
                if self.started:
                    ready({"pid": os.getpid(), "config": config, "refused": spec.get("refused", [])})

        Announced(uvicorn.Config(app, **options)).run(sockets=[listener])

    def become(entrypoint: str, config: dict[str, Any]) -> None:
        say({"pid": os.getpid(), "config": config, "refused": spec.get("refused", [])})
        os.set_inheritable(announcement, False)
        os.set_inheritable(listener.fileno(), sys.platform == "linux")  # elsewhere a bound port cannot be shared
        os.execv(sys.executable, [sys.executable, entrypoint])  # noqa: S606 - NeMo Gym starts it so

    # before anything of the env is imported, so that each worker has its own state and keys, as uvicorn's own workers
    # do
    ready = fork_workers(1 if spec["real"] else spec["workers"], say)
    for name, value in spec["environment"].items():
        os.environ.setdefault(name, value)
    try:
        if spec["application"]:
            serve_application(spec, serve)
        else:
            serve_env(spec, serve, become)
    except BaseException as error:  # noqa: BLE001 - any failure is announced
        print_where(error)
        say({"failed": failure(error, spec["folder"])})
        sys.exit(1)


if __name__ == "__main__":
    main()
