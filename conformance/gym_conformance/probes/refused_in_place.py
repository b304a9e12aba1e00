"""Recorded calls, made again in their own place: whether one is refused now as a wrong one is."""

import json
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import Any, Final

from gym_conformance.contract.statuses import is_success
from gym_conformance.contract.verify_reply import is_number
from gym_conformance.drift.compare import UNNAMED
from gym_conformance.drift.wording import short
from gym_conformance.probes.call_places import Place
from gym_conformance.probes.lacking import asked_for
from gym_conformance.probes.refused_call import FIXES, STRANGE_VALUES, RefusedCall, is_no_such_text
from gym_conformance.session.channel import Channel
from gym_conformance.session.exchange import Reply
from gym_conformance.session.likeness import Answer, alike
from gym_conformance.session.refusals import says_no, says_yes
from gym_schemas import Acceptance, Schema, Way, boundary_values, mapped, name_of, same, scalars, whole

#: The most conclusive ones for a recorded call, with a number far out of bounds.
_WRONG_IN_PLACE: Final[tuple[Any, ...]] = (*STRANGE_VALUES[:2], -987654321)

#: Characters or items beyond which a limit is not tried.
_LONG: Final = 1_000

#: Seconds before each request of a call that may be refused for coming too early: after a seed that goes on after its reply.
_PAUSE: Final = 0.2


async def refused_in_place(
    place: Place, acceptance: Acceptance, meant: Acceptance, nodes: Mapping[str, Schema], *, told: bool
) -> RefusedCall | None:
    """The recorded call in its place, if it is now refused like wrong arguments; one with an empty text is no drift."""
    if not isinstance(place.output, str):
        return None
    call, reply = await place.ask(place.base)
    if not says_no(reply, call) or not meant.accepts(call) or (is_success(reply.status) and place.was_refused):
        return None
    if not await place.is_reached():
        return None
    wrongs = [each async for each in _surely_wrong(place, acceptance, call, nodes, told=told)]
    like = [wrong for wrong in wrongs if wrong.refused_like(reply)]
    # a call refused for another reason, such as a day that has passed, is refused alike whatever else is wrong with it
    telling = (wrong for wrong in like if len(like) == len(wrongs) or wrong.named_in(reply))
    found = next(telling, None) or await _wrong_within(place, acceptance, call, reply)
    if found:
        slowly = replace(place, channel=Channel(place.gym.endpoint, pause=_PAUSE))
        if says_yes((await slowly.ask(place.base))[1], call):
            return None  # it is refused in haste alone, whatever its arguments are
        was = f"recorded in {place.recorded} with the output {short(place.output)}"
        because = f"{was}; {short(found.call)}, which is surely wrong, is answered alike"
        fix = await _find_fix(place, nodes, reply)
        beside = (found.reply, *fix.replies)
        return RefusedCall(fix.argument or found.name, call, reply, because + fix.because, beside)
    return await asked_for(place, acceptance, nodes, call, reply)


async def says_nothing(place: Place, places: Sequence[Place], name: str, nodes: Mapping[str, Schema]) -> bool:
    """Whether what is said of an argument shows nothing, since calls without it are accepted, or it is no text that is meant."""
    if name not in place.base:
        without = [each for each in places if f"{json.dumps(name)}:" not in json.dumps(each.base)][:FIXES]
        return any([says_yes((await each.ask(each.base))[1], each.base) for each in without])

    others = dict.fromkeys(text for each in places if isinstance(text := each.base.get(name), str))
    taken = [text for text in islice(others, FIXES) if says_yes((await place.ask_with(name, text))[1], text)]
    return name in nodes and await is_no_such_text(place, name, nodes[name], place.base.get(name), taken)


@dataclass(frozen=True)
class _Fix:
    """An argument with another value that is accepted, or refused differently, and the evidence; '' if none found."""

    argument: str = ""
    because: str = ""
    replies: tuple[Reply, ...] = ()


async def _find_fix(place: Place, nodes: Mapping[str, Schema], refusal: Reply) -> _Fix:
    otherwise = _Fix()
    for name, node in nodes.items():
        for value in islice(map(whole, boundary_values(node)), FIXES) if name in place.base else ():
            call, reply = await place.ask_with(name, value)
            if says_yes(reply, call):
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


def _beyond(node: Schema | None, value: Any) -> Iterator[Any]:
    """The value as a number just beyond its bounds, or as a longer text or list than its schema allows."""
    said = node if isinstance(node, dict) else {}
    if is_number(value):
        yield from (
            said[bound] + step for bound, step in (("maximum", 1), ("minimum", -1)) if is_number(said.get(bound))
        )
    elif isinstance(value, str) and value and isinstance(most := said.get("maxLength"), int) and most < _LONG:
        yield (value * (most + 1))[: most + 1]
    elif isinstance(value, list) and value and isinstance(most := said.get("maxItems"), int) and most < _LONG:
        more = (f"{value[0]} {number}" if isinstance(value[0], str) else value[0] for number in range(most))
        yield [*value, *more][: most + 1]


async def _surely_wrong(
    place: Place, acceptance: Acceptance, call: Mapping[str, Any], nodes: Mapping[str, Schema], *, told: bool
) -> AsyncIterator[_Wrong]:
    for name in call:
        for strange in (*_WRONG_IN_PLACE, *_beyond(nodes.get(name), call[name])):
            if name in nodes and not Acceptance(nodes[name]).accepts(strange):
                wrong = {**call, name: strange}
                yield _Wrong(name, wrong, (await place.ask(wrong))[1], (call[name],), (strange,))
    for names, wrong in [] if told else _with_one_more(acceptance, call):
        reply = (await place.ask(wrong))[1]
        for name in names:
            yield _Wrong(name, wrong, reply, (name,), (UNNAMED,))
    if not acceptance.accepts({}):
        yield _Wrong("", {}, (await place.ask({}))[1])


def _put(at: Way, value: Any, each: Any, way: Way) -> Any:
    return value if way == at else each


async def _wrong_within(place: Place, acceptance: Acceptance, call: Mapping[str, Any], reply: Reply) -> _Wrong | None:
    """The same of a value within lists and objects, one of each name: the first that is refused like the call, and named."""
    within = {name_of(way): (value, way) for value, way in scalars(call) if len(way) > 1}
    for name, (own, at) in within.items():
        for strange in _WRONG_IN_PLACE:
            wrong = mapped(dict(call), partial(_put, at, strange))
            if acceptance.accepts(wrong):
                continue
            found = _Wrong(name, wrong, (await place.ask(wrong))[1], (own,), (strange,))
            if found.refused_like(reply) and found.named_in(reply):
                return found
    return None


def _with_one_more(acceptance: Acceptance, call: Mapping[str, Any]) -> Iterator[tuple[Sequence[str], dict[str, Any]]]:
    """The call with an unknown extra argument, at the top or in a closed object; each with its sibling arguments.

    The extra one comes first, because a server may report unknown arguments one by one.
    """
    yield list(call), {**call, UNNAMED: "a"}
    for name, value in call.items():
        wrong = {**call, name: {UNNAMED: "a", **value}} if isinstance(value, dict) else call
        if not acceptance.accepts(wrong):
            yield list(value), dict(wrong)
