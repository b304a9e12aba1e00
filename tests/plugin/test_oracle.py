"""`--gym-oracle`: a function or a file gives the right answers; what cannot be used is one line and exit status 4."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from gym_conformance.contract.dataset_rows import Rollout, Row, Source
from gym_conformance.oracle import BadOracle, items_of, load_oracle

pytest_plugins = ["pytester"]

ROW = Row({"responses_create_params": {"input": "What is 2 + 3?"}, "sum": 5}, Source(Path("rows.jsonl"), 1))
OTHER = Row({"responses_create_params": {"input": "What is 2 + 4?"}}, Source(Path("rows.jsonl"), 2))


def test_a_function_is_given_the_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "sums_oracle.py").write_text("def right(row):\n    return str(row['sum'])\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    assert asyncio.run(load_oracle("sums_oracle:right").answer(ROW)) == "5"


def test_a_function_is_called_in_the_thread_that_imported_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "sqlite_oracle.py").write_text(
        "import sqlite3\nSUMS = sqlite3.connect(':memory:')\n"
        "def right(row):\n    return SUMS.execute('select ?', [str(row['sum'])]).fetchone()[0]\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    assert asyncio.run(load_oracle("sqlite_oracle:right").answer(ROW)) == "5"


def test_an_import_that_hangs_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "slow_oracle.py").write_text("import time\ntime.sleep(600)\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr("gym_conformance.oracle.DEADLINE", 0.1)
    with pytest.raises(BadOracle, match="its import takes more than"):
        load_oracle("slow_oracle:right")


@pytest.mark.parametrize("given", [{"output": "5"}, {"response": {"output": "5"}}])
def test_a_reference_is_found_by_the_row_s_input(tmp_path: Path, given: dict[str, object]) -> None:
    file = tmp_path / "references.jsonl"
    file.write_text(json.dumps({"responses_create_params": {"input": "What is 2 + 3?"}, **given}) + "\n")
    oracle = load_oracle(str(file))
    assert [asyncio.run(oracle.answer(row)) for row in (ROW, OTHER)] == ["5", None]


def test_a_row_is_compared_with_those_of_its_input_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = [{"responses_create_params": {"input": f"What is {number}?"}} for number in range(1000)]
    file = tmp_path / "references.jsonl"
    file.write_text("".join(json.dumps({**row, "output": f"{at}"}) + "\n" for at, row in enumerate(asked)))
    oracle, compared, belongs_to = load_oracle(str(file)), list[Rollout](), Rollout.belongs_to

    def counted(one: Rollout, row: Row) -> bool:
        compared.append(one)
        return belongs_to(one, row)

    monkeypatch.setattr(Rollout, "belongs_to", counted)

    async def answers() -> list[str]:
        return [await oracle.answer(Row(row, Source(file, 1))) for row in asked]

    assert asyncio.run(answers()) == [str(at) for at in range(1000)]
    assert len(compared) == 1000


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("no_such_module_here:right", "cannot be imported: ModuleNotFoundError"),
        ("json:no_such_function", "cannot be imported: AttributeError"),
        ("json:__name__", "is not a function"),
        ("os:getcwd", "cannot be called with a row: too many positional arguments; give a plain function"),
        ("asyncio:sleep", "it is async, or a generator"),
        ("json", "give module:function"),
        ("no/such/file.jsonl", "give a JSONL file that can be read"),
    ],
)
def test_what_cannot_be_used_says_why(given: str, said: str) -> None:
    with pytest.raises(BadOracle, match=said):
        load_oracle(given)


def test_a_module_that_ends_its_process_does_not_end_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "script_as_oracle.py").write_text("import sys\nsys.exit(0)\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(BadOracle, match="cannot be imported: SystemExit: 0"):
        load_oracle("script_as_oracle:right")


@pytest.mark.parametrize(
    "line",
    [
        '{"responses_create_params": {}}',
        '{"responses_create_params": {"input": 5}, "output": "5"}',
        '{"responses_create_params": {"input": [[5]]}, "output": "5"}',
        "[]",
        "{",
    ],
)
def test_a_line_that_is_no_reference_is_named(tmp_path: Path, line: str) -> None:
    file = tmp_path / "references.jsonl"
    file.write_text(line + "\n")
    with pytest.raises(BadOracle, match="line 1: no reference output"):
        load_oracle(str(file))


def test_the_option_refuses_it_before_anything_is_sent(pytester: pytest.Pytester) -> None:
    result = pytester.runpytest_subprocess("--gym-demo", "--gym-oracle", "json:no_such_function", "-k", "live-root")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*--gym-oracle*cannot be imported*"])


@pytest.mark.parametrize("given", [5, [5], [{"type": object()}], [{"type": "message", "content": {1, 2}}]])
def test_what_is_no_output_is_the_oracle_s_fault(given: Any) -> None:
    with pytest.raises(ValueError, match="a list of output items, or a text"):
        items_of(given)
