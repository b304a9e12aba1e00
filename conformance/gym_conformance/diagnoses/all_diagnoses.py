"""All diagnoses of one gym, in the order in which they are tried."""

from collections.abc import Sequence

from gym_conformance.diagnoses.awaits_others import AwaitsOthers
from gym_conformance.diagnoses.busy_machine import BusyMachine
from gym_conformance.diagnoses.diagnosis import Case, Diagnosis, Missing, TryAgain
from gym_conformance.diagnoses.hosts_down import HostsDown
from gym_conformance.diagnoses.missing_dependency import MissingDependency
from gym_conformance.diagnoses.mock_too_plain import judge_model, sandbox
from gym_conformance.diagnoses.worn_out import WornOut


class Diagnoses:
    """Tries one diagnosis after the other; `needs` is what /verify was found to lack permanently, '' if nothing."""

    def __init__(self, diagnoses: Sequence[Diagnosis] | None = None) -> None:
        self.needs = ""
        usual = (
            WornOut(),
            HostsDown(),
            BusyMachine(),
            AwaitsOthers(),
            MissingDependency(),
            judge_model(),
            sandbox(),
        )
        self._diagnoses = usual if diagnoses is None else diagnoses

    async def explain(self, case: Case) -> Missing | TryAgain | None:
        """Why the case is no violation; None if it is one."""
        if self.needs and case.verified:
            return Missing(self.needs, lasts=True)
        for diagnosis in self._diagnoses:
            if diagnosis.suspects(case) and (found := await diagnosis.confirm(case)):
                if isinstance(found, Missing) and found.lasts:
                    self.needs = found.needs
                return found
        return None
