"""Whether a request hung because the machine was busy; sent again alone, it is then answered."""

from gym_conformance.diagnoses.diagnosis import Case, TryAgain
from gym_conformance.session.channel import Channel


class BusyMachine:
    """A hang that does not recur says nothing about the server; the trial is repeated once."""

    def suspects(self, case: Case) -> bool:
        """Whether a first try ended in a hang."""
        return case.hung is not None and not case.repeated

    async def confirm(self, case: Case) -> TryAgain | None:
        """Send the request once more."""
        if case.hung is None or await Channel(case.bench.gym.endpoint).send_again(case.hung) is None:
            return None
        return TryAgain("no answer came in time at first, and then one did: the machine was busy")
