"""Drift: the tools that rows show to the policy against the tools that the server serves.

The schemas are compared offline (`gym_conformance.drift`). Whatever would break rollouts is tried on the live server,
and only what the server confirms is a violation. A declared tool that is not served belongs to `tool-routed`, and a
route that no row declares to `tool-served-declared`.
"""

from collections.abc import Coroutine, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

from gym_conformance.contract.statuses import is_success
from gym_conformance.drift.compare import first_call
from gym_conformance.drift.definitions import Definition
from gym_conformance.drift.lax import explicit
from gym_conformance.drift.soundness import not_json_schema
from gym_conformance.drift.survey import undeclared_result
from gym_conformance.drift.tool_drift import Drift, DriftKind, Weight, Witness
from gym_conformance.drift.wording import argument, short
from gym_conformance.gym_under_test import Gym
from gym_conformance.probes.asking import NoSession, ask
from gym_conformance.probes.catch_all import unknown_argument
from gym_conformance.probes.ignored import is_ignored
from gym_conformance.probes.live_answer import Live, LiveAnswer
from gym_conformance.probes.refused import is_refused
from gym_conformance.probes.refused_values import refused_value
from gym_conformance.probes.rows_own import keeps_to_rows
from gym_conformance.session.channel import Channel
from gym_conformance.session.exchange import sessions_with
from gym_conformance.trajectories.trajectory import Trajectory
from gym_conformance.trials.check import Subjects, check
from gym_conformance.trials.ending import NotApplicable, NotExamined, Violation
from gym_conformance.trials.needs import EXECUTED_TOOLS, RESOURCES_SERVER, SERVED_TOOLS, TOOLS
from gym_conformance.trials.property import knowledge_of
from gym_conformance.trials.trial import Trial
from gym_schemas import contains, walk

#: Calls of one tool whose replies are held to the server's response schema.
_REPLIES = 3


def _each(*kinds: DriftKind, weight: Weight | None = None) -> Subjects:
    """Each drift of these kinds; the server as a whole where there is none, which passes."""

    def subjects(trial: Trial) -> Iterable[Any]:
        found = [one for one in trial.gym.drifts if one.kind in kinds and weight in (None, one.weight)]
        return found or ("server",)

    return subjects


def _agreed(trial: Trial, subject: object) -> bool:
    """Whether there is no drift to try; says then what was compared."""
    if isinstance(subject, Drift):
        return False
    compared, known = len(trial.gym.compared), len(trial.gym.definitions)
    trial.note = f"{compared:,} definitions compared" + (f", of {known:,}" if known > compared else "")
    return True


def _expect_none(trial: Trial, subject: Any, expected: str, hint: str) -> None:
    """Raise a drift that nobody need be asked about."""
    if not _agreed(trial, subject):
        trial.tell(subject)
        raise Violation(expected.format(tool=subject.tool), subject.message, hint)


async def expect_unconfirmed(
    trial: Trial, drift: Drift, asking: Coroutine[Any, Any, Live], rule: str, hint: str
) -> None:
    """Raise what the live server confirms; a pass says why it is none, and what was not tried is not applicable."""
    try:
        live = await asking
    except NoSession as none:
        trial.tell(drift, Live(LiveAnswer.NOT_TRIED, f"it takes {none}"))
        raise
    trial.tell(drift, live)
    if live.confirmed:
        expected = f"{argument(drift.path)} of {drift.tool} {rule}"
        raise Violation(expected, f"{_said(drift)}; live: {live.detail}", hint)
    trial.note = f"{drift.message}; {live.said}: {live.detail}"
    if live.undecided and drift.shown:
        trial.caution = (
            f"{drift.message}, and whether the live server enforces that is unknown, since it accepts no call of "
            f"{drift.tool} that was tried: record a rollout that calls it"
        )
    if live.said is LiveAnswer.NOT_TRIED:
        raise NotApplicable(trial.note)


def _refused_subjects(trial: Trial) -> Iterable[Any]:
    """What the schemas know; and the tools of which only the server knows the arguments, or rollouts are recorded."""
    gym = trial.gym
    found = [one for one in gym.drifts if one.kind is DriftKind.ARGUMENT_REFUSED]
    recorded = {call.name for _, calls in gym.recorded_calls for call in calls}
    asked = [one for one in gym.compared if one.name in recorded or not _is_told(gym, one)]
    return [*found, *(one for one in asked if not not_json_schema(one))] or ("server",)


