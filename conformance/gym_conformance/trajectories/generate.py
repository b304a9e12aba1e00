"""Hypothesis strategies for trajectories and schedules, from the rows' tools, recorded rollouts and replies."""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice
from typing import Any, Final, Self, TypeVar

from hypothesis import assume
from hypothesis import strategies as st

from gym_conformance.contract.dataset_rows import Call, Row, Tool
from gym_conformance.trajectories.execute import FEW
from gym_conformance.trajectories.languages import asks, changes
from gym_conformance.trajectories.returned import Returned
from gym_conformance.trajectories.trajectory import PLAIN_ANSWER, FirstSession, Reference, Schedule, Trajectory
from gym_schemas import admits, name_of, properties_of, scalars
from gym_schemas.hostile import hostile_arguments
from gym_schemas.strategies import near_misses, valid_arguments

T = TypeVar("T")

#: A rollout of this many calls reaches most states; longer ones mostly cost time.
CALLS = 6

#: No more concurrent sessions than the server could do one by one in this many seconds, in case scoring or a call blocks
#: its event loop, or computes.
_BATCH_SECONDS: Final = 1.0

#: Values of one format kept for an argument.
_FORMED = 6

#: What a policy may write: all that UTF-8 can encode (`gym_schemas.strategies` says why it is not requested as a
#: codec).
_WRITTEN: Final = st.characters(exclude_categories=["Cs"])

#: Words assumed to name reads, and words assumed to name actions; the first of them in a tool's name decides. This only
#: weights choices and never decides a verdict.
_READS: Final = re.compile(
    "browse|check|count|describe|details?|display|fetch|find|get|history|info|information|inspect|inventory|list|look|lookup|"
    "observation|observe|overview|peek|query|read|retrieve|screenshot|search|show|snapshot|state|status|summary|view|where|who"
)
_DOES: Final = re.compile(
    "accept|add|advance|apply|approve|assign|cancel|change|checkin|checkout|clear|close|commit|create|delete|discard|do|edit|"
    "end|execute|finish|join|leave|make|mark|modify|move|next|open|out|pay|put|redo|reject|remove|rename|reply|reserve|reset|save|send|"
    "set|start|stop|submit|take|toggle|undo|update|wait|withdraw|write"
)

#: What a tool is said to do, if anything, that does what a language says.
_SAYS: Final = ("", "do", "execute")

_WORD: Final = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")


