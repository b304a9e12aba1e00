"""Isolation in time: a session knows nothing of those before it.

Source: `add_session_id` in nemo_gym/server_utils.py gives each client a session of its own (every version). A store that
all sessions share, and that no seed resets, is the commonest leak that shipped.
"""

import json
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from http import HTTPStatus
from itertools import chain, islice, permutations, zip_longest
from random import Random
from typing import Any, Final

from gym_conformance.contract.dataset_rows import Call
from gym_conformance.contract.endpoints import VERIFY
from gym_conformance.findings import Cause
from gym_conformance.session.channel import Channel
from gym_conformance.trajectories.before_and_after import (
    ChangedAnswer,
    by_design,
    changed,
    changed_since,
    reads_on,
)
from gym_conformance.trajectories.evidence import LOOKS, Look, allowed, chance_of
from gym_conformance.trajectories.execute import FEW, TrajectoryRun, run, run_each
from gym_conformance.trajectories.first import bare_reads, known
from gym_conformance.trajectories.followed import scalars
from gym_conformance.trajectories.generate import Knowledge, is_read
from gym_conformance.trajectories.outcome import (
    Outcome,
    Place,
    StepOutcome,
    differences,
    moved,
    varying,
)
from gym_conformance.trajectories.renaming import (
    has_number,
    ids_of,
    names_in,
    new_names,
    phrased,
    read_back,
    renamed,
    shared_names,
    taking,
    with_more_zeros,
    with_other_numbers,
    with_other_options,
    word,
    words_of_answer,
)
from gym_conformance.trajectories.trajectory import PLAIN_ANSWER, Schedule, Trajectory, resolve
from gym_conformance.trials.check import Level, check
from gym_conformance.trials.ending import Violation
from gym_conformance.trials.fresh_process import fresh_process
from gym_conformance.trials.needs import FIRST_LOOK, RESOURCES_SERVER, SCORE
from gym_conformance.trials.property import knowledge_of
from gym_conformance.trials.same_answer import expect_the_same_each_time
from gym_conformance.trials.suspicions import (
    STORE,
    Anyway,
    Between,
    Likeness,
    Maker,
    Patience,
    Suspicion,
    Told,
    expect_none,
    suspected,
)
from gym_conformance.trials.trial import Trial

#: Trajectories that are tried under other names, and sets of names of each.
_TRAJECTORIES, _SETS = 3, 2

#: Sessions that come and go between two reads of another, one after the other.
_BETWEEN = 2

#: What a session reads where it has come to.
_READS = 6

#: Pairs of sessions of which one asks for what the other was given.
_PAIRS = 4

#: Fields of rows of which some are alike.
_SHARED = 3

#: Zeros that may follow a number: fewer than these, and another number of them each time.
_ZEROS: Final = 180

#: Seconds in which pairs of sessions are looked at, and then as many for those that are suspected; longer profiles take
#: so many times their patience. One of each kind is tried whatever the clock says.
_SECONDS, _PATIENCE = 30.0, 3

_KEPT: Final = (
    "What is answered is kept for all sessions under a part of the arguments: what it is kept under must name all of them, "
    "such as the size of a page and its cursor, too."
)

_CACHED: Final = "The score is kept under the answer alone: what it is kept under must name the row, too."

_POOLED: Final = (
    "The score takes in earlier ones of the same task, such as a mean, a best one or a bonus for what is new: it must "
    "depend on this session and the response alone."
)

_CUT: Final = (
    "The score is kept under a part of the answer, such as its beginning: what it is kept under must be all of it."
)

#: Words that two answers have in common, before what differs or after it: more than any key is cut to.
_ALIKE: Final = "I go through it once more, step by step, and write down all that follows from it. " * 8


