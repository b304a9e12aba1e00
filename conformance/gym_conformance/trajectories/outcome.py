"""The outcome of a trajectory, and how two outcomes differ. Pure: nothing here talks to a server."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, Final

from gym_conformance.contract.dataset_rows import Call
from gym_conformance.contract.endpoints import VERIFY, tool_path
from gym_conformance.contract.statuses import is_error, is_success
from gym_conformance.contract.verify_reply import is_number, rounded
from gym_conformance.session.exchange import Reply
from gym_conformance.session.refusals import says_error
from gym_schemas import ABSENT, scalars
from gym_schemas import differences as json_differences

#: A place in an outcome: the index of the step, then keys and indices in its reply.
Place = tuple[str | int, ...]


@dataclass(frozen=True)
class StepOutcome:
    """One step's reply: its name, its status, and its body, parsed if it is JSON.

    `source` is the reply with that body; it stays referenced as long as the body is.
    """

    name: str
    status: int
    body: Any
    source: Reply | None = field(default=None, compare=False, repr=False)

    @property
    def is_refused(self) -> bool:
        """Whether the call was refused, by its status, or by an error format that nothing else uses."""
        return is_error(self.status) or (self.source is not None and says_error(self.source))

    @classmethod
    def of_reply(cls, name: str, reply: Reply) -> "StepOutcome":
        """The outcome of a step's reply."""
        return cls(name, reply.status, reply.said, reply)

    @classmethod
    def of_call(cls, call: Call, reply: Reply) -> "StepOutcome":
        """The outcome of a tool call."""
        return cls.of_reply(tool_path(call.name), reply)

    @classmethod
    def of_verify(cls, reply: Reply) -> "StepOutcome":
        """The outcome of a verify; its body is the reward alone, without its last digits, or None if there was none."""
        return cls(VERIFY, reply.status, rounded(reply.fields.get("reward")) if is_success(reply.status) else None)


@dataclass(frozen=True)
class Outcome:
    """The outcome of a trajectory, step by step; of verify's body only the reward is kept.

    `began` says when each step began, in seconds of the monotonic clock; () if not recorded.
    """

    steps: tuple[StepOutcome, ...]
    began: tuple[float, ...] = field(default=(), compare=False, repr=False)

    @property
    def reward(self) -> Any:
        """The reward, or None if verify gave none."""
        return self.steps[-1].body if self.steps else None

    @property
    def earned(self) -> float:
        """The reward, or 0 if it is no number."""
        return self.reward if isinstance(self.reward, int | float) else 0.0

    @property
    def seconds(self) -> float:
        """Seconds from the first call to verify, or from the seed if nothing is called.

        A seed in a crowd waits long for its reply, but its session begins only when it is served.
        """
        return self.began[-1] - self.began[1 if self.calls else 0] if self.began else 0.0

    @property
    def calls(self) -> tuple[StepOutcome, ...]:
        """The outcomes of the tool calls."""
        return self.steps[1:-1]


@dataclass(frozen=True)
class Difference:
    """One place where two outcomes differ; `took`: both values are how long their replies took."""

    place: Place
    step: str
    expected: Any
    actual: Any
    took: bool = False

    @property
    def of_time(self) -> bool:
        """Whether both values are times, which no server repeats."""
        return self.took or (tells_time(self.expected) and tells_time(self.actual))

    @property
    def places(self) -> tuple[Place, ...]:
        """The narrowest places that differ: the words of two texts that are alike but for words, or else its own place."""
        if not (isinstance(self.expected, str) and isinstance(self.actual, str)):
            return (self.place,)
        one, two = _split(self.expected), _split(self.actual)
        if len(one) != len(two) or one[::2] != two[::2]:
            return (self.place,)
        return tuple(_word(self.place, at) for at in range(1, len(one), 2) if one[at] != two[at])

    def hidden(self, mask: frozenset[Place]) -> bool:
        """Whether the mask contains all that differs."""
        return masked(self.place, mask) or all(masked(place, mask) for place in self.places)

    @property
    def where(self) -> str:
        """The place within the step's outcome: `lines.0.count`, `status`, or '' for the whole reply."""
        return _path(self.place[1:])

    @property
    def answer(self) -> str:
        """What was expected, for a reader: `lines.0.count of /list_stock is 3`."""
        where, step = self.where, self.step
        return f"{where} of {step} is {self.expected!r}" if where else f"{step} answers {self.expected!r}"


#: Words of a text, with what stands between them; an id is one word, whatever signs it has.
_WORDS: Final = re.compile(r"(\S+)")

#: What is split is as long if it has one word.
_ONE_WORD: Final = 3

#: Characters of a text above which its words are not told apart.
_LONG: Final = 4_000

#: In a mask: all keys of an object that another run does not have.
DRAWN: Final = "(any key)"

_TIME: Final = re.compile(r"\d{1,2}:\d{2}|\d{4}-\d{2}-\d{2}")

#: Seconds, and milliseconds, since 1970, for dates from 2001 to 2039; a sum of large numbers may be anything.
_EPOCH: Final = ((1e9, 2.2e9), (1e12, 2.2e12))


#: What a server calls the time that a reply took it, with how many of its units a second has, the first that is found.
_DURATION: Final = [
    (re.compile(word, re.IGNORECASE), unit)
    for word, unit in (
        (r"(?:^|_)ns$|nanos", 1e9),
        (r"(?:^|_)us$|micros", 1e6),
        (r"(?:^|_|latency|duration|elapsed|took|time)ms$|millis", 1e3),
        (r"elapsed|latency|took|runtime|(?:cpu|exec\w*|process\w*|query|response|run|wall)_?time|time_?taken", 1e3),
        (r"duration|(?:^|_)sec(?:ond)?s?$", 1),
    )
]

