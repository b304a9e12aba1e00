"""Texts that were made to leave the place where they are shown, and secrets within them: in every form of a report."""

import base64
import json
import re
import xml.etree.ElementTree as ET
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import quote

import cmarkgfm  # type: ignore[import-untyped,unused-ignore]
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gym_conformance.baseline_toml import read_baseline, write_baseline
from gym_conformance.findings import Finding, Verdict
from gym_conformance.launch.not_launched import NotLaunched
from gym_conformance.plugin.run_outputs import unwritten
from gym_conformance.printable import Refusal, printable
from gym_conformance.redaction import Secrets
from gym_conformance.reports.annotations import annotations
from gym_conformance.reports.report_files import FORMS
from gym_conformance.reports.terminal_text import explain
from gym_conformance.session.curl import curl_script
from gym_conformance.session.exchange import Exchange, Reply, Request
from tests.reports.samples import ATTACKS, FAILED, FIT, hostile

SECRET = "hunter2/with+odd=signs"  # noqa: S105 - nobody's
SECRETS = Secrets([SECRET])
UNSEEN = "\0\b\x1b\x7f\xad\u034f\u061c\u180e\u200d\u202a\u2062\u2068\ufe0f\ufeff\U000e0041"
SPELT: dict[str, Callable[[str], str]] = {
    "plain": str,
    "upper": str.upper,
    "json": lambda text: json.dumps(text)[1:-1],
    "percent": lambda text: quote(text, safe=""),
    "base64": lambda text: base64.b64encode(text.encode()).decode(),
    "pointer": lambda text: text.replace("/", "~1"),
    "percent, every byte": lambda text: "".join(f"%{byte:02x}" for byte in text.encode()),
    "percent, some bytes": lambda text: quote(text[:9], safe="") + text[9:],
    "html, decimal": lambda text: "".join(f"&#{ord(character)};" for character in text),
    "html, hex": lambda text: "".join(f"&#x{ord(character):X};" for character in text),
    "json, every character": lambda text: "".join(f"\\u{ord(character):04X}" for character in text),
    "python, every byte": lambda text: "".join(f"\\x{byte:02x}" for byte in text.encode()),
}
#: Spellings of a whole text, which say nothing of a single character.
WHOLE: dict[str, Callable[[str], str]] = {
    "unseen characters": lambda text: "".join(f"{one}{UNSEEN[at % len(UNSEEN)]}" for at, one in enumerate(text)),
    "unseen characters, as JSON shows them": lambda text: json.dumps(WHOLE["unseen characters"](text)),
    "UTF-16, percent": lambda text: quote(text.encode("utf-16-le"), safe=""),
    "base64, wrapped": lambda text: base64.encodebytes(b"x" * 50 + text.encode()).decode(),
    "base64, wrapped, as JSON shows it": lambda text: json.dumps(WHOLE["base64, wrapped"](text)),
    "every character, as JSON in JSON": lambda text: json.dumps(SPELT["json, every character"](text)),
    "html, hex, zeros, no semicolons": lambda text: "".join(f"&#x{ord(character):08x}" for character in text),
    "hex, colons": lambda text: text.encode().hex(":"),
    "hex, spaces": lambda text: text.encode().hex(" ").upper(),
    "hex, dashes": lambda text: text.encode().hex("-"),
    "hex, as in C": lambda text: ", ".join(f"0x{byte:02X}" for byte in text.encode()),
    "decimal, spaces": lambda text: " ".join(map(str, text.encode())),
    "decimal, commas": lambda text: ",".join(map(str, text.encode())),
    "decimal, as Python shows it": lambda text: str([*text.encode()]),
    "decimal, as JSON shows it": lambda text: json.dumps([*text.encode()], indent=2),
    "decimal, as JSON in JSON": lambda text: json.dumps(json.dumps([*text.encode()], indent=2)),
    "decimal, as YAML shows it": lambda text: "".join(f"- {byte}\n" for byte in text.encode()),
}
COMMANDS = (
    "::error::x",
    "\n::stop-commands::x",
    " \t\u2003::add-mask::x",
    "##[error]x",
    "a\n##[group]x",
    "##vso[task.complete result=Failed;]x",
    "##teamcity[buildStatus status='FAILURE']",
    "\r::set-env name=PATH::x",
    "###[add-path]/x",
    "\u2028::warning::x",
    "\x85::notice::x",
    "::debug::" + "x" * 10_000,
)
ANYTHING = st.text(st.characters() | st.sampled_from("<>&\"'`|[]()#:@\\\n\r\t\x1b\x00\u202e\ud800"), max_size=60)

#: A runner's command: at a line's start after white space, or anywhere in its older form.
OBEYED = re.compile(r"^\s*::\w|##\w*\[", re.MULTILINE)


def gated(text: str) -> str:
    """As the judge shows what a server said."""
    return SECRETS.show(text)


