"""Whether verify needs more of a judge model, or of a sandbox, than our mocks do: it then crashes, whatever it scores.

So does bbq of nemo-gym 0.7.0, whose judge model has to answer with one JSON object.
"""

from dataclasses import dataclass
from typing import Literal

from gym_conformance.contract.policy_output import DO_NOTHING
from gym_conformance.diagnoses.diagnosis import Case, Missing
from gym_conformance.session.server_fault import NotSent, ServerFault
from gym_conformance.trials.ending import Untestable
from gym_conformance.trials.launched import TimesAsked
from gym_conformance.trials.trial import Trial


@dataclass
class MockTooPlain:
    """A server that asks a mock of ours, and crashes on the plainest of outputs too, can score nothing with it.

    Attributes:
        mock: which one.
        needs: what it needs instead.
        to_open: whether it may ask to open a session, and then opens none.
    """

    mock: Literal["judge_model", "sandbox"]
    needs: str
    to_open: bool = False
    _probed: bool = False

    def suspects(self, case: Case) -> bool:
        """Whether a reply is of 500 or above, and the mock was asked. It is probed once for a gym."""
        return self._asks(case.asked) and case.crashed and not self._probed

    async def confirm(self, case: Case) -> Missing | None:
        """Have a plain message scored."""
        self._probed = True
        trial = Trial(case.bench)
        try:
            await trial.verify_fresh(DO_NOTHING.response)
            fails = Case(case.bench, trial.channel.exchanges[-1:]).crashed
        except Untestable:
            fails = self.to_open
        except (NotSent, ServerFault):
            fails = False
        return Missing(self.needs, lasts=True) if fails and self._asks(trial.asked) else None

    def _asks(self, asked: TimesAsked) -> bool:
        return bool(getattr(asked, self.mock))


def judge_model() -> MockTooPlain:
    """Of a judge model, a form that our mock's answers have not."""
    return MockTooPlain(
        "judge_model",
        "a judge model that answers in the form it asks for: it can score nothing with our mock's answers",
    )


def sandbox() -> MockTooPlain:
    """Of a sandbox, that it runs its commands."""
    return MockTooPlain(
        "sandbox",
        "a sandbox that runs its commands: it can score nothing with one that runs none; --gym-sandbox local runs them on "
        "this machine, and --gym-env-set names another",
        to_open=True,
    )