@check(
    "isolation-earlier",
    Level.MUST,
    "A session MUST know nothing of earlier ones",
    why="rollouts build on what others left: the same actions earn another reward each time, and training goes on.",
    needs=[RESOURCES_SERVER, FIRST_LOOK, SCORE],
)
async def isolation_earlier(trial: Trial, _: object) -> None:
    """Looks for what a session leaves to later ones, in ten ways.

    Reads and a verify are run 17 times on the untouched server, and 17 times after recorded rollouts; they stay the
    same. So they do each time that another session writes between them. A session that reads twice reads the same
    where another one comes and goes in between, at once and where it has come to after a rollout's calls.

    And a trajectory comes to the same whether an earlier session has spoken of the same names and numbers, or of
    others; names and numbers that nobody has used are put into calls and row for it, and read back from the replies. It
    does so, too, where the earlier one has asked for the same words with other options, such as another size of a page,
    after a session on another row that has the same id, or another text alike, and after one on its own row that did
    nothing.

    An answer earns the same on a row whether or not it was given to another row before, or one that begins or ends
    alike to the same row; and the first time as the seventeenth, as calls do with names that nobody has used.

    What differs anyway is not compared. A server that the suite launched is launched once more beside it, with
    `--gym-profile ci` and longer ones, or where a difference may have been chance and it starts in five seconds: there
    the first of these is repeated with whole trajectories. What a slow server leaves no time for, in turn of each kind,
    is counted in a caution.

    Source: `add_session_id` in nemo_gym/server_utils.py (every version).
    """
    look = trial.learned.first_look
    if look and look.change and _excludes_chance(trial):
        raise _violation(trial, look.change)
    knowledge = await knowledge_of(trial)
    if look and (change := await changed_since(trial.gym, look)) and _excludes_chance(trial):
        raise _violation(trial, change)
    found = known(knowledge)[:_TRAJECTORIES]
    differs = {probe: varying(before) for probe, before in zip(look.probes, look.before, strict=True)} if look else {}
    probes = (*differs, *_reads_of(knowledge, found, tuple(differs)))
    kinds = (
        *(_around(trial, probe, found, differs.get(probe, frozenset())) for probe in probes),
        _where_it_ends(trial, knowledge, found),
        (make for trajectory in found for make in _by_name(trial, trajectory, found)),
        (make for trajectory in found for make in _by_phrase(trial, trajectory)),
        _by_attempts(trial, found),
        _by_row(trial, knowledge),
        _by_answer(trial, found),
        _by_words_alike(trial, found),
    )
    makers = [make for make in chain.from_iterable(zip_longest(*kinds)) if make]
    seconds = max(_SECONDS, _PATIENCE * trial.settings.search.profile.patience)
    looking, excluding = (Patience(seconds, len(kinds)) for _ in range(2))
    suspects = await suspected(trial, makers, knowledge.beside(FEW), looking)
    # beside others no sum moves by the same twice, and what was made last is somebody else's
    alone = [*_asking_for_others(trial, found), *await _by_number(trial, found)]
    for make in (*suspects, *alone):
        if excluding.allows():
            await expect_none(trial, make())
    await expect_the_same_each_time(trial, found)
    looked = await _expect_unchanged_afresh(trial, found)
    pairs, left_out = len(makers) + len(alone), looking.left_out + excluding.left_out
    trial.note = f"{pairs - left_out} pairs of sessions" + (
        f", and {looked} more on a process started for it" if looked else ""
    )
    if left_out:
        few = f"only {pairs - left_out} of {pairs} pairs of sessions were tried"
        trial.caution = f"{few}: the server is slow; use {trial.settings.search.profile.enough}"


def _reads_of(knowledge: Knowledge, found: Sequence[Trajectory], probes: Sequence[Trajectory]) -> Iterator[Trajectory]:
    """The reads of a trajectory that follow what others return, which no look at an untouched server could make."""
    asked = {call.name for probe in probes for call in probe.calls}
    for trajectory in found:
        reads = trajectory.without([at for at, call in enumerate(trajectory.calls) if not knowledge.reads(call.name)])
        if new := {call.name for call in reads.calls} - asked:
            asked |= new
            yield reads