@dataclass(frozen=True)
class Knowledge:
    """What was learned about a gym before trajectories are made.

    Attributes:
        rows: the rows to seed with.
        answers: by row, possible answers of a policy: one from a recorded rollout, and texts of the row.
        paid: by row, an answer, or a call, that earns more than doing nothing, found by trying if no rollouts are recorded.
        meaningful: by tool, arguments from recorded rollouts, otherwise arguments with words of a row that the tool
            knows.
        known_trajectories: what recorded rollouts did, the longest first, and calls that the tools were found to
            accept.
        crashing: sessions whose last call, a valid one, crashed the server while it was tried.
        first_sessions: those in which the tools were asked what they know and accept, if no rollouts are recorded.
        session_seconds: how long a session takes in which nothing is done.
        call_seconds: how long a call takes.
        at_once: how many concurrent sessions take hardly longer than one, because the server waits, perhaps for a judge
            model, rather than computes; 1 if sessions are short.
        returned: by tool, strings and integers in its replies.
        quiet: tools that were found to read though their names do not say so: without them nothing else changes.
        mined: values seen in recorded arguments and in replies, by property name: related calls use the same words.
    """

    rows: tuple[Row, ...] = field(repr=False)
    answers: Mapping[Row, tuple[str, ...]] = field(default_factory=dict, repr=False)
    paid: Mapping[Row, Trajectory] = field(default_factory=dict, repr=False)
    meaningful: Mapping[str, tuple[Any, ...]] = field(default_factory=dict, repr=False)
    known_trajectories: tuple[Trajectory, ...] = field(default=(), repr=False)
    crashing: tuple[Trajectory, ...] = field(default=(), repr=False)
    first_sessions: tuple[FirstSession, ...] = field(default=(), repr=False)
    returned: Mapping[str, tuple[Returned, ...]] = field(default_factory=dict, repr=False)
    quiet: frozenset[str] = frozenset()
    mined: Mapping[str, tuple[Any, ...]] = field(default_factory=dict, repr=False)

    session_seconds: float = 0.0
    call_seconds: float = 0.0
    at_once: int = 1
    by_row: dict[Row, Mapping[str, "ToolCalls"]] = field(default_factory=dict, init=False, repr=False)
    by_definition: dict[str, "ToolCalls"] = field(default_factory=dict, init=False, repr=False)

    @classmethod
    def of(cls, schedule: Schedule) -> Self:
        """What a schedule shows, for a replay, which knows nothing else."""
        rows = tuple(dict.fromkeys(one.row for one in schedule.trajectories))
        return cls(rows, known_trajectories=schedule.trajectories)

    def sessions_in(self, seconds: float, *, at_most: int) -> int:
        """How many sessions in which nothing is done fit into this many seconds, at least one."""
        return max(1, min(at_most, int(seconds / self.session_seconds) if self.session_seconds else at_most))

    def affordable(
        self, trajectories: Iterable[T], steps: Callable[[T], int], seconds: float, most: int
    ) -> Iterator[T]:
        """The first trajectories, between one and `most`, that fit into this many seconds one after the other."""
        spent = 0.0
        for at, one in enumerate(islice(trajectories, most)):
            spent += self.session_seconds + self.call_seconds * steps(one)
            if at and spent > seconds:
                return
            yield one

    def reads(self, tool: str) -> bool:
        """Whether the tool reads, judging by its name or by what was found."""
        return tool in self.quiet or is_read(tool)

    def is_reading(self, call: Call) -> bool:
        """The same of a call, which may be a query in a language."""
        return call.name in self.quiet or is_reading(call)

    def may_read(self, tool: Tool) -> bool:
        """The same for a tool, or whether it takes no arguments and its name suggests nothing else."""
        return may_read(tool) or self.reads(tool.name)

    def beside(self, at_most: int) -> int:
        """How many trials may run concurrently: as many as the server was found to handle, or could do one by one in time.

        A call may compute for seconds, as a program does that is run: a dozen at once would be no answer in time.
        """
        seconds = self.session_seconds + self.call_seconds
        one_by_one = int(_BATCH_SECONDS / seconds) if seconds else at_most
        return max(1, min(max(self.at_once, one_by_one), at_most))

    @property
    def several(self) -> int:
        """How many trials run concurrently where concurrency is not what is tried: more than a few only where the server waits."""
        return self.beside(max(FEW, self.at_once))

    def tools(self, row: Row) -> Mapping[str, "ToolCalls"]:
        """The row's tools for which a valid call can be made, by name; cached, since strategies are costly to build."""
        if row not in self.by_row:
            made = [self._made(tool) for tool in row.tools]
            self.by_row[row] = {calls.tool.name: calls for calls in made if not calls.valid.is_empty}
        return self.by_row[row]

    def _mined_for(self, tool: Tool) -> Mapping[str, tuple[Any, ...]]:
        """Values seen under the arguments' names, and for a text with a format, all values seen in that format."""
        more: dict[str, tuple[Any, ...]] = {}
        for name, definition in properties_of(tool.parameters).items():
            if isinstance(definition, dict) and "pattern" in definition and name not in self.mined:
                seen = (value for values in self.mined.values() for value in values if isinstance(value, str))
                more[name] = tuple(dict.fromkeys(value for value in seen if admits(definition, value)))[:_FORMED]
        return {**self.mined, **{name: values for name, values in more.items() if values}}

    def _made(self, tool: Tool) -> "ToolCalls":
        definition = json.dumps([tool.name, tool.parameters], sort_keys=True)
        if definition not in self.by_definition:
            fresh = valid_arguments(tool.parameters)
            valid = valid_arguments(tool.parameters, self._mined_for(tool))
            if recorded := self.meaningful.get(tool.name):
                valid = st.one_of(st.sampled_from(recorded), valid)
            wrong = st.one_of(near_misses(tool.parameters), hostile_arguments(tool.parameters))
            self.by_definition[definition] = ToolCalls(tool, fresh, valid, wrong.map(lambda miss: miss.value))
        return self.by_definition[definition]


@dataclass(frozen=True)
class ToolCalls:
    """Strategies for the arguments of one tool.

    Attributes:
        tool: the tool.
        fresh: anything its schema allows.
        valid: the same, but more often with values seen before, or as recorded.
        wrong: with something wrong.
    """

    tool: Tool
    fresh: st.SearchStrategy[Any]
    valid: st.SearchStrategy[Any]
    wrong: st.SearchStrategy[Any]


def named_values(value: Any) -> Iterator[tuple[str, Any]]:
    """Every scalar within a value, with the name of its property."""
    return ((name, each) for each, way in scalars(value) if (name := name_of(way)))


