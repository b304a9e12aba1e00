"""A trajectory is what one rollout does; a schedule interleaves several. Both are plain values, stored as JSON."""

import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path as FilePath
from typing import Any, Final

from gym_conformance.contract.dataset_rows import Call, Row, Source
from gym_conformance.documents import parse_json
from gym_conformance.redaction import NO_SECRETS, Secrets
from gym_schemas import Way, mapped, name_of, scalars

SCHEMA: Final = "gym-conformance/schedule/1"

#: The policy's answer if no other is given; no environment rewards it.
PLAIN_ANSWER: Final = "Done."

#: What hardly any argument may be; where a reply repeats it, its name must not read like a refusal, as `unexpected` does.
STRANGE: Final[dict[str, Any]] = {"strange": []}

#: A word of a text, which may be an id.
WORD: Final = re.compile(r"[\w-]+(?:[.:/][\w-]+)*")

#: A shorter text or number is not taken for an id: it may occur in a reply and in a call by accident.
SHORT: Final = 4

#: Characters of a reply's text that are searched for an id.
_SEARCHED: Final = 1 << 18

#: An integer of 64 bits has fewer digits.
_DIGITS: Final = 19

_SURROGATE: Final = re.compile("[\ud800-\udfff]")

#: How a call that is meant to be refused ends where a schedule is shown.
REFUSED: Final = "  # to be refused"

#: The key of an argument that is unknown before the run: a value from the reply to an earlier call.
REPLY: Final = "$reply"


@dataclass(frozen=True)
class Reference:
    """A value that an earlier call returned.

    Attributes:
        call: the index of that call, from 0.
        path: the keys and indices of the value in its reply.
        otherwise: the stand-in if the reply has no such value, or one of another type, or one that the tool's schema
            rejects.
        session: the index of the trajectory of the schedule whose call it was; None for the same trajectory.
        word: if the value is a word of the text at `path`, or its number: the text before it, and how many such words
            come earlier.
    """

    call: int
    path: Way
    otherwise: Any = None
    session: int | None = None
    word: tuple[str, int] | None = None

    def as_json(self) -> dict[str, Any]:
        """The form in which it is written among the arguments."""
        inner = {"call": self.call, "path": list(self.path), "otherwise": self.otherwise}
        session = {} if self.session is None else {"session": self.session}
        return {REPLY: inner | session | ({} if self.word is None else {"word": list(self.word)})}

    def within(self, replies: list[Any]) -> Any:
        """The value in the replies so far; the stand-in if the reply still contains that: it is no new id then."""
        reply: Any = replies[self.call] if 0 <= self.call < len(replies) else None
        value = reply
        for key in self.path:
            try:
                value = value[key]
            except (LookupError, TypeError):
                return self.otherwise
        if self.word is not None and isinstance(value, str):
            return self._word_of(value, *self.word)
        if type(value) is not type(self.otherwise) or self._lives_on(reply):
            return self.otherwise
        return value

    def _word_of(self, text: str, before: str, number: int) -> Any:
        text = text[:_SEARCHED]
        if str(self.otherwise) in WORD.findall(text):
            return self.otherwise
        found = words_after(before, text)[number : number + 1]
        if type(self.otherwise) is int:
            return int(found[0]) if found and is_whole_number(found[0]) else self.otherwise
        return found[0] if found else self.otherwise

    def _lives_on(self, reply: Any) -> bool:
        same_name = (value for value, path in scalars(reply) if name_of(path) == name_of(self.path))
        return len(str(self.otherwise)) >= SHORT and self.otherwise in same_name


