"""What a twin is: the reference server with one fault, and the checks that may see it."""

import json
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from gym_conformance.contract.dataset_rows import Rollout, Row, Source
from gym_conformance.contract.policy_output import Item, function_call, function_call_output, message, response
from gym_conformance.dataset import Dataset
from gym_conformance.drift.lock import Lock
from gym_mocks.reference import DATA, ROLLOUTS, ReferenceServer
from gym_mocks.wire import HttpReply, HttpRequest
from gym_mocks.wire.client import ASGIApp

Json = dict[str, Any]


def lines(path: Path) -> list[Json]:
    """The objects of a JSONL file."""
    return [json.loads(line) for line in path.read_text().splitlines()]


def dataset(change: Callable[[Json], object] = lambda _: None) -> Dataset:
    """Two of the reference's rows, which is enough and quicker, each changed in place; its rollouts as they are."""
    rows = lines(DATA)[2:4]
    for row in rows:
        change(row)
    return Dataset(
        tuple(Row(row, Source(DATA, at)) for at, row in enumerate(rows, 1)),
        tuple(Rollout(rollout, Source(ROLLOUTS, at)) for at, rollout in enumerate(lines(ROLLOUTS), 1)),
        len(rows),
    )


def said_by_users(said: Iterable[str], tools: Sequence[Json]) -> Dataset:
    """A row for each text that a user says, all with these tools; nothing is recorded."""
    params = ({"input": text, "tools": tools} for text in said)
    rows = tuple(
        Row({"responses_create_params": each}, Source(Path("said.jsonl"), at)) for at, each in enumerate(params, 1)
    )
    return Dataset(rows, (), len(rows))


def tool(name: str, **properties: Any) -> Json:
    """A tool whose arguments are all required."""
    parameters = {"type": "object", "properties": properties, "required": list(properties)}
    return {"type": "function", "name": name, "parameters": parameters}


def unrecorded() -> Dataset:
    """The same rows without the rollouts, for a server that answers otherwise by right."""
    return replace(dataset(), rollouts=())


#: A call's tool and arguments, and its answer: a text, or what its JSON says.
Turn = tuple[str, Any, Any]


def items_of(*turns: Turn) -> list[Item]:
    """The output items of calls and their answers."""
    items = list[Item]()
    for at, (name, arguments, answer) in enumerate(turns):
        told = answer if isinstance(answer, str) else json.dumps(answer)
        items += [function_call(name, json.dumps(arguments), f"call_{at}"), function_call_output(told, f"call_{at}")]
    return items


def rollout_of(row: Row, *turns: Turn, said: str = "", reward: float = 0.0) -> Rollout:
    """A recorded rollout of a row: calls with their answers, and what is said in the end."""
    output = [*items_of(*turns), *([message(said)] if said else [])]
    return Rollout({**row.data, "response": response(output), "reward": reward}, row.source)


def recorded_in_each(data: Dataset, *turns: Turn, reward: float = 0.0) -> Dataset:
    """The rows, each with a recorded rollout of these turns."""
    return replace(data, rollouts=tuple(rollout_of(row, *turns, reward=reward) for row in data.rows))


#: Twins of each check that are always judged; `tox -e twins` judges the others, too.
ALWAYS = 2


class Failing(Protocol):
    """What is said to fail some checks."""

    @property
    def name(self) -> str: ...

    @property
    def fails(self) -> Collection[str]: ...


def further(twins: Iterable[Failing]) -> set[str]:
    """The names of those each of whose checks has enough twins before them."""
    judged, names = Counter[str](), set[str]()
    for twin in twins:
        if twin.fails and all(judged[check] >= ALWAYS for check in twin.fails):
            names.add(twin.name)
        judged.update(twin.fails)
    return names


@dataclass(frozen=True)
class Twin:
    """A server with one fault, or with none.

    Attributes:
        name: what is wrong with it.
        fails: the ids of all checks that find something.
        make: makes a fresh application.
        untestable: the ids of all checks that cannot be made because of the fault.
        data: the rows and rollouts that it is judged with.
        timeout: seconds that a request is given.
        lock: the tools as they are said to be.
        tempts: the sections of the contract whose other checks might mistake its habit, or its fault, for one.
        blocks: whether a handler blocks its thread, so that it must not be the one that sends the requests.
    """

    name: str
    fails: frozenset[str]
    make: Callable[[], ASGIApp]
    untestable: frozenset[str] = frozenset()
    data: Dataset = field(default_factory=dataset, repr=False)
    timeout: float = 5.0
    lock: Lock | None = field(default=None, repr=False)
    tempts: frozenset[str] = frozenset()
    blocks: bool = False


def twin(
    name: str, fails: str, make: Callable[[], ASGIApp], *, untestable: str = "", tempts: str = "", **more: Any
) -> Twin:
    """A twin whose ids and sections are given as words."""
    ids, sections = frozenset(untestable.split()), frozenset(tempts.split())
    return Twin(name, frozenset(fails.split()), make, ids, tempts=sections, **more)


class Changed(ReferenceServer):
    """Answers one path as the reference does, and then changes the reply; may raise instead."""

    def __init__(self, path: str, change: Callable[[HttpRequest, HttpReply], HttpReply]) -> None:
        super().__init__()
        self.path = path
        self.change = change

    async def dispatch(self, request: HttpRequest) -> HttpReply:
        reply = await super().dispatch(request)
        return self.change(request, reply) if request.path == self.path else reply


def changed(path: str, change: Callable[[HttpRequest, HttpReply], HttpReply]) -> Callable[[], ASGIApp]:
    """Makes servers that change the replies of one path."""
    return lambda: Changed(path, change)


def edited(path: str, edit: Callable[[Any], Any]) -> Callable[[], ASGIApp]:
    """Makes servers that edit the JSON of one path's good replies."""

    def change(_: HttpRequest, reply: HttpReply) -> HttpReply:
        if reply.status != 200 or not isinstance(reply.body, bytes):
            return reply
        return replace(reply, body=json.dumps(edit(json.loads(reply.body))).encode())

    return changed(path, change)


def crashing(path: str, read: Callable[[Any], object]) -> Callable[[], ASGIApp]:
    """Makes servers that read each JSON body of one path carelessly, before anything looks at it."""

    class Crashing(ReferenceServer):
        async def dispatch(self, request: HttpRequest) -> HttpReply:
            if request.path == path:
                read(json.loads(request.body))
            return await super().dispatch(request)

    return Crashing


class Timed(ReferenceServer):
    """Knows how long ago each session was seeded."""

    def __init__(self) -> None:
        super().__init__()
        self.seeded: dict[str, float] = {}

    async def seed(self, session_id: str, row: Json) -> Json:
        self.seeded[session_id] = time.monotonic()
        return await super().seed(session_id, row)

    def age(self, session_id: str) -> float:
        """In seconds; for ever where it was never seeded."""
        return time.monotonic() - self.seeded.get(session_id, 0.0)