async def _expect_unchanged_afresh(trial: Trial, found: Sequence[Trajectory]) -> int:
    """Take a first look once more, at a process where nobody was before: how many trajectories it tried.

    What the sessions of this run have changed for good, before it could be compared, is as it was there. Whole
    trajectories are looked at, too, those that do least before the others.
    """
    async with fresh_process(trial, suspicion=bool(trial.dismissed)) as gym:
        if gym is None:
            return 0
        reads = [reads_on(gym, row) for row in dict.fromkeys(one.row for one in found)]
        probes = (*[one for one in reads if one.calls], *sorted(found, key=lambda one: len(one.calls)))
        look = await changed(gym, probes, [_fresh(one) for one in found])
    if look.change and _excludes_chance(trial):
        raise _violation(trial, look.change)
    return len(probes)


def _excludes_chance(trial: Trial) -> bool:
    trial.tried.comparisons += 1
    pairs = LOOKS[0].trials + LOOKS[1].trials
    return chance_of([(Look(pairs, pairs, 1, 1), pairs, 0)]) <= allowed(trial.tried.comparisons)


def _violation(trial: Trial, change: ChangedAnswer) -> Violation:
    trial.channel.exchanges[:] = change.exchanges
    trial.schedule = change.schedule
    difference = change.difference
    return Violation(
        f"{difference.step} answers {difference.expected!r}, as before other sessions came and went",
        f"{difference.actual!r} in a fresh session after them",
        STORE,
        Cause.OUTLIVING_STATE,
    )


def _around(trial: Trial, probe: Trajectory, found: Sequence[Trajectory], differs: frozenset[Place]) -> Iterator[Maker]:
    """A probe in sessions before and after others, and in one that lasts while others come and go."""
    anyway = _in_two(trial, probe, differs)
    for writes in found:
        yield partial(Between, trial, anyway, partial(_fresh, writes), _told_of(probe, writes))
    yield from _steady(trial, replace(probe, calls=()), probe.calls, found[:_BETWEEN])


def _in_two(trial: Trial, probe: Trajectory, differs: frozenset[Place] = frozenset()) -> Anyway:
    """A probe in two sessions, one after the other; some of what differs anyway may be known."""

    async def in_two(channel: Channel, between: Callable[[], Awaitable[object]]) -> tuple[Outcome, Outcome]:
        before = await run(trial.gym, channel, probe)
        await between()
        return before, await run(trial.gym, channel, probe)

    return Anyway(trial, in_two, differs)


def _told_of(probe: Trajectory, writes: Trajectory) -> Told:
    return Told(
        Schedule((probe, writes, probe)), ", as before another session came and went", " in a fresh session after it"
    )


def _asking_for_others(trial: Trial, found: Sequence[Trajectory]) -> Iterator[Maker]:
    """What a session on one row is answered where it asks for what another row's session was given, around that one."""
    for one, other in islice(permutations(found, 2), _PAIRS):
        asked = {call.name: call for call in other.calls}
        words = json.dumps(one.row.data, ensure_ascii=False)
        strange = [Call(call.name, resolve(call.arguments, [])) for call in reversed(asked.values())]
        told = [call for call in strange if any(str(value) not in words for value, _ in scalars(call.arguments))]
        if told and one.row is not other.row:
            probe = Trajectory(one.row, tuple(told[:_READS]))  # last first: they lead to less
            yield partial(Between, trial, _in_two(trial, probe), partial(replace, other), _told_of(probe, other))


def _where_it_ends(trial: Trial, knowledge: Knowledge, found: Sequence[Trajectory]) -> Iterator[Maker]:
    """What a session reads where it has come to, while another goes the same way, and while others come and go."""
    for lasting_one in found:
        asked = [call for call in lasting_one.calls if knowledge.reads(call.name)]
        asked += [call for call in bare_reads(lasting_one.row) if call not in asked]
        others = [] if lasting_one is found[0] else [found[0]]
        if asked:
            yield from _steady(trial, lasting_one, asked[-_READS:], [lasting_one, *others])


