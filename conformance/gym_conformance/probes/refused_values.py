"""Does the server refuse what a definition allows, if it publishes no schema of its arguments?

How it refuses is learned from calls that are surely wrong, beside one that is surely right. If an allowed value is
refused in the same words as a wrong one (apart from the value itself), then the value is the reason; other words may
have other reasons, such as a state in which the call is not possible.
"""

import json
import re
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from itertools import islice
from typing import Any, Final

from gym_conformance.contract.dataset_rows import Row
from gym_conformance.contract.statuses import is_crash, is_success
from gym_conformance.drift.compare import UNNAMED, first_call
from gym_conformance.drift.definitions import Definition
from gym_conformance.drift.lax import SAYS_MOST, said
from gym_conformance.drift.wording import short
from gym_conformance.grouping import first_of_each
from gym_conformance.gym_under_test import Gym
from gym_conformance.probes.call_places import Place, known_places, recorded_places
from gym_conformance.session.channel import Channel
from gym_conformance.session.exchange import Reply
from gym_conformance.session.likeness import Answer, alike
from gym_conformance.session.refusals import says_no, says_yes
from gym_conformance.trajectories.trajectory import Trajectory, is_linked
from gym_schemas import Acceptance, Document, Schema, boundary_values, same, scalars, upgrade, walk, whole
from gym_schemas.json_values import type_of

#: Words for something that does not exist: a look-up answers so to any value that it does not find.
_ABSENT: Final = re.compile(
    r"not (?:be )?found|no such|n(?:o|')t exist|unknown|nothing|there (?:is|are) no\b|\bno \w+ (?:has|have|with|named|called|of|for)\b",
    re.IGNORECASE,
)

_WORD: Final = re.compile(r"\w+")

#: Values of one argument, and rows in which a suspicion is tried again.
_VALUES, _ROWS = 12, 8

#: How many values are tried to get a refused one accepted.
_MENDS: Final = 3

#: Keywords that say how small a number may be, and what is allowed of other types.
_LEAST: Final = frozenset({"minimum", "exclusiveMinimum"})
_LIMITS: Final = {
    "string": frozenset({"minLength", "maxLength", "pattern", "format"}),
    "array": frozenset({"minItems", "maxItems"}),
    "object": frozenset({"properties"}),
}
_MOST_LONG: Final = frozenset({"maxLength", "maxItems"})

#: For each JSON type, a value that hardly any definition allows.
_STRANGE: Final[tuple[Any, ...]] = ({"unexpected": []}, "no_such_value_conformance", -987654321.5, True, None)

#: Those that say most of a recorded call: of a number what is far out of its bounds, too.
_WRONG_IN_PLACE: Final[tuple[Any, ...]] = (*_STRANGE[:2], -987654321)

#: Values that may be taken for none: `if not price`.
_FALSE: Final[tuple[Any, ...]] = (None, 0, False)


@dataclass(frozen=True)
class RefusedCall:
    """A call that the definition allows and the server refuses for its arguments, and what shows that it does.

    `beside` are the answers that `because` speaks of: to a call that is surely wrong, and to one that is taken.
    """

    argument: str
    call: Any
    reply: Reply
    because: str
    beside: tuple[Reply, ...]


async def refused_value(
    gym: Gym,
    channel: Channel,
    definition: Definition,
    known: Sequence[Trajectory] = (),
    *,
    told: bool = False,
    records_hold: bool = True,
) -> RefusedCall | None:
    """A call that the definition allows and the server refuses for its arguments, None if none is found.

    Arguments are varied in a recorded call, or else in one of a trajectory that is `known` to mean something.

    Where records do not hold, since sessions leave something to later ones, a recorded call that is refused shows nothing.

    Where the server itself has `told` what the tool takes, only recorded calls are tried, and one more argument is not
    surely wrong: FastAPI passes it over.

    Raises:
        NoSession: the server does not take the seed.
        ServerFault: the server does not answer.
    """
    schema = {"type": "object", **upgrade(definition.schema)}
    document = Document(schema)
    nodes = {name: document.alone(node) for name, node in (document.root.get("properties") or {}).items()}
    places = recorded_places(gym, channel, definition.name)
    acceptance = Acceptance(schema)
    meant = Acceptance(said(schema))
    for place in places if records_hold else ():
        found = await _refused_in_place(place, acceptance, meant, nodes, told=told)
        if found is not None:
            return found
    places += known_places(gym, channel, definition.name, known)
    # a policy may have made a call that is not allowed; what one takes from earlier replies is not known here
    places = [place for place in places if is_linked(place.base) or acceptance.accepts(place.base)]
    smallest = first_call(definition)
    if not places and smallest is not None:
        places.append(Place(gym, channel, definition.name, gym.row_for(definition), smallest.value))
    elsewhere = first_of_each(lambda place: place.row, places)
    for name, node in nodes.items() if places and not told else ():
        found = await _Argument(places[0], elsewhere, name, node).refused()
        if found is not None:
            return found
    return None


