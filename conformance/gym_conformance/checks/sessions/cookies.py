"""The session cookie: it gives access to its session, and nothing else does.

Source: `setup_session_middleware` in nemo_gym/server_utils.py (0.2.1 to 0.7.0), and how the clients keep cookies:
simple_agent/app.py replaces them after each reply, Verifiers takes them once, at the seed.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import compress, islice

import itsdangerous

from gym_conformance.contract.dataset_rows import Call
from gym_conformance.contract.endpoints import SEED_SESSION, VERIFY, tool_path
from gym_conformance.contract.openapi import ServerKind
from gym_conformance.contract.policy_output import DO_NOTHING
from gym_conformance.contract.session_cookies import Cookies, payload_of
from gym_conformance.contract.statuses import is_crash, is_refusal, is_success
from gym_conformance.findings import Cause
from gym_conformance.session.channel import Channel
from gym_conformance.session.contracts import CookieHabit, post
from gym_conformance.session.exchange import Exchange, Reply, Request, reply_of
from gym_conformance.session.unserved import NO_SUCH_TOOL
from gym_conformance.trajectories.execute import TrajectoryRun, beside, run
from gym_conformance.trajectories.followed import followed
from gym_conformance.trajectories.known import by_tools
from gym_conformance.trajectories.outcome import Outcome, StepOutcome
from gym_conformance.trajectories.trajectory import Trajectory
from gym_conformance.trials.chance import beyond_chance
from gym_conformance.trials.check import check
from gym_conformance.trials.ending import NotApplicable, Untestable, Violation
from gym_conformance.trials.needs import COOKIES, RECORDED_CALLS, RESOURCES_SERVER, SERVED_TOOLS
from gym_conformance.trials.replay import known_trajectory, replayed
from gym_conformance.trials.solo import Solo
from gym_conformance.trials.trial import Trial, describe, expect_no_crash

#: Recorded rollouts that are run for a client that replaces its cookies.
_ROLLOUTS = 8

_LOST = "simple_agent replaces its cookies with those of each reply: after this one it has none and continues in a fresh session. "
_ANYWHERE = (
    "Starlette's SessionMiddleware may set it only where the request wrote to request.session: assign the id each time."
)
_REFUSED = "The framework refuses a path that it does not know, or a body, before the handler runs: set the cookie around all routes."
_UNCHECKED = "The session id from the cookie is used without checking that the session exists."
_WHATEVER_SESSION = (
    "The tool's function raises on this call as the first one of any session: it takes for granted what a call before it "
    "has done, or fails on these arguments; return the exception as the tool's output."
)


async def _opened(trial: Trial) -> Cookies:
    session = trial.session()
    cookies = (await session.seed()).received
    if not cookies:
        raise Untestable("a session cookie; see seed-sets-cookie")
    return cookies


async def _good_call(trial: Trial) -> Call | None:
    """A call that the server is known to take, so that no failure is the call's own."""
    return next(iter((await known_trajectory(trial)).calls), None)


@check(
    "cookie-sent-again",
    "The session cookie MUST be set again by every reply below 500",
    why="the default agent replaces its cookies with those of each reply; without one it loses the session, and verify scores an untouched one.",
    needs=[RESOURCES_SERVER, COOKIES],
)
async def cookie_sent_again(trial: Trial, _: object) -> None:
    """Sends a tool call, an unknown tool, a malformed call and a verify, all with the seed's cookie.

    Every reply below 500, errors included, must set the cookie again. If no row declares a tool, or calls are graded and
    never executed, nothing comes between the seed and the verify, and no reply need set it. A refused seed need not
    either, since the rollout ends there, nor a 5xx, since nemo-gym's exception middleware sits outside its session
    middleware.

    Source: `setup_session_middleware` in nemo_gym/server_utils.py (from 0.2.1), and `SimpleAgent.responses` in
    simple_agent/app.py.
    """
    declares = not trial.gym.rows or trial.gym.tools or trial.gym.recorded_calls
    if not declares or trial.gym.kind is ServerKind.SINGLE_TURN:
        why = "calls are graded, not executed" if declares else "no row declares a tool"
        raise NotApplicable(f"{why}: nothing comes between the seed and the verify")
    cookies = await _opened(trial)
    requests = [post(tool_path(NO_SUCH_TOOL), {}, cookies)]
    if call := await _good_call(trial):
        requests += [
            post(tool_path(call.name), call.arguments, cookies),
            post(tool_path(call.name), [], cookies),
        ]
    requests.append(post(VERIFY, {**trial.gym.row.data, "response": DO_NOTHING.response}, cookies))
    exchanges = [await trial.channel.send(request) for request in requests]
    without = [each for each in exchanges if not is_crash(reply_of(each).status) and not each.received]
    if without:
        likely = _LOST + (_REFUSED if all(is_refusal(reply_of(each).status) for each in without) else _ANYWHERE)
        actual = f"none from {', '.join(map(str, without))}"
        raise Violation("a Set-Cookie header on every reply", actual, likely, Cause.LOST_SESSION)