#: Seconds by which it may be more than the whole reply took, since it is rounded.
_ROUNDED: Final = 0.01

#: A number that is so many seconds at most, and no more than the reply took, may be a duration whatever it is called.
_BRIEF: Final = 0.1


def _took(key: Any, value: Any, step: StepOutcome) -> bool:
    """Whether the number is how long the server says the reply took: longer, the more it has to do meanwhile."""
    if not (is_number(value) and step.source and isinstance(key, str)):
        return False
    if (value == 0 or not isinstance(value, int)) and 0 <= value <= min(step.source.elapsed, _BRIEF):
        return True
    unit = next((unit for word, unit in _DURATION if word.search(key)), 0)
    return unit > 0 and bool(0 <= value <= unit * (step.source.elapsed + _ROUNDED))


def tells_time(value: Any) -> bool:
    """Whether the value is a time, or a text that contains one."""
    if isinstance(value, str):
        return _TIME.search(value) is not None
    return isinstance(value, int | float) and any(least < value < most for least, most in _EPOCH)


def differences(expected: Outcome, actual: Outcome, mask: frozenset[Place] = frozenset()) -> Iterator[Difference]:
    """The places where two outcomes of one trajectory differ, except what is masked.

    A text of which some words are masked, as in `Opened ticket 1042`, is compared in its other words.
    """
    for number, (one, two) in enumerate(zip(expected.steps, actual.steps, strict=True)):
        before, after = ({"status": step.status, "body": step.body} for step in (one, two))
        for change in json_differences(before, after, (number,)):
            drawn = ABSENT in (change.before, change.after) and (*change.way[:-1], DRAWN) in mask
            took = _took(change.way[-1], change.before, one) and _took(change.way[-1], change.after, two)
            difference = Difference(change.way, one.name, change.before, change.after, took)
            if not drawn and not difference.hidden(mask):
                yield difference


def volatile(first: Outcome, second: Outcome) -> frozenset[Place]:
    """The places that differ between two runs alone, such as times, ids and random text; they cannot be compared.

    If each of two objects has keys that the other lacks, such as ids, no key there counts as missing or new.
    """
    found = list(differences(first, second))
    gone, new = (
        {one.place[:-1] for one in found if side(one) is ABSENT}
        for side in (attrgetter("actual"), attrgetter("expected"))
    )
    return frozenset((*(place for one in found for place in one.places), *((*place, DRAWN) for place in gone & new)))


def varying(outcomes: Sequence[Outcome]) -> frozenset[Place]:
    """The places where an outcome differs from the first one."""
    return frozenset[Place]().union(*(volatile(outcomes[0], other) for other in outcomes[1:]))


def moved(before: Outcome, after: Outcome) -> Outcome:
    """The later of two runs of one trajectory, with each number replaced by the amount it changed."""
    pairs = zip(before.steps, after.steps, strict=True)
    return Outcome(tuple(StepOutcome(two.name, two.status, _moved(one.body, two.body)) for one, two in pairs))


def _moved(one: Any, two: Any) -> Any:
    if isinstance(one, dict) and isinstance(two, dict):
        return {key: _moved(one.get(key), inner) for key, inner in two.items()}
    if isinstance(one, list) and isinstance(two, list) and len(one) == len(two):
        return [_moved(inner, other) for inner, other in zip(one, two, strict=True)]
    return round(two - one, 6) if is_number(one) and is_number(two) else two


def named(mask: Iterable[Place], outcome: Outcome) -> set[str]:
    """The masked places in readable form: `/list_stock lines.0.id`."""
    return {f"{outcome.steps[int(way[0])].name} {_path(way[1:]) or 'reply'}" for way in mask}


def _path(way: Sequence[str | int]) -> str:
    """A way within a step's outcome: `lines.0.id`, `status`, or '' for the whole reply."""
    return ".".join(map(str, way[1:] if way[:1] == ("body",) else way))


def compared(outcome: Outcome, mask: frozenset[Place]) -> int:
    """How many values remain to be compared, not counting statuses."""
    values = (found for number, step in enumerate(outcome.steps) for found in scalars(step.body, (number, "body")))
    return sum(not _is_masked_throughout(value, place, mask) for value, place in values)


def _is_masked_throughout(value: Any, place: Place, mask: frozenset[Place]) -> bool:
    if masked(place, mask):
        return True
    split = _split(value) if mask and isinstance(value, str) else []
    return len(split) > 1 and all(_word(place, at) in mask for at in range(1, len(split), 2))


def _split(text: str) -> list[str]:
    """What stands between the words, and each word at an odd index; the text alone if it is one word, or long."""
    split = _WORDS.split(text) if len(text) <= _LONG else []
    return split if len(split) > _ONE_WORD else [text]


def _word(place: Place, at: int) -> Place:
    """The place of a word of a text, by its index among what `_split` returns."""
    return (*place, f"word {at // 2 + 1}")


def values_at(outcome: Outcome, place: Place) -> tuple[Any, ...]:
    """The value at the place as a tuple of one; () if there is none."""
    at, *way = place
    step = outcome.steps[int(at)]
    value: Any = {"status": step.status, "body": step.body}
    try:
        for key in way:
            value = value[key]
    except (LookupError, TypeError):
        return ()
    return (value,)


def masked(place: Place, mask: frozenset[Place]) -> bool:
    """Whether the mask contains the place or a place above it."""
    return any(place[:length] in mask for length in range(1, len(place) + 1))
