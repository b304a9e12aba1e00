"""Whether a server needs a sandbox that runs its commands: with ours, which runs nothing, it opens or scores nothing."""

from typing import Final

from gym_conformance.contract.policy_output import DO_NOTHING
from gym_conformance.diagnoses.diagnosis import Case, Missing
from gym_conformance.session.channel import NotSent
from gym_conformance.session.server_fault import ServerFault
from gym_conformance.trials.ending import Untestable
from gym_conformance.trials.trial import Trial

_NEEDS: Final = (
    "a sandbox that runs its commands: it can score nothing with one that runs none; --gym-sandbox local runs them on "
    "this machine, and --gym-env-set names another"
)


class SandboxRuns:
    """A server that asks our sandboxes and crashes on the plainest of outputs too can score nothing with them."""

    def __init__(self) -> None:
        self._probed = False

    def suspects(self, case: Case) -> bool:
        """Whether a reply is of 500 or above, and a sandbox was asked. It is probed once for a gym."""
        return case.asked_sandbox and case.crashed and not self._probed

    async def confirm(self, case: Case) -> Missing | None:
        """Have a plain message scored."""
        self._probed = True
        trial = Trial(case.bench)
        try:
            await trial.verify_fresh(DO_NOTHING.response)
        except Untestable:
            return Missing(_NEEDS, lasts=True) if trial.asked_sandbox else None
        except (NotSent, ServerFault):
            return None
        plain = Case(case.bench, trial.channel.exchanges[-1:])
        return Missing(_NEEDS, lasts=True) if trial.asked_sandbox and plain.crashed else None