def _is_told(gym: Gym, definition: Definition) -> bool:
    """Whether the server itself says what this very tool takes, in a document that its code was made into."""
    served = (gym.served or {}).get(definition.name)
    return (
        gym.api.is_generated
        and served is not None
        and served.request is not None
        and served.route == f"/{definition.name}"
    )


@check(
    "drift-argument-refused",
    "A call that the definition allows MUST NOT be refused for its arguments",
    why="the policy calls the tool as the definition says, and gets an error that it cannot fix.",
    needs=[RESOURCES_SERVER, TOOLS, SERVED_TOOLS],
    subjects=_refused_subjects,
    beside=True,
)
async def drift_argument_refused(trial: Trial, subject: Any) -> None:
    """Compares each definition with the server's schema of the tool, and sends a call that only the definition allows.

    It is a violation if the server refuses that call (4xx) in a session of a row that declares the tool, but accepts a
    call that both sides allow, or one that is known to be accepted and differs in that argument alone. Types, bounds,
    enums, patterns, formats, required and nested arguments are compared; where the schemas cannot decide, the live
    server does.

    If the server has no schema of the tool, or one that was not made from its code by FastAPI, it is asked about each
    argument and its values, and about enums, bounds and types within an object or a list. An answer counts as a
    refusal, whatever its status, if its wording is that of the answer to an invented argument or a wrong value, apart
    from the name or the value itself, and another call is accepted. So does the refusal of whole numbers beyond either
    bound, or of a text just beyond its greatest length, if it states a number that neither the row nor the replies
    show, and is the same after a call that is accepted; and of texts within an object that replies have under the same
    name, if all of them are refused as what is no text. A recorded call that is refused in its own row, after the calls before it, counts too; so does an argument
    that no row offers, if the server asks for it as for a missing one, and no longer where it is given, and one that
    may be left out, if it is asked for whatever else is given. A day counts that is refused, if it is accepted with a
    time, which the definition forbids, and numbers, if all of them are accepted as texts. The refusal of an empty text
    or list, or of one of more than 1,000 characters or 100 items, does not count if the definition says nothing about
    it.

    Source: FastAPI validates the body of a tool's route and answers 422; simple_agent/app.py (0.4.0) feeds that to the
    model.
    """
    if isinstance(subject, Definition):
        await _known_arguments(trial, subject)
    elif not _agreed(trial, subject):
        if _says_nothing(subject):
            trial.tell(subject)
            trial.note = f"{subject.message}; the definition does not speak for what is empty or huge"
            return

        async def known() -> Sequence[Trajectory]:
            return (await knowledge_of(trial)).known_trajectories

        asking = is_refused(trial.gym, trial.channel, subject, known)
        hint = "The definition in the rows or the tool's pydantic model is out of date; change one to match the other."
        await expect_unconfirmed(trial, subject, asking, "as the definition allows it", hint)


def _says_nothing(drift: Drift) -> bool:
    """Whether no more is refused than an empty or huge text or list, for which the definition does not speak."""
    both = drift.definition, drift.served
    if None in both or any("$ref" in node for schema in both for _, node in walk(schema)):
        return False
    # where the two are alike, the call is refused for something else, such as an argument that is missing
    return not contains(drift.served, drift.definition) and contains(drift.served, explicit(drift.definition))


async def _known_arguments(trial: Trial, definition: Definition) -> None:
    told = _is_told(trial.gym, definition)
    unknown = None if told else await unknown_argument(trial.gym, trial.channel, definition)
    look = trial.learned.first_look
    hold = look is None or look.change is None
    knowledge = await knowledge_of(trial)
    known, seen = knowledge.known_trajectories, knowledge.mined
    refused = (
        None
        if unknown
        else await refused_value(trial.gym, trial.channel, definition, known, seen=seen, told=told, records_hold=hold)
    )
    if (refused or unknown) and trial.asked.outside:
        raise NotExamined(
            f"other hosts are asked, which are not there (--gym-network): {definition.name} may refuse no more than that"
        )
    if refused is not None:
        trial.channel.exchanges = sessions_with((refused.reply, *refused.beside), trial.channel.exchanges)
        what = f"the definition allows {short(refused.call)}, and the server refuses it"
        path = f"/{refused.argument}" if refused.argument else ""
        drift = definition.drift(DriftKind.ARGUMENT_REFUSED, what, path=path, witness=Witness(refused.call))
        detail = f"status {refused.reply.status}, {refused.reply.text.strip()}; {refused.because}"
        trial.tell(drift, Live(LiveAnswer.CONFIRMED, detail))
        raise Violation(
            f"{refused.argument or 'the call'} of {definition.name} as the definition allows it",
            f"{_said(drift)}; live: {detail}",
            "The definition in the rows or the tool's own validation is out of date; change one to match the other.",
        )
    if unknown is not None:
        what = f"the definition offers {unknown.name}, which the server does not know"
        path = f"/{unknown.name}"
        drift = definition.drift(DriftKind.ARGUMENT_REFUSED, what, path=path, witness=Witness(unknown.call))
        detail = f"status {unknown.reply.status}, {unknown.reply.text}"
        trial.tell(drift, Live(LiveAnswer.CONFIRMED, detail))
        raise Violation(
            f"{unknown.name} as the definition of {definition.name} offers it",
            f"{drift.message}; live: {detail}",
            "The tool's function has no such parameter; rename it there or in the definition.",
        )


