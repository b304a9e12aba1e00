"""Does the server refuse what a schema allows, if it publishes no schema of its arguments?

How it refuses is learned from calls that are surely wrong, compared with one that is surely right. If an allowed value
is refused in the same words as a wrong one (apart from the value itself), then the value is the reason. Other words may
have other reasons, such as a state in which the call is impossible.
"""

import json
import re
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from itertools import islice
from typing import Any, Final

from gym_conformance.contract.dataset_rows import Row
from gym_conformance.contract.statuses import is_crash, is_success
from gym_conformance.drift.compare import UNNAMED, first_call
from gym_conformance.drift.definitions import Definition
from gym_conformance.drift.lax import SAYS_MOST, explicit, leaves_open
from gym_conformance.drift.wording import short
from gym_conformance.grouping import first_of_each
from gym_conformance.gym_under_test import Gym
from gym_conformance.probes.call_places import Place, known_places, recorded_places
from gym_conformance.session.channel import Channel
from gym_conformance.session.exchange import Reply
from gym_conformance.session.likeness import Answer, alike
from gym_conformance.session.refusals import says_no, says_yes
from gym_conformance.trajectories.renaming import renamed
from gym_conformance.trajectories.trajectory import STRANGE, Trajectory, is_linked
from gym_schemas import (
    Acceptance,
    Document,
    Schema,
    boundary_values,
    properties_of,
    same,
    scalars,
    upgrade,
    walk,
    whole,
)
from gym_schemas.json_values import type_of

#: Words for something that does not exist: a lookup answers so to any value that it does not find.
_ABSENT: Final = re.compile(
    r"not (?:be )?found|no such|n(?:o|')t exist|unknown|nothing|there (?:is|are) no\b|\bno \w+ (?:has|have|with|named|called|of|for)\b",
    re.IGNORECASE,
)

_WORD: Final = re.compile(r"\w+")

#: A day, and a time in it.
_DAY: Final = re.compile(r"(\d{4}-\d\d-\d\d)(T.+)?")

#: Values of one argument, and rows in which a suspicion is repeated.
_VALUES, _ROWS = 12, 8

#: How many values are tried to get a refused call accepted.
_FIXES: Final = 3

#: Keywords that limit how small a number may be, which may also apply to other types.
_LEAST: Final = frozenset({"minimum", "exclusiveMinimum"})
_LIMITS: Final = {
    "string": frozenset({"minLength", "maxLength", "pattern", "format"}),
    "array": frozenset({"minItems", "maxItems"}),
    "object": frozenset({"properties"}),
}
_MOST_LONG: Final = frozenset({"maxLength", "maxItems"})

#: Keywords whose schemas say nothing of the value itself, but of what is within it.
_PARTS: Final = frozenset({"properties", "patternProperties", "additionalProperties", "items", "prefixItems"})

#: For each JSON type, a value that hardly any schema allows.
_STRANGE: Final[tuple[Any, ...]] = (STRANGE, "no_such_value_conformance", -987654321.5, True, None)

#: The most conclusive ones for a recorded call, with a number far out of bounds.
_WRONG_IN_PLACE: Final[tuple[Any, ...]] = (*_STRANGE[:2], -987654321)

#: Values that code may mistake for a missing one: `if not price`.
_FALSE: Final[tuple[Any, ...]] = (None, 0, False)


