"""A recorded rollout against the server as it is now."""

import asyncio
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache, partial
from http import HTTPStatus
from itertools import islice
from typing import Any, Final

from gym_conformance.contract.dataset_rows import Call, Rollout, Row
from gym_conformance.contract.endpoints import VERIFY, tool_path
from gym_conformance.contract.openapi import ServerKind
from gym_conformance.contract.policy_output import response
from gym_conformance.contract.statuses import UNROUTED, is_success
from gym_conformance.contract.verify_reply import rounded
from gym_conformance.findings import Cause
from gym_conformance.session.channel import Channel
from gym_conformance.session.contracts import CookieHabit
from gym_conformance.session.exchange import reply_of
from gym_conformance.trajectories.clock import both_tell_the_time, days_later, same_but_for_dates
from gym_conformance.trajectories.followed import followed, parsed
from gym_conformance.trajectories.orders import reordered
from gym_conformance.trajectories.outcome import (
    Difference,
    Outcome,
    Place,
    StepOutcome,
    differences,
    tells_time,
    values_at,
    varying,
)
from gym_conformance.trajectories.trajectory import resolve
from gym_conformance.trials.drawn import told_alike
from gym_conformance.trials.ending import NotApplicable, Violation
from gym_conformance.trials.fresh_process import fresh_process
from gym_conformance.trials.trial import Trial, describe
from gym_schemas import same, scalars
from gym_schemas.json_values import name_of, text

_HINT = (
    "The environment has changed since, or the seed no longer reads this row; record the rollouts again, or find out what "
    "changed the answer."
)
_ASKED = (
    "It was the call's own `{}`, which the tool now reads under another name, keeps within other bounds, or ignores; or the "
    "environment has changed on purpose: record the rollouts again."
)

#: Values that are in a call's arguments and in its reply by accident.
_COMMON: Final = (None, "", 0, 1)

_LOST = (
    "The record is not stale: it holds for a client that keeps each cookie until it is replaced. The default agent, which "
    "replaces its cookies with those of each reply, loses the session on the way."
)

_LEFT = (
    "The record is not stale, but earlier sessions have left something behind: one store for all sessions, or one keyed "
    "by the row. The untouched server answered as recorded."
)

#: What was recorded is one run: it differs where it never comes again in so many, and so many run at once.
_RUNS, _AT_ONCE = 40, 8

#: Seconds before the call that differs, as a policy takes to think: what was not ready at once may be by then.
PAUSES = (0.3, 1.0, 3.0)

_NO_WAITS: Final[Mapping[int, float]] = {}


async def differs_from_record(trial: Trial, row: Row) -> None:
    """Hold a row's first recorded rollout to what the server answers now, and one that earned something else.

    So is one that earned the same for other words, if it makes no calls, since there may be several right answers, and one
    that calls a tool which those before it do not.

    Raises:
        Violation: a tool's output or the reward is not as recorded.
        NotApplicable: the server refuses the record, made by an older version, or asks a judge, who is our mock, or other hosts.
    """
    first, *others = trial.gym.recorded[row]
    await _differs(trial, row, first)
    unlike = (each for each in others if each.reward != first.reward)
    alike = (each for each in others if each.reward == first.reward and each.last_text != first.last_text)
    chosen = [*islice(unlike, 1), *islice((each for each in alike if not each.calls), 1)]
    for other in (*chosen, *islice(_calling_others(others, [first, *chosen]), 1)):
        trial.channel.exchanges.clear()
        with suppress(NotApplicable):
            await _differs(trial, row, other)


def _calling_others(rollouts: Iterable[Rollout], repeated: Iterable[Rollout]) -> Iterator[Rollout]:
    """Those that call a tool which no repeated one does."""
    known = {call.name for each in repeated for call in each.calls}
    return (each for each in rollouts if any(call.name not in known for call in each.calls))


