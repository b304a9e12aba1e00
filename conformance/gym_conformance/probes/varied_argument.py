"""One argument of a call that is accepted, given wrong values and allowed ones: which are refused alike."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import islice
from typing import Any, Final

from gym_conformance.contract.dataset_rows import Row
from gym_conformance.contract.statuses import is_crash, is_success
from gym_conformance.drift.lax import SAYS_MOST, leaves_open
from gym_conformance.drift.wording import short
from gym_conformance.grouping import first_of_each
from gym_conformance.probes.call_places import Place, recorded_places
from gym_conformance.probes.lacking import wants_unoffered
from gym_conformance.probes.refused_call import FIXES, ROWS, STRANGE_VALUES, RefusedCall, is_no_such_text
from gym_conformance.session.exchange import Reply
from gym_conformance.session.likeness import Answer, alike
from gym_conformance.session.refusals import says_error, says_no, says_yes
from gym_conformance.trajectories.renaming import renamed
from gym_conformance.trajectories.trajectory import Trajectory, is_linked
from gym_schemas import Acceptance, Document, Schema, boundary_values, constants, properties_of, scalars, walk, whole
from gym_schemas.json_values import type_of

#: Words for something that does not exist: a lookup answers so to any value that it does not find.
_ABSENT: Final = re.compile(
    r"not (?:be )?found|no such|n(?:o|')t exist|unknown|nothing|there (?:is|are) no\b|\bno \w+ (?:has|have|with|named|called|of|for)\b",
    re.IGNORECASE,
)

#: A number as a reply states it.
_NUMBER: Final = re.compile(r"\d+(?:\.\d+)?")

#: A day, and a time in it.
_DAY: Final = re.compile(r"(\d{4}-\d\d-\d\d)(T.+)?")

#: Values of one argument.
_VALUES: Final = 12

#: Keywords that limit how small a number may be, which may also apply to other types.
_LEAST: Final = frozenset({"minimum", "exclusiveMinimum"})
_LIMITS: Final = {
    "string": frozenset({"minLength", "maxLength", "pattern", "format"}),
    "array": frozenset({"minItems", "maxItems"}),
    "object": frozenset({"properties"}),
}
_MOST_LONG: Final = frozenset({"maxLength", "maxItems"})

#: Keywords of a value within an object or a list that is varied, and where a list holds no objects, the key of its value.
_SPEAK: Final = _LEAST | SAYS_MOST | {"anyOf", "oneOf"}
_ITEM: Final = "[]"

#: How deep within an argument values are varied: a schema may hold itself.
_LEVELS: Final = 3

#: Keywords whose schemas say nothing of the value itself, but of what is within it.
_PARTS: Final = frozenset({"properties", "patternProperties", "additionalProperties", "items", "prefixItems"})

#: Values that code may mistake for a missing one: `if not price`.
_FALSE: Final[tuple[Any, ...]] = (None, 0, False)


def _kind(value: Any) -> str:
    kind = type_of(value)
    return "number" if kind == "integer" else kind


def _numbers_in(values: Sequence[Any]) -> frozenset[str]:
    """The numbers in what a row and replies say, but for those in the definitions of its tools."""
    texts = (str(value) for value, way in scalars(values) if "tools" not in way)
    return frozenset(number for text in texts for number in _NUMBER.findall(text))


class Argument:
    """One argument of the call, and the replies to wrong and to allowed values of it.

    `nodes` has the schemas of all arguments, `given` the known calls that are given this one; only one that the schema
    `needs` is missing where it is left out. `seen` has the values that replies have under each name, which count within
    objects.
    """

    def __init__(
        self,
        place: Place,
        elsewhere: Mapping[Row, Place],
        name: str,
        nodes: Mapping[str, Schema],
        given: Sequence[Place],
        *,
        needed: bool,
        seen: Mapping[str, Sequence[Any]],
    ) -> None:
        self.place, self.elsewhere, self.name, self.given, self.needed = place, elsewhere, name, given, needed
        self.node = node = nodes[name]
        self.seen = seen
        # what a whole call is refused for may be meant otherwise than in the reply
        own_seen = seen.get(name, ()) if isinstance(place, _Within) else ()
        self.own_seen = [each for each in own_seen if Acceptance(node).accepts(each)][:FIXES]
        self.others = {other: schema for other, schema in nodes.items() if other != name}
        self.closed = isinstance(node, dict) and ("enum" in node or "const" in node or node.get("type") == "boolean")
        self.wrong: list[tuple[Any, Reply]] = []
        self.taken: list[tuple[Any, Reply]] = []
        self.returned: list[Any] = []
        self.otherwise: tuple[Any, Reply] | None = None
        self.missing: Reply | None = None
        self.beyond: dict[int | str, tuple[int | str, Reply]] = {}  # by bound
        self.outside: tuple[int, Reply] | None = None

    async def refused(self) -> RefusedCall | None:
        """An allowed value that is refused like a wrong one, while a call that differs only there is accepted."""
        await self._try_wrong()
        await self._try_beyond()
        await self._try_longer()
        await self._try_outside()
        refused = await self._try_allowed() if self.wrong or self.missing or self.beyond or self.outside else []
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
            if await self._is_the_rows(value) or await self._is_said_of_others(value, reply, shown[0]):
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
            if not says_no(reply, sent) or not says_yes(answered, other):
                return None
            because = f"{short(other)} is accepted: status {answered.status}"
            found = found or RefusedCall(self.name, sent, reply, because, (answered,))
        return found

    async def _try_wrong(self) -> None:
        acceptance = Acceptance(self.node)
        # many languages take true for 1, and then refuse it where they refuse 1, as for another argument's sake
        wrong = [
            each
            for each in STRANGE_VALUES
            if not (acceptance.accepts(each) or (each is True and acceptance.accepts(1)))
        ]
        for value in wrong[: 3 if self.closed else None]:
            sent, reply = await self._ask(value)
            if says_no(reply, sent):
                self.wrong.append((value, reply))
            elif is_success(reply.status):
                self.taken.append((sent, reply))
        if self.needed and any(acceptance.accepts(value) for value in _FALSE):
            reply = (await self._ask_without())[1]
            if says_no(reply):
                self.missing = reply

    async def _try_beyond(self) -> None:
        """Refusals of integers just beyond a bound, where the one just within it is accepted.

        If the bound itself is refused alike, it is off by one. A state may set limits too, but hardly that one.
        """
        acceptance = Acceptance(self.node)
        for bound in constants(self.node):
            for beyond, within in ((bound + 1, bound - 1), (bound - 1, bound + 1)) if type(bound) is int else ():
                if [acceptance.accepts(each) for each in (within, bound, beyond)] == [True, True, False]:
                    refusal = (await self._ask(beyond))[1]
                    if says_no(refusal) and says_yes((await self._ask(within))[1]):
                        self.beyond[bound] = beyond, refusal

    async def _try_longer(self) -> None:
        """The refusal of a text just too long, if it states the code's own number, and a short one is accepted."""
        acceptance = Acceptance(self.node)
        for longest in constants(self.node):
            if not longest or not isinstance(longest, str):
                continue
            short_one, beyond = longest[:1], longest + longest[:1]
            if [acceptance.accepts(each) for each in (short_one, longest, beyond)] == [True, True, False]:
                refusal = (await self._ask(beyond))[1]
                taken = says_no(refusal) and says_yes((await self._ask(short_one))[1])
                if taken and await self._is_the_codes(beyond, refusal, (len(longest), len(beyond))):
                    self.beyond[longest] = beyond, refusal

    async def _try_outside(self) -> None:
        """The refusal of integers beyond either bound, if it is the same one and states the code's own number."""
        least, most = (self.node.get(each) if isinstance(self.node, dict) else None for each in ("minimum", "maximum"))
        if type(least) is not int or type(most) is not int:
            return
        low, high = [(await self._ask(each))[1] for each in (least - 1, most + 1)]
        if not (says_no(low) and says_no(high)) or _ABSENT.search(high.text):
            return
        if not alike(Answer(low, (least - 1,)), Answer(high, (most + 1,))):
            return
        if await self._is_the_codes(most + 1, high, (least, most, least - 1, most + 1)):
            self.outside = most + 1, high

    async def _is_the_codes(self, beyond: Any, refusal: Reply, said: Iterable[int]) -> bool:
        """Whether the refusal states a number that is not `said` by the schema, and that the code alone knows.

        A state sets limits, too: what is in stock, or in a purse. But these are in the row or in a reply, or they are others
        once the known call was made.
        """
        if type(self.place) is not Place:
            return False
        after = self.place.once_more()
        again = (await after.ask_with(self.name, beyond))[1]
        stated = {*_NUMBER.findall(refusal.text)} - {str(each) for each in said}
        shown = [self.place.row.data, *(reply.said for reply in await after.replies())]
        alike_again = alike(Answer(again, (beyond,)), Answer(refusal, (beyond,)))
        return bool(stated) and alike_again and stated.isdisjoint(_numbers_in(shown))

    async def _try_allowed(self) -> list[tuple[Any, Any, Reply, tuple[str, Reply]]]:
        refused = []
        for value in (*islice(map(whole, boundary_values(self.node)), _VALUES), *self.own_seen):
            sent, reply = await self._ask(value)
            like = self._like(value, reply)
            if like:
                refused.append((value, sent, reply, like))
            elif says_yes(reply, sent):
                self.taken.append((sent, reply))
        return refused

    async def _try_given(self) -> None:
        """Whether what known calls give is accepted: a time zone, say, cannot be made up."""
        values = first_of_each(repr, [each.base[self.name] for each in self.given])
        for value in islice(values.values(), FIXES):
            sent, reply = await self._ask(value)
            if says_yes(reply, sent):
                self.taken.append((sent, reply))

    async def _try_without(self) -> None:
        for sent, reply in (await self._ask_without(), *await self.place.ask_without_all()):
            if says_yes(reply, sent):
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
            looked_for = _ABSENT.search(reply.text) or says_yes(reply, sent)
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
        if not says_no(reply, value):
            return None
        if not value and self.missing and alike(Answer(reply, ()), Answer(self.missing, ())):
            return f"a call without {self.name}", self.missing
        if type(value) in (int, str) and value in self.beyond and not _ABSENT.search(reply.text):
            over, refusal = self.beyond[value]
            if alike(Answer(reply, (value,)), Answer(refusal, (over,))):
                return short({self.name: over}), refusal
        if type(value) is int and self.outside:
            over, refusal = self.outside
            if alike(Answer(reply, (value,)), Answer(refusal, (over,))):
                return short({self.name: over}), refusal
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
        text, unless one of another type is accepted, the schema says which texts there are, or several are refused that
        replies have under the same name.
        """
        kind = _kind(value)
        spoken = {keyword for way, node in walk(self.node) if _PARTS.isdisjoint(way) for keyword in node}
        taken = [sent.get(self.name) for sent, _ in self.taken]
        known = [*self.returned, *(each for each in taken if each is not None)]  # null is as good as left out
        like = [each for each in known if _kind(each) == kind]
        if kind in ("null", "boolean") or spoken & {"enum", "const"}:
            return True
        if not like and value in self.own_seen:
            return len(self.own_seen) > 1 and all(each == value or each in others for each in self.own_seen)
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
        return await is_no_such_text(self.place, self.name, self.node, value, taken)

    async def _depends(self, value: Any) -> bool:
        """Whether the state says which numbers there are: the least that known calls take, or the largest, is refused in another."""
        if _kind(value) != "number":
            return False
        given = [each for each in self.given if _kind(each.base[self.name]) == "number"][:_VALUES]
        taken = [each for each in given if says_yes((await each.ask(each.base))[1], each.base)]
        taken.sort(key=lambda each: each.base[self.name])
        for own, other in ((taken[0], taken[-1]), (taken[-1], taken[0])) if taken else ():
            if says_no((await other.ask_with(self.name, own.base[self.name]))[1]):
                return True
        return False

    async def _is_the_rows(self, value: Any) -> bool:
        """Whether a row says which texts there are: it takes this one if it has it wherever it had one that is accepted."""
        for other in [sent.get(self.name) for sent, _ in self.taken][:FIXES]:
            if isinstance(value, str) and isinstance(other, str):
                row = renamed(Trajectory(self.place.row), {other: value}).row
                if says_yes((await replace(self.place, row=row).ask_with(self.name, value))[1], value):
                    return True
        return False

    async def _is_said_of_others(self, value: Any, reply: Reply, taken: Any) -> bool:
        """Whether a 2xx says the same where another argument of the call that is `taken` has another allowed value.

        So does a tool that looks calls up among those that it holds: its answer is not about this argument.
        """
        for name, node in self.others.items() if is_success(reply.status) and isinstance(taken, dict) else ():
            for other in islice(map(whole, boundary_values(node)), FIXES) if name in taken else ():
                said = (await self.place.ask({**taken, name: other}))[1]
                if other != taken[name] and alike(Answer(reply, (value,)), Answer(said, (other,))):
                    return True
        return False

    async def _everywhere(self, value: Any) -> bool:
        """Whether other rows refuse the value in the same way: in a single row it may just not exist."""
        place = self.place
        rows = [
            row for row in place.gym.rows if row is not place.row and any(one.name == place.tool for one in row.tools)
        ]
        agreeing = 0
        for row in rows[:ROWS]:
            there = self.elsewhere.get(row)
            asking = there.ask_with(self.name, value) if there else self._ask(value, row)
            if self._like(value, (await asking)[1]):
                agreeing += 1
            elif there or not self.taken or await self._is_taken_here(row):
                return False  # a row that refuses even the value accepted here shows nothing
        return bool(agreeing) or (not rows and not any(_ABSENT.search(reply.text) for _, reply in self.wrong))

    async def _is_taken_here(self, row: Row) -> bool:
        """Whether the row, where nothing is done first, takes the value that is accepted in the call's own place."""
        _, reply = await self._ask(self.taken[0][0].get(self.name), row)
        return is_success(reply.status) and not says_error(reply)