@check(
    "cookie-replacing-client",
    "A session MUST survive a client that replaces its cookies with those of each reply",
    why="simple_agent, the default agent, does this: its rollouts would be scored on the wrong state.",
    needs=[RESOURCES_SERVER, COOKIES],
    gentle=True,
)
async def cookie_replacing_client(trial: Trial, _: object) -> None:
    """Runs a recorded rollout's calls and verify as the default agent would, and again as a client that keeps every cookie.

    If the session's id is stable for a client that keeps each cookie until it is replaced, as browsers do, it must be
    stable here too, and replies and reward must match. Values that differ between two identical runs are not compared.
    In further recorded rollouts, no call may be refused that is accepted with the seed's cookie, chance excluded,
    because some reply on the way may set another cookie. One in which a reply sets only cookies of other names is run
    twice over in one session, and what it answers must be the same with the seed's cookie.

    Source: `SimpleAgent.responses` in responses_api_agents/simple_agent/app.py (0.4.0).
    """
    await _same_for_both_clients(trial, CookieHabit.REPLACING)
    if trial.gym.kind is not ServerKind.SINGLE_TURN:
        rollouts = [followed(row, several[0]) for row, several in trial.gym.recorded.items()]
        await _expect_none_lost(trial, by_tools(rollouts)[:_ROLLOUTS])


@check(
    "cookie-keeping-client",
    "A session MUST survive a client that keeps the cookie of the seed",
    why="Verifiers' NeMo Gym taskset does this: its rollouts would be scored on the wrong state.",
    needs=[RESOURCES_SERVER, COOKIES],
    gentle=True,
)
async def cookie_keeping_client(trial: Trial, _: object) -> None:
    """Runs a recorded rollout's calls and verify with the seed's cookie only, and again as a client that keeps every cookie.

    If none is recorded, calls are made that the tools are known to accept, as in other checks of cookies. State must not
    travel in the cookie, and the id must not change along the way.

    Source: verifiers/v1/tasksets/nemo_gym/taskset.py (verifiers 0.4.0) takes the cookie once, at the seed.
    """
    await _same_for_both_clients(trial, CookieHabit.KEEPING)


async def _expect_none_lost(trial: Trial, rollouts: Sequence[Trajectory]) -> None:
    """Hold the default agent to a client that keeps the seed's cookie."""

    async def lost(channel: Channel, rollout: Trajectory, habit: CookieHabit) -> tuple[StepOutcome, StepOutcome] | None:
        runs = [TrajectoryRun(trial.gym, channel, rollout, each) for each in (habit, CookieHabit.KEEPING)]
        tried, kept = [(await each.finish()).steps for each in runs]
        for at, (one, two) in enumerate(zip(tried, kept, strict=True)):
            if one.is_refused and not two.is_refused and not _moves_on(runs[0], at):
                return one, two
        return None

    async def suspected(channel: Channel, rollout: Trajectory) -> bool:
        return await lost(channel, rollout, CookieHabit.REPLACING) is not None

    channels = [Channel(trial.gym.endpoint) for _ in rollouts]
    found = await beside([partial(suspected, *each) for each in zip(channels, rollouts, strict=True)])
    renaming = (rollout for channel, rollout in zip(channels, rollouts, strict=True) if _renames_at_times(channel))
    for rollout in islice(renaming, 1):
        await _expect_kept_twice(trial, rollout)
    for rollout in compress(rollouts, found):
        replacing, keeping = [
            partial(lost, rollout=rollout, habit=habit) for habit in (CookieHabit.REPLACING, CookieHabit.KEEPING)
        ]
        if steps := await beyond_chance(trial, replacing, keeping, together=True, suspected=True):
            came, kept = steps
            raise Violation(
                f"{came.name} answers {kept.status}, {kept.body!r}, as where the seed's cookie is kept",
                f"it answers {came.status}, {came.body!r}",
                "An earlier reply, perhaps a refusal, sets another session's cookie: set the one that was sent.",
                Cause.LOST_SESSION,
            )