def is_read(tool: str) -> bool:
    """Whether the name sounds like a read: `get_quote`, `hutInfo`, `kiln_status`; not `set_status`, `check_in`."""
    words, known = _words(tool)
    joined = not known and len(words) == 1 and _READS.match(words[0])
    return bool(joined or _READS.fullmatch(known)) and words[:2] not in (["check", "in"], ["check", "out"])


def is_reading(call: Call) -> bool:
    """Whether a call sounds like a read, by its tool's name, or as a query does in a language that the tool takes."""
    texts = [value for value, _ in scalars(call.arguments) if isinstance(value, str)]
    if changes(texts):
        return False
    return is_read(call.name) or (_words(call.name)[1] in _SAYS and asks(texts))


def reads_in(calls: Sequence[Call]) -> list[int]:
    """The indices of the calls that sound like reads."""
    return [at for at, call in enumerate(calls) if is_reading(call)]


def writes_in(calls: Sequence[Call]) -> list[int]:
    """The indices of all other calls."""
    return [at for at, call in enumerate(calls) if not is_reading(call)]


def may_read(tool: Tool) -> bool:
    """Whether the tool sounds like a read, or takes no arguments and sounds like nothing else: `agenda`, `inbox`."""
    return is_read(tool.name) or not (properties_of(tool.parameters) or _words(tool.name)[1])


def says_nothing(tool: str) -> bool:
    """Whether the tool's name suggests neither a read nor an action: `free_busy`, `book`."""
    return not is_read(tool) and not _words(tool)[1]


def _words(tool: str) -> tuple[list[str], str]:
    """The words of a name, and the first one that is known."""
    words = [word.lower() for word in _WORD.findall(tool)]
    return words, next((word for word in words if _READS.fullmatch(word) or _DOES.fullmatch(word)), "")


@st.composite
def trajectories(draw: st.DrawFn, knowledge: Knowledge, min_calls: int = 0, most: int = CALLS) -> Trajectory:
    """Draw a trajectory: a recorded rollout's calls or fresh ones, writes before reads, with earlier reply values."""
    row, calls = draw(st.sampled_from(knowledge.rows)), list[Call]()
    # known values reach deeper states, new ones reach other states: every third trajectory uses only new ones
    known, follow = draw(st.sampled_from([(True, False), (True, True), (False, False)]))
    if knowledge.known_trajectories and follow:
        followed = draw(st.sampled_from(knowledge.known_trajectories))
        row, recorded = followed.row, followed.calls[:CALLS]
        calls += recorded[: draw(st.integers(min(min_calls, len(recorded)), min(len(recorded), most)))]
    tools = knowledge.tools(row)
    answer: str = draw(_answers(knowledge.answers.get(row, ())))
    if not tools:
        return Trajectory(row, tuple(calls), answer=answer)
    least = max(min_calls - len(calls), 0)
    for name in draw(_tool_names(tuple(tools), least, max(least, most - len(calls)))):
        if not known:
            calls.append(Call(name, draw(tools[name].fresh)))
            continue
        arguments = _repeating(draw, draw(tools[name].valid), tools[name].tool, calls)
        calls.append(Call(name, _with_references(draw, arguments, tools[name].tool, calls, knowledge)))
    reads = [name for name in tools if is_read(name)]
    look: bool = draw(st.booleans())
    if reads and look:  # a final read shows what was written
        name = draw(st.sampled_from(reads))
        calls.append(Call(name, _repeating(draw, draw(tools[name].valid), tools[name].tool, calls)))
    return Trajectory(row, tuple(calls), answer=answer)


@lru_cache(1024)  # strategies are expensive to build
def _answers(known: tuple[str, ...]) -> st.SearchStrategy[str]:
    """The policy's answer: the plain one, one known to mean something, or any text."""
    return st.one_of(
        st.just(PLAIN_ANSWER), *([st.sampled_from(known)] if known else []), st.text(_WRITTEN, max_size=20)
    )


def _repeating(draw: st.DrawFn, arguments: Any, tool: Tool, calls: Sequence[Call]) -> Any:
    """Mostly reuse the values of an earlier call, argument by argument, so that calls meet the same state."""
    earlier = [dict(named_values(call.arguments)) for call in calls]
    topic: dict[str, Any] = draw(st.sampled_from([{}, *earlier, *earlier[-2:]])) if earlier else {}

    def reused(value: Any, name: str = "") -> Any:
        if isinstance(value, dict):
            return {key: reused(inner, key) for key, inner in value.items()}
        return value if isinstance(value, list) else topic.get(name, value)

    repeated = reused(arguments)
    return repeated if admits(tool.parameters, repeated) else arguments


