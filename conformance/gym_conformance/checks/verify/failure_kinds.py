"""The kinds of failures that a verify names, by which collectors and metrics group them."""

import re
from typing import Final

from gym_conformance.contract.policy_output import DO_NOTHING, degenerate_outputs
from gym_conformance.trials.check import check
from gym_conformance.trials.ending import NotApplicable, Violation
from gym_conformance.trials.needs import RESOURCES_SERVER, SCORE
from gym_conformance.trials.trial import Trial

_KIND: Final = "failure_kind"

#: A name of the shared vocabulary, or a server's own.
_NAME: Final = re.compile(r"([a-z][a-z0-9_]*:)?[a-z][a-z0-9_]*")


@check(
    "verify-failure-kind",
    "A failure's kind SHOULD be a name that failures can be grouped by",
    why="a kind that contains details creates a metric for each failed rollout, and nobody sees that all failed for one reason.",
    needs=[RESOURCES_SERVER, SCORE],
)
async def verify_failure_kind(trial: Trial, _: object) -> None:
    """Verifies outside of any session, and with degenerate outputs, and looks at each `failure_kind` in the replies.

    It must consist of lower-case letters, digits and underscores; if the kind is the server's own, another such name
    and a colon come before it. Whether a name is registered is not checked, since the list grows.

    Source: `validate_failure_kind` in nemo_gym/failure_kinds.py (0.7.0) warns about any other.
    """
    session = await trial.open()
    replies = [await trial.verify_bare(DO_NOTHING.response), await trial.verify(session, DO_NOTHING.response)]
    if any(_KIND in reply.said for reply in replies if isinstance(reply.said, dict)):
        replies += [await trial.verify(session, output.response) for output in degenerate_outputs("get_weather")]
    said = (reply.said for reply in replies)
    found = {kind for each in said if isinstance(each, dict) and (kind := str(each.get(_KIND) or ""))}
    if not found:
        raise NotApplicable("nothing that was tried is answered with a failure_kind (nemo-gym 0.7.0 on)")
    for kind in found:
        if not _NAME.fullmatch(kind):
            hint = "Details belong in failure_reason; the kind is one of nemo_gym.failure_kinds, or `<server>:<kind>`."
            raise Violation("a name such as verifier_error or my_server:no_answer", f"{_KIND} {kind!r}", hint)
    trial.note = ", ".join(sorted(found))
