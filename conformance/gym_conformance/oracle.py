"""What is handed in for rows where nobody recorded a rollout: a function of the user's, or a file of reference outputs."""

import importlib
import inspect
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from gym_conformance.contract.dataset_rows import Rollout, Row, Source
from gym_conformance.contract.policy_output import Item, message
from gym_conformance.documents import parse_json, read_lines
from gym_conformance.printable import Refusal

#: Gives the output items of a row's right answer, the text of a message, or None where it knows none.
Oracle = Callable[[Row], Any]


class BadOracle(Refusal):
    """It cannot be used; the message says what, where and how to fix it."""


def load_oracle(given: str) -> Oracle:
    """The oracle that `module:function`, or the path of a JSONL file, stands for.

    The function is given a row, as a dict. A line of the file is an object with a row's `responses_create_params` and its
    `output`, or a whole `response`. A module is looked for in the working directory, too.

    Raises:
        BadOracle: there is no such file, module or function, or a line is none of this.
    """
    if given.endswith(".jsonl"):
        return _of_file(Path(given))
    module, _, name = given.partition(":")
    if not module or not name:
        raise BadOracle(f"{given!r}: give module:function, or a JSONL file of reference outputs")
    if (here := os.getcwd()) not in sys.path:  # noqa: PTH109 - sys.path holds texts
        sys.path.insert(0, here)
    try:
        function = getattr(importlib.import_module(module), name)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - the user's module may raise anything
        raise BadOracle(f"{given!r}: it cannot be imported: {type(error).__name__}: {error}") from None
    if not callable(function):
        raise BadOracle(f"{given!r}: {name} is no function; give one that takes a row and returns output items")
    if why := _unfit(function):
        raise BadOracle(f"{given!r}: {why}; give a plain function that takes a row (a dict) and returns output items")
    return lambda row: function(dict(row.data))


def _unfit(function: Callable[..., Any]) -> str:
    """Why it cannot be called with a row for what it returns; '' if it can, or does not say what it takes."""
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
    references: dict[
        tuple[str, ...], list[Rollout]
    ] = {}  # by their input: a file may have as many as a dataset has rows
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

    return answer


def _reference(line: bytes, source: Source) -> Rollout:
    try:
        data = parse_json(line.decode())
    except (ValueError, RecursionError):
        data = None
    response = data.get("response") if isinstance(data, dict) else None
    output = (
        response.get("output") if isinstance(response, dict) else data.get("output") if isinstance(data, dict) else None
    )
    params = data.get("responses_create_params") if isinstance(data, dict) else None
    asked = params.get("input") or [] if isinstance(params, dict) else None
    sound = isinstance(asked, str) or (isinstance(asked, list) and all(isinstance(each, dict) for each in asked))
    if not isinstance(data, dict) or not sound or output is None:
        what = "give an object with a row's responses_create_params and its output"
        raise BadOracle(f"{source.path}, line {source.line}: no reference output; {what}")
    own = {key: value for key, value in data.items() if key != "output"}
    return Rollout({**own, "response": {"output": output}}, source)


def items_of(answer: Any) -> Sequence[Item]:
    """The output items of what an oracle gave.

    Raises:
        ValueError: it is neither items nor a text.
    """
    if isinstance(answer, str):
        return [message(answer)]
    if isinstance(answer, list | tuple) and all(isinstance(item, dict) for item in answer):
        return list(answer)
    raise ValueError("an oracle gives a list of output items, or a text")
