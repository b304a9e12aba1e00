"""Files that were made to break whoever reads them: one clear line, and never a traceback, a wait or much memory."""

import gzip
import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from gym_conformance.baseline_toml import BadBaseline, read_baseline
from gym_conformance.checks.registry import CHECKS
from gym_conformance.dataset import KEPT, BadData, load
from gym_conformance.documents import append_line
from gym_conformance.findings import Finding, Verdict
from gym_conformance.fleet.watching import Watched
from gym_conformance.launch.env import BadConfig, find_server
from gym_conformance.option_readers import BadOption
from gym_conformance.plugin.locking import load_lock
from gym_conformance.plugin.replays import read_replay
from gym_conformance.printable import Refusal, printable
from gym_conformance.reports.earlier_report import BadReport, read_earlier

DEEP = 100_000
ROW = '{"responses_create_params": {"input": "x"}, "extra": %s}'
DIGITS = "9" * 100_000


def read_rows(path: Path) -> None:
    load([path])


def read_replays(path: Path) -> None:
    read_replay(path, CHECKS)


def read_reports(path: Path) -> None:
    """As what a run is compared with."""
    read_earlier(path, several=False)


def read_config(path: Path) -> None:
    """As the YAML of an env."""
    (folder := path.parent / "env" / "configs").mkdir(parents=True)
    path.rename(folder / "env.yaml")
    find_server(folder.parent)


def fifo(path: Path) -> None:
    os.mkfifo(path)


def folder(path: Path) -> None:
    path.mkdir()


def device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def nowhere(path: Path) -> None:
    path.symlink_to(path)


def endless_line(path: Path) -> None:
    """Of 200 GB, as a sparse file."""
    with path.open("wb") as file:
        file.truncate(200 << 30)


def many_values(path: Path) -> None:
    """Thirty-two of them for each that a reply may have."""
    path.write_text("[" + "1," * 16_000_000 + "1]")


def holds(text: str | bytes) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        path.write_bytes(text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text)

    return write