async def _differs(trial: Trial, row: Row, rollout: Rollout) -> None:
    recorded = _recorded(rollout)
    if trial.gym.kind is ServerKind.SINGLE_TURN and len(recorded.steps) > 1:
        raise NotApplicable("its calls were made to tools that are not served here")
    if left_out := trial.launched.left_out:
        raise NotApplicable(f"what it answers may need what was left out of its requirements: {', '.join(left_out)}")
    rollout, now = await _as_accepted(trial, row, rollout)
    again = await _run(trial, row, rollout)
    if not is_success(now.steps[-1].status):
        raise NotApplicable(f"/verify answers {now.steps[-1].status} to it; an older version recorded it")
    trial.expect_own_score()
    if trial.asked.outside:
        raise NotApplicable("it asks other hosts, which answer nothing of what they did when it was recorded")
    if trial.gym.endpoint.groups.size > 1:
        raise NotApplicable("its reward was relative to the others of its group, which are not recorded with it")
    outcomes = [recorded, now, again]
    mask = _not_recorded(recorded, now, row) | varying(outcomes[1:])
    for _batch in range(0, _RUNS, _AT_ONCE):  # a value that comes now and then is noise
        if _first(recorded, now, mask) is None:
            return
        runs = (_run(trial, row, rollout, Channel(trial.gym.endpoint)) for _ in range(_AT_ONCE))
        outcomes += await asyncio.gather(*runs)
        mask |= varying(outcomes[1:])
    now, mask = await _but_for_time(trial, row, rollout, (recorded, now), mask)
    if difference := _first(recorded, now, mask):
        _expect_told_alike(outcomes, difference)
        raise Violation(
            f"{difference.step} answers {difference.expected!r}, as recorded in {rollout}",
            f"{_said(now, difference)}{_earned(recorded, now, mask, difference)}",
            *await _likely(trial, row, rollout, (recorded, mask), difference),
        )


async def _likely(
    trial: Trial, row: Row, rollout: Rollout, record: tuple[Outcome, frozenset[Place]], difference: Difference
) -> tuple[str, Cause | None]:
    """Why it is not as recorded, and the cause if other checks find it, too."""
    recorded, mask = record
    if _leaks(trial, row, rollout, difference):
        return _LEFT, Cause.OUTLIVING_STATE
    kept = await _run(trial, row, rollout, Channel(trial.gym.endpoint), habit=CookieHabit.COLLECTING)
    if _first(recorded, kept, mask) is None:
        return _LOST, Cause.LOST_SESSION
    leaks, fresh = await _told_by_a_fresh_process(trial, row, rollout, recorded, mask)
    return (_LEFT, Cause.OUTLIVING_STATE) if leaks else (fresh + _hint(rollout, difference), None)


async def _as_accepted(trial: Trial, row: Row, rollout: Rollout) -> tuple[Rollout, Outcome]:
    """The rollout and its outcome; without its usage if it is refused with that, since an older version recorded it."""
    now = await _run(trial, row, rollout)
    if is_success(now.steps[-1].status) or not _usage(rollout):
        return rollout, now
    bare = rollout.with_response(usage=None)
    return bare, await _run(trial, row, bare)


def _hint(rollout: Rollout, difference: Difference) -> str:
    """What is likely: where the record has what the call asked for, that the tool no longer does it."""
    if difference.step == VERIFY or difference.expected in _COMMON:
        return _HINT
    call, _ = rollout.answered[int(difference.place[0])]
    names = (name_of(way) for value, way in scalars(call.arguments) if same(value, difference.expected))
    return next((_ASKED.format(name) for name in names if name), _HINT)


def _said(now: Outcome, difference: Difference) -> str:
    """What stands there now; the whole reply if it refuses the call, where nothing does."""
    step = now.steps[int(difference.place[0])]
    return describe(step.source) if step.source and step.is_refused else repr(difference.actual)


def _earned(recorded: Outcome, now: Outcome, mask: frozenset[Place], told: Difference) -> str:
    """What it comes to, where the reward is another, too: that is what the record is kept for."""
    rewards = (one for one in differences(recorded, now, mask) if one.step == VERIFY != told.step)
    return next((f", and the rollout earns {one.actual!r} where it earned {one.expected!r}" for one in rewards), "")


def _expect_told_alike(outcomes: Sequence[Outcome], difference: Difference) -> None:
    """Refuse to judge where no run was told what the recorded one, the first of them, was told before it differs.

    The policy acted on what it was told: in a world that is drawn anew, nobody knows what its calls lead to.
    """
    recorded, *runs = outcomes
    alike = told_alike(outcomes, varying(runs))
    if not any(alike(recorded, run, int(difference.place[0])) for run in runs):
        raise NotApplicable(f"what the server says before {difference.step} is drawn anew in each session")