@dataclass(frozen=True)
class RefusedCall:
    """A call that the schema allows and the server refuses for its arguments, and the evidence.

    `beside` has the replies that `because` mentions: to a call that is surely wrong, and to one that is accepted.
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
    """Find a call that the schema allows and the server refuses for its arguments, or None.

    Arguments are varied in a recorded call, or else in a call of a trajectory `known` to be meaningful. Unless
    `records_hold`, because sessions affect later ones, a refused recorded call shows nothing. If the server itself has
    `told` what the tool accepts, only recorded calls are tried, and an extra argument is not surely wrong, because
    FastAPI ignores it.

    Raises:
        NoSession: the server refuses the seed.
        ServerFault: the server does not answer.
    """
    schema = {"type": "object", **upgrade(definition.schema)}
    document = Document(schema)
    nodes = {name: document.alone(node) for name, node in (document.root.get("properties") or {}).items()}
    places = recorded_places(gym, channel, definition.name)
    acceptance = Acceptance(schema)
    meant = Acceptance(explicit(schema))
    for place in places if records_hold else ():
        found = await _refused_in_place(place, acceptance, meant, nodes, told=told)
        if found is not None and not await _says_nothing(place, places, found.argument, nodes):
            return found
    places += known_places(gym, channel, definition.name, known)
    # a policy may have made an invalid call; values taken from earlier replies are unknown here
    places = [place for place in places if is_linked(place.base) or acceptance.accepts(place.base)]
    smallest = first_call(definition)
    if not places and smallest is not None:
        places.append(Place(gym, channel, definition.name, gym.row_for(definition), smallest.value))
    elsewhere = first_of_each(lambda place: place.row, places)
    for name, node in nodes.items() if places and not told else ():
        given = [each for each in places if name in each.base and not is_linked(each.base[name])]
        argument = _Argument(places[0], elsewhere, name, node, given)
        found = await argument.refused() or await argument.in_another_form() or await _refused_within(argument)
        if found is not None:
            return found
    if smallest is None or told:
        return None
    place = Place(gym, channel, definition.name, gym.row_for(definition), smallest.value)
    return await _lacks_unoffered(place, acceptance, nodes) or await _lacks_optional([place, *places], nodes)


async def _lacks_unoffered(place: Place, acceptance: Acceptance, nodes: Mapping[str, Schema]) -> RefusedCall | None:
    """The call, if it is refused as lacking an argument that the schema does not offer, and no longer where that is given.

    What the session lacks, such as a name that another tool sets, no argument makes good; and where any extra argument
    is refused first, this one is refused as any other.
    """
    call, reply = await place.ask(place.base)
    found = await _asked_for(place, acceptance, nodes, call, reply) if says_no(reply) else None
    if found is None or found.argument in nodes:
        return None
    given, other = [(await place.ask_with(name, "a"))[1] for name in (found.argument, UNNAMED)]
    says = {text for text, _ in scalars(reply.said) if isinstance(text, str) and found.argument in text}
    if says & {text for text, _ in scalars(given.said)} or alike(
        Answer(given, (found.argument,)), Answer(other, (UNNAMED,))
    ):
        return None
    return replace(found, because=f"{found.because}; with {found.argument} it is not", beside=(*found.beside, given))


@dataclass(frozen=True)
class _Within(Place):
    """A place whose call is the object in one argument of another's."""

    outer: str = ""
    whole: dict[str, Any] = field(default_factory=dict)

    async def ask(self, arguments: Any, row: Row | None = None) -> tuple[Any, Reply]:
        sent, reply = await super().ask({**self.whole, self.outer: arguments}, row)
        return sent[self.outer], reply


async def _refused_within(argument: "_Argument") -> RefusedCall | None:
    """The same of what an object holds that is an argument: the members that an enum lists."""

    def within(place: Place) -> _Within:
        base = place.base.get(argument.name)
        others = {name: value for name, value in vars(place).items() if name != "base"}
        return _Within(**others, base=base if isinstance(base, dict) else {}, outer=argument.name, whole=place.base)

    for name, node in properties_of(argument.node).items() if isinstance(argument.node, dict) else ():
        elsewhere = {row: within(place) for row, place in argument.elsewhere.items()}
        inner = _Argument(within(argument.place), elsewhere, name, node, ())
        if inner.closed and (found := await inner.refused()):
            call, _ = await argument.place.ask_with(argument.name, found.call)
            return replace(found, argument=f"{argument.name}.{name}", call=call)
    return None


