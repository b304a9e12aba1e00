"""Gymnasium-style servers: one that keeps every rule, and twins of it with one fault each."""

import asyncio
import itertools
import json
import random
import re
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from secrets import token_hex
from typing import Any

from gym_conformance.contract.dataset_rows import Row, Source
from gym_conformance.dataset import Dataset
from gym_mocks.resources import SignedCookie
from gym_mocks.wire import App, HttpRefusal, HttpReply, HttpRequest
from gym_mocks.wire.client import ASGIApp
from tests.twins.twin import Json, Twin, twin, unrecorded

#: Steps of an episode.
LAST = 3


class Counting(App):
    """Counts the steps of an episode; the last one earns 1."""

    def __init__(self) -> None:
        super().__init__(
            {
                ("GET", "/openapi.json"): self._openapi,
                ("POST", "/reset"): self._reset,
                ("POST", "/step"): self._step,
            }
        )
        self.cookie = SignedCookie("counting")
        self.steps: dict[str, int] = {}

    def key(self, session_id: str) -> str:
        """What an episode is kept by."""
        return session_id

    def reset(self, session_id: str, row: Json) -> Any:
        """Begin an episode; the observation."""
        self.steps[self.key(session_id)] = 0
        return f"0 of {LAST}, {len(row['stock'])} lines"

    def step(self, session_id: str, output: list[Json]) -> Json:
        """Take a step, whatever the policy wrote."""
        del output
        taken = self.steps[self.key(session_id)] = min(self.steps.get(self.key(session_id), 0) + 1, LAST)
        over = taken >= LAST
        return {"observation": f"{taken} of {LAST}", "reward": float(over), "terminated": over, "truncated": False}

    async def dispatch(self, request: HttpRequest) -> HttpReply:
        session_id = self.cookie.read(request.headers.get("cookie", "")) or token_hex()
        reply = await super().dispatch(request.within(session_id))
        return reply.plus(("set-cookie", self.cookie.write(session_id)))

    async def _openapi(self, _: HttpRequest) -> HttpReply:
        return HttpReply.json({"paths": {"/reset": {"post": {}}, "/step": {"post": {}}}})

    async def _reset(self, request: HttpRequest) -> HttpReply:
        return HttpReply.json({"observation": self.reset(request.session_id, json.loads(request.body)), "info": {}})

    async def _step(self, request: HttpRequest) -> HttpReply:
        return HttpReply.json(self.step(request.session_id, json.loads(request.body)["response"]["output"]))


class NamesItsEpisodes(Counting):
    """What is not for the policy to see has an id that is drawn, and the time."""

    async def _reset(self, request: HttpRequest) -> HttpReply:
        said = self.reset(request.session_id, json.loads(request.body))
        return HttpReply.json({"observation": said, "info": {"episode": token_hex(), "at": time.time()}})


class RefusesOneRow(Counting):
    def reset(self, session_id: str, row: Json) -> Any:
        assert row["stock"]
        return super().reset(session_id, row)


class ObservesAnObject(Counting):
    def reset(self, session_id: str, row: Json) -> Any:
        return {"text": super().reset(session_id, row)}


class NoReward(Counting):
    def step(self, session_id: str, output: list[Json]) -> Json:
        return super().step(session_id, output) | {"reward": None}


class EndsInNothing(Counting):
    """Gives up on a policy that has not won by its twelfth step, and divides by what it won."""

    def step(self, session_id: str, output: list[Json]) -> Json:
        del output
        taken = self.steps[self.key(session_id)] = self.steps.get(self.key(session_id), 0) + 1
        over = taken >= 12
        reward = None if over else 0.0
        return {"observation": f"step {taken}", "reward": reward, "terminated": over, "truncated": False}


class EarnsTooMuch(Counting):
    def step(self, session_id: str, output: list[Json]) -> Json:
        return super().step(session_id, output) | {"reward": 10**400}


class ReadsTheFirstItem(Counting):
    def step(self, session_id: str, output: list[Json]) -> Json:
        assert output[0]
        return super().step(session_id, output)


class RefusesSilence(Counting):
    def step(self, session_id: str, output: list[Json]) -> Json:
        if not output:
            raise HttpRefusal(400, "no action")
        return super().step(session_id, output)