@dataclass(frozen=True, eq=False)
class Trajectory:
    """One rollout: the row it is seeded with, its tool calls, and the policy's answer. It ends with a verify.

    `noise` has the indices of calls that are meant to be refused: they are made, but are not part of the outcome.
    """

    row: Row
    calls: tuple[Call, ...] = ()
    noise: frozenset[int] = frozenset()
    answer: str = PLAIN_ANSWER

    @property
    def steps(self) -> int:
        """The number of steps: a seed, the calls, and a verify."""
        return len(self.calls) + 2

    def with_noise(self, at: int, *calls: Call) -> "Trajectory":
        """The same with more calls, to be refused, before call `at`."""

        def place(old: int) -> int:
            return old + len(calls) * (old >= at)

        moved = [_renumbered(each, place) for each in self.calls]
        noise = frozenset({*range(at, at + len(calls)), *map(place, self.noise)})
        return replace(self, calls=(*moved[:at], *calls, *moved[at:]), noise=noise)

    def with_renumbered(self, session: int, places: Mapping[int, int]) -> "Trajectory":
        """The same after the calls of another trajectory of the schedule were renumbered."""
        return replace(self, calls=tuple(_told_of(call, session, places) for call in self.calls))

    def without_noise(self) -> "Trajectory":
        """The same without the calls that are meant to be refused."""
        return self.without(self.noise)

    def without(self, dropped: Collection[int]) -> "Trajectory":
        """The same without these calls; references to them become their stand-ins."""
        return self.chosen([number for number in range(len(self.calls)) if number not in dropped])

    def chosen(self, numbers: Sequence[int]) -> "Trajectory":
        """The trajectory with only these calls, in this order; a call may occur twice.

        References point to where the call is made first; if it is not made, or only later, they become their stand-ins.
        """
        places = {number: place for place, number in reversed(list(enumerate(numbers)))}
        calls = (_renumbered(self.calls[number], lambda old: places.get(old, -1)) for number in numbers)
        noise = frozenset(place for place, number in enumerate(numbers) if number in self.noise)
        return replace(self, calls=tuple(calls), noise=noise)

    def repeating(self, numbers: Collection[int]) -> "Trajectory":
        """The trajectory with each of these calls made twice."""
        return self.chosen([at for at in range(len(self.calls)) for _ in range(1 + (at in numbers))])


@dataclass(frozen=True, eq=False)
class FirstSession:
    """One of the first sessions of a run.

    Attributes:
        trajectory: its calls as they were made, with references in place of ids that it was given; those that were
            refused are noise.
        began: when its seed, each of its calls and its verify began, in seconds of the monotonic clock.
        times: how many sessions were granted the same.
        reward: what all of these earned; None if that is not known.
    """

    trajectory: Trajectory
    began: tuple[float, ...]
    times: int = 1
    reward: float | None = None


def _told_of(call: Call, session: int, places: Mapping[int, int]) -> Call:
    """The call with its references to that session's calls renumbered."""

    def moved(inner: dict[str, Any]) -> dict[str, Any]:
        return {REPLY: inner | {"call": places.get(inner["call"], -1)} if inner.get("session") == session else inner}

    return Call(call.name, _map_references(call.arguments, moved))


def _renumbered(call: Call, number: Callable[[int], int]) -> Call:
    """The call with its references renumbered."""
    return Call(
        call.name,
        _map_references(
            call.arguments,
            lambda inner: {REPLY: inner if "session" in inner else inner | {"call": number(inner["call"])}},
        ),
    )


@dataclass(frozen=True, eq=False)
class Schedule:
    """Trajectories, each in its own session.

    Attributes:
        trajectories: what each rollout does.
        order: the trajectory that takes each step, by index; () for one trajectory after the other.
        concurrent: whether the trajectories really run at the same time, so that their order is not controlled.
        passing: whether adjacent trajectories that take all their steps in a row take them at the same time.
        meeting: whether concurrent trajectories wait for each other before they verify.
    """

    trajectories: tuple[Trajectory, ...]
    order: tuple[int, ...] = ()
    concurrent: bool = False
    passing: bool = False
    meeting: bool = False

    @property
    def calls(self) -> int:
        """How many tool calls it makes, as a measure of its size."""
        return sum(len(trajectory.calls) for trajectory in self.trajectories)

    def turns(self) -> Iterator[int]:
        """The index of the trajectory that takes each next step, until all have ended."""
        left = [trajectory.steps for trajectory in self.trajectories]
        for turn in self.order:
            if left[turn]:
                left[turn] -= 1
                yield turn
        for turn, steps in enumerate(left):
            yield from [turn] * steps

    def groups(self) -> Iterator[tuple[int, ...]]:
        """Whose turn it is: one trajectory's next step, or, if they are `passing`, several whole trajectories."""

        def in_a_row(turn: int, steps: int) -> bool:
            return self.passing and steps == self.trajectories[turn].steps

        turns = [(turn, len(list(steps))) for turn, steps in groupby(self.turns())]
        for whole, group in groupby(turns, lambda one: in_a_row(*one)):
            together = tuple(turn for turn, _ in group) if whole else ()
            if len(together) > 1:
                yield together
                continue
            for turn, steps in [(turn, self.trajectories[turn].steps) for turn in together] or group:
                yield from [(turn,)] * steps

    def lines(self) -> list[str]:
        """The schedule in readable form, one step per line."""
        names = [session_name(at) for at in range(len(self.trajectories))]
        if self.concurrent:
            return [f"{names[at]} | {line}" for at, one in enumerate(self.trajectories) for line in _lines(one)]
        steps = [list(_lines(trajectory)) for trajectory in self.trajectories]
        prefix = "{} | " if len(steps) > 1 else ""
        return [prefix.format(names[turn]) + steps[turn].pop(0) for turn in self.turns()]