async def _lacks_optional(places: Sequence[Place], nodes: Mapping[str, Schema]) -> RefusedCall | None:
    """The smallest call, the first, if an argument that it may leave out is asked for, and it is taken where that is given.

    Whatever else is given, in whatever place, the same must be said, or one state alone may need it, or one of several.
    """
    smallest, *known = places
    call, refusal = await smallest.ask(smallest.base)
    said = set(_WORD.findall(refusal.text)) if says_no(refusal) else set[str]()
    for name in nodes.keys() & said - smallest.base.keys():
        without = [
            replace(smallest, base={**smallest.base, other: value})
            for other, node in nodes.items()
            if other != name
            for value in islice(map(whole, boundary_values(node)), _FIXES)
        ]
        without += [replace(each, base={key: each.base[key] for key in each.base if key != name}) for each in known]
        without += [
            replace(smallest, row=row) for row in smallest.gym.rows[:_ROWS] if smallest.tool in map(str, row.tools)
        ]
        for value in islice(map(whole, boundary_values(nodes[name])), _FIXES):
            sent, given = await smallest.ask_with(name, value)
            if says_yes(given):
                if any([(await each.ask(each.base))[1].text != refusal.text for each in without]):
                    break
                return RefusedCall(name, call, refusal, f"{short(sent)} is accepted: status {given.status}", (given,))
    return None


async def _refused_in_place(
    place: Place, acceptance: Acceptance, meant: Acceptance, nodes: Mapping[str, Schema], *, told: bool
) -> RefusedCall | None:
    """The recorded call in its place, if it is now refused like wrong arguments; one with an empty text is no drift."""
    if not isinstance(place.output, str):
        return None
    call, reply = await place.ask(place.base)
    then = Reply(HTTPStatus.OK, (), place.output.encode(errors="replace"), 0.0)
    if not says_no(reply) or not meant.accepts(call) or (is_success(reply.status) and says_no(then)):
        return None
    wrongs = [each async for each in _surely_wrong(place, acceptance, call, nodes, told=told)]
    like = [wrong for wrong in wrongs if wrong.refused_like(reply)]
    # a call refused for another reason, such as a day that has passed, is refused alike whatever else is wrong with it
    if found := next((wrong for wrong in like if len(like) == len(wrongs) or wrong.named_in(reply)), None):
        was = f"recorded in {place.recorded} with the output {short(place.output)}"
        because = f"{was}; {short(found.call)}, which is surely wrong, is answered alike"
        fix = await _find_fix(place, nodes, reply)
        beside = (found.reply, *fix.replies)
        return RefusedCall(fix.argument or found.name, call, reply, because + fix.because, beside)
    return await _asked_for(place, acceptance, nodes, call, reply)


async def _says_nothing(place: Place, places: Sequence[Place], name: str, nodes: Mapping[str, Schema]) -> bool:
    """Whether what is said of an argument shows nothing, since calls without it are accepted, or it is no text that is meant."""
    if name not in place.base:
        without = [each for each in places if f"{json.dumps(name)}:" not in json.dumps(each.base)][:_FIXES]
        return any([says_yes((await each.ask(each.base))[1]) for each in without])

    others = dict.fromkeys(text for each in places if isinstance(text := each.base.get(name), str))
    taken = [text for text in islice(others, _FIXES) if says_yes((await place.ask_with(name, text))[1])]
    return name in nodes and await _is_no_such_text(place, name, nodes[name], place.base.get(name), taken)


async def _is_no_such_text(place: Place, name: str, node: Schema, value: Any, taken: Iterable[Any]) -> bool:
    """Whether a refused value is no text that is meant, however long it is, and the schema says no more than how long.

    At the length of one that is `taken` it is refused too, or that one at its length is accepted.
    """
    other = next((text for text in taken if isinstance(text, str) and text), "")
    if not other or not value or not isinstance(value, str) or not leaves_open(node):
        return False
    as_long, instead = (f"{one * size:.{size}}" for one, size in ((value, len(other)), (other, len(value))))
    return says_no((await place.ask_with(name, as_long))[1]) or says_yes((await place.ask_with(name, instead))[1])


async def _asked_for(
    place: Place, acceptance: Acceptance, nodes: Mapping[str, Schema], call: Mapping[str, Any], refusal: Reply
) -> RefusedCall | None:
    """The recorded call, if it is refused as lacking an argument, just as it is when one of its own is removed.

    The refusals must be equal except for the name. What it lacks may be an optional argument, or one that the schema
    does not name, provided the whole text is otherwise the same, since any word of a refusal might be its name.
    """
    given = set(_WORD.findall(json.dumps(call)))  # a value that is not found is named, too
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
                was = f"recorded in {place.recorded} with the output {short(place.output)}; " if place.recorded else ""
                because = f"{was}without {own}, which is required, it is answered {short(of_own)}"
                return RefusedCall(name, call, refusal, because, (reply,))
    return None


