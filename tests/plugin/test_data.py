"""Datasets: what is read, what is refused, and that neither costs memory."""

import os
import subprocess
from pathlib import Path

import pytest

from gym_conformance.dataset import BadData, load
from gym_mocks.reference import DATA, ROLLOUTS
from tests.hostile.small_process import of_a_small_process

pytest_plugins = ["pytester"]

_ROW = b'{"responses_create_params": {"input": "hi"}}\n'
_MEASURE = """
import resource, sys
from pathlib import Path
from gym_conformance.dataset import load
load([Path(sys.argv[1])])
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
dataset = load([Path(sys.argv[2])])
print(dataset.read, len(dataset.rows), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""

BAD = {
    "broken line": (_ROW * 2 + b'{"responses_create_params":\n' + _ROW, "rows.jsonl, line 3: not JSON (* at column 28); each line *"),
    "half a line": (b'{"responses_create_params": "x', "rows.jsonl, line 1: not JSON (Unterminated string starting at column 29); *"),
    "two values": (_ROW[:-1] + b" {}", "rows.jsonl, line 1: not JSON (Extra data at column 46); each line must be one JSON object"),
    "empty": (b"", "rows.jsonl: the file is empty; give a JSONL file with one row a line"),
    "blank": (b"\n \n", "rows.jsonl: the file is empty; *"),
    "no row": (b'{"prompt": "hi"}', "rows.jsonl, line 1: the row has no responses_create_params; give rows as `gym eval run` reads them, or, if only an environment server understands them, that server's address (--gym-url; section run)"),
    "null for a row's heart": (b'{"responses_create_params": null}', "rows.jsonl, line 1: the row has no responses_create_params; *"),
    "an array": (b"[1]", "rows.jsonl, line 1: not a JSON object; each line must be one row"),
    "one big array": (b"[\n" + _ROW + b"]", "rows.jsonl, line 1: not JSON (*); each line must be one JSON object"),
    "a byte order mark": (b"\xef\xbb\xbf" + _ROW, "rows.jsonl, line 1: it begins with a byte order mark; save the file as UTF-8 without one"),
    "digits": (_ROW[:-2] + b', "n": ' + b"9" * 100_000 + b"}", "rows.jsonl, line 1: Exceeds the limit (4300 digits) for integer string conversion: value has 100000 digits; each line *"),
    "UTF-16": (_ROW.decode().encode("utf-16"), "rows.jsonl, line 1: not UTF-8 (invalid start byte at byte 1); save the file as UTF-8"),
    "Latin-1": (_ROW + b'{"responses_create_params": {"input": "caf\xe9"}}', "rows.jsonl, line 2: not UTF-8 (* at byte 43); *"),
    "deep": (b'{"responses_create_params":' + b"[" * 40_000, "rows.jsonl, line 1: nested deeper than *; each line must be one JSON object *"),
    "rollouts alone": (b'{"responses_create_params": {}, "response": {}, "reward": 1}', "rows.jsonl: it has only recorded rollouts; give the dataset rows *"),
}  # fmt: skip


@pytest.mark.parametrize(("content", "said"), BAD.values(), ids=BAD)
def test_bad_data_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes, said: str) -> None:
    monkeypatch.chdir(tmp_path)
    Path("rows.jsonl").write_bytes(content)
    with pytest.raises(BadData) as refused:
        load([Path("rows.jsonl")])
    assert "\n" not in str(refused.value)
    pytest.LineMatcher([str(refused.value)]).fnmatch_lines([said.replace("[", "[[]")])


def test_recorded_rollouts_that_nobody_named_may_be_empty(tmp_path: Path) -> None:
    rows, rollouts = tmp_path / "rows.jsonl", tmp_path / "rows_rollouts.jsonl"
    rows.write_bytes(_ROW)
    rollouts.touch()
    assert len(load([rows]).rows) == len(load([tmp_path]).rows) == 1
    with pytest.raises(BadData, match="is empty"):
        load([rows, rollouts])


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("rows.jsonl", "ERROR: rows.jsonl, line 3: not JSON (* at column *); each line must be one JSON object"),
        ("none.jsonl", "ERROR: none.jsonl: No such file or directory; give a JSONL file that can be read"),
        ("x" * 5_000, "ERROR: xxx*: File name too long; give a JSONL file that can be read"),
        ("empty", "ERROR: empty: the folder has no [*].jsonl file; give a folder that has one, or a file"),
    ],
)
@pytest.mark.parametrize("workers", [[], ["-n", "1"]], ids=["alone", "xdist"])
def test_a_run_stops_before_it_judges(
    pytester: pytest.Pytester, gym: str, given: str, said: str, workers: list[str]
) -> None:
    pytester.mkdir("empty").joinpath("rows.json").touch()
    pytester.path.joinpath("rows.jsonl").write_bytes(_ROW * 2 + b"{,}\n")
    run_it = pytester.runpytest_subprocess if workers else pytester.runpytest_inprocess
    run = run_it("--gym-url", gym, "--gym-data", given, *workers)
    run.stderr.fnmatch_lines([said])
    assert [line for line in run.outlines + run.errlines if line] == [line for line in run.errlines if line][:1]
    assert run.ret == pytest.ExitCode.USAGE_ERROR


def test_a_folder_that_cannot_be_listed_is_not_said_to_be_empty(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: Path) -> None:  # as the system does, unless root asks
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "iterdir", refuse)
    with pytest.raises(BadData, match="Permission denied; give a folder that can be read"):
        load([tmp_path])


def test_a_file_brings_the_rollouts_beside_it() -> None:
    dataset = load([DATA])
    assert len(dataset.rows) == dataset.read == len(DATA.read_bytes().splitlines())
    assert len(dataset.rollouts) == len(ROLLOUTS.read_bytes().splitlines())


def test_a_folder_stands_for_its_files_and_each_is_read_once(tmp_path: Path) -> None:
    for name in ("b.jsonl", "a.jsonl", "a.json", "notes.txt"):
        tmp_path.joinpath(name).write_bytes(_ROW)
    dataset = load([tmp_path, tmp_path / "a.jsonl", tmp_path / "b.jsonl"])
    assert [str(row) for row in dataset.rows] == ["a.jsonl:1", "b.jsonl:1"]


def test_lone_surrogates_and_blank_lines_are_read(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_bytes(b"\n" + _ROW.replace(b"hi", rb"\ud800") + b"\r\n")
    assert [str(row) for row in load([path]).rows] == ["rows.jsonl:2"]


def test_distinct_shapes_come_first(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_bytes(_ROW * 1000 + b'{"responses_create_params": {"input": []}}\n')
    rows = load([path], bound=5).rows
    assert [str(row) for row in rows] == [
        "rows.jsonl:1",
        "rows.jsonl:2",
        "rows.jsonl:3",
        "rows.jsonl:4",
        "rows.jsonl:1001",
    ]


def test_a_file_of_200_mb_costs_no_memory(tmp_path: Path) -> None:
    """Peak memory is compared with that of reading one row, in the same fresh process."""
    small, large = tmp_path / "small.jsonl", tmp_path / "large.jsonl"
    row = b'{"responses_create_params": {"input": "' + b"x" * 20_000 + b'"}}\n'
    small.write_bytes(row)
    with large.open("wb") as lines:
        for _ in range(10_000):
            lines.write(row)
    command = of_a_small_process("-c", _MEASURE, str(small), str(large))
    run = subprocess.run(command, env=os.environ, capture_output=True, text=True, check=True, timeout=60)
    read, kept, kibibytes = map(int, run.stdout.split())
    assert (read, kept) == (10_000, 32)
    assert kibibytes < 8 * 1024