def _steady(
    trial: Trial, lasting_one: Trajectory, reads: Sequence[Call], between: Sequence[Trajectory]
) -> Iterator[Maker]:
    """A session that does something, and then reads twice, while another comes and goes in between.

    What is never the same in two sessions, such as a list that grows with each of them, is the same within one.
    """
    done = len(lasting_one.calls)
    whole = replace(lasting_one, calls=(*lasting_one.calls, *reads, *reads))
    before = (0,) * (1 + done + len(reads))

    async def in_one(channel: Channel, another: Callable[[], Awaitable[object]]) -> tuple[Outcome, Outcome]:
        rollout = TrajectoryRun(trial.gym, channel, whole)
        for _step in before:
            await rollout.step()
        await another()
        calls = (await rollout.finish()).calls[done:]
        await rollout.session.close()
        return Outcome(calls[: len(reads)]), Outcome(calls[len(reads) :])

    anyway = Anyway(trial, in_one)
    for writes in between:
        told = Told(
            Schedule((whole, writes), before + (1,) * writes.steps),
            " again, as where no other session comes and goes in between",
            " after another session",
        )
        yield partial(Between, trial, anyway, partial(_fresh, writes), told)


def _fresh(trajectory: Trajectory) -> Trajectory:
    """The trajectory with new names that were never used, if it has names."""
    names = names_in(trajectory)
    return renamed(trajectory, new_names(names[-1], Random())) if names else trajectory  # noqa: S311 - names, no secrets


def _by_name(trial: Trial, trajectory: Trajectory, found: Sequence[Trajectory]) -> Iterator[Maker]:
    """A trajectory after a session with the same names, held to one after a session with other names.

    The earlier session makes the same calls, on the same row or on that of another, whose things take the names.
    """
    sets = names_in(trajectory)
    others = (other for other in found if other.row is not trajectory.row)
    draw = Random()  # noqa: S311 - names, no secrets

    async def after(channel: Channel, *, names: frozenset[Any], other: Trajectory, same: bool) -> Outcome:
        earlier, spoken = replace(trajectory, row=other.row), frozenset[Any]()
        if other is not trajectory:  # its own things keep their names, but for those that are looked for
            spoken = next(iter(names_in(other)), spoken)
        mine = new_names(names, draw)
        theirs = mine if same else new_names(names, draw)
        await run(trial.gym, channel, renamed(earlier, {**taking(spoken, theirs), **theirs}))
        return read_back(await run(trial.gym, channel, renamed(trajectory, mine)), mine)

    for names, other in [*((names, trajectory) for names in sets[:_SETS]), *zip(sets, others, strict=False)]:
        told = Told(
            Schedule((replace(trajectory, row=other.row), trajectory)), ", as after a session that used other names"
        )
        tried, control = [partial(after, names=names, other=other, same=same) for same in (True, False)]
        yield partial(Likeness, trial, tried, control, told)


def _by_attempts(trial: Trial, found: Sequence[Trajectory]) -> Iterator[Maker]:
    """What a trajectory earns after a poor attempt at the same task, held to one after a poor attempt at another.

    No earlier attempt at either is known: their names and ids are new.
    """
    draw = Random()  # noqa: S311 - names, no secrets

    async def after(channel: Channel, *, one: Trajectory, names: frozenset[Any], same: bool) -> Outcome:
        mine = new_names(names, draw)
        theirs = mine if same else new_names(names, draw)
        await run(trial.gym, channel, Trajectory(renamed(one, theirs).row))
        reward = (await run(trial.gym, channel, renamed(one, mine))).reward
        return Outcome((StepOutcome(VERIFY, HTTPStatus.OK.value, reward),))

    for one in found:
        if names := frozenset().union(*names_in(one)[:1], ids_of(one.row)):
            told = Told(Schedule((Trajectory(one.row), one)), ", as after an attempt at another task", hint=_POOLED)
            tried, control = [partial(after, one=one, names=names, same=same) for same in (True, False)]
            yield partial(Likeness, trial, tried, control, told)