@dataclass(frozen=True)
class _Fix:
    """An argument with another value that is accepted, or refused differently, and the evidence; '' if none found."""

    argument: str = ""
    because: str = ""
    replies: tuple[Reply, ...] = ()


async def _find_fix(place: Place, nodes: Mapping[str, Schema], refusal: Reply) -> _Fix:
    otherwise = _Fix()
    for name, node in nodes.items():
        for value in islice(map(whole, boundary_values(node)), _FIXES) if name in place.base else ():
            call, reply = await place.ask_with(name, value)
            if says_yes(reply):
                return _Fix(name, f", and {short(call)} is accepted", (reply,))
            if not otherwise.argument and not alike(Answer(refusal, (place.base[name],)), Answer(reply, (value,))):
                otherwise = _Fix(name, f", and {short(call)} is not", (reply,))
    return otherwise


@dataclass(frozen=True)
class _Wrong:
    """A call that no server can accept, and the reply to it.

    `name` is its wrong argument, or '' if all are missing; `strange` is the wrong value, and `own` the value that
    should be right.
    """

    name: str
    call: Any
    reply: Reply
    own: tuple[Any, ...] = ()
    strange: tuple[Any, ...] = ()

    def refused_like(self, reply: Reply) -> bool:
        """Whether both refusals say the same, each about its own call."""
        return alike(Answer(reply, self.own), Answer(self.reply, self.strange)) or self._alike_at_its_name(reply)

    def named_in(self, reply: Reply) -> bool:
        """Whether the reply mentions the argument, by its name or its value."""
        compared = self.reply if UNNAMED in self.strange else reply
        about = self.strange if UNNAMED in self.strange else (self.name, *self.own)
        return bool(self.name) and not same(Answer(compared, about).words, Answer(compared).words)

    def _alike_at_its_name(self, reply: Reply) -> bool:
        """Whether two refusals that list errors by argument name say the same about this one."""
        if reply.status != self.reply.status or not self.name:
            return False
        theirs = UNNAMED if UNNAMED in self.strange else self.name
        return any(
            alike(Answer(one, self.own), Answer(other, self.strange))
            for one in _parts(reply, self.name)
            for other in _parts(self.reply, theirs)
        )