class ForgetsTheLast(Counting):
    """As nemo-gym's base does: after the last step a session begins on nothing."""

    def step(self, session_id: str, output: list[Json]) -> Json:
        answer = super().step(session_id, output)
        if answer["terminated"]:
            del self.steps[session_id]
        return answer


class CrashesAfterTheLast(ForgetsTheLast):
    def step(self, session_id: str, output: list[Json]) -> Json:
        if session_id not in self.steps:
            raise KeyError(session_id)
        return super().step(session_id, output)


class BeginsAnywhere(Counting):
    def __init__(self) -> None:
        super().__init__()
        self.starts = itertools.count()

    def reset(self, session_id: str, row: Json) -> Any:
        return f"{super().reset(session_id, row)}, game {next(self.starts)}"


class Offering(Counting):
    """Its episodes can be closed, and a step that is sent again is known by its name."""

    def __init__(self) -> None:
        super().__init__()
        self.handlers["POST", "/close"] = self._close
        self.answers: dict[tuple[str, str], HttpReply] = {}

    def name(self, body: Json) -> str:
        """What a step is known by."""
        return str(body.get("_ng_step_request_id", token_hex()))

    def close(self, session_id: str) -> None:
        """End the episode, if there is one."""
        self.steps.pop(session_id, None)

    async def _reset(self, request: HttpRequest) -> HttpReply:
        said = self.reset(request.session_id, json.loads(request.body))
        offered = {"supports_explicit_close": True, "supports_step_idempotency": True}
        return HttpReply.json({"observation": said, "info": offered})

    async def _step(self, request: HttpRequest) -> HttpReply:
        known = (request.session_id, self.name(json.loads(request.body)))
        if known not in self.answers:
            self.answers[known] = await super()._step(request)
        return self.answers[known]

    async def _close(self, request: HttpRequest) -> HttpReply:
        self.close(request.session_id)
        return HttpReply.json({})


class ClosesOnce(Offering):
    def close(self, session_id: str) -> None:
        del self.steps[session_id]


class PlaysItAgain(Offering):
    def name(self, body: Json) -> str:
        del body
        return token_hex()


class RemembersTheBest(Counting):
    """What the best episode of all has earned is said where the next one begins."""

    best = 0

    def reset(self, session_id: str, row: Json) -> Any:
        return f"{super().reset(session_id, row)}, the best so far: {self.best}"

    def step(self, session_id: str, output: list[Json]) -> Json:
        answer = super().step(session_id, output)
        self.best = max(self.best, self.steps[session_id])
        return answer


class NamesOneForAll(NamesItsEpisodes):
    """Each episode has an id that is drawn, and all have the same state."""

    def key(self, session_id: str) -> str:
        del session_id
        return "the episode"


class OneForAll(Counting):
    def key(self, session_id: str) -> str:
        del session_id
        return "the episode"


class KeepsItsSteps(Counting):
    """A reset begins anew in words only."""

    def reset(self, session_id: str, row: Json) -> Any:
        before = self.steps.get(session_id, 0)
        said = super().reset(session_id, row)
        self.steps[session_id] = before
        return said


class Guessing(Counting):
    """How to guess is said by the first observation alone: how many lines has the row's stock?"""

    def __init__(self) -> None:
        super().__init__()
        self.lines: dict[str, int] = {}

    def reset(self, session_id: str, row: Json) -> Any:
        super().reset(session_id, row)
        self.lines[self.key(session_id)] = len(row["stock"])
        return "How many lines are there? Write, for example, <guess>2</guess>."

    def step(self, session_id: str, output: list[Json]) -> Json:
        guess = re.search(r"<guess>(\d)</guess>", json.dumps(output))
        lines, said = self.lines[self.key(session_id)], super().step(session_id, output)
        heard = "No guess." if guess is None else "More." if int(guess[1]) < lines else "No more."
        return said | {"observation": heard}


class GuessesForAll(Guessing):
    """The number is that of the last reset."""

    def reset(self, session_id: str, row: Json) -> Any:
        said = super().reset(session_id, row)
        self.lines = dict.fromkeys([*self.lines, session_id], len(row["stock"]))
        return said


