"""Reports to write: a small one with everything in it, a hostile one, and a long one."""

from dataclasses import asdict, replace

from gym_conformance.baseline import Stale
from gym_conformance.drift.tool_drift import Weight
from gym_conformance.findings import Cause, Finding, RewardSpread, RowPay, Verdict
from gym_conformance.probes.drift_row import DriftRow
from gym_conformance.probes.live_answer import LiveAnswer
from gym_conformance.reports.endpoint_latency import Latency
from gym_conformance.reports.report import Report

TARGET = {
    "url": "http://127.0.0.1:8000",
    "rows": 3,
    "kind": "tool server",
    "evidence": "its OpenAPI document lists 4 tool routes",
    "contract": "cookie",
}

FAILED = Finding(
    "verify-scores-rows",
    "MUST",
    "verify MUST score every dataset row",
    Verdict.FAIL,
    "example.jsonl:3",
    expected="status 200",
    actual="status 500, body \"KeyError('answer')\"",
    why="the rollout of such a row is lost",
    hint="The scorer takes for granted that the row has an answer.",
    reproduce=('cd "$(mktemp -d)"', "curl -sS http://127.0.0.1:8000/verify --data-binary '{}'"),
    file="data/example.jsonl",
    line=3,
)
KEPT = Finding(
    "resources-kept",
    "SHOULD",
    "Sessions SHOULD NOT cost memory",
    Verdict.PASS,
    "server",
    readings=tuple(
        {"sessions": 60 * n, "memory": 50_000_000 + 400_000 * n, "children": 0, "files": 9} for n in range(7)
    ),
)
PASSED = Finding("seed-accepts-rows", "MUST", "seed_session MUST accept every dataset row", Verdict.PASS, "server")
WARNED = replace(
    FAILED, check="tool-name-legal", level="SHOULD", title="A tool's name SHOULD be legal", subject="get weather"
)
UNTESTABLE = Finding(
    "metrics-shape", "MUST", "metrics MUST be an object", Verdict.UNTESTABLE, "server", reason="a judge that answers"
)
SKIPPED = Finding(
    "tool-routed", "MUST", "Every tool MUST be routed", Verdict.NOT_APPLICABLE, "server", reason="no tools"
)
ACCEPTED = replace(
    FAILED, check="tool-served-declared", level="SHOULD", title="A route SHOULD be declared", accepted="for the agent"
)
NOTED = replace(
    FAILED,
    check="repeat-tool-calls",
    level="NOTE",
    title="Repeated tool calls act twice",
    verdict=Verdict.NOTE,
    actual="not idempotent: add_stock",
)
FRAMEWORK = replace(
    WARNED,
    check="verify-raw-surrogate",
    title="verify SHOULD score text that contains a lone surrogate",
    subject="server",
    framework=True,
)
CAUTIOUS = replace(PASSED, check="isolation-concurrent", caution="it tried 4 trajectories only")
NOT_EXAMINED = replace(
    SKIPPED, check="resources-closed", reason="the server's process is not known (--gym-pid)", not_examined=True
)
SHARED = tuple(
    replace(FAILED, check=check, title=f"Sessions MUST NOT see each other ({check})", cause=Cause.SHARED_STATE)
    for check in ("isolation-interleaved", "isolation-concurrent", "cookie-replacing-client")
)

#: How reports say the last two.
FRAMEWORK_SAID = "NeMo Gym itself: verify-raw-surrogate; these are in every stock server, and not yours to fix."
NOT_EXAMINED_SAID = "Not examined: resources-closed, because the server's process is not known (--gym-pid)."

DECLARED = {"type": "object", "properties": {"unit": {"enum": ["celsius", "fahrenheit"]}}, "required": ["unit"]}
SERVED = {"type": "object", "properties": {"unit": {"enum": ["celsius"]}}, "required": ["unit", "city"]}
DRIFT = DriftRow(
    "argument-refused",
    Weight.BREAKING,
    "get_weather",
    "the row allows a value that the server refuses",
    argument="unit",
    sources=("data/example.jsonl:3", "/openapi.json"),
    declared=DECLARED,
    served=SERVED,
    witness={"unit": "fahrenheit"},
    live=LiveAnswer.CONFIRMED,
    detail="status 422; with celsius 200",
)

