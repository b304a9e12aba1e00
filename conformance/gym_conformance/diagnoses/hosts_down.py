"""Whether a server that needs other hosts goes on where they answer next to nothing, as a search that finds nothing does.

So does tavily_search of nemo-gym 0.7.0: its tools raise while other hosts are down, and find nothing where they answer an
empty object.
"""

from gym_conformance.contract.endpoints import OPENING
from gym_conformance.diagnoses.diagnosis import Case, TryAgain, has_failed
from gym_conformance.session.channel import Channel
from gym_conformance.trials.launched import OtherHosts


class HostsDown:
    """What crashed or hung while other hosts were down is sent once more, and they answer an empty object from then on if that helps."""

    def __init__(self) -> None:
        self._probed = False

    def suspects(self, case: Case) -> bool:
        """Whether a reply is of 500 or above, or did not come, and another host was asked. It is probed once for a gym."""
        failed = case.crashed or case.hung is not None
        return failed and case.asked.outside > 0 and case.bench.launched.outside is not None and not self._probed

    async def confirm(self, case: Case) -> TryAgain | None:
        """Send the request once more, but none that begins a session: it fetches data, and would keep an empty object as such."""
        outside = case.bench.launched.outside
        request = case.hung or (case.failed.request if case.failed else None)
        if outside is None or request is None or request.path in OPENING:
            return None
        self._probed = True
        outside.settle(OtherHosts.EMPTY)
        answer = await Channel(case.bench.gym.endpoint).send_again(request)
        if answer is None or has_failed(answer):
            outside.settle(OtherHosts.DOWN)
            return None
        case.bench.learned.forget_answers()
        return TryAgain("it answers nothing of use while other hosts are down: they answer an empty object instead")
