"""Whether an argument that is left out is taken for the default that its definition names."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import compress
from typing import Any

from gym_conformance.checks.chance import beyond_chance
from gym_conformance.checks.check import Level, check
from gym_conformance.checks.ending import NotApplicable, Violation
from gym_conformance.checks.needs import RESOURCES_SERVER, SERVED_TOOLS, TOOLS
from gym_conformance.checks.property import knowledge_of
from gym_conformance.checks.solo import Solo
from gym_conformance.checks.trial import Trial
from gym_conformance.contract.dataset_rows import Call
from gym_conformance.contract.statuses import is_success
from gym_conformance.session.channel import Channel
from gym_conformance.trajectories.execute import FEW, beside, run
from gym_conformance.trajectories.first import known
from gym_conformance.trajectories.outcome import Difference, Outcome, Place, differences
from gym_conformance.trajectories.trajectory import Trajectory, resolve
from gym_schemas import ABSENT, admits

#: Arguments that are tried, calls of each, and calls that come after it and may show what it did.
_ARGUMENTS, _CALLS, _AFTER = 12, 2, 4


@dataclass(frozen=True)
class _LeftOut:
    """A trajectory with an argument left out in one call, and the same with its default there."""

    tool: str
    argument: str
    default: Any
    at: int
    without: Trajectory
    explicit: Trajectory

    async def tried(self, trial: Trial, solo: Solo, channel: Channel) -> Difference | None:
        """Where a run with the default said differs from `solo`, which leaves it out."""
        return self._shown(await solo.outcome(), await run(trial.gym, channel, self.explicit), solo.mask)

    def _shown(self, alone: Outcome, tried: Outcome, mask: frozenset[Place]) -> Difference | None:
        """Where it makes a difference; a reply that repeats which arguments were given shows none."""
        calls = [outcome.steps[self.at + 1] for outcome in (alone, tried)]
        if not all(is_success(call.status) for call in calls):
            return None
        return next((one for one in differences(alone, tried, mask) if not self._repeats(one)), None)

    def _repeats(self, one: Difference) -> bool:
        texts = [value for value in (one.expected, one.actual) if isinstance(value, str)]
        return (
            one.of_time
            or one.expected is ABSENT
            or self.argument in one.place
            or any(self.argument in text for text in texts)
            or (isinstance(one.actual, list | dict) and self.argument in str(one.actual))
        )


@check(
    "drift-default",
    Level.SHOULD,
    "An argument that is left out SHOULD be taken for the default that its definition names",
    why="the policy leaves it out and counts on the default; the tool does something else, in every rollout.",
    needs=[RESOURCES_SERVER, TOOLS, SERVED_TOOLS],
)
async def drift_default(trial: Trial, _: object) -> None:
    """Makes calls that mean something without an argument that has a default, and with the default said.

    Replies, later reads and the reward must be the same, chance excluded. Where a call is refused in one of the two
    forms, or a reply only repeats what was given, nothing is said.

    Our inference: `default` is what JSON Schema has for "what is meant where this is left out"; no client fills it in.
    """
    if not any(_defaults(tool.parameters) for row in trial.gym.rows for tool in row.tools):
        raise NotApplicable("no definition names a default")
    knowledge = await knowledge_of(trial)
    found = list(_left_out(known(knowledge)))
    if not found:
        raise NotApplicable("no call that is known to mean something has an argument with a default")

    async def differs(one: _LeftOut) -> bool:
        return await one.tried(trial, Solo(trial, one.without), Channel(trial.gym.endpoint)) is not None

    suspected = await beside([partial(differs, one) for one in found], knowledge.beside(FEW))
    for one in compress(found, suspected):
        if difference := await _told(trial, one):
            raise Violation(
                f"{difference.step} answers {difference.actual!r} where {one.argument} of {one.tool} is left out, as where "
                f"it is said to be {one.default!r}, its default",
                f"{difference.expected!r}",
                "The tool's own default is another one: change it there, or in the definition.",
            )
    trial.note = f"{len(found)} calls with a default left out"


async def _told(trial: Trial, one: _LeftOut) -> Difference | None:
    """How the two forms differ, chance excluded."""
    solo = Solo(trial, one.without)
    await solo.settle()
    tried = partial(one.tried, trial, solo)
    return await beyond_chance(trial, tried, solo.alone) if await tried(trial.channel) else None


def _left_out(found: Sequence[Trajectory]) -> Iterator[_LeftOut]:
    """What is tried: of each argument that has a default a few calls."""
    tried: Counter[tuple[str, str]] = Counter()
    for trajectory in found:
        definitions = {tool.name: tool.parameters for tool in trajectory.row.tools}
        for at, call in enumerate(trajectory.calls):
            parameters = definitions.get(call.name, {})
            for name, default in _defaults(parameters).items() if isinstance(call.arguments, dict) else ():
                key = (call.name, name)
                without = {other: value for other, value in call.arguments.items() if other != name}
                explicit = {**without, name: default}
                allowed = all(admits(parameters, resolve(each, [])) for each in (without, explicit))
                if allowed and tried[key] < _CALLS and (key in tried or len(tried) < _ARGUMENTS):
                    tried[key] += 1
                    forms = (_with(trajectory, at, each) for each in (without, explicit))
                    yield _LeftOut(call.name, name, default, at, *forms)


def _with(trajectory: Trajectory, at: int, arguments: Any) -> Trajectory:
    """The trajectory up to a few calls after this one, which has other arguments."""
    before, after = trajectory.calls[:at], trajectory.calls[at + 1 : at + 1 + _AFTER]
    return replace(trajectory, calls=(*before, Call(trajectory.calls[at].name, arguments), *after))


def _defaults(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """The defaults of arguments that may be left out; null is none: it mostly says that nothing is meant."""
    properties = parameters.get("properties")
    named = properties.items() if isinstance(properties, dict) else ()
    found = {name: schema["default"] for name, schema in named if isinstance(schema, dict) and "default" in schema}
    return {name: default for name, default in found.items() if default is not None}