@dataclass(frozen=True)
class _Within(Place):
    """A place whose call is the object in one argument of another's, or in a list there; for a list's value, one that holds it."""

    outer: str = ""
    whole: dict[str, Any] = field(default_factory=dict)
    listed: bool = False
    around: "_Within | None" = None

    def held(self, arguments: Any) -> Any:
        """The value of the argument that holds this object."""
        return ([arguments.get(_ITEM, arguments)] if arguments else []) if self.listed else arguments

    def put(self, arguments: Any) -> dict[str, Any]:
        """The whole call."""
        call = {**self.whole, self.outer: self.held(arguments)}
        return self.around.put(call) if self.around else call

    async def ask(self, arguments: Any, row: Row | None = None) -> tuple[Any, Reply]:
        sent, reply = await super().ask(self.put(arguments), row)
        return self.taken_from(sent), reply

    async def ask_without_all(self) -> list[tuple[Any, Reply]]:
        if self.around:
            return await self.around.ask_without_all()
        return [await super().ask({key: value for key, value in self.whole.items() if key != self.outer})]

    def taken_from(self, sent: Any) -> dict[str, Any]:
        """The object in the whole call."""
        return self.found_in((self.around.taken_from(sent) if self.around else sent)[self.outer])

    def found_in(self, value: Any) -> dict[str, Any]:
        """The object in an argument."""
        inner = next(iter(value), None) if self.listed and isinstance(value, list) else value
        return inner if isinstance(inner, dict) else {_ITEM: inner} if self.listed and inner is not None else {}