async def _refused_in_place(
    place: Place, acceptance: Acceptance, meant: Acceptance, nodes: Mapping[str, Schema], *, told: bool
) -> RefusedCall | None:
    """The recorded call in its own place, if it is now refused as wrong arguments are; what leaves a text empty is no drift."""
    if not isinstance(place.output, str):
        return None
    call, reply = await place.ask(place.base)
    then = Reply(HTTPStatus.OK, (), place.output.encode(errors="replace"), 0.0)
    if not says_no(reply) or not meant.accepts(call) or (is_success(reply.status) and says_no(then)):
        return None
    wrongs = [each async for each in _surely_wrong(place, acceptance, call, nodes, told=told)]
    like = [wrong for wrong in wrongs if wrong.refused_like(reply)]
    # what is refused for another reason, such as a day that has passed, is refused so whatever else is wrong with it
    if found := next((wrong for wrong in like if len(like) == len(wrongs) or wrong.named_in(reply)), None):
        was = f"recorded in {place.recorded} with the output {short(place.output)}"
        because = f"{was}; {short(found.call)}, which is surely wrong, is answered alike"
        mended = await _mended(place, nodes, reply)
        beside = (found.reply, *mended.replies)
        return RefusedCall(mended.argument or found.name, call, reply, because + mended.because, beside)
    return await _asked_for(place, acceptance, nodes, call, reply)


async def _asked_for(
    place: Place, acceptance: Acceptance, nodes: Mapping[str, Schema], call: Mapping[str, Any], refusal: Reply
) -> RefusedCall | None:
    """The recorded call, if it is refused for what it lacks as it is without an argument that it has, but for the name.

    It may lack an argument that may be left out; or one that the definition does not name, if the whole text is the same:
    any word of a refusal might be its name.
    """
    given = set(_WORD.findall(json.dumps(call)))  # what is not found is named, too
    texts = [text for text, _ in scalars(refusal.said) if isinstance(text, str)]
    asked = [(name, text) for text in texts for name in dict.fromkeys(_WORD.findall(text)) if name not in given]
    for own in call if asked else ():
        less = {key: value for key, value in call.items() if key != own}
        if acceptance.accepts(less):
            continue
        reply = (await place.ask(less))[1]
        answered = [text for text, _ in scalars(reply.said) if isinstance(text, str)]
        for name, text in asked if reply.status == refusal.status else ():
            of_own = re.sub(rf"\b{re.escape(name)}\b", own.replace("\\", r"\\"), text)
            if any(of_own in each if name in nodes else of_own == each != own for each in answered):
                was = f"recorded in {place.recorded} with the output {short(place.output)}"
                because = f"{was}; without {own}, which is required, it is answered {short(of_own)}"
                return RefusedCall(name, call, refusal, because, (reply,))
    return None


@dataclass(frozen=True)
class _Mended:
    """An argument of which another value is taken, or else is not refused so, and what shows it; '' where none is."""

    argument: str = ""
    because: str = ""
    replies: tuple[Reply, ...] = ()


async def _mended(place: Place, nodes: Mapping[str, Schema], refusal: Reply) -> _Mended:
    otherwise = _Mended()
    for name, node in nodes.items():
        for value in islice(map(whole, boundary_values(node)), _MENDS) if name in place.base else ():
            call, reply = await place.ask({**place.base, name: value})
            if says_yes(reply):
                return _Mended(name, f", and {short(call)} is accepted", (reply,))
            if not otherwise.argument and not alike(Answer(refusal, (place.base[name],)), Answer(reply, (value,))):
                otherwise = _Mended(name, f", and {short(call)} is not", (reply,))
    return otherwise


@dataclass(frozen=True)
class _Wrong:
    """A call that no server can accept, and its answer.

    `name` is the argument that is wrong in it, '' where all are missing; `strange` what is written there, and `own` what
    the call has there that should be right.
    """

    name: str
    call: Any
    reply: Reply
    own: tuple[Any, ...] = ()
    strange: tuple[Any, ...] = ()

    def refused_like(self, reply: Reply) -> bool:
        """Whether its refusal says what the reply says, each of its own call."""
        return alike(Answer(reply, self.own), Answer(self.reply, self.strange)) or self._alike_at_its_name(reply)

    def named_in(self, reply: Reply) -> bool:
        """Whether the reply speaks of the argument, by its name or its value."""
        said = self.reply if UNNAMED in self.strange else reply
        about = self.strange if UNNAMED in self.strange else (self.name, *self.own)
        return bool(self.name) and not same(Answer(said, about).words, Answer(said).words)

    def _alike_at_its_name(self, reply: Reply) -> bool:
        """Whether two refusals that list what is wrong by the arguments' names say the same of this one."""
        if reply.status != self.reply.status or not self.name:
            return False
        theirs = UNNAMED if UNNAMED in self.strange else self.name
        return any(
            alike(Answer(one, self.own), Answer(other, self.strange))
            for one in _parts(reply, self.name)
            for other in _parts(self.reply, theirs)
        )