class AsksBack(Guessing):
    """How to guess is said only to a policy that has not guessed."""

    def reset(self, session_id: str, row: Json) -> Any:
        super().reset(session_id, row)
        return "How many lines are there?"

    def step(self, session_id: str, output: list[Json]) -> Json:
        answer = super().step(session_id, output)
        no_guess = answer["observation"] == "No guess."
        return answer | ({"observation": "Write <guess>2|3</guess>."} if no_guess else {})


class AsksBackForAll(AsksBack, GuessesForAll):
    """So is the number of the last reset."""


class Paying(Guessing):
    """The right number earns 1, and any guess ends the episode; there is a notebook besides."""

    def __init__(self) -> None:
        super().__init__()
        self.over: set[str] = set()
        self.notes: dict[str, list[str]] = {}

    def reset(self, session_id: str, row: Json) -> Any:
        said = super().reset(session_id, row)
        self.over.discard(session_id)
        self.notes[session_id] = []
        return f"{said} Or make a note: <note>two, perhaps</note>."

    def noted(self, session_id: str) -> list[str]:
        """The notebook."""
        return self.notes[session_id]

    def reward(self, session_id: str, *, right: bool) -> float:
        """What a guess earns."""
        del session_id
        return float(right)

    def step(self, session_id: str, output: list[Json]) -> Json:
        written = json.dumps(output)
        answer = {"observation": None, "reward": 0.0, "terminated": True, "truncated": False}
        if session_id in self.over:
            return answer
        if note := re.search(r"<note>(.*?)</note>", written):
            self.noted(session_id).append(note[1])
        if guess := re.search(r"<guess>([^<]*)</guess>", written):
            self.over.add(session_id)
            right = guess[1] == str(self.lines[self.key(session_id)])
            return answer | {"reward": self.reward(session_id, right=right)}
        notes = ", ".join(self.noted(session_id)) or "none"
        return answer | {"observation": f"Your notes: {notes}. Guess.", "terminated": False}


class PaysOnce(Paying):
    """What was found once is worth nothing to whoever finds it again."""

    def __init__(self) -> None:
        super().__init__()
        self.found: set[int] = set()

    def reward(self, session_id: str, *, right: bool) -> float:
        lines = self.lines[session_id]
        first = right and lines not in self.found
        self.found |= {lines} if right else set()
        return float(first)


class Secret(Paying):
    """A guess earns a little by its length, the row's secret earns 1, and nothing else tells one row from another."""

    def reset(self, session_id: str, row: Json) -> Any:
        super().reset(session_id, row | {"stock": []})
        self.secret = {**getattr(self, "secret", {}), session_id: row.get("secret", "")}
        return "Guess the colour: <guess>mauve</guess>."

    def step(self, session_id: str, output: list[Json]) -> Json:
        answer = super().step(session_id, output)
        guess = re.search(r"<guess>([^<]*)</guess>", json.dumps(output))
        right = guess is not None and guess[1] == self.secret[session_id]
        return answer | {"reward": 1.0 if right else 0.01 * len(guess[1]) if guess else 0.0}


class PaysTheFirstRow(Paying):
    def reset(self, session_id: str, row: Json) -> Any:
        self.first = getattr(self, "first", row)
        return super().reset(session_id, self.first)


class OneNotebook(Paying):
    def noted(self, session_id: str) -> list[str]:
        del session_id
        return self.notes.setdefault("all", [])


class TakesItForANumber(Paying):
    def step(self, session_id: str, output: list[Json]) -> Json:
        if guess := re.search(r"<guess>([^<]*)</guess>", json.dumps(output)):
            int(guess[1])
        return super().step(session_id, output)


class ReadsItsCalls(Counting):
    def step(self, session_id: str, output: list[Json]) -> Json:
        for item in output:
            if item["type"] == "function_call":
                json.loads(item["arguments"])
        return super().step(session_id, output)


class SetsItsCookieOnce(Counting):
    async def dispatch(self, request: HttpRequest) -> HttpReply:
        reply = await super().dispatch(request)
        headers = [each for each in reply.headers if each[0] != "set-cookie"]
        return reply if request.path == "/reset" else replace(reply, headers=tuple(headers))


class CurrentAcrossAnAwait(Counting):
    """The session of a step is that of the last one to begin."""

    current = ""

    async def _step(self, request: HttpRequest) -> HttpReply:
        self.current = request.session_id
        await asyncio.sleep(0.01)
        return await super()._step(request.within(self.current))