@check(
    "drift-argument-ignored",
    "An argument that the definition offers MUST NOT be ignored",
    why="the policy sets the argument to no effect, and learns from noise.",
    needs=[RESOURCES_SERVER, TOOLS, SERVED_TOOLS],
    subjects=_each(DriftKind.ARGUMENT_IGNORED),
    beside=True,
)
async def drift_argument_ignored(trial: Trial, subject: Any) -> None:
    """Looks for arguments that the definition offers and the server's schema does not name.

    Such an argument is ignored if two calls that differ only in it lead to the same reply, the same later reads and the
    same reward, as two runs of the same call do. A tool without a declared body counts only if it also answers a body
    that is not JSON, which shows that it reads none.

    Source: https://docs.pydantic.dev/latest/api/config/#pydantic.config.ConfigDict.extra: by default a model silently
    drops fields that it does not name.
    """
    if not _agreed(trial, subject):
        known = (await knowledge_of(trial)).meaningful.get(subject.tool, ())
        asking = is_ignored(trial.gym, trial.channel, subject, known)
        hint = "Add the argument to the tool's pydantic model, or remove it from the definition."
        await expect_unconfirmed(trial, subject, asking, "makes a difference", hint)


def _declared_results(trial: Trial) -> Iterable[Any]:
    """One definition of each tool whose reply the server declares."""
    declared = {name for name, one in (trial.gym.served or {}).items() if one.response is not None}
    return {one.name: one for one in trial.gym.compared if one.name in declared}.values() or ("server",)


@check(
    "drift-result",
    "A tool's reply SHOULD match the schema that the server declares for it",
    why="whatever relies on the schema, such as a trainer's parser or a mock, is misled.",
    needs=[RESOURCES_SERVER, TOOLS, SERVED_TOOLS],
    subjects=_declared_results,
    gentle=True,
)
async def drift_result(trial: Trial, subject: Any) -> None:
    """Checks the replies to a few calls of each tool, recorded ones first, against the response schema of its route.

    Routes without a response schema are skipped.

    Our inference: the OpenAPI document promises it, but none of nemo-gym's clients checks it.
    """
    gym = trial.gym
    if not isinstance(subject, Definition):
        trial.note = "the server declares no replies"
        return
    served = (gym.served or {})[subject.name]
    for arguments in islice(_calls(gym, subject), _REPLIES):
        reply = await ask(gym, trial.channel, gym.row_for(subject), subject.name, arguments)
        drift = (
            undeclared_result(served, reply.json(), Witness(arguments))
            if is_success(reply.status) and reply.is_json
            else None
        )
        if drift is not None:
            detail = f"status {reply.status}, {reply.text}"
            trial.tell(drift, Live(LiveAnswer.CONFIRMED, detail))
            raise Violation(f"a reply of {subject.name} as its schema declares", f"{drift.message}; {detail}", _RESULT)


_RESULT = "The handler returns a Response of its own, or the route's response_model is out of date."


def _calls(gym: Gym, definition: Definition) -> Iterator[Any]:
    """Recorded calls of the tool, then the smallest that its definition offers."""
    yield from gym.recorded_arguments(definition.name)
    call = None if not_json_schema(definition) else first_call(definition)
    if call is not None:
        yield call.value