def _parts(reply: Reply, name: str) -> list[Reply]:
    """What stands below the name in a reply's JSON, each part as a reply of its own."""

    def below(value: Any) -> Iterator[Any]:
        if isinstance(value, dict):
            yield from (inner for key, inner in value.items() if key == name)
        for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
            yield from below(inner)

    return [Reply(reply.status, (), json.dumps(part).encode(), 0.0) for part in below(reply.said)]


async def _surely_wrong(
    place: Place, acceptance: Acceptance, call: Mapping[str, Any], nodes: Mapping[str, Schema], *, told: bool
) -> AsyncIterator[_Wrong]:
    for name in call:
        for strange in _WRONG_IN_PLACE:
            if name in nodes and not Acceptance(nodes[name]).accepts(strange):
                wrong = {**call, name: strange}
                yield _Wrong(name, wrong, (await place.ask(wrong))[1], (call[name],), (strange,))
    for names, wrong in [] if told else _with_one_more(acceptance, call):
        reply = (await place.ask(wrong))[1]
        for name in names:
            yield _Wrong(name, wrong, reply, (name,), (UNNAMED,))
    if not acceptance.accepts({}):
        yield _Wrong("", {}, (await place.ask({}))[1])


def _with_one_more(acceptance: Acceptance, call: Mapping[str, Any]) -> Iterator[tuple[Sequence[str], dict[str, Any]]]:
    """The call with an argument more than anybody knows, or with one in an object that takes no other; and those beside it.

    It comes first there: what is unknown may be told one by one.
    """
    yield list(call), {**call, UNNAMED: "a"}
    for name, value in call.items():
        wrong = {**call, name: {UNNAMED: "a", **value}} if isinstance(value, dict) else call
        if not acceptance.accepts(wrong):
            yield list(value), dict(wrong)


def _kind(value: Any) -> str:
    kind = type_of(value)
    return "number" if kind == "integer" else kind