class Tags(HTMLParser):
    """What a page's tags and handlers are."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.seen: set[tuple[str, frozenset[str]]] = set()
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.add((tag, frozenset(name for name, _ in attrs)))


def html_tags(text: str) -> set[tuple[str, frozenset[str]]]:
    return Tags(FORMS[".html"](hostile(text))).seen


def markdown_tags(text: str) -> set[str]:
    page = cmarkgfm.github_flavored_markdown_to_html(FORMS[".md"](hostile(text)))
    return {tag for tag, _ in Tags(page).seen}


@pytest.mark.parametrize("text", [*ATTACKS, *COMMANDS], ids=lambda text: repr(text[:24]))
def test_no_runner_obeys_what_a_terminal_shows(text: str) -> None:
    """All of a hostile report's findings, and a refusal, a launch that failed, and reproductions."""
    shown = "\n".join(explain(hostile(text).findings))
    needs = NotLaunched(text, (printable(text),))
    lines = [shown, str(Refusal(text)), str(needs), needs.needs, *needs.log, printable(text)]
    request = Request("POST", f"/{text[:40]}", text.encode("utf-8", "replace"), {"X-A": "a"})
    lines += curl_script([Exchange(1, request, Reply(200, (), b"", 0.0))], "http://127.0.0.1:1")
    for line in lines:
        assert not OBEYED.search(line)
        assert [printable(one, None) for one in line.split("\n")] == line.split("\n")


@given(ANYTHING)
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
def test_any_text_leaves_each_form_what_it_is(text: str) -> None:
    report = hostile(text)
    assert json.loads(FORMS[".json"](report))["findings"]
    assert json.loads(FORMS[".sarif"](report))["runs"]
    assert ET.fromstring(FORMS[".svg"](report)).tag.endswith("svg")  # noqa: S314 - our own
    assert html_tags(text) == html_tags("x")
    assert markdown_tags(text) == markdown_tags("x")
    for line in annotations(report, Path.cwd()):
        assert line.startswith(("::error ", "::warning ", "::notice "))
        assert len(line.splitlines()) == 1


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("spelling", SPELT | WHOLE)
def test_no_form_shows_a_secret_in_any_spelling(form: str, spelling: str) -> None:
    spelt = (SPELT | WHOLE)[spelling](SECRET)
    assert "[redacted]" in gated(spelt)
    for text in (spelt, f"<{spelt}>", f"{spelt}::{spelt}", "x" * 380 + spelt):
        shown = FORMS[form](hostile(gated(text)))
        assert spelt.lower() not in shown.lower()
        assert SECRET.lower() not in shown.lower()


@given(st.lists(st.sampled_from([*SPELT.values()]), min_size=len(SECRET), max_size=len(SECRET)), ANYTHING)
@settings(max_examples=60, deadline=None)
def test_a_secret_is_found_each_of_whose_characters_is_spelt_otherwise(
    spellings: list[Callable[[str], str]], around: str
) -> None:
    letterwise = [each for each in spellings if each not in (SPELT["base64"], SPELT["pointer"])] or [str]
    spelt = "".join(letterwise[at % len(letterwise)](character) for at, character in enumerate(SECRET))
    assert spelt.lower() not in SECRETS.redact(f"{around} {spelt}{around}").lower()
    assert SECRETS.redact(f"a{spelt}b") == "a[redacted]b"


@given(ANYTHING, ANYTHING)
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
def test_a_secret_in_any_text_is_gone_wherever_it_stands(before: str, after: str) -> None:
    report = hostile(gated(before + SECRET + after))
    assert SECRET not in FORMS[".json"](report)
    assert SECRET not in "\n".join(explain(report.findings))


@given(ANYTHING)
@settings(max_examples=60, deadline=None)
def test_a_finding_travels_as_it_is_shown(text: str) -> None:
    found = Finding("verify-floor", "MUST", "t", Verdict.FAIL, text, actual=text, reason=text, log=(text, text))
    again = Finding.from_json(json.loads(json.dumps(found.as_json())))
    assert again == found
    assert found.subject == printable(text, 1_000)


@given(text=ANYTHING)
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
def test_a_baseline_of_any_subject_is_read_back(text: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("baseline") / "b.toml"
    finding = Finding("verify-floor", "MUST", "t", Verdict.FAIL, text or "x", expected="a", actual=text)
    write_baseline(path, {"": [finding]})
    path.write_text(path.read_text("utf-8").replace('reason = ""', 'reason = "known"'), "utf-8")
    (entry,) = read_baseline(path).entries
    assert entry.matches(finding) or not finding.subject.strip()


@pytest.mark.parametrize("body", [b"{", b'{"a": "%s"}', b"%s", b"\xff%s", b'["%s", 1, true, null]'])
def test_a_reproduction_has_no_secret_and_stays_json(body: bytes) -> None:
    for size in (1, 5_000):
        sent = body.replace(b"%s", SECRET.encode() * size)
        request = Request("POST", f"/{SECRET}", sent, {"X-Token": SECRET})
        command = "\n".join(curl_script([Exchange(1, request)], "http://127.0.0.1:1", secrets=SECRETS))
        assert SECRET not in command
        assert "hunter2" not in command


def test_the_samples_hold_what_is_attacked() -> None:
    assert FIT.findings
    assert FAILED.expected


def test_what_could_not_be_written_is_safe_to_show(tmp_path: Path) -> None:
    """Env folders may have any name, and each has a lock of its own."""
    lock = tmp_path / "##vso[task.complete result=Succeeded]\x1b" / "gym.lock"
    said = unwritten(f"--gym-lock '{lock}'", lock.touch)
    assert said == printable(said, None)
    assert said.endswith("No such file or directory; it was not written")
