"""Right answers for rows without a recorded rollout: from a function of the user, or a file of reference outputs."""

import asyncio
import importlib
import inspect
import json
import os
import sys
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from functools import partial
from math import inf
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Final

from gym_conformance.contract.dataset_rows import Rollout, Row, Source
from gym_conformance.contract.policy_output import Item, message
from gym_conformance.documents import parse_json, read_lines
from gym_conformance.printable import Refusal

#: Seconds for one answer, and for importing the user's module: generous, since it may ask a model.
DEADLINE: Final = 60.0

#: Seconds after which a waiting answer checks whether it waits in vain.
_POLL: Final = 1.0


class OracleHangs(Exception):
    """The oracle does not answer in time; the message says for which row."""


class _OwnThread:
    """A thread for the user's code: code that never returns there does not block us, not even at the end of the run.

    Attributes:
        began: when the current work began; inf if there is none.
    """

    def __init__(self) -> None:
        self.began = inf
        self._works = SimpleQueue[tuple[Future[Any], Callable[[], Any]]]()
        threading.Thread(target=self._run, daemon=True).start()

    def begin(self, work: Callable[[], Any]) -> Future[Any]:
        """The future result of some work, which runs after the work before it."""
        future = Future[Any]()
        self._works.put((future, work))
        return future

    def _run(self) -> None:
        while True:
            future, work = self._works.get()
            self.began = time.monotonic()
            try:
                future.set_result(work())
            except StopIteration as error:  # a coroutine must not raise it
                future.set_exception(RuntimeError(repr(error)))
            except BaseException as error:  # noqa: BLE001 - passed on to whoever asked
                future.set_exception(error)
            self.began = inf


class Oracle:
    """Gives the output items of a row's right answer, or its message as a text; None if it knows none."""

    def __init__(self, function: Callable[[Row], Any], thread: _OwnThread | None = None) -> None:
        self._function = function
        self._thread = thread or _OwnThread()
        self._row: Row | None = None

    async def answer(self, row: Row) -> Any:
        """The row's answer, or whatever exception the function raises.

        Raises:
            OracleHangs: this answer, or one requested before it, takes too long.
        """
        asked = asyncio.wrap_future(self._thread.begin(partial(self._answer, row)))
        while not (await asyncio.wait([asked], timeout=_POLL))[0]:
            if time.monotonic() - self._thread.began > DEADLINE:
                raise OracleHangs(f"no answer within {DEADLINE:g} s for {self._row}")
        return asked.result()

    def _answer(self, row: Row) -> Any:
        self._row = row
        return self._function(row)


class BadOracle(Refusal):
    """The oracle cannot be used; the message says what is wrong, where, and how to fix it."""


def load_oracle(given: str) -> Oracle:
    """The oracle named by `module:function`, or by the path of a JSONL file.

    The function gets a row, as a dict. A line of the file is an object with a row's `responses_create_params` and its
    `output`, or a complete `response`. Modules are also looked for in the working directory.

    Raises:
        BadOracle: there is no such file, module or function, or a line has a different form.
    """
    if given.endswith(".jsonl"):
        return _of_file(Path(given))
    module, _, name = given.partition(":")
    if not module or not name:
        raise BadOracle(f"{given!r}: give module:function, or a JSONL file of reference outputs")
    if (here := os.getcwd()) not in sys.path:  # noqa: PTH109 - sys.path has strings
        sys.path.insert(0, here)
    thread = _OwnThread()  # used for the answers too: a database connection may be bound to the thread that opened it
    imported = thread.begin(lambda: getattr(importlib.import_module(module), name))
    if not wait([imported], DEADLINE).done:
        raise BadOracle(f"{given!r}: its import takes more than {DEADLINE:g} s; do the work when a row is asked")
    try:
        function = imported.result()
    except (Exception, SystemExit) as error:  # noqa: BLE001 - the user's module may raise anything
        raise BadOracle(f"{given!r}: it cannot be imported: {type(error).__name__}: {error}") from None
    if not callable(function):
        raise BadOracle(f"{given!r}: {name} is not a function; give one that takes a row and returns output items")
    if why := _unfit(function):
        raise BadOracle(f"{given!r}: {why}; give a plain function that takes a row (a dict) and returns output items")
    return Oracle(lambda row: function(dict(row.data)), thread)


def _unfit(function: Callable[..., Any]) -> str:
    """Why it cannot be called with a row and return an answer; '' if it can, or has no annotations."""
    if inspect.iscoroutinefunction(function) or inspect.isgeneratorfunction(function):
        return "it is async, or a generator"
    try:
        inspect.signature(function).bind({})
    except TypeError as error:
        return f"it cannot be called with a row: {error}"
    except ValueError:  # a builtin without a signature
        return ""
    return ""


def _of_file(path: Path) -> Oracle:
    # by their input: a file may have as many rows as a dataset
    references: dict[tuple[str, ...], list[Rollout]] = {}
    try:
        for number, line in enumerate(read_lines(path), 1):
            if not line.isspace():
                one = _reference(line, Source(path, number))
                references.setdefault(one.input_texts(one.data), []).append(one)
    except OSError as error:
        raise BadOracle(f"{path}: {error.strerror}; give a JSONL file that can be read") from None

    def answer(row: Row) -> Any:
        same = references.get(Rollout.input_texts(row.data), ())
        return next((one.response["output"] for one in same if one.belongs_to(row)), None)

    return Oracle(answer)


def _reference(line: bytes, source: Source) -> Rollout:
    try:
        data = parse_json(line.decode())
    except (ValueError, RecursionError):
        data = None
    match data:
        case {"response": {"output": output}} | {"output": output}:
            params = data.get("responses_create_params")
        case _:
            output = params = None
    asked = (params.get("input") or []) if isinstance(params, dict) else None
    sound = isinstance(asked, str) or (isinstance(asked, list) and all(isinstance(each, dict) for each in asked))
    if output is None or not sound:
        what = "give an object with a row's responses_create_params and its output"
        raise BadOracle(f"{source.path}, line {source.line}: no reference output; {what}")
    own = {key: value for key, value in data.items() if key != "output"}
    return Rollout({**own, "response": {"output": output}}, source)


def items_of(answer: Any) -> Sequence[Item]:
    """The output items of an oracle's answer.

    Raises:
        ValueError: it is neither a list of items nor a text.
    """
    if isinstance(answer, str):
        return [message(answer)]
    if isinstance(answer, list | tuple) and all(isinstance(item, dict) for item in answer) and _is_json(answer):
        return list(answer)
    raise ValueError("an oracle gives a list of output items, or a text")


def _is_json(answer: Any) -> bool:
    try:
        json.dumps(answer)
    except (TypeError, ValueError, RecursionError):
        return False
    return True
