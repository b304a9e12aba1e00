"""A call that is refused as lacking an argument which its schema lets it leave out, or does not offer."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any, Final

from gym_conformance.contract.statuses import is_crash
from gym_conformance.drift.compare import UNNAMED
from gym_conformance.drift.wording import short
from gym_conformance.probes.call_places import Place
from gym_conformance.probes.refused_call import FIXES, ROWS, RefusedCall
from gym_conformance.session.exchange import Reply
from gym_conformance.session.likeness import Answer, alike
from gym_conformance.session.refusals import says_no, says_yes
from gym_conformance.trajectories.trajectory import is_linked
from gym_schemas import Acceptance, Schema, boundary_values, scalars, whole

_WORD: Final = re.compile(r"\w+")

#: How a refusal says that something was left out.
_NEEDED: Final = re.compile(
    r"require|missing|needed|must be (?:given|set|present)|mandatory|erforderlich|fehlt|requis|manquant|obligator|falta",
    re.IGNORECASE,
)

_CLAUSE: Final = re.compile(r"[;,.!?\n]+")

#: Words of a refusal that may be an argument's name, and how often what comes of giving it is tried.
_ASKED, _TIMES = 6, 2


async def lacks_unoffered(place: Place, acceptance: Acceptance, nodes: Mapping[str, Schema]) -> RefusedCall | None:
    """The call, if it is refused as lacking an argument that the schema does not offer, and no longer where that is given.

    What the session lacks, such as a name that another tool sets, no argument makes good; and where any extra argument
    is refused first, this one is refused as any other.
    """
    call, reply = await place.ask(place.base)
    found = await asked_for(place, acceptance, nodes, call, reply) if says_no(reply, call) else None
    if found is None or found.argument in nodes:
        return None
    given, other = [(await place.ask_with(name, "a"))[1] for name in (found.argument, UNNAMED)]
    says = {text for text, _ in scalars(reply.said) if isinstance(text, str) and found.argument in text}
    if says & {text for text, _ in scalars(given.said)} or alike(
        Answer(given, (found.argument,)), Answer(other, (UNNAMED,))
    ):
        return None
    return replace(found, because=f"{found.because}; with {found.argument} it is not", beside=(*found.beside, given))


async def wants_unoffered(place: Place, nodes: Mapping[str, Schema]) -> RefusedCall | None:
    """The call, if it is said to lack something that the schema does not offer, and no longer once that is given.

    An argument of another name changes nothing, and all of it comes again. How the server says that one of its own is
    left out does not matter.
    """
    call, refusal = await place.ask(place.base)
    texts = (text for text, _ in scalars(refusal.said) if isinstance(text, str))
    clauses = (clause for text in texts for clause in _CLAUSE.split(text) if _NEEDED.search(clause))
    words = dict.fromkeys(word for clause in clauses for word in _WORD.findall(clause) if word.isidentifier())
    unoffered = (word for word in words if word not in nodes and not _NEEDED.search(word))
    for name in islice(unoffered, _ASKED if says_no(refusal, call) else 0):
        for value in ("a", 1):
            if given := await _makes_good(place, refusal, name, value):
                because = f"with {name} it is answered {short(given.said)}, and with any other argument as without one"
                return RefusedCall(name, call, refusal, because, (given,))
    return None


async def _makes_good(place: Place, refusal: Reply, name: str, value: Any) -> Reply | None:
    """What is answered where the argument is given, if that says nothing of it, and what is answered otherwise is the refusal."""
    given = None
    for _ in range(_TIMES):
        without = Answer((await place.ask(place.base))[1], ())
        other = Answer((await place.ask_with(UNNAMED, value))[1], (UNNAMED, value))
        given = (await place.ask_with(name, value))[1]
        same = all(alike(Answer(refusal, ()), each) for each in (without, other))
        if not same or is_crash(given.status) or re.search(rf"\b{re.escape(name)}\b", given.text):
            return None
    return given


async def lacks_optional(places: Sequence[Place], nodes: Mapping[str, Schema]) -> RefusedCall | None:
    """The smallest call, the first, if an argument that it may leave out is asked for, and it is taken where that is given.

    Whatever else is given, in whatever place, the same must be said, or one state alone may need it, or one of several.
    Where the smallest call is refused for something else first, such as an id that is not found, a known call that gives
    the argument takes its place, without it, and keeps its texts.
    """
    smallest, *known = places
    call, refusal = await smallest.ask(smallest.base)
    said = set(_WORD.findall(refusal.text)) if says_no(refusal, call) else set[str]()
    elsewhere = [replace(smallest, row=row) for row in smallest.gym.rows[:ROWS] if smallest.tool in map(str, row.tools)]
    for name in nodes.keys() & said - smallest.base.keys():
        others = _with_each_other(smallest, nodes.keys() - {name}, nodes)
        without = [*others, *(_without(each, name) for each in known), *elsewhere]
        values = islice(map(whole, boundary_values(nodes[name])), FIXES)
        given = [replace(smallest, base={**smallest.base, name: value}) for value in values]
        given += [each for each in known if name in each.base]
        if found := await _needs(name, call, refusal, given, without):
            return found
    giving = {name: one for one in reversed(known) for name in one.base.keys() - smallest.base.keys()}
    for name, each in giving.items():
        bare = _without(each, name)
        call, refusal = await bare.ask(bare.base)
        if says_no(refusal, call) and name in _WORD.findall(refusal.text):
            free = [other for other in nodes if other != name and not _is_named(bare.base.get(other), nodes[other])]
            without = [*_with_each_other(bare, free, nodes), *(_without(one, name) for one in known)]
            if found := await _needs(name, call, refusal, [each], without):
                return found
    return None


def _without(place: Place, name: str) -> Place:
    return replace(place, base={key: value for key, value in place.base.items() if key != name})


def _with_each_other(place: Place, others: Iterable[str], nodes: Mapping[str, Schema]) -> list[Place]:
    """The call with each of these arguments at the bounds of what it may be, or with its first members."""
    values = ((other, value) for other in others for value in islice(map(whole, boundary_values(nodes[other])), FIXES))
    return [replace(place, base={**place.base, other: value}) for other, value in values]


def _is_named(value: Any, node: Schema) -> bool:
    """Whether a text, or what a reply returned, may be an id, in place of which another one is not found."""
    chosen = isinstance(node, Mapping) and bool(node.keys() & {"enum", "const"})
    return not chosen and (isinstance(value, str) or is_linked(value))


async def _needs(
    name: str, call: Any, refusal: Reply, given: Sequence[Place], without: Sequence[Place]
) -> RefusedCall | None:
    """The call, if it is taken where the argument is given, and refused in the same words wherever it is not."""
    for each in given:
        sent, reply = await each.ask(each.base)
        if says_yes(reply, sent):
            if any([(await one.ask(one.base))[1].text != refusal.text for one in without]):
                return None
            return RefusedCall(name, call, refusal, f"{short(sent)} is accepted: status {reply.status}", (reply,))
    return None


async def asked_for(
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
