"""What a session comes to after one that has something in common with it, held to what it comes to after one that has not."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from http import HTTPStatus
from itertools import islice, permutations, product
from random import Random
from typing import Any, Final

from gym_conformance.contract.dataset_rows import Call, Row
from gym_conformance.contract.endpoints import VERIFY
from gym_conformance.contract.verify_reply import is_number
from gym_conformance.grouping import first_of_each
from gym_conformance.session.channel import Channel
from gym_conformance.trajectories.execute import run, run_each
from gym_conformance.trajectories.generate import Knowledge, is_reading, writes_in
from gym_conformance.trajectories.known import known
from gym_conformance.trajectories.other_values import (
    has_number,
    with_more_zeros,
    with_other_numbers,
    with_other_options,
)
from gym_conformance.trajectories.outcome import Outcome, StepOutcome, differences, moved
from gym_conformance.trajectories.programs import with_comment
from gym_conformance.trajectories.renaming import (
    Names,
    ids_of,
    names_in,
    new_names,
    new_shapes,
    own,
    phrased,
    read_back,
    renamed,
    respelled,
    sentences_of,
    shaped_in,
    shared_names,
    taking,
    word,
    words_of_answer,
)
from gym_conformance.trajectories.trajectory import PLAIN_ANSWER, Schedule, Trajectory, is_linked
from gym_conformance.trials.before_and_after import by_design, reads_on
from gym_conformance.trials.suspicions import Likeness, Maker, Suspicion, Told
from gym_conformance.trials.trial import Trial
from gym_schemas import scalars

#: Sets of names of one trajectory.
_SETS = 2

#: Fields of rows of which some are alike.
_SHARED = 3

#: Zeros that may follow a number, another number of them each time; fewer are left to `same_answer`.
_ZEROS: Final = range(37, 180)

_KEPT: Final = (
    "Answers are cached for all sessions, or under part of the arguments: the key must include the session, and all "
    "arguments, such as the size of a page and its cursor."
)

_LAST: Final = (
    "verify reads what the last session said or did where it finds nothing in its own, such as from a module variable: "
    "a response without an answer has none."
)

_CACHED: Final = "Scores are cached under the answer alone: the key must include the row."

_POOLED: Final = (
    "The score depends on earlier ones of the same task, such as a mean, a best one, a bonus for novelty, or the first, "
    "which is kept: it must depend on this session and the response alone."
)

_CUT: Final = "Scores are cached under part of the answer, such as its beginning: the key must be all of it."

#: Words that two answers have in common, before what differs or after it: more than any key is cut to.
_ALIKE: Final = "I go through it once more, step by step, and write down all that follows from it. " * 8


def _earned(outcome: Outcome, _: object) -> Outcome:
    """No more of an outcome than what it earns."""
    return Outcome((StepOutcome(VERIFY, HTTPStatus.OK.value, outcome.reward),))


@dataclass(frozen=True)
class _After:
    """A session after an earlier one that has the same, such as a name, held to one after an earlier one that has not.

    What they have in common is new each time, so that no session before these two has had it.

    Attributes:
        new: what a session has.
        earlier: the earlier session that has this.
        later: the later one that does.
        seen: what is compared of the outcome of the later one.
        always: whether there is an earlier session in the control too, which has another.
    """

    new: Callable[[], Any]
    earlier: Callable[[Any], Trajectory]
    later: Callable[[Any], Trajectory]
    seen: Callable[[Outcome, Any], Outcome] = read_back
    always: bool = True

    def held(self, trial: Trial, told: Told) -> Maker:
        """The suspicion that what they have in common makes a difference."""

        async def after(channel: Channel, *, same: bool) -> Outcome:
            mine = self.new()
            if same or self.always:
                await run(trial.gym, channel, self.earlier(mine if same else self.new()))
            return self.seen(await run(trial.gym, channel, self.later(mine)), mine)

        return partial(Likeness, trial, partial(after, same=True), partial(after, same=False), told)


def by_name(
    trial: Trial, rows: Sequence[Row], trajectory: Trajectory, found: Sequence[Trajectory], free: frozenset[Any]
) -> Iterator[Maker]:
    """A trajectory after a session with the same names, held to one after a session with other names.

    The earlier session makes the same calls, on the same row or on that of another, whose things take the names. Or it
    asks only after its writes, and what it was answered is kept under the names, or under the row's ids. Where not
    all names can be new, those that are `free` are. Texts that are held to a pattern, such as a cell's, are others of the
    same shape, and were said on the row that is least alike.
    One that leaves out its first write must not find it done, such as something to undo. A session that only asks for
    names that the row does not know must not find what the earlier one called so. Nor must one that shares a single name
    with it, which several of its calls say, find what that one said otherwise.
    """
    sets = names_in(trajectory)
    others = (other for other in found if other.row is not trajectory.row)
    late = _reads_last(trajectory)

    def said(earlier: Trajectory, other: Trajectory, names: Names) -> Trajectory:
        # the things of another row keep their names, but for those that are looked for
        spoken = next(iter(names_in(other)), frozenset()) if other.row is not trajectory.row else frozenset()
        return renamed(earlier, {**taking(spoken, names), **names})

    def held(after: _After, *told: Trajectory) -> Maker:
        return after.held(trial, Told(Schedule(told), ", as after a session that used other names"))

    tried = [*((names, trajectory) for names in sets[:_SETS]), *zip(sets, others, strict=False)]
    if late.calls != trajectory.calls and (names := frozenset().union(*sets[:1], ids_of(trajectory.row))):
        tried.append((names, late))
    if free and free not in sets:
        tried += [(free, one) for one in (trajectory, late)]
    shaped = shaped_in(trajectory)
    shapes = [(shaped, Trajectory(row)) for row in _unlike(rows, trajectory.row)] if shaped else []
    if sets and len(writes := writes_in(trajectory.calls)) > 1:
        undone = trajectory.without(writes[:1])
        after = _After(partial(new_names, sets[0]), partial(renamed, trajectory), partial(renamed, undone))
        yield held(after, trajectory, undone)
    for new, pairs in ((new_names, tried), (new_shapes, shapes)):
        for names, other in pairs:
            earlier = late if other is late else replace(trajectory, row=other.row)
            after = _After(partial(new, names), partial(said, earlier, other), partial(renamed, trajectory))
            yield held(after, said(earlier, other, {name: name for name in names}), trajectory)
    for name in _said_again(trajectory, sets[0] if sets else frozenset()):
        after = _After(
            partial(new_names, sets[0]), partial(_sharing, trajectory, sets[0], name), partial(renamed, trajectory)
        )
        yield held(after, _sharing(trajectory, sets[0], name, {name: name}), trajectory)
    given = sets[-1] if sets else frozenset()
    asks = _without_first(trajectory, given)
    if any(given & _said(call) for call in asks.calls):
        after = _After(partial(new_names, given), partial(renamed, trajectory), partial(renamed, asks))
        yield held(after, trajectory, asks)


def _sharing(trajectory: Trajectory, names: frozenset[Any], name: Any, mine: Names) -> Trajectory:
    """The trajectory with this one of the names, and others in place of the rest."""
    return renamed(trajectory, {**new_names(names), name: mine[name]})


def _said_again(trajectory: Trajectory, names: frozenset[Any]) -> Sequence[Any]:
    """Names that several calls say, as of what they are about, if there are others beside them."""
    counts = Counter(name for call in trajectory.calls for name in names & _said(call))
    return [name for name, times in counts.most_common(_SETS) if times > 1] if len(names) > 1 else []


def _said(call: Call) -> frozenset[Any]:
    return frozenset(value for value, _ in scalars(call.arguments))


def _without_first(trajectory: Trajectory, names: frozenset[Any]) -> Trajectory:
    """The trajectory without the calls that are the first to say one of these names, as the call that gives it is."""
    said, first = frozenset[Any](), list[int]()
    for at, call in enumerate(trajectory.calls):
        if new := (names & _said(call)) - said:
            first.append(at)
            said |= new
    return trajectory.without(first)


def _unlike(rows: Sequence[Row], row: Row) -> Sequence[Row]:
    """Rows that have the fewest fields alike with this one: calls come to something else there."""

    def alike(other: Row) -> int:
        return sum(own(other).get(name) == value for name, value in own(row).items())

    return sorted((other for other in rows if other is not row), key=alike)[:_SETS]


def _reads_last(trajectory: Trajectory) -> Trajectory:
    """The trajectory with its reads behind its writes."""
    order = sorted(range(len(trajectory.calls)), key=lambda at: is_reading(trajectory.calls[at]))
    return trajectory.chosen(order)


def by_attempts(trial: Trial, found: Sequence[Trajectory]) -> Iterator[Maker]:
    """What a trajectory earns after a poor attempt at the same task, held to one after a poor attempt at another.

    No earlier attempt at either is known: their names and ids are new, and where an answer is graded that the row has,
    so are the row's sentences, under any of which a score may be kept. Where nothing is called, a poor attempt is another
    row's answer, since a text that is no answer may not be scored at all; elsewhere it does and says nothing.
    """
    answers = [one.answer for one in found if one.answer != PLAIN_ANSWER]
    for one in found:
        names = frozenset().union(*names_in(one)[:1], ids_of(one.row))
        if not one.calls and any(words_of_answer(one)):
            names |= sentences_of(one.row)
        if names:
            others = [answer for answer in answers if answer != one.answer]
            poor = Trajectory(one.row, answer=others[0] if others and not one.calls else PLAIN_ANSWER)
            told = Told(Schedule((poor, one)), ", as after an attempt at another task", hint=_POOLED)
            after = _After(partial(new_names, names), partial(renamed, poor), partial(_said_in, one), _earned)
            yield after.held(trial, told)


def _said_in(one: Trajectory, names: Names) -> Trajectory:
    """The trajectory with the new names in its answer, too, where it has the old ones."""
    answer = one.answer
    for old in sorted((name for name in names if isinstance(name, str)), key=len, reverse=True):
        answer = answer.replace(old, names[old])
    return replace(renamed(one, names), answer=answer)


def by_last(trial: Trial, found: Sequence[Trajectory]) -> Iterator[Maker]:
    """What a poor attempt at a task earns just after a good one, held to what it earns after one at another task.

    Nothing is new in them: what is kept of the last session is another's in the control. A poor attempt says nothing of
    the task, or all of a right answer but its last word, such as what it cites.
    """
    answered = [one for one in found if one.answer != PLAIN_ANSWER and len(one.answer.split()) > 1][:1]
    pairs = [
        *((one, Trajectory(one.row)) for one in found),
        *((replace(one, calls=()), Trajectory(one.row, answer=one.answer.rsplit(maxsplit=1)[0])) for one in answered),
    ]
    for one, poor in pairs:
        other = next((each for each in found if each.row is not one.row), poor)

        async def after(channel: Channel, earlier: Trajectory, poor: Trajectory = poor) -> Outcome:
            await run(trial.gym, channel, earlier)
            return _earned(await run(trial.gym, channel, poor), None)

        told = Told(Schedule((one, poor)), ", as after an attempt at another task", hint=_LAST)
        yield partial(Likeness, trial, partial(after, earlier=one), partial(after, earlier=other), told)


def by_phrase(trial: Trial, trajectory: Trajectory) -> Iterator[Maker]:
    """A trajectory after a session that has read the same in its words, held to one alone.

    All that is no word is otherwise there, or the session had written first, so that it read something else. No earlier
    answer to its words is known: a word that nobody has said before stands behind each, or it is spelled as nobody has.
    """
    writes = writes_in(trajectory.calls)
    reads, written = trajectory.without(writes), trajectory.chosen(writes)
    apart = reads.without([at for at, call in enumerate(reads.calls) if is_linked(call.arguments)])
    earlier = list[tuple[Trajectory, Callable[[Trajectory], Trajectory]]]()
    if with_other_options(reads).calls != reads.calls:
        earlier.append((reads, with_other_options))
    if writes and apart.calls:
        earlier.append((apart, lambda reading: replace(reading, calls=(*written.calls, *reading.calls))))
    for otherwise, (asked, before) in product((phrased, respelled), earlier):
        if otherwise(asked)[0].calls == asked.calls:
            continue
        told = Told(Schedule((before(asked), asked)), ", as after a session that asked for other words", hint=_KEPT)
        after = _After(
            partial(otherwise, asked),
            partial(_of_spoken, before),
            lambda spoken: spoken[0],
            lambda outcome, spoken: read_back(outcome, spoken[1]),
        )
        yield after.held(trial, told)


def _of_spoken(before: Callable[[Trajectory], Trajectory], spoken: tuple[Trajectory, Names]) -> Trajectory:
    return before(spoken[0])


def by_row(trial: Trial, rows: Sequence[Row], knowledge: Knowledge) -> Iterator[Maker]:
    """A trajectory after one on another row that shares a text with its own, such as a task's id.

    Both have a new one in its place, and in the control each another: rows of one task are served and scored by what
    else they have.
    """
    known_on = first_of_each(lambda one: one.row, known(knowledge))
    for value, *two in shared_names(rows)[:_SHARED]:
        for one, other in permutations(known_on.get(row) or reads_on(trial.gym, row) for row in two):
            told = Told(Schedule((other, one)), ", as after a session on a row that shares nothing with its own")
            after = _After(partial(new_names, frozenset([value])), partial(renamed, other), partial(renamed, one))
            yield after.held(trial, told)


async def by_number(trial: Trial, found: Sequence[Trajectory]) -> list[Maker]:
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
    numbers = (one for one in differences(first, second) if is_number(one.expected) and not one.of_time)
    return any(is_number(one.actual) and not by_design(one.place) for one in numbers)


def by_answer(trial: Trial, rows: Sequence[Row], found: Sequence[Trajectory]) -> Iterator[Maker]:
    """What an answer earns on a row, after it was given to another row.

    No earlier score of it is known: a word that nobody has said before stands before it, and in its program, or zeros
    follow its number.
    """
    own = next((each for each in found if each.answer != PLAIN_ANSWER), None)
    other = next((Trajectory(row) for row in rows if own and row is not own.row), None)
    if own is None or other is None:
        return
    lengths = iter(Random().sample(_ZEROS, len(_ZEROS)))

    def after_a_word() -> str:
        new = word()
        return f"{new} {with_comment(own.answer, new)}"

    def with_zeros() -> str:
        return with_more_zeros(own.answer, next(lengths, 1))

    def of(trajectory: Trajectory, answer: str) -> Trajectory:
        return replace(trajectory, answer=answer)

    told = Told(
        Schedule((own, replace(other, answer=own.answer))),
        ", as where the answer was not given to another row before",
        hint=_CACHED,
    )
    for new in (after_a_word, *([with_zeros] if has_number(own.answer) else ())):
        yield _After(new, partial(of, own), partial(of, other), _earned, always=False).held(trial, told)
    yield from _by_words_of_answer(trial, found, other, told)


def _by_words_of_answer(trial: Trial, found: Sequence[Trajectory], other: Trajectory, told: Told) -> Iterator[Maker]:
    """The same of an answer that is right on its row, whose words are new in both."""
    right = ((one, old) for one in found if one.row is not other.row for old in words_of_answer(one))
    for one, old in islice(right, 1):
        answered = partial(_in_words, one, old)
        new = partial(new_names, frozenset([old]))
        yield _After(new, partial(answered, one), partial(answered, other), _earned, always=False).held(trial, told)


def _in_words(one: Trajectory, old: str, trajectory: Trajectory, names: Names) -> Trajectory:
    """The trajectory with the answer of `one`, where the old word is new."""
    own_row = renamed(trajectory, names) if trajectory is one else trajectory
    return replace(own_row, answer=one.answer.replace(old, names[old]))


def by_words_alike(trial: Trial, found: Sequence[Trajectory]) -> Iterator[Maker]:
    """What a poor answer earns after a good one to the same row that begins alike, or ends alike, in words that nobody said."""

    def in_form(one: Trajectory, form: str, answer: str, said: str) -> Trajectory:
        return replace(one, answer=form.format(said, answer))

    for one in islice((each for each in found if each.answer != PLAIN_ANSWER), 1):
        for form in (f"{{0}} {_ALIKE}{{1}}", f"{{1}} {_ALIKE}{{0}}"):
            good, poor = (partial(in_form, one, form, answer) for answer in (one.answer, PLAIN_ANSWER))
            pair = Schedule((good("Well."), poor("Well.")))
            told = Told(pair, ", as where no answer that begins or ends alike was given before", hint=_CUT)
            yield _After(word, good, poor, _earned).held(trial, told)
