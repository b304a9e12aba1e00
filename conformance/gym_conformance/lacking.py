"""What a server lacks where it runs, by its own words: to be named, and no fault of its code. Pure."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import dropwhile

from gym_conformance.contract.endpoints import RESET, ROLLOUT_INDEX, RUN, SEED_SESSION, TASK_INDEX
from gym_conformance.contract.statuses import is_crash, is_error
from gym_conformance.launch.reasons import NETWORK
from gym_conformance.session.exchange import Exchange

#: Lines above an exception in which its innermost frames are.
_DEEP = 40

#: Characters of a reply that are shown.
_CUT = 200

#: What nemo-gym answers a crash with is the `repr` of the exception (nemo_gym/server_utils.py, 0.4.0).
_SAID = re.compile(
    r"ModuleNotFoundError\(.*?No module named \\?'(?P<module>[\w.]+)"
    r"|LaunchError\(.(?P<ray>Ray, [^'\"]*)"
    r"|reference '(?P<reference>[^']+)' is not defined in the merged config"
    r"|pip install (?:-U |--upgrade )?['\"\\]*(?P<pip>[A-Za-z0-9][\w.,\[\]-]*)"
)

#: The `repr` of the exception does not say what was not found, its traceback may.
_NO_FILE = "FileNotFoundError(2, "
_NOT_FOUND = re.compile(r"FileNotFoundError: \[Errno 2\] [^:]*(?:: '(?P<name>[^']+)')?$")
_FRAME = re.compile(r'File "(?P<file>[^"]+)", line (?P<line>\d+), in ')

#: Made by the server itself, where a row needs a file: only while it opens a session, since a call may name any file.
_OWN_FILE = re.compile(r"FileNotFoundError\([\\'\"]+(?P<file>[^'\"]+)")
_OPENING = (SEED_SESSION, RESET)

#: What only nemo-gym's own rollout collection adds to a row.
_ROLLOUT_KEY = re.compile(rf"\b(?:{ROLLOUT_INDEX}|{TASK_INDEX})\b")

#: Python's own files, and uvloop's, in which a program is started.
_STARTING = re.compile(r"(?:^|/)(?:(?:subprocess|unix_events|base_events)\.py|(?:loop|process)\.pyx)$")


@dataclass(frozen=True)
class Lack:
    """Something that is missing: `needs` stands after "needs ".

    `lasts` where the server may not ask for it again: what it scores afterwards is scored without it.
    """

    needs: str
    lasts: bool = False


def lack(exchanges: Iterable[Exchange], log: Callable[[], Sequence[str]]) -> Lack | None:
    """What the server said that it lacks, in replies of 400 and above; `log` is what it printed lately, asked if needed."""
    for exchange in exchanges:
        if exchange.reply is None or not is_error(exchange.reply.status):
            continue
        text = exchange.reply.text
        if found := _SAID.search(text):
            return _worded(found)
        if _NO_FILE in text and (program := _program(log())):
            return Lack(f"{program}, which is not installed where the server runs")
        if needs := _crashed_for(exchange, log) or _refused_for(exchange):
            return Lack(needs)
    return None


def crashed(exchange: Exchange) -> bool:
    """Whether the reply is of 500 or above."""
    return exchange.reply is not None and is_crash(exchange.reply.status)


def _crashed_for(exchange: Exchange, log: Callable[[], Sequence[str]]) -> str:
    if not crashed(exchange) or exchange.reply is None:
        return ""
    text = exchange.reply.text
    if NETWORK.search(text):
        return f"the network: {exchange.request.path} answers {text[:_CUT]}"
    if exchange.request.path not in _OPENING:
        return ""
    if found := _OWN_FILE.search(text):
        return f"the file {found['file'][:_CUT]}"
    printed = next(filter(None, map(_NOT_FOUND.search, reversed(log()))), None) if _NO_FILE in text else None
    return f"the file {printed['name']}" if printed and printed["name"] else ""


def _refused_for(exchange: Exchange) -> str:
    """The key that is asked for, where the request has none, since no other client sends it either.

    `/run` has no client but rollout collection, and gets its keys.
    """
    found = _ROLLOUT_KEY.search(exchange.reply.text) if exchange.reply else None
    if found is None or exchange.request.path == RUN or found[0].encode() in (exchange.request.body or b""):
        return ""
    return f"{found[0]}, which nemo-gym's own rollout collection adds to a row, and no other client"


def _worded(found: re.Match[str]) -> Lack:
    if found["ray"]:
        return Lack(found["ray"], lasts=True)
    if found["reference"]:
        return Lack(f"{found['reference']} in the config that it is started with")
    if found["pip"]:
        return Lack(f"what `pip install {found['pip'].rstrip('.,')}` brings, where the server runs")
    return Lack(f"the module {found['module']}, which is not installed where the server runs")


def _program(log: Sequence[str]) -> str:
    """The program that could not be started last, or who starts it; '' where what was not found is no program."""
    for at in range(len(log) - 1, -1, -1):
        if found := _NOT_FOUND.search(log[at]):
            frames = [frame for line in reversed(log[max(0, at - _DEEP) : at]) if (frame := _FRAME.search(line))]
            callers = list(dropwhile(lambda frame: _STARTING.search(frame["file"]), frames))
            if len(callers) in (0, len(frames)):
                return ""
            name = found["name"]
            return (
                f"the program {name}" if name else f"the program that {callers[0]['file']}:{callers[0]['line']} starts"
            )
    return ""
