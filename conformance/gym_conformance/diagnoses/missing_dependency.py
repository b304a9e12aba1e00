"""What is missing where the server runs, by its own exceptions: to be named, and no fault of its code."""

import asyncio
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import dropwhile
from typing import Final

from gym_conformance.contract.endpoints import OPENING, ROLLOUT_INDEX, RUN, TASK_INDEX, VERIFY
from gym_conformance.contract.policy_output import RESPONSE_FIELDS
from gym_conformance.contract.statuses import UNKNOWN_CLIENT, is_error
from gym_conformance.diagnoses.diagnosis import Case, Missing
from gym_conformance.diagnoses.said import Sent, exception_of, texts
from gym_conformance.launch.reasons import NETWORK, missing_file
from gym_conformance.session.exchange import Exchange

#: Seconds after which a server's last words are in its log.
_WRITTEN: Final = 0.2

#: Lines above an exception in which its innermost frames are.
_DEEP: Final = 40

#: Characters of a reply that are shown.
_CUT: Final = 200

#: A module's exception is known by its form, wherever it is quoted: nemo-gym 0.4.0's tales refuses a reset with it.
_MODULE: Final = re.compile(r"ModuleNotFoundError\(.{0,3}?(?P<said>No module named \\*'(?P<module>[\w.]+))")

#: Of other exceptions, what is missing stands in the message.
_RAY: Final = re.compile(r"LaunchError\(.(?P<said>Ray, [^'\"]*)")
_REFERENCE: Final = re.compile(r"(?P<said>reference \\*'(?P<name>[^'\\]+)\\*' is not defined in the merged config)")
_PIP: Final = re.compile(r"(?P<said>pip install (?:-U |--upgrade )?['\"\\]*(?P<package>[A-Za-z0-9][\w.,\[\]-]*))")

#: The `repr` of the exception does not say what was not found, its traceback may.
_NO_FILE: Final = "FileNotFoundError(2, "
_NOT_FOUND: Final = re.compile(r"FileNotFoundError: \[Errno 2\] [^:]*(?:: '(?P<name>[^']+)')?$")
_FRAME: Final = re.compile(r'File "(?P<file>[^"]+)", line (?P<line>\d+), in ')

#: Made by the server itself, where a row needs a file: only while it opens a session, since a call may name any file.
_OWN_FILE: Final = re.compile(r"FileNotFoundError\([\\'\"]+(?P<file>[^'\"]+)")

#: What only nemo-gym's own rollout collection, or an agent of its own (terminal_bench_4, 0.7.0), adds to a row.
_ROLLOUT_KEY: Final = re.compile(rf"\b(?:{ROLLOUT_INDEX}|{TASK_INDEX}|rollout_id)\b")

_THE_NETWORK: Final = "the network"

#: Python's own files, and uvloop's, in which a program is started.
_STARTING: Final = re.compile(r"(?:^|/)(?:(?:subprocess|unix_events|base_events)\.py|(?:loop|process)\.pyx)$")

Log = Callable[[], Sequence[str]]


class MissingDependency:
    """A module, program, file, network or config that the server reports as missing in an exception.

    Other hosts are missing, too, where it says nothing: what crashed or hung while it asked one. A path that did is
    remembered: a later request of it may hang without asking, behind one that still does (`interactive_browser` of nemo-gym
    0.7.0 installs its browser under a lock).
    """

    def __init__(self) -> None:
        self._asking: set[str] = set()

    def suspects(self, case: Case) -> bool:
        """Whether any reply was of 400 or above, or none came where another host is, or was, asked."""
        return any(map(_is_error, case.exchanges)) or (case.hung is not None and self._waits_for_others(case))

    async def confirm(self, case: Case) -> Missing | None:
        """Read replies and log; where a traceback may not be printed yet, once more after a moment."""
        found = missing(case.exchanges, case.log)
        if found is None and case.crashed and case.bench.launched.has_log:
            await asyncio.sleep(_WRITTEN)
            found = missing(case.exchanges, case.log)
        found = found or self._closed(case) or _unknown_client(case)
        if found and case.bench.launched.outside and found.needs.startswith(_THE_NETWORK):
            return replace(found, needs=found.needs.replace(_THE_NETWORK, f"{_THE_NETWORK} (--gym-network)", 1))
        return found

    def _closed(self, case: Case) -> Missing | None:
        """Another host that was asked, and is down here, where the server does not say so itself."""
        last = case.failed
        if last is None or not self._waits_for_others(case):
            return None
        self._asking.add(last.request.path)
        answer = last.reply.text[:_CUT] if last.reply else "nothing in time"
        return Missing(f"{_THE_NETWORK}: {last.request.path} asks another host, and answers {answer}")

    def _waits_for_others(self, case: Case) -> bool:
        """Whether it asks another host, or did when the same path hung or crashed."""
        return case.asked.outside > 0 or (case.hung is not None and case.hung.path in self._asking)