def _lines(trajectory: Trajectory) -> Iterator[str]:
    yield f"seed_session({trajectory.row})"
    for number, call in enumerate(trajectory.calls):
        refused = REFUSED if number in trajectory.noise else ""
        yield f"{call.name}({json.dumps(_map_references(call.arguments, _named))}){refused}"
    yield "verify" if trajectory.answer == PLAIN_ANSWER else f"verify, after saying {json.dumps(trajectory.answer)}"


def _named(inner: dict[str, Any]) -> Any:
    """A reference in words: `<lines.0.id of the reply to call 2>`; the stand-in, which is sent, if that call is not made."""
    if inner["call"] < 0:
        return inner.get("otherwise")
    whose = f"{session_name(inner['session'])}'s " if isinstance(inner.get("session"), int) else ""
    path = ".".join(map(str, inner["path"]))
    before = str(inner["word"][0]).strip() if inner.get("word") else ""
    place = f"what follows {before!r} in " * bool(before) + f"{path} of " * bool(path)
    return f"<{place}the reply to {whose}call {inner['call'] + 1}>"


def session_name(session: int) -> str:
    """As a schedule's lines name its sessions."""
    return chr(ord("A") + session % 26)


def dump(schedule: Schedule, check: str, secrets: Secrets = NO_SECRETS) -> str:
    """The schedule, with secrets removed, as a file that `--gym-replay` reads; it includes whole rows."""
    trajectories = [
        {
            "source": str(trajectory.row),
            "row": secrets.redact_json(trajectory.row.data),
            "calls": [
                {"tool": call.name, "arguments": secrets.redact_json(call.arguments)} for call in trajectory.calls
            ],
            "noise": sorted(trajectory.noise),
            "answer": secrets.redact(trajectory.answer),
        }
        for trajectory in schedule.trajectories
    ]
    whole = {
        "schema": SCHEMA,
        "check": check,
        "order": list(schedule.order),
        "concurrent": schedule.concurrent,
        "passing": schedule.passing,
        "meeting": schedule.meeting,
        "trajectories": trajectories,
    }
    return json.dumps(whole, indent=2) + "\n"


def parse(text: str, path: FilePath) -> tuple[str, Schedule]:
    """The inverse of `dump`: the check's id and the schedule.

    Raises:
        ValueError: the text is not such a file; the message says why.
    """
    whole = parse_json(text)
    if not isinstance(whole, dict) or whole.get("schema") != SCHEMA:
        raise ValueError(f"its schema is not {SCHEMA!r}")
    try:
        rows: list[Row] = []  # one object for each, since rows are told apart by identity
        trajectories = tuple(
            _trajectory(each, path, at, rows) for at, each in enumerate(whole["trajectories"], start=1)
        )
        order = tuple(int(turn) for turn in whole["order"])
        if not trajectories or any(not 0 <= turn < len(trajectories) for turn in order):
            raise ValueError("its order names a trajectory that it does not have")
        how = [bool(whole.get(key)) for key in ("passing", "meeting")]
        return str(whole["check"]), Schedule(trajectories, order, bool(whole["concurrent"]), *how)
    except (KeyError, TypeError, AttributeError) as missing:
        raise ValueError(f"it lacks {missing}") from None


def _trajectory(data: Mapping[str, Any], path: FilePath, number: int, rows: list[Row]) -> Trajectory:
    calls = tuple(Call(str(call["tool"]), call["arguments"]) for call in data["calls"])
    if not isinstance(data["row"]["responses_create_params"], dict):
        raise TypeError("responses_create_params")
    row = next((row for row in rows if row.data == data["row"]), None)
    if row is None:
        rows.append(row := Row(data["row"], Source(path, number)))
    return Trajectory(row, calls, frozenset(data["noise"]), str(data["answer"]))