#: What no file may be, whatever reads it.
ANY: dict[str, Callable[[Path], None]] = {
    "fifo": fifo,
    "folder": folder,
    "device": device,
    "link to itself": nowhere,
    "endless line": endless_line,
    "missing": lambda _path: None,
    "not UTF-8": holds(b"\xff\xfe\x00"),
    "zeros": holds(bytes(1000)),
    "gzip": holds(gzip.compress(b"{}")),
    "escape sequences": holds("\x1b]0;pwned\x07\n::error::x"),
}
JSON: dict[str, Callable[[Path], None]] = {
    "deep lists": holds("[" * DEEP),
    "deep lists, closed": holds("[" * DEEP + "]" * DEEP),
    "deep objects": holds('{"a":' * DEEP),
    "half a string": holds('{"a": "'),
    "many digits": holds(DIGITS),
    "NaN": holds("NaN"),
    "a number": holds("1"),
    "null": holds("null"),
    "a list": holds("[]"),
    "an object": holds("{}"),
    "lone surrogate": holds('"\\ud800"'),
    "two values": holds("{} {}"),
    "many values": many_values,
}
ROWS: dict[str, Callable[[Path], None]] = {
    "row: NaN": holds(ROW % "NaN"),
    "row: Infinity": holds(ROW % "-Infinity"),
    "row: 1e999": holds(ROW % "1e999"),
    "row: -1e999 within": holds(ROW % '[{"a": -1e999}]'),
    "row: many digits": holds(ROW % DIGITS),
    "row: 5,000 digits": holds(ROW % ("1" * 5_000)),
    "row: 400 digits": holds(ROW % ("1" * 400)),
    "row: 101 levels": holds(ROW % ("[" * 101 + "]" * 101)),
    "row: 300 levels": holds(ROW % ("[" * 300 + "]" * 300)),
    "row: 900 levels": holds(ROW % ('{"a":' * 900 + "1" + "}" * 900)),
    "row: 100,000 levels": holds(ROW % ("[" * DEEP + "]" * DEEP)),
    "row: params no object": holds('{"responses_create_params": 1}'),
    "row: empty file": holds(""),
    "row: blank lines": holds("\n" * 100_000),
    "row: many values": holds(ROW % ("[" + "1," * 2_000_000 + "1]")),
    "row: many objects": holds(ROW % ("[" + "{}," * 200_000 + "1]")),
    "row: second line": holds(ROW % 1 + "\n" + ROW % "NaN"),
}
VERSION = '{"version": 1, "rows": %s}'
LOCKS: dict[str, Callable[[Path], None]] = {
    "lock: rows no object": holds(VERSION % "[]"),
    "lock: a tool no list": holds(VERSION % '{"a": 1}'),
    "lock: deep": holds(VERSION % ("[" * 900 + "]" * 900)),
    "lock: 150 levels": holds(VERSION % ('{"a": ' + "[" * 150 + "]" * 150 + "}")),
    "lock: NaN": holds(VERSION % '{"a": [NaN]}'),
    "lock: another version": holds('{"version": [[[]]]}'),
}
SCHEDULE = '{"schema": "gym-conformance/schedule/1", "check": %s, "order": %s, "concurrent": false, "trajectories": %s}'
TRAJECTORY = '[{"source": "x", "row": %s, "calls": %s, "noise": [], "answer": "x"}]'
GOOD_ROW = '{"responses_create_params": {}}'
REPLAYS: dict[str, Callable[[Path], None]] = {
    "replay: order beyond": holds(SCHEDULE % ('"x"', "[7]", TRAJECTORY % (GOOD_ROW, "[]"))),
    "replay: order no numbers": holds(SCHEDULE % ('"x"', '["x"]', TRAJECTORY % (GOOD_ROW, "[]"))),
    "replay: unknown check": holds(SCHEDULE % ('"\\u001b[31m"', "[]", TRAJECTORY % (GOOD_ROW, "[]"))),
    "replay: row no object": holds(SCHEDULE % ('"x"', "[]", TRAJECTORY % ("1", "[]"))),
    "replay: calls no list": holds(SCHEDULE % ('"x"', "[]", TRAJECTORY % (GOOD_ROW, "1"))),
    "replay: deep arguments": holds(
        SCHEDULE % ('"x"', "[]", TRAJECTORY % (GOOD_ROW, '[{"tool": "t", "arguments": ' + "[" * 500 + "]" * 500 + "}]"))
    ),
    "replay: NaN": holds(SCHEDULE % ('"x"', "[]", TRAJECTORY % ('{"responses_create_params": {"a": NaN}}', "[]"))),
    "replay: many digits": holds(SCHEDULE % ('"x"', f"[{DIGITS}]", "[]")),
    "replay: none": holds(SCHEDULE % ('"x"', "[]", "[]")),
}
BASELINES: dict[str, Callable[[Path], None]] = {
    "baseline: deep": holds("a = " + "[" * DEEP),
    "baseline: deep tables": holds("[" + ".".join("a" * 5_000) + "]"),
    "baseline: many digits": holds(f"a = {DIGITS}"),
    "baseline: no tables": holds("accepted = 1"),
    "baseline: tables of another name": holds("[[other]]\n"),
    "baseline: no reason": holds('[[accepted]]\ncheck = "x"\n'),
    "baseline: reason no text": holds('[[accepted]]\ncheck = "x"\nreason = 1\n'),
    "baseline: a key with an escape": holds('[[accepted]]\n"\\u001b[31m" = 1\n'),
}
REPORT = '{"schema": "gym-conformance/2", "findings": %s}'
FINDING = Finding("x", "MUST", "a rule", Verdict.FAIL, "server", "a", "b", reproduce=("c",), line=1).as_json()


def changed(**fields: object) -> Callable[[Path], None]:
    return holds(REPORT % json.dumps([FINDING | fields]))


REPORTS: dict[str, Callable[[Path], None]] = {
    **{
        f"report: findings {value}": holds(REPORT % value)
        for value in ("1", "null", "[1]", "[[]]", '["x"]', '{"a": 1}')
    },
    **{
        f"report: {name} {value!r}": changed(**{name: value})
        for name in FINDING
        for value in (None, [1], {"a": 1}, 1.5)
        if (name, value) not in [("reproduce", {"a": 1}), ("docs", None)]
    },
    "report: another field": changed(other=1),
    "report: drift no objects": changed(drift=[1]),
    "report: framework no flag": changed(framework="x"),
    "report: servers no list": holds('{"schema": "gym-conformance-fleet/2", "servers": 1}'),
    "report: servers no objects": holds('{"schema": "gym-conformance-fleet/2", "servers": [1]}'),
}
BOMB = "a: &a [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{chr(98 + at)}: &{chr(98 + at)} [{', '.join(['*' + chr(97 + at)] * 10)}]\n" for at in range(9)
)
CONFIGS: dict[str, Callable[[Path], None]] = {
    "config: a time that is none": holds("x: !!timestamp x"),
    "config: a truth that is none": holds("x: !!bool x"),
    "config: a number that is none": holds('x: !!int ""'),
    "config: alias bomb": holds(BOMB),
    "config: itself": holds("a: &a [*a]"),
    "config: deep": holds("[" * 5_000),
    "config: deep mappings": holds("{a: " * 300 + "1" + "}" * 300),
    "config: a tag that runs": holds("!!python/object/apply:os.system ['touch pwned']"),
    "config: an unknown tag": holds("!x 1"),
    "config: a date as a key": holds("2020-01-01: {resources_servers: 1}"),
    "config: no mapping": holds("- 1"),
    "config: empty": holds(""),
    "config: 2 MB": holds("a: " + "x" * (2 << 20)),
    "config: infinity": holds("a: .inf"),
    "config: servers no mapping": holds("a: {resources_servers: [1]}"),
    "config: entry no mapping": holds("a: {resources_servers: {b: 1}}"),
    "config: two documents": holds("--- 1\n--- 2\n"),
}
READERS: list[tuple[Callable[[Path], object], type[Refusal], dict[str, Callable[[Path], None]]]] = [
    (read_rows, BadData, ANY | JSON | ROWS),
    (load_lock, BadOption, ANY | JSON | LOCKS),
    (read_replays, BadOption, ANY | JSON | REPLAYS),
    (read_baseline, BadBaseline, ANY | BASELINES),
    (read_reports, BadReport, ANY | JSON | REPORTS),
    (read_config, BadConfig, {name: ANY[name] for name in ANY if name not in {"folder", "missing"}} | CONFIGS),
]


