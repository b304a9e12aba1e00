"""Whether a request hung because the machine was busy; sent again alone, it is then answered."""

from gym_conformance.diagnoses.diagnosis import Case, TryAgain
from gym_conformance.session.channel import Channel
from gym_conformance.session.server_fault import NotSent, ServerFault


class BusyMachine:
    """A hang that does not recur says nothing about the server; the trial is repeated once."""

    def suspects(self, case: Case) -> bool:
        """Whether a first try ended in a hang."""
        return case.hung is not None and not case.repeated

    async def confirm(self, case: Case) -> TryAgain | None:
        """Send the request once more."""
        endpoint, request = case.bench.gym.endpoint, case.hung
        if request is None:
            return None
        hangs = endpoint.hangs.pop(request.path, 0)
        try:
            await Channel(endpoint).send(request)
        except (ServerFault, NotSent):
            endpoint.hangs[request.path] = hangs
            return None
        return TryAgain("no answer came in time at first, and then one did: the machine was busy")
