"""Why a server did not start, in terms its author knows, and how to fix it."""

import re
from collections.abc import Mapping, Sequence
from shlex import quote
from typing import Any

from gym_conformance.launch.env import CREDENTIAL, REQUIRING, Env
from gym_conformance.launch.venv_recipe import left_out

_KEYS = re.compile(r"^[ \t]*-[ \t]+(\S+)[ \t]*$", re.MULTILINE)
_INTERPOLATION = re.compile(r"Interpolation key '([^']+)'|\$\{([A-Za-z_][\w.]*)\}")
_MISSING_FIELD = re.compile(r"^(\S+)\n\s+Field required", re.MULTILINE)
_NO_TEXT = re.compile(
    r"^([A-Za-z_]\w*+)\S*+\n\s+Input should be a valid string \[type=string_type, input_value=None", re.MULTILINE
)
#: Error messages of a missing network.
NETWORK = re.compile(
    r"Connection refused|Max retries exceeded|Name or service not known|Temporary failure in name resolution"
    r"|Could not resolve host|dns error|Failed to connect to|Network is unreachable|NameResolutionError|Could not connect|couldn't connect|ConnectError|Tunnel connection failed"
    r"|offline mode|LocalEntryNotFoundError|NLTK Downloader",
    re.IGNORECASE,
)
#: An environment variable, as messages name it.
_VARIABLE = re.compile(r"\b[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+\b")
_UNSET = re.compile(r"Environment variable '([^']+)' not found")

_NETWORK_TYPES = frozenset({"ConnectionError", "gaierror", "URLError", "ConnectError", "ProxyError", "MaxRetryError"})

#: The first imports of nemo-gym and its dependencies.
_GYM = ("nemo_gym", "omegaconf")

#: The last line of a traceback; nemo-gym may prefix the server's name.
_RAISED = re.compile(
    r"^(?:\([^)]*\) )?(?P<kind>(?:[A-Za-z_][\w.]*)?(?:Error|Exception|Exit|NotFound\w*)): (?P<message>.*)$"
)

#: What uvicorn prints before and after an application's own start-up.
_BEGUN, _OVER = "Waiting for application startup.", "Application startup complete."
_FAILED = "Application startup failed."

#: Characters to show of an unknown error.
_LONGEST = 300

_QUOTES = "'\""


def reason(failure: Mapping[str, Any], env: Env, python: str) -> str:
    """What is needed, phrased to follow "needs ". `failure` is the child's announcement."""
    needs, missed = _reason(failure, env, python), left_out(python)
    return (
        f"{needs}; left out of its requirements, as their host is not there: {', '.join(missed)}" if missed else needs
    )


def _reason(failure: Mapping[str, Any], env: Env, python: str) -> str:  # noqa: PLR0911 - one per kind
    kind, bases, message = str(failure["type"]), set(failure["bases"]), str(failure["message"])
    first = next((line for raw in message.splitlines() if re.search(r"\w", line := raw.strip())), kind)[:_LONGEST]
    match kind:
        case "LaunchError":
            return message
        case "ModuleNotFoundError":
            return _module(str(failure["name"]), env, python)
        case "EnvironKeyError":
            return f"the environment variable {first.strip(_QUOTES)}"
        case "FileNotFoundError":
            return missing_file(failure["file"] or first)
        case "SystemExit":
            return f"an app.py that does not exit ({first})"
    if "attempted relative import with no known parent package" in message:
        return f"an entry point that imports by whole names: NeMo Gym runs it as a script, in no package ({first})"
    if bases & _NETWORK_TYPES or NETWORK.search(message) or (kind == "CalledProcessError" and "://" in message):
        return f"the network, or the files that it would download: {kind}: {first}"
    where = str(failure.get("where") or "")
    return _config(kind, message, first) or f"to start: {kind}: {first}{f' ({where})' if where else ''}"


def missing_file(said: str) -> str:
    """The file that an exception names; its own message if it names none."""
    return f"a file that is not there: {said}" if " " in said else f"the file {said}"


