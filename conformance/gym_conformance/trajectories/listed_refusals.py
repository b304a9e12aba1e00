"""What a log that is read says of refused calls, which is no trace of them. Pure: nothing here talks to a server."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from gym_conformance.contract.dataset_rows import Call
from gym_conformance.contract.verify_reply import is_number
from gym_conformance.session.refusals import may_tell_of_refusal
from gym_conformance.trajectories.outcome import Difference, Outcome, Place, StepOutcome, differences
from gym_conformance.trajectories.trajectory import Trajectory
from gym_schemas import scalars
from gym_schemas.json_values import text


def beside_lists(
    noisy: Trajectory, plain: Outcome, once: Outcome, mask: frozenset[Place]
) -> tuple[list[Difference], bool]:
    """What differs but times, what lists say of the refused calls, and in the same replies how much is listed; whether any list does."""
    refused = [noisy.calls[at] for at in noisy.noise]
    before, after = ([_unlisted(step, refused) for step in outcome.steps] for outcome in (plain, once))
    more = [two - one for (_, one), (_, two) in zip(before, after, strict=True)]
    one, two = (Outcome(tuple(step for step, _ in steps)) for steps in (before, after))
    found = [each for each in differences(one, two, mask) if not each.of_time and not _is_length(each, more)]
    return found, max(more, default=0) > 0


def _is_length(difference: Difference, more: Sequence[int]) -> bool:
    """Whether it is a number that has moved with what is listed more in its reply."""
    one, two = difference.expected, difference.actual
    return is_number(one) and is_number(two) and 0 < abs(two - one) <= more[int(difference.place[0])]


def _unlisted(step: StepOutcome, refused: Sequence[Call]) -> tuple[StepOutcome, int]:
    """The step's outcome without what lists say of these calls, and how much that was."""
    body, listed = _without_listed(step.body, refused)
    return replace(step, body=body), listed


def _without_listed(body: Any, refused: Sequence[Call]) -> tuple[Any, int]:
    if isinstance(body, dict):
        parts = {key: _without_listed(inner, refused) for key, inner in body.items()}
        return {key: inner for key, (inner, _) in parts.items()}, sum(listed for _, listed in parts.values())
    if isinstance(body, list):
        left = [_without_listed(each, refused) for each in body if not _tells_of(each, refused)]
        return [inner for inner, _ in left], len(body) - len(left) + sum(listed for _, listed in left)
    if isinstance(body, str) and "\n" in body:
        lines = body.split("\n")
        kept = [line for line in lines if not _tells_of(line, refused)]
        return "\n".join(kept), len(lines) - len(kept)
    return body, 0


def _tells_of(entry: Any, refused: Sequence[Call]) -> bool:
    """Whether what a list has tells of one of these calls, or of what it said, that it was refused."""
    said = text(entry)
    return may_tell_of_refusal(entry, [call.arguments for call in refused]) and any(
        text(part)[1:-1] in said
        for call in refused
        for part in (call.name, *(value for value, _ in scalars(call.arguments)))
        if isinstance(part, str) and part
    )