async def _expect_kept_twice(trial: Trial, rollout: Trajectory) -> None:
    """What a rollout writes must be there when it is run again in its session, whatever the names of the cookies."""
    twice = rollout.chosen([*range(len(rollout.calls))] * 2)

    async def replacing(channel: Channel) -> Outcome:
        return await TrajectoryRun(trial.gym, channel, twice).finish()

    if difference := await Solo(trial, twice, CookieHabit.KEEPING).beyond_chance(replacing):
        raise Violation(
            f"{difference.answer}, as where the seed's cookie is kept",
            f"{difference.actual!r}",
            "A reply on the way sets a cookie of another name, or voids the session's.",
            Cause.LOST_SESSION,
        )


def _renames_at_times(channel: Channel) -> bool:
    """Whether some replies, and not most of them, set none of the cookies that were sent; such may carry the state."""
    asked = [one for one in channel.exchanges if one.request.cookies and one.received]
    renamed = [
        one
        for one in asked
        if not {name for name, value in one.received.pairs if value} & set(dict(one.request.cookies.pairs))
    ]
    return 0 < 2 * len(renamed) <= len(asked)


def _moves_on(run: TrajectoryRun, step: int) -> bool:
    """Whether most calls that were taken before a step set other cookies, which name no session: they carry its state."""
    taken = [run.exchanges[at] for at in range(1, step) if not run.steps[at].is_refused]
    return 2 * sum(map(_sets_another, taken)) > len(taken)


def _sets_another(exchange: Exchange) -> bool:
    sent, received = exchange.request.cookies, exchange.received
    return bool(received) and received.session_id is None and not set(sent.pairs) & set(received.pairs)


async def _same_for_both_clients(trial: Trial, habit: CookieHabit) -> None:
    hint = "The session changes along the way: the cookie is lost or replaced, or it carries the state itself."
    await _expect_as_any_client(trial, partial(replayed, trial, habit), habit.value, hint)


async def _expect_as_any_client(
    trial: Trial, play: Callable[[Channel], Awaitable[TrajectoryRun]], client: str, hint: str
) -> None:
    """Require the session and the answers that the easiest client gets: what differs is the other's doing."""
    usual = CookieHabit.COLLECTING
    easiest, tried = await replayed(trial, usual, Channel(trial.gym.endpoint)), await play(trial.channel)
    if crashed := next((step.name for step in easiest.outcome.calls if is_crash(step.status)), ""):
        hint = f"{crashed} crashes, and a crash's reply sets no cookie: mend the crash."
    if len(set(easiest.ids)) == 1 < len(set(tried.ids)):
        raise Violation("one session id from the seed to the verify", f"{tried.ids}", hint, Cause.LOST_SESSION)

    async def again(channel: Channel) -> Outcome:
        return (await play(channel)).outcome

    if found := await Solo(trial, tried.trajectory, usual).beyond_chance(again, tried.outcome):
        expected = f"{found.answer} for {client}, as for {usual.value}"
        raise Violation(expected, f"{found.actual!r}", hint, Cause.LOST_SESSION)


