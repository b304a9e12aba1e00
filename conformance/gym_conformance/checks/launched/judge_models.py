"""Judge models: a launched server whose config refers to a model server asks our mock, which is made to answer badly.

Source: `ServerClient.post` and `raise_for_status` in nemo_gym/server_utils.py (0.4.0) hand a judge's error status on;
from 0.5.0 on a failed judge may be reported as 200 with `_ng_failure_class`.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from gym_conformance.contract.policy_output import message, response
from gym_conformance.contract.statuses import is_success
from gym_conformance.contract.verify_reply import is_masked
from gym_conformance.session.exchange import Reply
from gym_conformance.session.server_fault import Fault, ServerFault
from gym_conformance.trials.check import check
from gym_conformance.trials.ending import NotApplicable, Violation
from gym_conformance.trials.in_form import expect_named_cause, expect_reported
from gym_conformance.trials.launched import FakeModel, JudgeModels, Saying
from gym_conformance.trials.needs import RESOURCES_SERVER, reverify_mode
from gym_conformance.trials.replay import an_answer
from gym_conformance.trials.trial import Trial

#: More than a judge model's context holds.
_LONG: Final = response([message("word " * 50_000)])


@check(
    "judge-answers",
    "verify SHOULD score or say what failed, whatever its judge model answers",
    why="judge models fail for minutes under load; each crash loses a rollout, and nothing points to the judge model.",
    needs=[RESOURCES_SERVER],
    subjects=lambda _: (Saying.YES, Saying.NO, Saying.GARBAGE, Saying.FAILURE, Saying.TOO_LONG),
)
async def judge_answers(trial: Trial, saying: Saying) -> None:
    """Verifies a row while the judge model says yes, no or garbage, or answers 500; a score or a named error must come.

    A very long text is verified too, while the judge model answers that its context is too short for it. Applies only
    to launched servers whose verify asks a model.

    A 5xx is a violation if it says nothing, or is the bare `repr` of a programming error such as `KeyError('score')`.
    So is a 200 with a reward while the judge model answers 500, if that reward is more than its no earns; or, if the
    framework has `_ng_failure_class` (0.5.0 on) and the reward depends on the judge model, if it is exactly what its no
    earns; and a 200 while it answers garbage, if that earns what its yes earns.

    Our inference: nemo-gym passes the error on with its text, and later versions report it as `_ng_failure_class`.
    """
    reply = await _verified(trial, saying)
    expect_named_cause(
        reply,
        f"a score when the judge model answers {saying}",
        "The scorer assumes what the judge model's answer looks like.",
    )
    expect_reported(reply, "verify does not report what its judge model did.")
    if saying in (Saying.FAILURE, Saying.GARBAGE) and is_success(reply.status) and not is_masked(reply.said):
        await _expect_told_apart(trial, saying, reply.fields.get("reward"))


async def _expect_told_apart(trial: Trial, saying: Saying, failed: Any) -> None:
    """Raise if a failed judge model earns what its no earns, though it could be reported, or more; or if its garbage is a yes."""
    yes, no = [(await _verified(trial, saying)).fields.get("reward") for saying in (Saying.YES, Saying.NO)]
    if not all(isinstance(reward, int | float) for reward in (failed, yes, no)):
        return
    # a tie may be what an unreadable verdict is meant to come to, but no win
    if failed > no and (saying is Saying.FAILURE or failed >= yes):
        raise Violation(
            f"no more than {no}, which its no earns, when the judge model answers {saying}",
            f"a reward of {failed}",
            "The scorer takes what is no verdict for one: an outage of the judge model earns a reward.",
        )
    if saying is Saying.FAILURE and failed == no != yes and await reverify_mode(Trial(trial.bench)) is not None:
        raise Violation(
            f"_ng_failure_class, or an error, when the judge model answers {Saying.FAILURE}",
            f"a reward of {failed}, as for a wrong answer",
            "The scorer catches the error and scores all the same: an outage of the judge model looks like failures of the policy.",
        )


@check(
    "judge-silent",
    "verify waits longer for a silent judge model than its own clients wait",
    why="the rollout waits as long as verify does, and its client has given up long before.",
    needs=[RESOURCES_SERVER],
)
async def judge_silent(trial: Trial, _: object) -> None:
    """Verifies a row while the judge model is silent, and waits --gym-timeout for an answer.

    Our inference: nemo-gym's own client waits five minutes (`ClientTimeout()` in nemo_gym/server_utils.py, 0.4.0),
    while clients of /verify wait 30 to 60 s. Since the framework itself does this, it is only a note.
    """
    try:
        await _verified(trial, Saying.NOTHING)
    except ServerFault as fault:
        if fault.fault is not Fault.HANG:
            raise
        raise Violation(
            f"an answer within {trial.gym.endpoint.timeout:g} s",
            f"{fault.fault}: {fault.detail}",
            "The judge model is called without a time limit; asyncio.timeout around the call is enough.",
        ) from None


async def _verified(trial: Trial, saying: Saying) -> Reply:
    """What verify answers while the judge says so.

    Raises:
        NotApplicable: the server asks no model.
    """
    model = judge_models_of(trial).model
    row = next(iter(trial.gym.recorded), trial.gym.row)
    session = await trial.open(row)
    fails = saying not in (Saying.YES, Saying.NO)  # a verify that waits for such a judge model is answered otherwise
    with (
        trial.gym.endpoint.forgiving(when=fails),
        answering(model, saying, "verify asks no model to score this row"),
    ):
        return await trial.verify(session, _LONG if saying is Saying.TOO_LONG else an_answer(trial.gym, row))


@contextmanager
def answering(model: FakeModel, saying: Saying | str, unasked: str) -> Iterator[None]:
    """The model says so for as long as the block lasts.

    Raises:
        NotApplicable: nobody asked it, which `unasked` says.
    """
    before = model.asked
    model.says(saying)
    try:
        yield
    finally:
        model.says(Saying.USUAL)
    if model.asked == before:
        raise NotApplicable(unasked)


def judge_models_of(trial: Trial) -> JudgeModels:
    """The model servers that the server may ask, all of them ours.

    Raises:
        NotApplicable: they are not, or there is none.
    """
    models = trial.launched.judge_models
    if models is None:
        raise NotApplicable("it is known only for servers that the suite launches, with a judge model of our own")
    if not models.names:
        raise NotApplicable("its config refers to no model server")
    return models