def words_after(before: str, text: str) -> list[str]:
    """The words of a text that come just after the same text each, in capitals or not."""
    return re.findall(f"{re.escape(before)}({WORD.pattern})", text, re.IGNORECASE)


def is_whole_number(word: str) -> bool:
    """Whether a word is an integer, such as JSON's readers take."""
    return word.isdecimal() and len(word) < _DIGITS


def is_reference(value: Any) -> bool:
    """Whether an argument is a reference to a value that an earlier call returned."""
    return isinstance(value, dict) and value.keys() == {REPLY}


def stand_in(reference: Mapping[str, Any]) -> Any:
    """The stand-in of a reference."""
    return reference[REPLY].get("otherwise")


def is_linked(arguments: Any) -> bool:
    """Whether the arguments contain a reference."""
    return any(REPLY in way for _, way in scalars(arguments))


def passed(arguments: Any) -> Iterator[tuple[int, Way]]:
    """The values that the arguments refer to: of which call, and where they stand in its reply."""
    if _refers(arguments):
        yield arguments[REPLY]["call"], tuple(arguments[REPLY]["path"])
    elif isinstance(arguments, dict | list):
        for inner in arguments.values() if isinstance(arguments, dict) else arguments:
            yield from passed(inner)


def needs_from(arguments: Any, call: int) -> bool:
    """Whether the arguments refer to that call, or to a later one of the same trajectory."""
    return any(way[-2:] == (REPLY, "call") and value >= call for value, way in scalars(arguments))


def asks_another(arguments: Any) -> bool:
    """Whether the arguments refer to a value returned to another session of the schedule, by a call that is made."""
    places = [(way[:-1], way[-1], value) for value, way in scalars(arguments) if way[-2:-1] == (REPLY,)]
    made = {place for place, key, value in places if key == "call" and value >= 0}
    return any(key == "session" and place in made for place, key, _ in places)


def of_first(arguments: Any) -> Any:
    """The arguments with references within the trajectory redirected to the schedule's first session."""
    return _map_references(arguments, lambda inner: {REPLY: {"session": 0} | inner})


def resolve(arguments: Any, replies: list[Any], others: Sequence[list[Any]] = ()) -> Any:
    """The arguments with each reference replaced by its value; `others` has the replies of all sessions."""

    def value(inner: dict[str, Any]) -> Any:
        session = inner.get("session")
        word = tuple(inner["word"]) if inner.get("word") else None
        reference = Reference(inner["call"], tuple(inner["path"]), inner.get("otherwise"), word=word)
        if session is None:
            return reference.within(replies)
        return reference.within(others[session]) if 0 <= session < len(others) else reference.otherwise

    return _map_references(arguments, value)


def has_surrogates(trajectory: Trajectory) -> bool:
    """Whether a call contains half of a surrogate pair, which JSON can encode but no text contains."""
    return any(replaced != call.arguments for call, replaced in _replaced(trajectory))


def without_surrogates(trajectory: Trajectory) -> Trajectory:
    """The same with each half of a surrogate pair replaced by U+FFFD."""
    return replace(trajectory, calls=tuple(Call(call.name, replaced) for call, replaced in _replaced(trajectory)))


def _replaced(trajectory: Trajectory) -> Iterator[tuple[Call, Any]]:
    """Each call, with its arguments after the replacement."""

    def whole(text: str) -> str:
        return _SURROGATE.sub("\ufffd", text)

    for call in trajectory.calls:
        yield call, mapped(call.arguments, lambda each, _: whole(each) if isinstance(each, str) else each, keys=whole)


def _refers(value: Any) -> bool:
    """Whether a value is a reference that can be resolved."""
    inner = value[REPLY] if is_reference(value) else None
    return isinstance(inner, dict) and isinstance(inner.get("call"), int) and isinstance(inner.get("path"), list)


def _map_references(arguments: Any, replace: Callable[[dict[str, Any]], Any]) -> Any:
    return mapped(arguments, lambda each, _: replace(each[REPLY]) if isinstance(each, dict) else each, leaf=_refers)