def _flipped(value: str) -> Sequence[str]:
    """The value with another character in the midst of its signature (the last one carries bits that do not count), and elsewhere."""

    def other(at: int) -> str:
        return value[:at] + ("A" if value[at : at + 1] != "A" else "B") + value[at + 1 :]

    return [other(max(len(value) - 10, 0)), other(len(value) // 2), other(len(value) // 3)]


#: Values in the place of a cookie's. Where there are several, a crash counts if each of them leads to one: some frameworks
#: read what is not signed, such as when the cookie expires, before they look at the signature.
_FORGERIES: dict[str, Callable[[str], Sequence[str]]] = {
    "a changed signature": _flipped,
    "a truncated value": lambda value: [value[: len(value) // 2]],
    "an empty value": lambda _: [""],
    "no signed value at all": lambda _: ["not-a-session"],
    "a value of 4,000 characters": lambda _: ["A" * 4000],
}


@check(
    "cookie-tampered",
    "A tampered cookie MUST NOT crash the server or open another session",
    why="one corrupted cookie ends a rollout, or lets it overwrite another's state.",
    needs=[RESOURCES_SERVER, COOKIES],
    subjects=lambda _: (*_FORGERIES, "the cookie twice, once forged"),
    beside=True,
)
async def cookie_tampered(trial: Trial, forgery: str) -> None:
    """Sends an altered copy of another session's cookie to seed_session, a tool and verify.

    No reply may be a 5xx, and the cookie that comes back must not name the other session.

    Source: starlette/middleware/sessions.py: on itsdangerous's BadSignature it starts an empty session.
    """
    victim = await _opened(trial)
    if forgery in _FORGERIES:
        forged, *others = map(victim.with_value, _FORGERIES[forgery](victim.session[1]))
    else:
        name, value = victim.session
        forged, others = Cookies(((name, value[: len(value) // 2]), (name, "not-a-session"))), []
    requests = [post(SEED_SESSION, dict(trial.gym.row.data), forged)]
    if call := await _good_call(trial):
        requests.append(post(tool_path(call.name), call.arguments, forged))
    requests.append(post(VERIFY, {**trial.gym.row.data, "response": DO_NOTHING.response}, forged))
    for request in requests:
        exchange = await trial.channel.send(request)
        if is_crash(reply_of(exchange).status):
            own = await _opened(trial)
            again = [await Channel(trial.gym.endpoint).send(replace(request, cookies=each)) for each in (own, *others)]
            sound, *alike = (is_crash(reply_of(each).status) for each in again)
            if sound or not all(alike):
                continue  # with its own cookie, too, or not with each
        _refuse_crash(reply_of(exchange))
        if victim.session_id is not None and exchange.received.session_id == victim.session_id:
            if (await _opened(trial)).session_id == victim.session_id:
                raise Untestable("sessions that differ; see seed-opens-own-session")
            raise Violation(
                "a session of its own", f"the other's, {victim.session_id}", "The signature is not checked."
            )


def _refuse_crash(reply: Reply) -> None:
    expect_no_crash(reply, _UNCHECKED)


@check(
    "cookie-unsigned-id",
    "An id that the server did not sign SHOULD NOT be adopted as a session",
    why="any client could name any session, and two that pick the same name would share one.",
    needs=[RESOURCES_SERVER, COOKIES, SERVED_TOOLS],
)
async def cookie_unsigned_id(trial: Trial, _: object) -> None:
    """Seeds with a cookie that names a session of our choice, both bare and in Starlette's format with a wrong signature.

    The cookie that comes back must not name that session. Servers without tools are exempt, since they keep no state to
    share.

    Our inference: starlette/middleware/sessions.py verifies the signature and drops whatever it did not sign, but no
    client makes up names.
    """
    cookies = await _opened(trial)
    chosen = "chosen-by-the-client"
    for value in (chosen, payload_of(chosen), f"{payload_of(chosen)}.aR3zZw.AAAAAAAAAAAAAAAAAAAAAAAAAAA"):
        exchange = await trial.channel.send(post(SEED_SESSION, dict(trial.gym.row.data), cookies.with_value(value)))
        _refuse_crash(reply_of(exchange))
        received = exchange.received
        opened = is_success(reply_of(exchange).status)
        if opened and (received.session_id == chosen or (received and received.session[1] == value)):
            raise Violation(
                "a session id drawn by the server",
                f"a session named {chosen!r}, as the client asked",
                "The cookie's signature is not checked: use Starlette's SessionMiddleware.",
            )


@check(
    "cookie-signing-key",
    "Session cookies are signed with a key that clients know",
    why="anyone who can reach the server can forge a cookie for any session; harmless on a private network.",
    needs=[RESOURCES_SERVER, COOKIES],
    framework=True,
)
async def cookie_signing_key(trial: Trial, _: object) -> None:
    """Signs a session id of our choice, using the cookie's name as the key, and seeds with it.

    If a signature with another key is accepted as well, nothing is checked, which is what `cookie-unsigned-id` reports.

    This comes from NeMo Gym itself and is true of every stock server.
    Source: `get_session_middleware_key` in nemo_gym/server_utils.py is both the key and the cookie's name (0.2.0 to 0.7.0).
    """
    cookies = await _opened(trial)
    name, _ = cookies.session
    chosen = "forged-by-the-client"

    async def adopted(key: str) -> bool:
        forged = itsdangerous.TimestampSigner(key).sign(payload_of(chosen)).decode()
        exchange = await trial.channel.send(post(SEED_SESSION, dict(trial.gym.row.data), Cookies(((name, forged),))))
        return exchange.received.session_id == chosen

    if await adopted(f"not {name}"):
        raise NotApplicable("any signature is accepted; see cookie-unsigned-id")
    if await adopted(name):
        raise Violation(
            "a key that a client cannot know",
            f"a cookie signed with the key {name!r}, its own name, is accepted",
            "NeMo Gym's own default: override get_session_middleware_key() to fix it.",
        )


@check(
    "cookie-foreign",
    "Cookies of other servers MUST NOT disturb a session",
    why="httpx and requests send one server's cookies to every port of the same host.",
    needs=[RESOURCES_SERVER, COOKIES],
    gentle=True,
)
async def cookie_foreign(trial: Trial, _: object) -> None:
    """Seeds with only another server's cookie, then runs a recorded rollout's calls and verify with both cookies.

    The session must stay the same, and the answers must be those without the other cookie. Values that differ between
    two identical runs are not compared.

    Source: RFC 6265, section 8.5: cookies are not isolated by port.
    """
    await _opened(trial)
    foreign = ("OtherServer___other", f"{payload_of('other')}.aR3zZw.AAAAAAAAAAAAAAAAAAAAAAAAAAA")
    exchange = await trial.channel.send(post(SEED_SESSION, dict(trial.gym.row.data), Cookies((foreign,))))
    if not exchange.received:
        raise Violation(
            "a session cookie of its own",
            describe(reply_of(exchange)),
            "Another server's cookie is mistaken for the session's.",
        )

    async def beside(channel: Channel) -> TrajectoryRun:
        return await replayed(trial, CookieHabit.COLLECTING, _Beside(channel, foreign))

    hint = "The server reads the first cookie of the request instead of the one with its own name."
    await _expect_as_any_client(trial, beside, "a client that has another server's cookie, too", hint)


class _Beside(Channel):
    """Sends another server's cookie before those of the session, as clients do that keep cookies by host."""

    def __init__(self, channel: Channel, foreign: tuple[str, str]) -> None:
        super().__init__(channel.endpoint, record=channel)
        self._foreign = foreign

    async def send(self, request: Request) -> Exchange:
        return await super().send(replace(request, cookies=Cookies((self._foreign, *request.cookies.pairs))))


@check(
    "cookie-unknown-session",
    "A tool call without a session MUST NOT crash the server",
    why="after a lost cookie or a restart, every call arrives like this; a 5xx tells the policy nothing.",
    needs=[RESOURCES_SERVER, SERVED_TOOLS, RECORDED_CALLS],
)
async def cookie_unknown_session(trial: Trial, _: object) -> None:
    """Makes a recorded rollout's calls without any cookie, before any seed.

    Source: `add_session_id` in nemo_gym/server_utils.py gives such a client a fresh session (every version); workplace_assistant answers 400.
    """
    row, calls = trial.gym.recorded_calls[0]
    for call in calls:
        reply = await trial.send(post(tool_path(call.name), call.arguments))
        if is_crash(reply.status):
            seeded = await run(trial.gym, Channel(trial.gym.endpoint), Trajectory(row, (call,)))
            expect_no_crash(reply, _WHATEVER_SESSION if is_crash(seeded.calls[0].status) else _UNCHECKED)