class LuckDecides(Counting):
    """One step in ten is worth something: six in a row are often alike, and 48 never."""

    def step(self, session_id: str, output: list[Json]) -> Json:
        lucky = random.random() < 1 / 10
        return super().step(session_id, output) | ({"reward": 0.5} if lucky else {})


class HasRoomForTwenty(Counting):
    def reset(self, session_id: str, row: Json) -> Any:
        while len(self.steps) >= 20:
            self.steps.pop(next(iter(self.steps)))
        return super().reset(session_id, row)

    def step(self, session_id: str, output: list[Json]) -> Json:
        if session_id not in self.steps:
            raise HttpRefusal(409, "reset first")
        return super().step(session_id, output)


def stepping(name: str, fails: str, make: Callable[[], ASGIApp], **more: Any) -> Twin:
    """A gymnasium-style twin."""
    return twin(f"stepping: {name}", fails, make, **{"data": unrecorded(), **more})


def guessed(own: Iterable[Json]) -> Dataset:
    """Rows without tools, with these fields of their own."""
    rows = enumerate({"responses_create_params": {"input": "Guess."}, **each} for each in own)
    return Dataset(tuple(Row(data, Source(Path("rows"), 1 + at)) for at, data in rows))


#: Rows that differ in how many lines they have, in what their policy cannot see, and in nothing but their ids.
GUESSED = guessed({"stock": ["line"] * lines} for lines in range(4))
COLOURS = guessed({"stock": [], "secret": colour} for colour in ("red", "blue", "green", "teal"))
COUNTED = guessed({"stock": [], "task_id": at} for at in range(4))


TWINS = (
    stepping("all is well", "", Counting),
    stepping("episodes have ids", "", NamesItsEpisodes),
    stepping("a row that does not fit", "step-resets", RefusesOneRow, untestable=""),
    stepping("the observation is an object", "step-resets", ObservesAnObject),
    stepping("luck decides", "step-repeats", LuckDecides),
    stepping("no reward", "step-answers step-degenerate", NoReward),
    stepping("no reward at its end", "step-answers", EndsInNothing),
    stepping("a reward of 400 digits", "step-answers step-degenerate", EarnsTooMuch),
    stepping("reads the first item", "step-degenerate", ReadsTheFirstItem),
    stepping("refuses silence", "step-refuses-none", RefusesSilence),
    stepping("forgets its last step", "step-over", ForgetsTheLast),
    stepping("crashes after its last step", "step-over", CrashesAfterTheLast),
    stepping("begins anywhere", "step-reset-fresh", BeginsAnywhere),
    stepping("one episode for all", "step-isolation step-concurrent", OneForAll),
    stepping("one episode for all, under many ids", "step-isolation step-concurrent", NamesOneForAll),
    stepping("resets in words", "step-reset-fresh", KeepsItsSteps),
    stepping("a form that only an observation shows", "", Guessing),
    stepping("one number for all", "step-isolation step-concurrent", GuessesForAll),
    stepping("a form that only a bad step shows", "", AsksBack),
    stepping(
        "one number for all, and a form that only a bad step shows", "step-isolation step-concurrent", AsksBackForAll
    ),
    stepping("can be closed", "", Offering),
    stepping("can be closed once", "step-close", ClosesOnce),
    stepping("plays a step again", "step-idempotent", PlaysItAgain),
    stepping("remembers the best", "step-earlier", RemembersTheBest),
    stepping("pays for what is right", "", Paying, data=GUESSED),
    stepping("pays for it once", "step-repeats", PaysOnce, data=GUESSED),
    stepping("the first row for all", "step-reads-row", PaysTheFirstRow, data=GUESSED),
    stepping("a secret that only the right guess tells", "", Secret, data=COLOURS, tempts="step"),
    stepping("rows that are only counted", "", Secret, data=COUNTED, tempts="step"),
    stepping("one notebook for all", "step-told step-earlier", OneNotebook, data=GUESSED),
    stepping("takes it for a number", "step-answers", TakesItForANumber),
    stepping("reads its calls", "step-degenerate", ReadsItsCalls),
    stepping("sets its cookie once", "step-cookie", SetsItsCookieOnce),
    stepping("the current episode across an await", "step-concurrent", CurrentAcrossAnAwait),
    stepping("has room for twenty", "step-concurrent", HasRoomForTwenty),
)
