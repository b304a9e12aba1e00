"""Validates an env's rows against its task_data.py with nemo-gym's own validator: run by path in the env's interpreter.

    python task_rows.py FOLDER ROOT FILE

Writes one line of JSON to standard output, whatever the env's module prints there: {"unknown": why it cannot be
checked}, {"broken": why there is no schema}, or nemo-gym's report on the file's rows. Source: nemo_gym/task_data.py
(0.7.0).
"""

import json
import os
import sys
from pathlib import Path
from typing import Any


def judged(folder: Path, file: Path) -> dict[str, Any]:
    """The validator's result."""
    try:
        from nemo_gym.task_data import TaskDataSchemaError, load_task_data_schema, validate_jsonl_rows  # noqa: PLC0415 - it may be missing, which we report
    except ImportError as error:
        return {"unknown": f"nemo-gym 0.7.0 or newer, whose nemo_gym.task_data reads it: {error}"}
    try:
        adapter = load_task_data_schema(folder)
    except TaskDataSchemaError as error:
        return {"broken": str(error)}
    with file.open(encoding="utf-8") as lines:
        report = validate_jsonl_rows(folder.name, adapter, file.name, lines)
    return {
        "rows": report.rows,
        "error_rows": report.error_rows,
        "errors": report.errors,
        "unknown_keys": report.unknown_keys,
        "conflicting_keys": report.conflicting_keys,
        "misplaced_keys": report.misplaced_keys,
    }


def main() -> None:
    """Answer on the original standard output; the env's module prints to standard error."""
    answer = os.dup(1)
    os.dup2(2, 1)
    folder, root, file = map(Path, sys.argv[1:])
    sys.path[0] = str(root)
    os.write(answer, json.dumps(judged(folder, file)).encode() + b"\n")


if __name__ == "__main__":
    main()
