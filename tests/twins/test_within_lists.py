"""What calls lead to with other values within lists and objects."""

import json
import time
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import pytest
from pydantic import BaseModel

from gym_conformance.dataset import Dataset
from gym_conformance.findings import Verdict
from gym_mocks.resources import ResourcesServer
from gym_mocks.wire import HttpRefusal, HttpReply, HttpRequest, json_body
from tests.twins.judging import found_by
from tests.twins.twin import rollout_of
from tests.twins.unrecorded import rows_of


class Edit(BaseModel):
    """A text that stands there once, and what replaces it."""

    old: str
    new: str


@dataclass
class Note:
    text: str = "tea and salt"


def editor(*, careful: bool) -> ResourcesServer:
    """A note to change; unless it is `careful`, verify reads its last line whatever is left of it."""

    def edit(state: Note, edits: list[Edit]) -> dict[str, Any]:
        """Replace texts."""
        for each in edits:
            if state.text.count(each.old) != 1:
                return {"error": "each old text must stand there once"}
            state.text = state.text.replace(each.old, each.new)
        return {"text": state.text}

    def verify(state: Note) -> float:
        return float((state.text.split("\n") if careful else state.text.splitlines())[-1] == "milk")

    return ResourcesServer("editor", tools=[edit], verify=verify, state=Note)


@pytest.mark.parametrize(("careful", "verdict"), [(False, Verdict.FAIL), (True, Verdict.PASS)])
def test_a_verify_that_fails_once_a_value_within_a_list_is_empty_is_told(*, careful: bool, verdict: Verdict) -> None:
    rows = rows_of(editor(careful=True)).rows
    call = ("edit", {"edits": [{"old": "tea and salt", "new": "milk"}]}, {"text": "milk"})
    rollouts = tuple(rollout_of(row, call, reward=1.0) for row in rows)
    [finding] = found_by("calls-valid", editor(careful=careful), Dataset(rows, rollouts, len(rows)))
    assert finding.verdict is verdict, finding.actual


@dataclass
class Labels:
    on: set[str] = field(default_factory=set)


class Change(BaseModel):
    add: list[Literal["red", "blue"]]


class Labelled(ResourcesServer):
    """Adds labels, all or none; unless it is `careful`, those before a wrong one."""

    def __init__(self, *, careful: bool) -> None:
        def label(state: Labels, change: Change) -> dict[str, Any]:
            """Add labels."""
            state.on |= set(change.add)
            return {"on": sorted(state.on)}

        def list_labels(state: Labels) -> dict[str, Any]:
            """List the labels."""
            return {"on": sorted(state.on)}

        super().__init__(
            "labels", tools=[label, list_labels], verify=lambda state: float(state.on == {"red"}), state=Labels
        )
        del self.handlers["GET", "/openapi.json"]
        self.careful = careful

    async def _call_tool(self, request: HttpRequest) -> HttpReply:
        match json_body(request):
            case {"change": {"add": [*added]}} if any(each not in ("red", "blue") for each in added):
                if not self.careful and (right := [each for each in added if each in ("red", "blue")]):
                    body = json.dumps({"change": {"add": right}}).encode()
                    await super()._call_tool(replace(request, body=body))
                raise HttpRefusal(400, "unknown label")
        return await super()._call_tool(request)


@pytest.mark.parametrize(("careful", "verdict"), [(False, Verdict.FAIL), (True, Verdict.PASS)])
def test_what_a_list_within_an_object_did_before_it_was_refused_is_told(*, careful: bool, verdict: Verdict) -> None:
    rows = rows_of(Labelled(careful=True)).rows
    calls: Any = (("label", {"change": {"add": ["red"]}}, {"on": ["red"]}), ("list_labels", {}, {"on": ["red"]}))
    rollouts = tuple(rollout_of(row, *calls, reward=1.0) for row in rows)
    [finding] = found_by("calls-refused-harmless", Labelled(careful=careful), Dataset(rows, rollouts, len(rows)))
    assert finding.verdict is verdict, finding.actual


class Years(BaseModel):
    since: int


class Films(ResourcesServer):
    """Finds films; where it is not `sound`, it takes years as texts, and where it is `late`, no call at once after the seed."""

    def __init__(self, *, sound: bool = True, late: float = 0.0) -> None:
        def find(genre: str = "any", years: Years | None = None) -> dict[str, Any]:
            """Find films."""
            return {"films": [genre, years and years.since]}

        super().__init__("films", tools=[find], verify=lambda: 0.0)
        del self.handlers["GET", "/openapi.json"]
        self.sound, self.late, self.seeded = sound, late, dict[str, float]()

    async def dispatch(self, request: HttpRequest) -> HttpReply:
        if (
            request.path == "/find"
            and time.monotonic() - self.seeded.get(request.headers.get("cookie", ""), 0) < self.late
        ):
            early = HttpReply.json({"error": "no such session yet"}, 400)
            return replace(await super().dispatch(request), status=early.status, body=early.body)
        reply = await super().dispatch(request)
        if request.path == "/seed_session":
            self.seeded |= {
                value.partition(";")[0]: time.monotonic() for name, value in reply.headers if name == "set-cookie"
            }
        return reply

    async def _call_tool(self, request: HttpRequest) -> HttpReply:
        match json_body(request):
            case {"years": {"since": since}} if not isinstance(since, int if self.sound else str):
                raise HttpRefusal(400, "since has the wrong type")
            case {"years": {"since": str()}}:
                return HttpReply.json({"films": []})
        return await super()._call_tool(request)


_FOUND = (
    ("find", {"genre": "noir"}, {"films": ["noir", None]}),
    ("find", {"years": {"since": 1950}}, {"films": ["any", 1950]}),
)


@pytest.mark.parametrize("calls", [_FOUND, _FOUND[:1]], ids=["recorded", "never recorded"])
@pytest.mark.parametrize("sound", [True, False])
def test_a_number_within_an_object_that_is_refused_is_told(*, calls: Any, sound: bool) -> None:
    rows = rows_of(Films()).rows
    rollouts = tuple(rollout_of(row, *calls, reward=1.0) for row in rows)
    [finding] = found_by("drift-argument-refused", Films(sound=sound), Dataset(rows, rollouts, len(rows)))
    assert finding.verdict is (Verdict.PASS if sound else Verdict.FAIL), finding.actual
    assert finding.expected.startswith("years") is not sound


def test_what_is_refused_for_coming_too_early_is_not_said_to_be_refused_for_its_arguments() -> None:
    rows = rows_of(Films()).rows
    rollouts = tuple(rollout_of(row, *_FOUND, reward=1.0) for row in rows)
    [finding] = found_by("drift-argument-refused", Films(late=0.05), Dataset(rows, rollouts, len(rows)))
    assert finding.verdict is not Verdict.FAIL, finding.actual
