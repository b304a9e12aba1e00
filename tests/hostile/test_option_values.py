"""Values of options that were made to break whoever reads them: one clear line, without what may be a password."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from gym_conformance.option_readers import BadOption
from gym_conformance.options import read_options

PASSWORD = "s3cr3tp4ss"  # noqa: S105 - nobody's
LONG = "9" * 5_000

URLS = [
    f"http://user:{PASSWORD}@127.0.0.1:1",
    f"http://{PASSWORD}@127.0.0.1",
    f"http:/user:{PASSWORD}@host",
    f"user:{PASSWORD}@host",
    f"//user:{PASSWORD}@host",
    f"http://user:{PASSWORD}/x@host",
    f"http://user:{PASSWORD} x@host",
    f"http://user:{PASSWORD}?x@host",
    f"http://user:{PASSWORD}#x@host",
    f"http://[user:{PASSWORD}@host",
    f"ftp://user:{PASSWORD}@host",
    f"http://user:{PASSWORD}@host:99999",
    f"http:\\\\user:{PASSWORD}@host",
    f"HTTP://USER:{PASSWORD}@HOST",
    "file:///etc/passwd",
    "http://",
    "http://[::1",
    "http://127.0.0.1:99999",
    "http://127.0.0.1:-1",
    "http://127.0.0.1:0",
    "http://\U0001f600",
    "http://xn--",
    "http://127.0.0.1:1/\n::error::x",
    "http://127.0.0.1/\x1b[31m",
    "http://127.0.0.1/$(touch pwned)`x`\\",
    f"http://127.0.0.1/?key={PASSWORD}",
    f"http://127.0.0.1/#{PASSWORD}",
    "gopher://127.0.0.1",
    "javascript:alert(1)",
    "",
    " ",
    "\ud800",
    "http://" + "a" * 100_000,
]

#: By the field of `Options`; each value is refused.
VALUES: dict[str, list[Any]] = {
    "url": URLS,
    "seed": [LONG, "-1", "1e3", "\u0661", "", "0x10", "1_000"],
    "pid": [LONG, "0", "-1", "x"],
    "at_once": [LONG, "0"],
    "timeout": ["nan", "inf", "-1", "0", LONG, "1e999", "x"],
    "max_time": ["nan", "inf", "-1", "0", LONG, "x"],
    "launch_timeout": ["nan", "inf", "0", LONG],
    "profile": ["\x1b[31m", "x" * 100_000],
    "contract": ["::error::x"],
    "headers": [
        [f"no-colon {PASSWORD}"],
        [f"X: {PASSWORD}\r\nY: z"],
        [f"X\x1b: {PASSWORD}"],
        [f"Cookie: {PASSWORD}"],
    ],
    "settings": [[PASSWORD], [f"={PASSWORD}"], ["++="]],
    "envs": [["/nonexistent/\x1b[31m"], ["*/\n::error::x"], ["\ud800"]],
    "reports": [["r.exe"], ["/nonexistent/r.json"], ["."], ["r.json\x00"], ["r" * 300 + ".json"]],
    "rows_keep": ["r" * 300 + ".jsonl"],
    "baseline_write": ["r" * 300 + ".toml"],
    "drift": [["r.exe"], ["/nonexistent/r.md"]],
}


@pytest.mark.parametrize(
    ("field", "value"),
    [
        pytest.param(field, value, id=f"{field}-{at}")
        for field, values in VALUES.items()
        for at, value in enumerate(values)
    ],
)
def test_a_bad_value_is_one_clear_line(field: str, value: Any) -> None:
    with pytest.raises(BadOption) as refused:
        read_options({field: value})
    message = str(refused.value)
    assert message.isprintable()
    assert len(message) < 1_100
    assert PASSWORD not in message


@pytest.mark.parametrize("field", ["url", "timeout", "seed", "profile", "load"])
def test_a_long_value_does_not_hide_what_to_give_instead(field: str) -> None:
    with pytest.raises(BadOption, match=r"give .*[\w)]$"):
        read_options({field: "x" * 1_500})


@pytest.mark.parametrize(
    "given",
    [
        {"reports": ["a.json", "a.json"]},
        {"reports": ["a.json"], "drift": ["./a.json"]},
        {"reports": ["a.html", "x/../a.html"]},
        {"drift": ["a.md", "b.md", "a.md"]},
    ],
    ids=str,
)
def test_one_file_for_two_reports_is_refused(
    given: Mapping[str, Any], tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x").mkdir()
    with pytest.raises(BadOption, match="the same file"):
        read_options({"url": "http://127.0.0.1:1", **given})


@pytest.mark.parametrize("option", [{"rows_keep": "given/a.jsonl"}, {"reports": ["link.jsonl"]}])
@pytest.mark.parametrize("data", ["given", "given/a.jsonl"])
def test_no_file_that_rows_are_read_from_is_written(
    option: Mapping[str, Any], data: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "given").mkdir()
    (tmp_path / "given/a.jsonl").write_text("{}")
    (tmp_path / "link.jsonl").symlink_to("given/a.jsonl")
    with pytest.raises(BadOption, match="rows are read from it"):
        read_options({"url": "http://127.0.0.1:1", "rows": "all", "data": [data], **option})


@pytest.mark.parametrize("given", ["loop", "*"])
def test_a_link_to_itself_is_no_env(given: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("loop").symlink_to("loop")
    Path("nowhere").symlink_to("missing")
    with pytest.raises(BadOption, match="no folder with an app"):
        read_options({"envs": [given]})
