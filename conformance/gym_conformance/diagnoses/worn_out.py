"""A server that opens no more sessions: what fails from then on is not the fault of what was tried."""

from gym_conformance.contract.endpoints import SEED_SESSION
from gym_conformance.contract.statuses import is_success
from gym_conformance.diagnoses.diagnosis import Case, Missing
from gym_conformance.session.channel import Channel
from gym_conformance.session.exchange import reply_of
from gym_conformance.session.server_fault import NotSent, ServerFault


class WornOut:
    """After a refused seed, one that was accepted in the first look is sent again."""

    def suspects(self, case: Case) -> bool:
        """Whether a seed was refused, although the untouched server accepted a row."""
        look = case.bench.learned.first_look
        taken = look is not None and any(is_success(runs[0].steps[0].status) for runs in look.before)
        return taken and any(
            one.request.path == SEED_SESSION and one.reply is not None and not is_success(one.reply.status)
            for one in case.exchanges
        )

    async def confirm(self, case: Case) -> Missing | None:
        """Seed that row again."""
        gym, look = case.bench.gym, case.bench.learned.first_look
        rows = [probe.row for probe, runs in zip(look.probes, look.before, strict=True) if runs] if look else []
        if not rows:
            return None
        try:
            reply = reply_of(await gym.contract.session(Channel(gym.endpoint), rows[0]).seed())
        except (ServerFault, NotSent):
            return None
        if is_success(reply.status):
            return None
        return Missing(
            f"a session: /seed_session has opened {gym.endpoint.seeds.taken}, and answers {reply.status} to a row that it took "
            "before; see resources-seeds"
        )