def _by_phrase(trial: Trial, trajectory: Trajectory) -> Iterator[Maker]:
    """A trajectory after a session that has read the same in its words and otherwise in all that is none, held to one alone.

    No earlier answer to its words is known: a word that nobody has said before stands behind each.
    """
    draw = Random()  # noqa: S311 - words, no secrets
    reads = trajectory.without([at for at, call in enumerate(trajectory.calls) if not is_read(call.name)])

    async def after(channel: Channel, *, same: bool) -> Outcome:
        spoken, names = phrased(reads, draw)
        await run(trial.gym, channel, with_other_options(spoken if same else phrased(reads, draw)[0]))
        return read_back(await run(trial.gym, channel, spoken), names)

    if phrased(reads, draw)[1] and with_other_options(reads).calls != reads.calls:
        told = Told(
            Schedule((with_other_options(reads), reads)), ", as after a session that asked for other words", hint=_KEPT
        )
        yield partial(Likeness, trial, partial(after, same=True), partial(after, same=False), told)


def _by_row(trial: Trial, knowledge: Knowledge) -> Iterator[Maker]:
    """A trajectory after one on another row that shares a text with its own, such as a task's id.

    Both have a new one in its place, and in the control each another: rows of one task are served and scored by what
    else they have.
    """
    draw = Random()  # noqa: S311 - names, no secrets
    by_row = {one.row: one for one in reversed(known(knowledge))}

    async def after(channel: Channel, *, one: Trajectory, other: Trajectory, value: Any, same: bool) -> Outcome:
        mine = new_names(frozenset([value]), draw)
        theirs = mine if same else new_names(frozenset([value]), draw)
        await run(trial.gym, channel, renamed(other, theirs))
        return read_back(await run(trial.gym, channel, renamed(one, mine)), mine)

    for value, *rows in shared_names(trial.gym.rows)[:_SHARED]:
        for one, other in permutations(by_row.get(row) or reads_on(trial.gym, row) for row in rows):
            told = Told(Schedule((other, one)), ", as after a session on a row that shares nothing with its own")
            tried, control = [partial(after, one=one, other=other, value=value, same=same) for same in (True, False)]
            yield partial(Likeness, trial, tried, control, told)


async def _by_number(trial: Trial, found: Sequence[Trajectory]) -> list[Maker]:
    """What a session's numbers move by, held to what they move by after a session that said other numbers.

    For what is never the same twice: a counter moves by the same whatever was said, and a sum does not.
    """

    def moving(trajectory: Trajectory, other: Trajectory) -> Suspicion:
        last: Outcome | None = None

        async def after(channel: Channel, *, between: Trajectory) -> Outcome:
            nonlocal last
            before = last or await run(trial.gym, channel, trajectory)
            await run(trial.gym, channel, between)
            last = await run(trial.gym, channel, trajectory)
            return moved(before, last)

        told = Told(
            Schedule((trajectory, other, trajectory)),
            ", more than before, as after a session that said the same numbers",
        )
        return Likeness(trial, partial(after, between=other), partial(after, between=trajectory), told)

    # not beside itself: two that read a sum at the same time may answer alike
    first, second = [await run_each(trial.gym, found) for _ in range(2)]
    moves = [one for one, before, after in zip(found, first, second, strict=True) if _moves(before, after)]
    return [partial(moving, one, other) for one in moves if (other := with_other_numbers(one))]


def _moves(first: Outcome, second: Outcome) -> bool:
    """Whether a number differs that says neither a time nor what sound servers share."""
    numbers = (one for one in differences(first, second) if isinstance(one.expected, int | float) and not one.of_time)
    return any(isinstance(one.actual, int | float) and not by_design(one.place) for one in numbers)