def _parts(reply: Reply, name: str) -> list[Reply]:
    """The values under this name in a reply's JSON, each as a reply of its own."""

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
    """The call with an unknown extra argument, at the top or in a closed object; each with its sibling arguments.

    The extra one comes first, because a server may report unknown arguments one by one.
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
    """One argument of the call, the known calls that are `given` it, and the replies to wrong and to allowed values of it."""

    def __init__(
        self, place: Place, elsewhere: Mapping[Row, Place], name: str, node: Schema, given: Sequence[Place]
    ) -> None:
        self.place, self.elsewhere, self.name, self.node, self.given = place, elsewhere, name, node, given
        self.closed = isinstance(node, dict) and ("enum" in node or "const" in node or node.get("type") == "boolean")
        self.wrong: list[tuple[Any, Reply]] = []
        self.taken: list[tuple[Any, Reply]] = []
        self.returned: list[Any] = []
        self.otherwise: tuple[Any, Reply] | None = None
        self.missing: Reply | None = None

    async def refused(self) -> RefusedCall | None:
        """An allowed value that is refused like a wrong one, while a call that differs only there is accepted."""
        await self._try_wrong()
        refused = await self._try_allowed() if self.wrong or self.missing else []
        if refused:
            await self._try_given()
        if refused and not self.taken:
            await self._try_without()
            await self._try_retyped()
        if refused:
            await self._try_returned()
        shown = self.taken[0] if self.taken else self.otherwise
        if shown is None:
            return None
        for value, sent, reply, (wrong, alike_to) in refused:
            others = [other for other, *_ in refused if _kind(other) == _kind(value) and other]
            if not self._is_meant(value, others) or await self._is_no_such(value) or await self._depends(value):
                continue
            if await self._is_the_rows(value):
                continue
            if await self._everywhere(value):
                other, answered = shown
                how = "accepted" if self.taken else f"answered differently, {short(answered.said)}"
                because = f"{wrong} is answered alike, and {short(other)} is {how}: status {answered.status}"
                return RefusedCall(self.name, sent, reply, because, (alike_to, answered))
        return None

    async def in_another_form(self) -> RefusedCall | None:
        """A day that is refused, as each is, but taken as the schema does not allow it: with a time, or without one."""
        acceptance, found = Acceptance(self.node), None
        for value in islice(map(whole, boundary_values(self.node)), _VALUES):
            day = _DAY.fullmatch(value) if isinstance(value, str) else None
            other = day and (day[1] if day[2] else f"{value}T00:00:00Z")
            if other is None or acceptance.accepts(other):
                continue
            (sent, reply), (_, answered) = await self._ask(value), await self._ask(other)
            if not says_no(reply) or not says_yes(answered):
                return None
            because = f"{short(other)} is accepted: status {answered.status}"
            found = found or RefusedCall(self.name, sent, reply, because, (answered,))
        return found

    async def _try_wrong(self) -> None:
        acceptance = Acceptance(self.node)
        # many languages take true for 1, and then refuse it where they refuse 1, as for another argument's sake
        wrong = [
            each for each in _STRANGE if not (acceptance.accepts(each) or (each is True and acceptance.accepts(1)))
        ]
        for value in wrong[: 3 if self.closed else None]:
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

    async def _try_given(self) -> None:
        """Whether what known calls give is accepted: a time zone, say, cannot be made up."""
        values = first_of_each(repr, [each.base[self.name] for each in self.given])
        for value in islice(values.values(), _FIXES):
            sent, reply = await self._ask(value)
            if says_yes(reply):
                self.taken.append((sent, reply))

    async def _try_without(self) -> None:
        sent, reply = await self._ask_without()
        if says_yes(reply):
            self.taken.append((sent, reply))

    async def _try_retyped(self) -> None:
        """Whether numbers are refused like an object but their digits as a text are not, or the other way round.

        The schema allows only the type that is refused, so the server expects the other type, and looks the values up.
        """
        acceptance = Acceptance(self.node)
        types: list[list[Any]] = [[1, 7, 23], ["1", "7", "23"]]
        own, others = sorted(types, key=lambda values: not all(map(acceptance.accepts, values)))
        objects = [Answer(reply, (strange,)) for strange, reply in self.wrong if isinstance(strange, dict)]
        if not all(map(acceptance.accepts, own)) or any(map(acceptance.accepts, others)) or not objects:
            return
        if _ABSENT.search(objects[0].reply.text):
            return  # any value is looked up, and only the type is refused differently
        for value in own:
            if not alike(Answer((await self._ask(value))[1], (value,)), objects[0]):
                return
        for value in others:
            sent, reply = await self._ask(value)
            looked_for = _ABSENT.search(reply.text) or says_yes(reply)
            if not looked_for or is_crash(reply.status):
                return
        self.otherwise = sent, reply

    async def _try_returned(self) -> None:
        """Use a value that recorded calls take from an earlier reply, such as a cursor, which cannot be made up."""
        place = self.place
        for other in recorded_places(place.gym, place.channel, place.tool, returned=self.name):
            sent, reply = await other.ask(other.base)
            if says_yes(reply):
                self.returned.append(sent[self.name])

    async def _ask_without(self) -> tuple[Any, Reply]:
        return await self.place.ask({key: value for key, value in self.place.base.items() if key != self.name})

    async def _ask(self, value: Any, row: Row | None = None) -> tuple[Any, Reply]:
        return await self.place.ask_with(self.name, value, row)

    def _like(self, value: Any, reply: Reply) -> tuple[str, Reply] | None:
        """The wrong argument that is refused in the same words, and how; None if the words may be a lookup's."""
        if not says_no(reply):
            return None
        if not value and self.missing and alike(Answer(reply, ()), Answer(self.missing, ())):
            return f"a call without {self.name}", self.missing
        for strange, wrongly in self.wrong:
            typed = not isinstance(strange, type(value)) or isinstance(strange, bool) is not isinstance(value, bool)
            # the identical text counts too: a value such as `a` may be one of its words
            if (self.closed or (typed and not _ABSENT.search(reply.text))) and (
                reply.text == wrongly.text or alike(Answer(reply, (value,)), Answer(wrongly, (strange,)))
            ):
                return short({self.name: strange}), wrongly
        return None

    def _is_meant(self, value: Any, others: Sequence[Any]) -> bool:
        """Whether the schema positively allows the value, rather than merely not excluding it.

        If values of its type are partly accepted, an empty text or a number beyond the accepted ones may be refused for
        its meaning, unless the schema limits the length of the text or the size of the number. So may an empty text or
        list if nothing of its type is accepted, unless `others` that are not empty are refused in the same way; and any
        text, unless one of another type is accepted or the schema says which texts there are.
        """
        kind = _kind(value)
        spoken = {keyword for way, node in walk(self.node) if _PARTS.isdisjoint(way) for keyword in node}
        taken = [sent.get(self.name) for sent, _ in self.taken]
        known = [*self.returned, *(each for each in taken if each is not None)]  # null is as good as left out
        like = [each for each in known if _kind(each) == kind]
        if kind in ("null", "boolean") or spoken & {"enum", "const"}:
            return True
        if not like and kind == "string" and not known and not self.otherwise and leaves_open(self.node):
            return False  # nor would any other text that is made up
        if not like:
            return kind == "number" or bool(value or others or spoken & _LIMITS[kind])
        if kind == "number":
            bounds = _LEAST if value < min(like) else SAYS_MOST if value > max(like) else spoken
            return bool(spoken & bounds)
        return bool(spoken & (_LIMITS[kind] if value else _LIMITS[kind] - _MOST_LONG))

    async def _is_no_such(self, value: Any) -> bool:
        taken = [sent.get(self.name) for sent, _ in self.taken]
        return await _is_no_such_text(self.place, self.name, self.node, value, taken)

    async def _depends(self, value: Any) -> bool:
        """Whether the state says which numbers there are: the least that known calls take, or the largest, is refused in another."""
        if _kind(value) != "number":
            return False
        given = [each for each in self.given if _kind(each.base[self.name]) == "number"][:_VALUES]
        taken = [each for each in given if says_yes((await each.ask(each.base))[1])]
        taken.sort(key=lambda each: each.base[self.name])
        for own, other in ((taken[0], taken[-1]), (taken[-1], taken[0])) if taken else ():
            if says_no((await other.ask_with(self.name, own.base[self.name]))[1]):
                return True
        return False

    async def _is_the_rows(self, value: Any) -> bool:
        """Whether a row says which texts there are: it takes this one if it has it wherever it had one that is accepted."""
        for other in [sent.get(self.name) for sent, _ in self.taken][:_FIXES]:
            if isinstance(value, str) and isinstance(other, str):
                row = renamed(Trajectory(self.place.row), {other: value}).row
                if says_yes((await replace(self.place, row=row).ask_with(self.name, value))[1]):
                    return True
        return False

    async def _everywhere(self, value: Any) -> bool:
        """Whether other rows refuse the value in the same way: in a single row it may just not exist."""
        place = self.place
        rows = [
            row for row in place.gym.rows if row is not place.row and any(one.name == place.tool for one in row.tools)
        ]
        agreeing = 0
        for row in rows[:_ROWS]:
            there = self.elsewhere.get(row)
            asking = there.ask_with(self.name, value) if there else self._ask(value, row)
            if self._like(value, (await asking)[1]):
                agreeing += 1
            elif (
                there or not self.taken or is_success((await self._ask(self.taken[0][0].get(self.name), row))[1].status)
            ):
                return False  # a row that refuses even the value accepted here shows nothing
        return bool(agreeing) or (not rows and not any(_ABSENT.search(reply.text) for _, reply in self.wrong))