async def _but_for_time(
    trial: Trial, row: Row, rollout: Rollout, was_and_is: tuple[Outcome, Outcome], mask: frozenset[Place]
) -> tuple[Outcome, frozenset[Place]]:
    """A run that waits where that makes it as the record is, and the mask, with what else changes in a pause.

    What comes later may rest on what was ready by then, such as a job that was seen to be done: so a pause that helps is
    kept in the runs that follow. What was not ready may show later only, so a run that waits before each step is one, too.
    """
    recorded, now = was_and_is
    kept: dict[int, float] = {}
    while difference := _first(recorded, now, mask):
        step = int(difference.place[0])
        pauses = [{**kept, step: pause} for pause in PAUSES if pause > kept.get(step, 0.0)]
        pauses += [paced] if (paced := dict.fromkeys(range(step + 1), PAUSES[0]) | kept) != kept else []
        runs = await asyncio.gather(
            *(_run(trial, row, rollout, Channel(trial.gym.endpoint), waits) for waits in pauses)
        )
        further = (each for each in zip(runs, pauses, strict=True) if _is_further(recorded, each[0], mask, difference))
        if better := next(further, None):
            now, kept = better
            continue
        mask |= varying([now, *runs])
        if _first(recorded, now, mask) == difference:
            break
    return now, mask


def _is_further(recorded: Outcome, run: Outcome, mask: frozenset[Place], difference: Difference) -> bool:
    """Whether a run is as recorded in that step, too."""
    first = _first(recorded, run, mask)
    return first is None or int(first.place[0]) > int(difference.place[0])


def _not_recorded(recorded: Outcome, now: Outcome, row: Row) -> frozenset[Place]:
    """What a record does not say: statuses, and what a tool answered that is not served here, or not over HTTP.

    A row that declares no tool had them over MCP, where a result has another form.
    """
    mask: set[Place] = set()
    for number, (was, now_is) in enumerate(zip(recorded.steps, now.steps, strict=True)):
        mask.add((number, "status"))
        if was.name == VERIFY:
            if not isinstance(was.body, int | float):
                raise NotApplicable("its recorded reward is not a number")
            continue
        if now_is.status in UNROUTED or not row.tools:
            mask.add((number, "body"))
    return frozenset(mask)


#: How long a reply took, as `took_ms` says: the same in several runs only where it is kept.
_TOOK: Final = re.compile(r"(^|_)(took|elapsed|latency)(_|$)", re.IGNORECASE)

#: What a process, or the machine that it runs on, is called by in a reply.
_PROCESS: Final = re.compile(
    r"(^|_)(pid|process|worker|thread|host|hostname|node|machine|pod|container|instance|replica|served_by)(_(id|name))?$",
    re.IGNORECASE,
)

#: One word with a number in it, and those of them that count what was published.
_MARK: Final = re.compile(r"(?=.*\d)[\w.:@-]+")
_VERSION: Final = re.compile(r"v?\d+(\.\d+){0,2}", re.IGNORECASE)


def _first(recorded: Outcome, now: Outcome, mask: frozenset[Place]) -> Difference | None:
    found = (one for one in differences(recorded, now, mask) if not _TOOK.search(str(one.place[-1])))
    changed = [
        one
        for one in found
        if not both_tell_the_time(one.expected, one.actual)
        and not reordered(recorded, now, one)
        and not _marks_the_process(recorded, now, one)
    ]
    days_of = cache(partial(_days_later, recorded, now))
    dated = [same_but_for_dates(one.expected, one.actual) for one in changed]
    days = [days_of(int(one.place[0])) if moved else None for one, moved in zip(changed, dated, strict=True)]
    # a calendar that begins today offers later days than when it was recorded, all of them by as many
    one_calendar = len({*days} - {None}) == 1
    return next((one for one, later in zip(changed, days, strict=True) if not (one_calendar and later)), None)