def missing_credentials(failure: Mapping[str, Any]) -> tuple[str, ...]:
    """The config fields that its class requires, if only credentials are missing."""
    message = str(failure["message"])
    fields = dict.fromkeys([*_MISSING_FIELD.findall(message), *_NO_TEXT.findall(message)])
    only = failure["type"] == "ValidationError" and all(map(CREDENTIAL.search, fields))
    return tuple(fields) if only else ()


def named_credentials(failure: Mapping[str, Any]) -> tuple[str, ...]:
    """The environment variables that it names, as libraries do that lack a credential."""
    found = _VARIABLE.findall(str(failure["message"]))
    return tuple(dict.fromkeys(name for name in found if CREDENTIAL.search(name)))


def raised(log: Sequence[str]) -> Mapping[str, Any] | None:
    """The last exception that a process printed, in the form of the child's announcement; None if it printed none."""
    for line in reversed(log):
        if found := _RAISED.match(line):
            kind, message = found["kind"].rpartition(".")[2], found["message"]
            named = re.search(r"'([^']+)'$", message)
            name = named[1] if named else ""
            return {"type": kind, "bases": [kind], "message": message, "name": name, "file": name}
    return None


def failed_start_up(log: Sequence[str]) -> Mapping[str, Any] | None:
    """The exception that ended an application's own start-up, which uvicorn prints before it exits; None for none."""
    return raised(log[: max((at for at, line in enumerate(log) if _FAILED in line), default=0)])


def unfinished(log: Sequence[str]) -> str:
    """The last line printed during start-up, before which uvicorn answers nothing; '' if start-up is complete."""
    for line in reversed(log):
        if _OVER in line:
            return ""
        if _BEGUN in line:
            return log[-1]
    return ""


def _config(kind: str, message: str, first: str) -> str:
    """What is wrong with the config, '' if nothing is. The types are those of nemo-gym, OmegaConf and pydantic."""
    match kind:
        case "ConfigMissingValuesError" | "MissingMandatoryValue":
            return _settings(_KEYS.findall(message) or re.findall(r"full_key: (\S+)", message), first)
        case "InterpolationResolutionError" if unset := _UNSET.search(message):
            return f"the environment variable {unset[1]}"
        case "InterpolationKeyError" | "InterpolationResolutionError" | "ConfigInterpolationError":
            return _settings([one or other for one, other in _INTERPOLATION.findall(message)][:1], first)
        case "ServerRefNotFoundError":
            return f"a server that its config refers to: {first}"
        case "ValidationError":
            fields = _MISSING_FIELD.findall(message)
            what = f"it has no {', '.join(fields)}" if fields else " ".join(message.split())[:_LONGEST]
            return f"a config that its class accepts: {what}"
    return ""


def _module(module: str, env: Env, python: str) -> str:
    """The missing module, and the command that installs it; for nemo-gym's own modules, nemo-gym."""
    top = module.partition(".")[0]
    install = f"{quote(python)} -m pip install"
    listed = next((name for name in REQUIRING if (env.project / name).is_file()), "")
    or_so = ", or --gym-install" if listed else ""
    missed = left_out(python)
    if missed is not None and top not in _GYM:
        named = (
            f"its {listed} names nothing that brings it"
            if listed
            else "it has no requirements.txt that names what brings it"
        )
        return f"the module {module}: {'it may come with what was left out' if missed else named}"
    if top in _GYM:
        return f"nemo-gym where the server runs: {install} nemo-gym{or_so}, or --gym-python=PATH of an interpreter that has it"
    if listed == "pyproject.toml":  # which may get it from another source, or by another name
        return f"the module {module}: --gym-install, with its pyproject.toml asking for what brings it"
    wanted = f"-r {quote(str(env.project / listed))}" if listed else top.replace("_", "-")
    return f"the module {module}: {install} {wanted}{or_so}"


def _settings(keys: Sequence[str], first: str) -> str:
    if not keys:
        return f"a config key: {first}"
    noun = "key" if len(keys) == 1 else "keys"
    return f"the config {noun} {', '.join(keys)}: {' '.join(f'--gym-env-set {key}=VALUE' for key in keys)}"
