"""A tool that raises while other hosts are down, and finds nothing where they answer."""

from collections.abc import Callable

from gym_conformance.contract.dataset_rows import Call
from gym_conformance.diagnoses.diagnosis import Case, TryAgain
from gym_conformance.diagnoses.hosts_down import HostsDown
from gym_conformance.gym_under_test import Gym
from gym_conformance.session.channel import Channel
from gym_conformance.trials.before_and_after import look
from gym_conformance.trials.bench import Bench, Learned
from gym_conformance.trials.launched import Launched, OtherHosts, TimesAsked
from gym_mocks.resources import ResourcesServer
from tests.twins.judging import on_gym
from tests.twins.unrecorded import rows_of


class _Hosts:
    """All other hosts, as the check has them."""

    def __init__(self) -> None:
        self.requests: dict[str, int] = {}
        self.settled = OtherHosts.DOWN

    def let(self, hosts: OtherHosts) -> None:
        self.settled = hosts

    settle = let


def _searching(finds: Callable[[], bool]) -> ResourcesServer:
    def search(words: str) -> list[str]:
        if not finds():
            raise ConnectionError(words)
        return []

    return ResourcesServer("searching", tools=[search], verify=lambda: 0.0)


def _probed(*, helps: bool) -> tuple[TryAgain | None, _Hosts, Learned]:
    hosts = _Hosts()
    server = _searching(lambda: helps and hosts.settled is OtherHosts.EMPTY)

    async def probed(gym: Gym) -> tuple[TryAgain | None, _Hosts, Learned]:
        channel, learned = Channel(gym.endpoint), Learned(first_look=await look(gym))
        session = gym.contract.session(channel, gym.row)
        await session.seed()
        await session.call(Call("search", {"words": "a"}))
        bench = Bench(gym, launched=Launched(outside=hosts), learned=learned)
        case, diagnosis = Case(bench, channel.exchanges, asked=TimesAsked(outside=1)), HostsDown()
        assert diagnosis.suspects(case)
        return await diagnosis.confirm(case), hosts, learned

    return on_gym(server, probed, rows_of(server))


def test_hosts_answer_from_then_on_and_what_was_answered_before_is_forgotten() -> None:
    found, hosts, learned = _probed(helps=True)
    assert found
    assert hosts.settled is OtherHosts.EMPTY
    assert learned.first_look is None, "its answers would be held to those of a server whose hosts are down"


def test_hosts_stay_down_where_an_answer_of_theirs_is_no_help() -> None:
    found, hosts, learned = _probed(helps=False)
    assert found is None
    assert hosts.settled is OtherHosts.DOWN
    assert learned.first_look is not None