def _marks_the_process(recorded: Outcome, now: Outcome, difference: Difference) -> bool:
    """Whether it is one value for all replies of several tools, and was another one for all of them: a process's id, or a host's.

    It must be called or look like one: days and currencies are the same in all replies as well, and belong to the record.
    """
    values = (difference.expected, difference.actual)
    if difference.step == VERIFY or not (_PROCESS.search(str(difference.place[-1])) or all(map(_may_be_mark, values))):
        return False
    names, told = set[str](), list[tuple[Any, Any]]()
    for at, step in enumerate(recorded.steps):
        place = (at, *difference.place[1:])
        if (was := values_at(recorded, place)) and (now_is := values_at(now, place)):
            names.add(step.name)
            told.append((was[0], now_is[0]))
    one_for_all = all(same(pair[side], told[0][side]) for pair in told for side in (0, 1))
    return len(names) > 1 and difference.place[1] == "body" and one_for_all


def _may_be_mark(value: Any) -> bool:
    """Whether a value looks like a process's number, or like an id or a host's name with a number: no date, no version."""
    if isinstance(value, str):
        return bool(_MARK.fullmatch(value)) and not tells_time(value) and not _VERSION.fullmatch(value)
    return type(value) is int and value > 0


def _days_later(recorded: Outcome, now: Outcome, step: int) -> int | None:
    """By how many days all dates of a step's reply moved on."""
    return days_later(text(recorded.steps[step].body), text(now.steps[step].body))


def _leaks(trial: Trial, row: Row, rollout: Rollout, difference: Difference) -> bool:
    """Whether the first look saw the record hold, or saw what one session leaves to others."""
    look = trial.learned.first_look
    if look is None:
        return False
    played = look.played if rollout is trial.gym.recorded[row][0] else ()
    first = next((each.outcome for each in played if each.trajectory.row is row), None)
    return look.change is not None or (first is not None and _said_so(first, difference))


def _said_so(first: Outcome, difference: Difference) -> bool:
    """Whether an outcome has at the difference's place what was recorded there."""
    at = len(first.steps) - 1 if difference.step == VERIFY else min(int(difference.place[0]) + 1, len(first.steps) - 1)
    said = values_at(first, (at, *difference.place[1:]))
    return first.steps[at].name == difference.step and bool(said) and same(said[0], difference.expected)


async def _told_by_a_fresh_process(
    trial: Trial, row: Row, rollout: Rollout, recorded: Outcome, mask: frozenset[Place]
) -> tuple[bool, str]:
    """Whether the record holds where nobody was before, and a sentence that it does not."""
    async with fresh_process(trial, suspicion=True) as gym:
        if gym is None:
            return False, ""
        first = await _run(trial, row, rollout, Channel(gym.endpoint))
    return _first(recorded, first, mask) is None, "A process started for it answers otherwise, too. "


def _recorded(rollout: Rollout) -> Outcome:
    steps = [
        StepOutcome(tool_path(call.name), HTTPStatus.OK.value, parsed(output)) for call, output in rollout.answered
    ]
    return Outcome((*steps, StepOutcome(VERIFY, HTTPStatus.OK.value, rounded(rollout.reward))))


async def _run(
    trial: Trial,
    row: Row,
    rollout: Rollout,
    channel: Channel | None = None,
    waits: Mapping[int, float] = _NO_WAITS,
    *,
    habit: CookieHabit = CookieHabit.REPLACING,
) -> Outcome:
    """Make the recorded calls, and verify; `waits` has the seconds to wait before steps, by number."""
    session = await trial.open(row, habit, channel)
    steps, replies = list[StepOutcome](), list[Any]()
    linked = followed(row, rollout).calls
    calls = [*linked, *(call for call, _ in rollout.played[len(linked) :])]
    for call, (_, output) in zip(calls, rollout.played, strict=True):
        made = Call(call.name, resolve(call.arguments, replies))
        await asyncio.sleep(waits.get(len(steps), 0.0))
        step = StepOutcome.of_call(made, reply_of(await session.call(made)))
        replies.append(step.body)
        steps += [step] if output is not None else []
    await asyncio.sleep(waits.get(len(steps), 0.0))
    verified = await session.verify(response(rollout.output, **_usage(rollout)))
    return Outcome((*steps, StepOutcome.of_verify(reply_of(verified))))


def _usage(rollout: Rollout) -> Mapping[str, Any]:
    """The tokens that the rollout took, for a scorer that counts them."""
    usage = rollout.response.get("usage")
    return {"usage": usage} if isinstance(usage, dict) else {}