def _by_answer(trial: Trial, found: Sequence[Trajectory]) -> Iterator[Maker]:
    """What an answer earns on a row, after it was given to another row.

    No earlier score of it is known: a word that nobody has said before stands before it, or zeros follow its number.
    """
    own = next((each for each in found if each.answer != PLAIN_ANSWER), None)
    other = next((Trajectory(row) for row in trial.gym.rows if own and row is not own.row), None)
    if own is None or other is None:
        return
    draw = Random()  # noqa: S311 - words, no secrets
    lengths = iter(draw.sample(range(1, _ZEROS), _ZEROS - 1))

    def after_a_word() -> str:
        return f"{word(draw)} {own.answer}"

    def with_zeros() -> str:
        return with_more_zeros(own.answer, next(lengths, 1))

    async def scored(channel: Channel, *, new: Callable[[], str], before: bool) -> Outcome:
        answer = new()
        if before:
            await run(trial.gym, channel, replace(own, answer=answer))
        reward = (await run(trial.gym, channel, replace(other, answer=answer))).reward
        return Outcome((StepOutcome(VERIFY, HTTPStatus.OK.value, reward),))

    told = Told(
        Schedule((own, replace(other, answer=own.answer))),
        ", as where the answer was not given to another row before",
        hint=_CACHED,
    )
    for new in (after_a_word, *([with_zeros] if has_number(own.answer) else ())):
        tried, control = [partial(scored, new=new, before=before) for before in (True, False)]
        yield partial(Likeness, trial, tried, control, told)

    async def scored_in_new_words(channel: Channel, *, one: Trajectory, old: str, before: bool) -> Outcome:
        names = new_names(frozenset([old]), draw)
        answer = one.answer.replace(old, names[old])
        if before:
            await run(trial.gym, channel, replace(renamed(one, names), answer=answer))
        reward = (await run(trial.gym, channel, replace(other, answer=answer))).reward
        return Outcome((StepOutcome(VERIFY, HTTPStatus.OK.value, reward),))

    right = ((one, old) for one in found if one.row is not other.row for old in words_of_answer(one))
    for one, old in islice(right, 1):
        tried, control = [partial(scored_in_new_words, one=one, old=old, before=before) for before in (True, False)]
        yield partial(Likeness, trial, tried, control, told)


def _by_words_alike(trial: Trial, found: Sequence[Trajectory]) -> Iterator[Maker]:
    """What a poor answer earns after a good one to the same row that begins alike, or ends alike, in words that nobody said."""
    draw = Random()  # noqa: S311 - words, no secrets

    async def after(channel: Channel, *, one: Trajectory, form: str, same: bool) -> Outcome:
        mine = word(draw)
        theirs = mine if same else word(draw)
        await run(trial.gym, channel, replace(one, answer=form.format(theirs, one.answer)))
        reward = (await run(trial.gym, channel, replace(one, answer=form.format(mine, PLAIN_ANSWER)))).reward
        return Outcome((StepOutcome(VERIFY, HTTPStatus.OK.value, reward),))

    for one in islice((each for each in found if each.answer != PLAIN_ANSWER), 1):
        for form in (f"{{0}} {_ALIKE}{{1}}", f"{{1}} {_ALIKE}{{0}}"):
            pair = Schedule(
                tuple(replace(one, answer=form.format("Well.", each)) for each in (one.answer, PLAIN_ANSWER))
            )
            told = Told(pair, ", as where no answer that begins or ends alike was given before", hint=_CUT)
            tried, control = [partial(after, one=one, form=form, same=same) for same in (True, False)]
            yield partial(Likeness, trial, tried, control, told)


async def _before_and_after(trial: Trial, schedule: Schedule) -> None:
    """What `--gym-replay` does: the first trajectory 17 times before the others, and 17 times after them.

    Where the others come and go in its midst, it reads before and after that.
    """
    probe, *writes = schedule.trajectories
    if schedule.order:
        begun = schedule.order.index(1) - 1
        reads = probe.calls[begun:]
        lasting_one = replace(probe, calls=probe.calls[: begun - len(reads)])
        for make in _steady(trial, lasting_one, reads, writes[:1]):
            await expect_none(trial, make())
        return
    if change := (await changed(trial.gym, (probe,), writes)).change:
        raise _violation(trial, change)


isolation_earlier = replace(isolation_earlier, attempt=_before_and_after)
