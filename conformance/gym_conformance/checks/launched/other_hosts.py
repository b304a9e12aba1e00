"""Other hosts: what a launched server asks of them, and what it makes of their failures.

While it is judged, a recorder on loopback stands for all other hosts (`--gym-network` leaves them as they are).
"""

from collections.abc import Sequence

from gym_conformance.contract.dataset_rows import Call, Row
from gym_conformance.contract.endpoints import VERIFY
from gym_conformance.gym_under_test import Gym
from gym_conformance.session.exchange import Exchange
from gym_conformance.trajectories.generate import Knowledge
from gym_conformance.trajectories.made_up import made_up
from gym_conformance.trials.before_and_after import writing
from gym_conformance.trials.check import check
from gym_conformance.trials.ending import NotApplicable, Violation
from gym_conformance.trials.in_form import expect_named_cause, expect_reported
from gym_conformance.trials.launched import FakeHosts, OtherHosts
from gym_conformance.trials.needs import RESOURCES_SERVER, need
from gym_conformance.trials.replay import an_answer
from gym_conformance.trials.trial import Trial

#: Rows that are played, and requests to other hosts that are told.
_ROWS, _TOLD = 2, 12


OUTSIDE = need(
    "other hosts",
    lambda trial: trial.launched.outside,
    "it is known only for servers that the suite launches with the network closed",
)


@check(
    "outside-answers",
    "Tools and verify SHOULD answer in form whatever other hosts do",
    why="search engines and APIs fail for minutes under load; each crash loses a rollout, and nothing points to its cause.",
    needs=[RESOURCES_SERVER, OUTSIDE],
    subjects=lambda _: OtherHosts,
)
async def outside_answers(trial: Trial, hosts: OtherHosts) -> None:
    """Plays two rows while all other hosts are down, slow, or answer 429, 500, garbage or an empty object.

    The calls are a recorded rollout's; those of other tools are made up from the rows' definitions. The sessions are
    opened beforehand, because a seed may fetch data, and would keep what the mock made up.

    If another host is asked, each reply must come within --gym-timeout; a 5xx must name its cause, and not be the bare
    `repr` of a programming error; and a 200 from verify must have a reward or `_ng_failure_class`. Applies only to
    launched servers, and not with `--gym-network` or `--gym-launch real`.

    Our inference: an agent hands a tool's error on to the policy, as text (`SimpleAgent.responses`, nemo-gym 0.4.0).
    """
    outside = trial.launched.outside
    assert outside is not None  # noqa: S101 - it is a need
    asked = _times(outside)
    opened = [(row, await trial.open(row)) for row in (trial.gym.rows or (trial.gym.row,))[:_ROWS]]
    outside.let(hosts)
    try:
        # what waits for a host that fails is answered otherwise
        with trial.gym.endpoint.forgiving(when=hosts is not outside.settled):
            for row, session in opened:
                for call in _calls(trial.gym, row) if row.tools else ():
                    await session.call(call)
                await session.verify(an_answer(trial.gym, row))
    finally:
        outside.let(outside.settled)
    if _times(outside) == asked:
        raise NotApplicable("nothing that was tried asks another host")
    for exchange in trial.channel.exchanges:
        _expect_form(exchange, hosts)


def _calls(gym: Gym, row: Row) -> Sequence[Call]:
    """Calls of all tools: those that a recorded rollout makes, and made-up ones of the others."""
    written = writing(gym, row).calls
    called = {call.name for call in written}
    return [*written, *(call for call in made_up(Knowledge((row,)), row).calls if call.name not in called)]


def _expect_form(exchange: Exchange, hosts: OtherHosts) -> None:
    reply = exchange.reply
    if reply is None:
        return
    expect_named_cause(
        reply,
        f"an answer where other hosts {_phrase(hosts)}",
        "The code assumes what the other host's answer looks like; catch what the request may raise, and say so.",
        path=exchange.request.path,
    )
    if exchange.request.path == VERIFY:
        expect_reported(reply, "verify does not report what other hosts did.")


def _phrase(hosts: OtherHosts) -> str:
    return f"are {hosts}" if hosts in (OtherHosts.DOWN, OtherHosts.SLOW) else str(hosts)


@check(
    "outside-asked",
    "The server asks other hosts, or for credentials, or requires what they have",
    why="a rollout that uses the network is as slow and as unstable as the hosts that it asks, and so are its rewards.",
    needs=[OUTSIDE],
)
async def outside_asked(trial: Trial, _: object) -> None:
    """Reports which other hosts the server asked for what while it was judged, and which credentials its config asks for.

    Credentials that nobody gave were made up, as were those that the server reads from its environment (`$NAME`). None
    of it left this machine. Requirements on hosts that do not exist, which `--gym-install` left out, are reported too.

    Our inference.
    """
    outside = trial.launched.outside
    requests = dict(sorted(outside.requests.items())) if outside else {}
    told = [f"{what} ({count} times)" for what, count in list(requests.items())[:_TOLD]]
    more = [f"{len(requests) - _TOLD} more"] if len(requests) > _TOLD else []
    made_up, left_out = trial.launched.made_up, trial.launched.left_out
    if not requests and not made_up and not left_out:
        return
    asked = [f"asked for {', '.join([*told, *more])}"] if told else []
    keys = [f"{', '.join(made_up)} made up"] if made_up else []
    missed = [f"{', '.join(left_out)} left out of what it requires, as the host is not there"] if left_out else []
    raise Violation(
        "no other host, and no credential",
        "; ".join([*asked, *keys, *missed]),
        f"While the server is judged, other hosts {_phrase(outside.settled) if outside else 'are down'}, except for "
        "outside-answers; --gym-network lets it reach them, and --gym-env-set, or the variable, gives a real credential.",
    )


def _times(outside: FakeHosts) -> int:
    return sum(outside.requests.values())