PAID = {"an empty output": 0.0, "the answer of example.jsonl:5": 1.0}
SPREAD = RewardSpread(
    "`\\boxed{{expected_answer}}`",
    1.0,
    0.0,
    1.0,
    {"fails": 1, "unchecked": 1, "holds": 9},
    {"its own answer": (1, *[0] * 38, 9), "no answer": (30, *[0] * 39)},
    (
        RowPay("example.jsonl:4", "fails", 1.0, PAID, "the answer of example.jsonl:5", ("curl 'x'", "true")),
        RowPay("example.jsonl:3", "unchecked", None),
        RowPay("example.jsonl:1", "holds", 0.75, {"an empty output": 0.0}),
    ),
)
CALIBRATED = replace(
    PASSED,
    check="calibration-gold",
    level="SHOULD",
    title="A row's own answer SHOULD earn the top reward",
    rewards=(asdict(SPREAD),),
)

FULL = Report(
    TARGET,
    (PASSED, CALIBRATED, FAILED, WARNED, UNTESTABLE, SKIPPED, ACCEPTED, NOTED, FRAMEWORK, CAUTIOUS, NOT_EXAMINED, KEPT),
    baseline="gym-baseline.toml",
    stale=(Stale("verify-floor", "*", "gym-baseline.toml", 7, "it no longer fails; remove the entry"),),
    drift=(DRIFT, DriftRow("argument-widened", Weight.NOTE, "get_weather", "the server takes more")),
    latency=(Latency("POST /verify", (0.001, 0.002, 0.2)), Latency("POST /seed_session", (0.0,))),
)
FIT = Report(TARGET, (PASSED, SKIPPED))

#: What a server or dataset may send to break out of a report.
ATTACKS = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "</code></pre></script><svg onload=alert(1)>",
    "`x` | [a](javascript:alert(1)) ![i](https://evil.example/i.png) @everyone #1",
    "```\n# heading\n<details open>\n| a |\n",
    "\\` \\| <!-- ",
    "\x1b[31mred\x1b]0;title\x07\x00",
    "\u202eevitagen\u2066\u200b",
    "\ud800 lone",
    "::error file=x::y\r\n::set-output name=a::b%0A",
    "%0A::error::x",
)
HUGE = "A<b>" * 2_600_000  # 10 MB


def hostile(text: str) -> Report:
    """The full report with this text in every field that a server or dataset has a say in."""
    fields = dict.fromkeys(("subject", "expected", "actual", "why", "hint", "file"), text)
    failed = replace(FAILED, **fields, reproduce=(f"curl '{text}'", "true"))  # type: ignore[arg-type]
    untestable = replace(UNTESTABLE, subject=text, reason=text)
    accepted = replace(ACCEPTED, subject=text, accepted=text)
    row = RowPay(text, "fails", 0.5, {text: 1.0}, text, (f"curl '{text}'",))
    spread = replace(SPREAD, answers=text, counts={text: (1, 2)}, rows=(row,))
    drift = replace(
        DRIFT, kind=text, tool=text, argument=text, message=text, sources=(text,), declared={text: text}, served=text
    )
    return replace(
        FULL,
        target={"url": text, "rows": 1, "kind": text, "evidence": text, "contract": "cookie"},
        findings=(
            *(PASSED, failed, untestable, accepted, replace(SKIPPED, reason=text)),
            replace(NOTED, subject=text, actual=text, hint=text),
            replace(CAUTIOUS, caution=text),
            replace(NOT_EXAMINED, reason=text),
            replace(CALIBRATED, rewards=(asdict(spread),)),
        ),
        stale=(Stale("verify-floor", text, "gym-baseline.toml", 7, text),),
        drift=(replace(drift, witness={text: text}, live=LiveAnswer.CONFIRMED, detail=text),),
        latency=(Latency(text, (0.001,)),),
    )


def many(count: int) -> Report:
    """A report with so many findings, all different."""
    findings = (
        replace(FAILED, subject=f"train.jsonl:{n}", actual=f"status 500, number {n}", line=n + 1) for n in range(count)
    )
    return replace(FULL, findings=(PASSED, *findings))


def _lacking(check: str, reason: str) -> Report:
    return Report(TARGET, (PASSED, replace(UNTESTABLE, check=check, reason=reason)))


#: Several servers with all that the page of many groups: outcomes, what is missing, what several share.
FLEET = {
    "calendar": FULL,
    "library": Report(TARGET, (PASSED, FAILED, WARNED, KEPT, FRAMEWORK)),
    "fine": FIT,
    "careful": Report(TARGET, (PASSED, CAUTIOUS, FRAMEWORK, SKIPPED)),
    "first box": _lacking("live-root", "sandbox in the config that it is started with"),
    "second box": _lacking("live-root", "sandbox in the config that it is started with"),
    "search": _lacking("live-root", "the module tavily: python -m pip install tavily"),
    "empty": Report(TARGET, (SKIPPED,)),
}


def fleet(count: int) -> dict[str, Report]:
    """So many servers, of all outcomes."""
    reports = list(FLEET.values())
    return {f"server-{number:04}": reports[number % len(reports)] for number in range(count)}