@check(
    "drift-rows-disagree",
    "All rows SHOULD declare a tool alike",
    why="the policy learns two interfaces for one tool, and the server has at most one of them.",
    needs=[RESOURCES_SERVER, TOOLS, EXECUTED_TOOLS],
    subjects=_each(DriftKind.ROWS_DISAGREE),
)
async def drift_rows_disagree(trial: Trial, subject: Any) -> None:
    """Compares the definitions of each tool across all rows of all files: schemas, `strict`, and nested or flat form.

    Descriptions alone belong to `drift-description`. The members of an enum and the bounds of a number, a list or a text
    may depend on the row: only the members' types are compared, and which bounds there are. On a server that executes no
    tools, such as one that grades calls, each row may bring its own tools. So it may if the server holds each row to its
    own definition: it takes rows' recorded calls, and refuses each in a row whose definition forbids it, or, if none is
    recorded, answers the smallest call otherwise there.

    Our inference: one route serves them all.
    """
    if isinstance(subject, Drift) and await keeps_to_rows(trial.gym, Channel(trial.gym.endpoint), subject.tool):
        trial.note = f"{subject.message}; the server holds each row to its own definition"
        return
    hint = "The dataset mixes rows of two versions; regenerate the older ones."
    _expect_none(trial, subject, "one definition of {tool}", hint)


@check(
    "drift-definition-unsound",
    "A tool's definition SHOULD be sound JSON Schema",
    why="model servers refuse such a tool, or constrain the policy to something other than the rows mean.",
    needs=[RESOURCES_SERVER, TOOLS],
    subjects=_each(DriftKind.DEFINITION_UNSOUND, weight=Weight.WARNING),
)
async def drift_definition_unsound(trial: Trial, subject: Any) -> None:
    """Reads each definition on its own, in all rows of all files; sends nothing.

    The parameters must be a JSON Schema of an object; `required` must name existing properties, never `""`; a default
    must match its own schema; `strict: true` must follow the rules of strict mode. Names belong to `tool-name-legal`.

    Our inference: the server reads none of this, but https://platform.openai.com/docs/guides/function-calling asks for
    it.
    """
    if not _agreed(trial, subject):
        trial.tell(subject)
        raise Violation("a sound definition", subject.problem, "Fix the definition in the rows.")


_OFFERS_MORE = (DriftKind.ARGUMENT_WIDENED, DriftKind.ARGUMENT_UNOFFERED, DriftKind.UNNAMED_REFUSED)


@check(
    "drift-server-takes-more",
    "The server accepts more than the definition allows",
    why="it does no harm, but the policy does not know everything that it could do.",
    needs=[RESOURCES_SERVER, TOOLS, SERVED_TOOLS],
    subjects=_each(*_OFFERS_MORE),
)
async def drift_server_takes_more(trial: Trial, subject: Any) -> None:
    """Looks for arguments and values that the server's schema accepts and the definition does not; sends nothing.

    Our inference.
    """
    hint = "Add it to the definition, if it is meant for the policy."
    _expect_none(trial, subject, "a definition of everything that the server accepts", hint)


@check(
    "drift-description",
    "A tool's descriptions differ, or one is missing",
    why="the policy chooses its tools by their descriptions.",
    needs=[RESOURCES_SERVER, TOOLS],
    subjects=_each(DriftKind.DESCRIPTION_DIFFERS, DriftKind.DEFINITION_UNSOUND, weight=Weight.NOTE),
)
async def drift_description(trial: Trial, subject: Any) -> None:
    """Compares the descriptions of a tool and its arguments in the rows and on the server, and looks for missing ones.

    Sends nothing.
    Our inference.
    """
    hint = "Describe the tool in one place, and generate both rows and route from it."
    _expect_none(trial, subject, "one description", hint)


def _outdated(trial: Trial) -> Iterable[Any]:
    if trial.gym.lock is None:
        return ("server",)
    return trial.gym.lock.outdated(trial.gym.tools_now) or ("server",)


@check(
    "drift-lock",
    "Rows and server MUST match the lock",
    why="one side has changed since the last review, and the other may not have followed.",
    needs=[],
    subjects=_outdated,
)
async def drift_lock(trial: Trial, subject: Any) -> None:
    """Compares the tools of all rows and those of the server with the lock file (`--gym-lock`); sends nothing.

    Each side is compared separately, so that the finding says which one changed. Tools that the server does not list,
    as on a catch-all server, are not compared.

    Source: the lock file, which the env's authors wrote and keep under review.
    """
    if trial.gym.lock is None:
        raise NotApplicable("no lock was given (--gym-lock)")
    if isinstance(subject, Drift):
        trial.tell(subject)
        raise Violation(
            "the tool as it was locked", _said(subject), "If the change is intended, run with --gym-lock-update."
        )
    trial.note = "rows and server match the lock"


def _said(drift: Drift) -> str:
    """Its message without the tool's name, which is the subject."""
    return drift.message.removeprefix(f"{drift.tool}: ")