class _Argument:
    """One argument of the call, and the answers to wrong and to allowed values of it."""

    def __init__(self, place: Place, elsewhere: Mapping[Row, Place], name: str, node: Schema) -> None:
        self.place, self.elsewhere, self.name, self.node = place, elsewhere, name, node
        self.closed = isinstance(node, dict) and ("enum" in node or "const" in node or node.get("type") == "boolean")
        self.wrong: list[tuple[Any, Reply]] = []
        self.taken: list[tuple[Any, Reply]] = []
        self.told: list[Any] = []
        self.otherwise: tuple[Any, Reply] | None = None
        self.missing: Reply | None = None

    async def refused(self) -> RefusedCall | None:
        """An allowed value that is refused as a wrong one is, while a call that differs only there is taken."""
        await self._try_wrong()
        refused = await self._try_allowed() if self.wrong or self.missing else []
        if refused and not self.taken:
            await self._try_without()
            await self._try_retyped()
        if refused:
            await self._try_told()
        shown = self.taken[0] if self.taken else self.otherwise
        if shown is None:
            return None
        for value, sent, reply, (wrong, alike_to) in refused:
            others = [other for other, *_ in refused if _kind(other) == _kind(value) and other]
            if self._is_meant(value, others) and await self._everywhere(value):
                other, answered = shown
                how = "accepted" if self.taken else f"answered differently, {short(answered.said)}"
                because = f"{wrong} is answered alike, and {short(other)} is {how}: status {answered.status}"
                return RefusedCall(self.name, sent, reply, because, (alike_to, answered))
        return None

    async def _try_wrong(self) -> None:
        acceptance = Acceptance(self.node)
        for value in [each for each in _STRANGE if not acceptance.accepts(each)][: 3 if self.closed else None]:
            sent, reply = await self._ask(value)
            if says_no(reply):
                self.wrong.append((value, reply))
            elif is_success(reply.status):
                self.taken.append((sent, reply))
        if any(acceptance.accepts(value) for value in _FALSE):
            reply = (await self._ask_without())[1]
            if says_no(reply):
                self.missing = reply

    async def _try_allowed(self) -> list[tuple[Any, Any, Reply, tuple[str, Reply]]]:
        refused = []
        for value in islice(map(whole, boundary_values(self.node)), _VALUES):
            sent, reply = await self._ask(value)
            like = self._like(value, reply)
            if like:
                refused.append((value, sent, reply, like))
            elif says_yes(reply):
                self.taken.append((sent, reply))
        return refused

    async def _try_without(self) -> None:
        sent, reply = await self._ask_without()
        if says_yes(reply):
            self.taken.append((sent, reply))

    async def _try_retyped(self) -> None:
        """Whether numbers are refused as an object is, and their digits in a text are not there; or the other way about.

        The definition allows only what is refused: so the server takes the other type, and looks for the values.
        """
        acceptance = Acceptance(self.node)
        types: list[list[Any]] = [[1, 7, 23], ["1", "7", "23"]]
        own, others = sorted(types, key=lambda values: not all(map(acceptance.accepts, values)))
        objects = [Answer(reply, (strange,)) for strange, reply in self.wrong if isinstance(strange, dict)]
        if not all(map(acceptance.accepts, own)) or any(map(acceptance.accepts, others)) or not objects:
            return
        if _ABSENT.search(objects[0].reply.text):
            return  # it looks for whatever it is given, and what is refused otherwise is the type
        for value in own:
            if not alike(Answer((await self._ask(value))[1], (value,)), objects[0]):
                return
        for value in others:
            sent, reply = await self._ask(value)
            looked_for = _ABSENT.search(reply.text) or says_yes(reply)
            if not looked_for or is_crash(reply.status):
                return
        self.otherwise = sent, reply

    async def _try_told(self) -> None:
        """Give it as recorded calls do that have it from an earlier reply, such as a cursor, which nobody can make up."""
        place = self.place
        for other in recorded_places(place.gym, place.channel, place.tool, told=self.name):
            sent, reply = await other.ask(other.base)
            if says_yes(reply):
                self.told.append(sent[self.name])

    async def _ask_without(self) -> tuple[Any, Reply]:
        return await self.place.ask({key: value for key, value in self.place.base.items() if key != self.name})

    async def _ask(self, value: Any, row: Row | None = None) -> tuple[Any, Reply]:
        return await self.place.ask({**self.place.base, self.name: value}, row)

    def _like(self, value: Any, reply: Reply) -> tuple[str, Reply] | None:
        """The wrong argument that is refused in the same words, and how; None if the words may be a look-up's."""
        if not says_no(reply):
            return None
        if not value and self.missing and alike(Answer(reply, ()), Answer(self.missing, ())):
            return f"a call without {self.name}", self.missing
        for strange, wrongly in self.wrong:
            typed = not isinstance(strange, type(value)) or isinstance(strange, bool) is not isinstance(value, bool)
            # the very same text, too: a value such as `a` may be one of its words
            if (self.closed or (typed and not _ABSENT.search(reply.text))) and (
                reply.text == wrongly.text or alike(Answer(reply, (value,)), Answer(wrongly, (strange,)))
            ):
                return short({self.name: strange}), wrongly
        return None

    def _is_meant(self, value: Any, others: Sequence[Any]) -> bool:
        """Whether the definition itself speaks for the value, rather than merely not against it.

        Where values of one type are partly taken, an empty text and a number beyond those taken may be refused for what
        they mean, unless the definition says how long a text or how large a number may be. So may an empty text or list
        where none of its type is taken, unless `others` that are not empty are refused as it is.
        """
        kind, spoken = _kind(value), {keyword for _, node in walk(self.node) for keyword in node}
        known = [*self.told, *(sent[self.name] for sent, _ in self.taken if self.name in sent)]
        like = [each for each in known if _kind(each) == kind]
        if kind in ("null", "boolean") or spoken & {"enum", "const"}:
            return True
        if not like:
            return kind == "number" or bool(value or others or spoken & _LIMITS[kind])
        if kind == "number":
            bounds = _LEAST if value < min(like) else SAYS_MOST if value > max(like) else spoken
            return bool(spoken & bounds)
        return bool(spoken & (_LIMITS[kind] if value else _LIMITS[kind] - _MOST_LONG))

    async def _everywhere(self, value: Any) -> bool:
        """Whether other rows refuse the value in the same way: in a single row it may just not exist."""
        place = self.place
        rows = [
            row for row in place.gym.rows if row is not place.row and any(one.name == place.tool for one in row.tools)
        ]
        agreeing = 0
        for row in rows[:_ROWS]:
            there = self.elsewhere.get(row)
            asking = there.ask({**there.base, self.name: value}) if there else self._ask(value, row)
            if self._like(value, (await asking)[1]):
                agreeing += 1
            elif (
                there or not self.taken or is_success((await self._ask(self.taken[0][0].get(self.name), row))[1].status)
            ):
                return False  # where what is taken here is not, the rest of the call means nothing there
        return bool(agreeing) or (not rows and not any(_ABSENT.search(reply.text) for _, reply in self.wrong))