@lru_cache(1024)
def _tool_names(names: tuple[str, ...], low: int, high: int) -> st.SearchStrategy[list[str]]:
    """Between `low` and `high` of the tools, writes twice as often."""
    writes = [name for name in names if not is_read(name)]
    return st.lists(st.sampled_from([*names, *writes]), min_size=low, max_size=high)


#: A property whose schema has no other keywords takes any value of its type.
_PLAIN = frozenset({"type", "description", "title", "default", "minimum", "maximum", "minLength", "maxLength"})


def _with_references(draw: st.DrawFn, arguments: Any, tool: Tool, calls: Sequence[Call], knowledge: Knowledge) -> Any:
    """Sometimes replace an argument with a value that an earlier call will return."""
    if not isinstance(arguments, dict):
        return arguments
    chosen = dict(arguments)
    for key, value in arguments.items():
        fitting, named = references(key, value, tool, calls, knowledge)
        if fitting and draw(st.integers(0, 3)) >= (1 if named else 3):  # one in four, or three in four if the name fits
            chosen[key] = draw(st.sampled_from(named or fitting)).as_json()
    return chosen


def references(
    key: str, value: Any, tool: Tool, calls: Sequence[Call], knowledge: Knowledge
) -> tuple[list[Reference], list[Reference]]:
    """Results of earlier calls that an argument accepts, and those among them with a similar name."""
    definition = properties_of(tool.parameters).get(key)
    if not isinstance(definition, dict) or not definition.keys() <= _PLAIN:
        return [], []
    found = [
        (one.names, Reference(at, one.path, value, word=one.word))
        for at, call in enumerate(calls)
        for one in knowledge.returned.get(call.name, ())
        if type(one.value) is type(value)
    ]
    named = [reference for names, reference in found if any(named_alike(key, name) for name in names)]
    return [reference for _, reference in found], named


def named_alike(one: str, two: str) -> bool:
    """Whether two names may mean the same: `cursor` and `next_cursor`, `order_id` and `id`."""
    one, two = one.lower().removesuffix("s"), two.lower().removesuffix("s")
    return one.endswith(two) or two.endswith(one)


@st.composite
def disturbed(draw: st.DrawFn, knowledge: Knowledge) -> Trajectory:
    """Draw a trajectory with extra calls in between that are meant to be refused."""
    plain = draw(trajectories(knowledge, min_calls=1))
    at = draw(st.integers(0, len(plain.calls)))
    tools = [calls for calls in knowledge.tools(plain.row).values() if not calls.wrong.is_empty]
    assume(tools)
    calls = draw(st.sampled_from(tools))
    return plain.with_noise(at, Call(calls.tool.name, draw(calls.wrong)))


@st.composite
def interleaved(draw: st.DrawFn, knowledge: Knowledge, *, concurrent: bool = False) -> Schedule:
    """Draw two or three trajectories, each in its own session, with their steps in any order.

    Half of the time they are identical, like rollouts of one row, so that shared state collides.
    """
    several = draw(st.lists(trajectories(knowledge, min_calls=1), min_size=2, max_size=3))
    alike: bool = draw(st.booleans())
    if alike:
        several = several[:1] * len(several)
    if concurrent:
        return Schedule(tuple(several), concurrent=True)
    turns = [turn for turn, trajectory in enumerate(several) for _ in range(trajectory.steps)]
    return Schedule(tuple(several), tuple(draw(st.permutations(turns))))


@st.composite
def crowded(draw: st.DrawFn, knowledge: Knowledge, crowd: int) -> Schedule:
    """Draw one trajectory that pauses in the middle while a crowd of others comes and goes."""
    patient = draw(trajectories(knowledge, min_calls=1))
    passing = draw(trajectories(knowledge, most=1))  # short, because there are many of them
    return crowded_by(patient, passing, crowd, draw(st.integers(1, patient.steps - 1)))


def crowded_by(patient: Trajectory, passing: Trajectory, crowd: int, begun: int) -> Schedule:
    """A trajectory that takes `begun` steps, pauses while a crowd comes and goes, and takes the rest."""
    order = (0,) * begun + tuple(turn for turn in range(1, crowd + 1) for _ in range(passing.steps))
    return Schedule((patient, *[passing] * crowd), order, passing=True)
