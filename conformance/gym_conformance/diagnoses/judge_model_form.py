"""Whether verify wants a form of its judge model that our mock does not have: it then crashes, whatever it scores.

So does bbq of nemo-gym 0.7.0, whose judge model has to answer with one JSON object.
"""

from typing import Final

from gym_conformance.contract.policy_output import DO_NOTHING
from gym_conformance.diagnoses.diagnosis import Case, Missing
from gym_conformance.session.channel import NotSent
from gym_conformance.session.server_fault import ServerFault
from gym_conformance.trials.ending import Untestable
from gym_conformance.trials.trial import Trial

_NEEDS: Final = "a judge model that answers in the form it asks for: it can score nothing with our mock's answers"


class JudgeModelForm:
    """A verify that asks our mock and crashes on the plainest of outputs too can score nothing with it."""

    def __init__(self) -> None:
        self._probed = False

    def suspects(self, case: Case) -> bool:
        """Whether a reply is of 500 or above, and the judge model was asked. It is probed once for a gym."""
        return case.asked_judge_model and case.crashed and not self._probed

    async def confirm(self, case: Case) -> Missing | None:
        """Have a plain message scored."""
        self._probed = True
        trial = Trial(case.bench)
        try:
            await trial.verify_fresh(DO_NOTHING.response)
        except (Untestable, NotSent, ServerFault):
            return None
        plain = Case(case.bench, trial.channel.exchanges[-1:])
        return Missing(_NEEDS, lasts=True) if trial.asked_judge_model and plain.crashed else None