@pytest.mark.parametrize(
    ("read", "refusal", "write"),
    [
        pytest.param(read, refusal, write, id=f"{read.__name__}-{name}")
        for read, refusal, attacks in READERS
        for name, write in attacks.items()
    ],
)
def test_a_bad_file_is_one_clear_line(
    read: Callable[[Path], object], refusal: type[Refusal], write: Callable[[Path], None], tmp_path: Path
) -> None:
    path = tmp_path / "given"
    write(path)
    with pytest.raises(refusal) as refused:
        read(path)
    message = str(refused.value)
    assert 20 < len(message) < 1_100
    assert message == printable(message, None)


@pytest.mark.parametrize("read", [read_rows, load_lock, read_replays, read_baseline, read_config])
@pytest.mark.parametrize(
    ("write", "named"), [(ANY["fifo"], "not a regular file"), (ANY["gzip"], "compressed with gzip")]
)
def test_what_holds_no_text_is_named(
    read: Callable[[Path], object], write: Callable[[Path], None], named: str, tmp_path: Path
) -> None:
    write(path := tmp_path / "given")
    with pytest.raises(Refusal, match=named):
        read(path)


def test_a_row_at_every_limit_is_read(tmp_path: Path) -> None:
    """What is refused is beyond any sound dataset: 90 levels, the largest double, and a megabyte of text are not."""
    deep: object = 1
    for _ in range(90):
        deep = [deep]
    extra = {"deep": deep, "number": 1.7e308, "integer": 10**300, "text": "x" * (1 << 20), "surrogate": "\ud800"}
    (path := tmp_path / "rows.jsonl").write_text(ROW % json.dumps(extra))
    assert load([path]).rows[0].data["extra"] == extra


def test_rows_are_kept_while_there_is_room(tmp_path: Path) -> None:
    """Of many large ones the first, one of each shape before others; all are counted."""
    wide = [ROW % json.dumps("x" * (8 << 20))] * 8
    other = '{"responses_create_params": {"input": "x"}, "other": "%s"}' % ("y" * (8 << 20))
    (path := tmp_path / "rows.jsonl").write_text("\n".join([*wide, other]) + "\n")
    dataset = load([path])
    assert dataset.read == 9
    assert sum(len(json.dumps(row.data)) for row in dataset.rows) <= KEPT
    assert [row.source.line for row in dataset.rows] == [1, 2, 3, 4, 9]


def test_one_row_of_any_size_is_kept(tmp_path: Path) -> None:
    (path := tmp_path / "rows.jsonl").write_text(ROW % json.dumps("x" * (KEPT + 1)))
    assert len(load([path]).rows) == 1


@pytest.mark.parametrize("there", [fifo, device, nowhere, folder])
def test_no_line_is_appended_to_what_is_no_file(there: Callable[[Path], None], tmp_path: Path) -> None:
    there(path := tmp_path / "lines")
    with pytest.raises(OSError, match=r"."):
        append_line(path, "x")


@pytest.mark.parametrize("there", [fifo, device, nowhere, folder])
def test_what_is_no_file_does_not_hold_up_who_watches_it(there: Callable[[Path], None], tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text("x")
    there(tmp_path / "rows.jsonl")
    watched = Watched([tmp_path], [])
    (tmp_path / "app.py").write_text("xy")
    assert watched.differing(watched.changed()) == (tmp_path / "app.py",)


def test_names_of_files_cannot_write_to_the_terminal(tmp_path: Path) -> None:
    (path := tmp_path / "\x1b]0;pwned\x07\n::error::x.jsonl").write_text("x")
    with pytest.raises(BadData) as refused:
        load([path])
    assert str(refused.value).isprintable()