def _unknown_client(case: Case) -> Missing | None:
    """A credential of its clients, where it opens no session for us and its own credentials are made up."""
    made_up = ", ".join(case.bench.launched.made_up)
    refused = (each.reply.status for each in case.exchanges if each.reply and each.request.path in OPENING)
    status = next((status for status in refused if status in UNKNOWN_CLIENT), 0) if made_up else 0
    told = f"credentials: it answers {status} to a client without, and {made_up} is made up; give the real ones, and --gym-header"
    return Missing(told) if status else None


def missing(exchanges: Sequence[Exchange], log: Log) -> Missing | None:
    """What the server says that it lacks, in replies of 400 and above.

    What repeats text of a request is not believed: a policy may have written it. `log` is what the server printed
    lately, asked if needed.
    """
    sent = Sent(exchanges)
    for exchange in filter(_is_error, exchanges):
        if found := _named(exchange, log, sent) or _file(exchange, log) or _refused_for(exchange):
            return found
    return None


def _is_error(exchange: Exchange) -> bool:
    return exchange.reply is not None and is_error(exchange.reply.status)


def _named(exchange: Exchange, log: Log, sent: Sent) -> Missing | None:
    """What an exception names that the server could not find."""
    exception = exception_of(exchange, log)
    quoted = texts(exchange.reply) if exchange.reply else ""
    if found := _said(_MODULE, f"{exception}\n{quoted}", sent):
        return Missing(f"the module {found['module']}, which is not installed where the server runs")
    if found := _said(_RAY, exception, sent):
        return Missing(found["said"], lasts=True)
    if found := _said(_REFERENCE, exception, sent):
        return Missing(f"{found['name']} in the config that it is started with")
    if found := _said(_PIP, exception, sent):
        return Missing(f"what `pip install {found['package'].rstrip('.,')}` brings, where the server runs")
    if any(found[0] not in sent for found in NETWORK.finditer(exception)):
        reply = exchange.reply.text if exchange.reply else ""
        return Missing(f"{_THE_NETWORK}: {exchange.request.path} answers {reply[:_CUT]}")
    return None


def _said(pattern: re.Pattern[str], text: str, sent: Sent) -> re.Match[str] | None:
    """The first match in the text that is the server's own."""
    return next((found for found in pattern.finditer(text) if found["said"] not in sent), None)


def _file(exchange: Exchange, log: Log) -> Missing | None:
    """A program or a file that the log or the exception names."""
    exception = exception_of(exchange, log)
    if _NO_FILE in exception and (program := _program(log())):
        return Missing(f"{program}, which is not installed where the server runs")
    if exchange.request.path not in OPENING:
        return None
    if found := _OWN_FILE.search(exception):
        return Missing(missing_file(found["file"][:_CUT]))
    printed = next(filter(None, map(_NOT_FOUND.search, reversed(log()))), None) if _NO_FILE in exception else None
    return Missing(f"the file {printed['name']}") if printed and printed["name"] else None


def _refused_for(exchange: Exchange) -> Missing | None:
    """The key that is asked for, where the request has none, since no other client sends it either.

    `/run` has no client but rollout collection, and gets its keys.
    """
    if exchange.request.path == VERIFY and (field := _response_field(exchange)):
        return Missing(f"a response with {field}, which only an agent of its own adds", lasts=True)
    found = _ROLLOUT_KEY.search(exchange.reply.text) if exchange.reply else None
    if found is None or exchange.request.path == RUN or found[0].encode() in (exchange.request.body or b""):
        return None
    return Missing(
        f"{found[0]}, which nemo-gym's rollout collection or an agent of its own adds to a row, and no other client"
    )


def _response_field(exchange: Exchange) -> str:
    """The field of the response that is missing, where nothing else is wrong and no OpenAI Response has it; '' where none is."""
    said = exchange.reply.said if exchange.reply else None
    details = said.get("detail") if isinstance(said, dict) else None
    for detail in details if isinstance(details, list) else ():
        match detail:
            case {"type": "missing", "loc": ["body", "response", str(field)]} if field not in RESPONSE_FIELDS:
                return field
    return ""


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