def _not_null(document: Document, node: Schema) -> Schema:
    """What a value is where it is not null, if there is but one such thing."""
    node = document.resolve(node)
    others = [each for each in node.get("anyOf", ()) if each != {"type": "null"}] if isinstance(node, dict) else []
    return document.resolve(others[0]) if len(others) == 1 else node


async def refused_within(argument: "Argument", levels: int = _LEVELS) -> RefusedCall | None:
    """The same of what an object or a list holds that is an argument: members of enums, bounds of numbers, other types."""
    document = Document(argument.node)
    node = _not_null(document, argument.node)
    listed = isinstance(node, dict) and "items" in node
    node = _not_null(document, node["items"]) if listed else node
    parts = properties_of(node) or ({_ITEM: node} if listed else {})
    inside = {name: document.alone(document.resolve(each)) for name, each in parts.items()}
    needed = node.get("required", ()) if isinstance(node, dict) else ()

    def within(place: Place) -> _Within:
        own = {each.name: getattr(place, each.name) for each in fields(Place) if each.name != "base"}
        around = place if isinstance(place, _Within) else None
        empty = _Within(**own, base={}, outer=argument.name, whole=place.base, listed=listed, around=around)
        return replace(empty, base=empty.found_in(place.base.get(argument.name)))

    place = within(argument.place)
    elsewhere = {row: within(place) for row, place in argument.elsewhere.items()}
    for name in inside if levels else ():
        given = [one for one in map(within, argument.given) if name in one.base and not is_linked(one.base[name])]
        inner = Argument(place, elsewhere, name, inside, given, needed=name in needed, seen=argument.seen)
        said = inner.node if isinstance(inner.node, dict) else {}
        speaks = inner.closed or said.get("type") in ("integer", "number") or not _SPEAK.isdisjoint(said)
        speaks |= bool(inner.own_seen)
        found = (await inner.refused() if speaks else None) or await refused_within(inner, levels - 1)
        if found is not None:
            break
    else:
        found = await _wants_within(place, inside, argument.seen) if levels == _LEVELS and not listed else None
    if found is None:
        return None
    call, _ = await argument.place.ask_with(argument.name, place.held(found.call))
    return replace(found, argument=f"{argument.name}.{found.argument}".removesuffix(f".{_ITEM}"), call=call)


async def _wants_within(
    place: _Within, inside: Mapping[str, Schema], seen: Mapping[str, Sequence[Any]]
) -> RefusedCall | None:
    """An object with all that it may have, where it lacks something that its schema does not offer, and the call without it is taken."""
    whole_one = dict[str, Any]()
    for name, node in inside.items():
        known = filter(Acceptance(node).accepts, seen.get(name, ()))
        whole_one.update((name, value) for value in islice((*known, *map(whole, boundary_values(node))), 1))
    if not whole_one or not any(says_yes(reply) for _, reply in await place.ask_without_all()):
        return None
    return await wants_unoffered(replace(place, base=whole_one), inside)
