"""`POST /seed_session`: opens a session for one row.

Source: `SimpleResourcesServer.seed_session` in nemo_gym/base_resources_server.py and `SimpleAgent.run` in
responses_api_agents/simple_agent/app.py, 0.4.0; what Verifiers does with the reply, as published in 0.3.0 and 0.4.0.
"""

from collections.abc import Collection
from datetime import UTC, datetime

import httpx

from gym_conformance.contract.dataset_rows import Row
from gym_conformance.contract.endpoints import ROLLOUT_KEYS, SEED_SESSION, VERIFY, tool_path
from gym_conformance.contract.policy_output import DO_NOTHING
from gym_conformance.contract.session_cookies import Cookies, SetCookie, parse_set_cookie, read_date, read_session_id
from gym_conformance.contract.statuses import UNKNOWN_CLIENT, is_redirect
from gym_conformance.findings import Cause
from gym_conformance.session.channel import Channel
from gym_conformance.session.contracts import CookieHabit, CookieSession, post
from gym_conformance.session.exchange import reply_of
from gym_conformance.trajectories.execute import TrajectoryRun
from gym_conformance.trajectories.outcome import Outcome
from gym_conformance.trials.check import check
from gym_conformance.trials.ending import NotApplicable, Violation
from gym_conformance.trials.needs import COOKIES, RESOURCES_SERVER, each_row
from gym_conformance.trials.replay import recorded_trajectory
from gym_conformance.trials.solo import Solo
from gym_conformance.trials.trial import (
    Trial,
    describe,
    expect_cookie,
    expect_no_crash,
    expect_object,
    expect_success,
    refuse_made_up,
)

#: Bytes of a cookie's name and value that clients must take (RFC 6265, section 6.1), and that aiohttp takes.
_COOKIE = 4096

#: For how many seconds a session's cookie must last, at the very least: one long answer of a policy; and how far dates that
#: are written in whole seconds, one of them a moment ago, may be off.
_SECONDS, _ROUNDED = 300, 10

_NO_OBJECT = "Return a dict, or a model, and let the framework write it: as UTF-8, without a byte order mark."


@check(
    "seed-accepts-rows",
    "seed_session MUST accept every dataset row",
    why="the agent raises on any error, so the row's rollout is lost, and the whole batch with it.",
    needs=[RESOURCES_SERVER],
    subjects=each_row,
    beside=True,
    gentle=True,
)
async def seed_accepts_rows(trial: Trial, row: Row) -> None:
    """Seeds a fresh session with each row exactly as it stands in the dataset.

    Source: `SimpleAgent.run` posts the whole row and raises for any status but 200 (0.4.0).
    """
    reply = reply_of(await trial.session(row).seed())
    refuse_made_up(row, reply)
    likely = "seed_session's request model does not match the dataset, or its setup code fails on this row."
    if reply.status in UNKNOWN_CLIENT:
        likely = "It wants credentials: --gym-header sends them, but NeMo Gym's own clients send none."
    expect_success(reply, likely)


@check(
    "seed-accepts-rollout-keys",
    "seed_session and verify MUST accept the keys that rollout collection adds to a row",
    why="the environment works when tried by hand and fails in training, where these keys are always present.",
    needs=[RESOURCES_SERVER],
    gentle=True,
)
async def seed_accepts_rollout_keys(trial: Trial, _: object) -> None:
    """Seeds and verifies the first row with `agent_ref`, `_ng_task_index` and `_ng_rollout_index` added.

    Source: nemo_gym/rollout_collection.py adds them before `/run`, and the agent passes the row on unchanged (0.4.0).
    """
    row = Row({**trial.gym.row.data, **ROLLOUT_KEYS}, trial.gym.row.source)
    hint = "The request model forbids extra keys (`extra='forbid'`), but rows carry more than it lists."
    plain = await _statuses(trial, trial.gym.row)
    extended = await _statuses(trial, row)
    if extended != plain:
        raise Violation(f"the statuses of the plain row, {plain}", f"{extended}", hint)


async def _statuses(trial: Trial, row: Row) -> list[int]:
    session = trial.session(row)
    seeded = reply_of(await session.seed())
    return [seeded.status, (await trial.verify(session, DO_NOTHING.response)).status]


@check(
    "seed-replies-object",
    "seed_session MUST reply with a JSON object",
    why="Verifiers calls `.get('mcp')` on the reply: null or a list kills every rollout there.",
    needs=[RESOURCES_SERVER],
)
async def seed_replies_object(trial: Trial, _: object) -> None:
    """Seeds the first row and parses the reply.

    Source: `BaseSeedSessionResponse` (every version); Verifiers' NeMo Gym taskset calls `.json().get("mcp")`.
    """
    session = trial.session()
    reply = reply_of(await session.seed())
    refuse_made_up(trial.gym.row, reply)
    expect_success(reply, "See seed-accepts-rows.")
    nothing = not reply.body or (reply.is_json and reply.json() is None)
    expect_object(reply, "seed_session returns None: return BaseSeedSessionResponse()." if nothing else _NO_OBJECT)


def _session_cookies(headers: tuple[str, ...]) -> list[SetCookie]:
    cookies = [parse_set_cookie(header) for header in headers]
    return [cookie for cookie in cookies if cookie.value and not cookie.expires_at_once]


@check(
    "seed-sets-cookie",
    "seed_session MUST set a session cookie",
    why="without one, each tool call and the verify run in separate sessions, and the reward scores untouched state.",
    needs=[RESOURCES_SERVER, COOKIES],
)
async def seed_sets_cookie(trial: Trial, _: object) -> None:
    """Seeds the first row without a cookie and looks for `Set-Cookie` in the reply.

    Source: `SimpleServer.setup_session_middleware` in nemo_gym/server_utils.py (every version).
    """
    session = trial.session()
    reply = reply_of(await session.seed())
    expect_cookie(reply, _session_cookies(reply.set_cookies))


@check(
    "seed-cookie-usable",
    "The session cookie MUST be valid for every endpoint",
    why="clients that follow the cookie rules never send such a cookie back, so the session is lost.",
    needs=[RESOURCES_SERVER, COOKIES],
)
async def seed_cookie_usable(trial: Trial, _: object) -> None:
    """Checks the cookie's attributes and size: `Path` covers every endpoint, no `Secure` over http, no foreign `Domain`, at most 4,096 bytes, no `Max-Age` below five minutes, and no `Expires` that is nearer, counted from the reply's `Date`.

    If the server sets several cookies and none shows the session's id, only a cookie without which the session is lost
    counts.

    Source: RFC 6265, sections 5.3, 5.4 and 6.1. aiohttp, which nemo-gym's agents use, silently drops a longer cookie
    (aiohttp/_cookie_helpers.py, 3.14.5). Stock servers set `path=/; httponly; samesite=lax` (nemo_gym/server_utils.py,
    0.4.0).
    """
    session = trial.session()
    reply = reply_of(await session.seed())
    url = httpx.URL(trial.channel.endpoint.url)
    cookies = _session_cookies(reply.set_cookies)
    named = [cookie for cookie in cookies if len(cookies) == 1 or read_session_id(cookie.value) is not None][:1]
    now = read_date(reply.header("date") or "") or datetime.now(UTC)
    unusable = {cookie.name: violation for cookie in named or cookies if (violation := _unusable(cookie, url, now))}
    # of several that say nothing, such as one for a page's colours, only the session's may do harm
    if unusable and (named or await _is_lost_without(trial, unusable.keys())):
        raise next(iter(unusable.values()))


def _unusable(cookie: SetCookie, url: httpx.URL, now: datetime) -> Violation | None:
    """Why clients do not send a cookie back to every endpoint, for as long as a rollout takes."""
    if (size := len(cookie.name) + len(cookie.value)) > _COOKIE:
        return Violation(
            f"at most {_COOKIE:,} bytes of name and value",
            f"{size:,} bytes",
            "The cookie carries the session's state: keep it on the server, and its id in the cookie.",
        )
    if cookie.seconds(now) < (_SECONDS - _ROUNDED if cookie.expires else _SECONDS):
        until = f"Expires={cookie.attributes.get('expires')}, in a reply of {now:%a, %d %b %Y %H:%M:%S} GMT"
        return Violation(
            f"a cookie that lasts for {_SECONDS} seconds or more",
            until if cookie.expires else f"Max-Age={cookie.attributes['max-age']}",
            "The session is lost while the policy thinks: let the cookie last for as long as a rollout may take.",
        )
    path = cookie.attributes.get("path", "/")
    if not f"{url.path.rstrip('/')}/".startswith(path.rstrip("/") + "/"):
        return Violation("a Path that covers every endpoint", f"Path={path}", "Set the session cookie with path='/'.")
    if "secure" in cookie.attributes and url.scheme == "http":
        return Violation(
            "no Secure attribute over http",
            f"{cookie.name} is Secure",
            "SessionMiddleware(https_only=True): agents talk to the server over http and drop the cookie.",
        )
    domain = cookie.attributes.get("domain", "").lstrip(".").lower()
    if domain and domain != url.host and not url.host.endswith("." + domain):
        return Violation(
            f"no Domain, or {url.host}",
            f"Domain={domain}",
            "Leave SessionMiddleware's domain unset, since hosts change.",
        )
    return None


async def _is_lost_without(trial: Trial, names: Collection[str]) -> bool:
    """Whether a recorded rollout comes out otherwise for a client that never sends these cookies back, chance excluded."""
    plain, habit = recorded_trajectory(trial), CookieHabit.KEEPING

    async def without(channel: Channel) -> Outcome:
        rollout = TrajectoryRun(trial.gym, channel, plain, habit)
        await rollout.step()
        if isinstance(rollout.session, CookieSession):
            left = (pair for pair in rollout.session.cookies.pairs if pair[0] not in names)
            rollout.session.cookies = Cookies(tuple(left))
        return await rollout.finish()

    return await Solo(trial, plain, habit).beyond_chance(without) is not None


@check(
    "seed-opens-own-session",
    "Two seeds without a cookie MUST open two sessions",
    why="rollouts of one batch overwrite each other's state, and their rewards are noise.",
    needs=[RESOURCES_SERVER, COOKIES],
)
async def seed_opens_own_session(trial: Trial, _: object) -> None:
    """Seeds the first row twice, each time over a new connection and without a cookie, and compares the ids in the two cookies.

    If no id can be read because the cookie is not Starlette's, two equal cookies may hold the state itself, or belong
    to a server that keeps none. Whether the sessions share anything is then left to the isolation checks.

    Source: `add_session_id` in nemo_gym/server_utils.py draws a uuid4 for each client without a cookie.
    """
    apart = Channel(trial.gym.endpoint, fresh=True, record=trial.channel)  # processes may all draw the same ids
    first, second = (trial.gym.contract.session(apart, trial.gym.row) for _ in range(2))
    replies = [reply_of(await session.seed()) for session in (first, second)]
    if not (replies[0].set_cookies and replies[1].set_cookies) and first.id is None:
        raise NotApplicable("the seeds set no cookie; see seed-sets-cookie")
    if first.id is None and replies[0].set_cookies == replies[1].set_cookies:
        raise NotApplicable("the two cookies are equal and contain no id that can be read; see the isolation checks")
    if first.id is not None and first.id == second.id:
        raise Violation(
            "two different sessions",
            f"the same one twice: {first.id}",
            "The session id is a constant, or is derived from the row instead of being generated.",
            Cause.SHARED_STATE,
        )


@check(
    "seed-repeat-harmless",
    "A repeated seed of a session MUST be harmless",
    why="clients resend a request when its reply is lost; that must not end the rollout or switch its session.",
    needs=[RESOURCES_SERVER, COOKIES],
)
async def seed_repeat_harmless(trial: Trial, _: object) -> None:
    """Seeds the first row three times, the second and third time with the cookie of the first, and then verifies.

    Each seed must answer 200 and leave the session's id unchanged, and verify must answer as it does after a single
    seed.

    Source: nemo_gym/server_utils.py `request` retries lost replies; `add_session_id` keeps the id it is sent.
    """
    once = await trial.open()
    expected = (await trial.verify(once, DO_NOTHING.response)).status
    session = await trial.open(habit=CookieHabit.KEEPING)
    for _again in range(2):
        exchange = await session.seed()
        expect_success(
            reply_of(exchange),
            "seed_session fails if the session already exists: use setdefault, or replace the state.",
        )
        if exchange.received.session_id not in (None, session.id):
            raise Violation(
                "the same session id after each seed", "another id", "seed_session replaces the session id."
            )
    reply = await trial.verify(session, DO_NOTHING.response)
    if reply.status != expected:
        raise Violation(
            f"verify answers {expected}, as after one seed",
            describe(reply),
            "The second seed damages the session's state.",
        )


@check(
    "seed-no-redirects",
    "seed_session, tools and verify MUST NOT redirect",
    why="clients do not follow redirects, or follow them with a GET that has no body.",
    needs=[RESOURCES_SERVER],
)
async def seed_no_redirects(trial: Trial, _: object) -> None:
    """Sends a seed, a call of each declared tool and a verify, and looks for a 3xx.

    Source: verifiers/v1/tasksets/nemo_gym/taskset.py (verifiers 0.4.0) follows no redirects; elsewhere a 301 or 302 turns a POST into a GET.
    """
    gym = trial.gym
    verify = {**gym.row.data, "response": DO_NOTHING.response}
    requests = [post(SEED_SESSION, dict(gym.row.data)), post(VERIFY, verify)]
    requests += [post(tool_path(tool.name), gym.example_call(tool).arguments) for tool in gym.tools.values()]
    for request in requests:
        reply = await trial.send(request)
        if is_redirect(reply.status):
            raise Violation(
                f"an answer from {request.path} itself",
                f"status {reply.status} to {reply.header('location')}",
                "A proxy, or a route with a trailing slash (`redirect_slashes`).",
            )


@check(
    "seed-survives-odd-rows",
    "seed_session SHOULD refuse a malformed row without a 5xx",
    why="a 5xx is retried and hides which row was wrong, while a 422 names the field.",
    needs=[RESOURCES_SERVER],
)
async def seed_survives_odd_rows(trial: Trial, _: object) -> None:
    """Seeds with an empty object, a list and null; 200 and any 4xx are fine.

    Our inference: FastAPI validates the body before the handler runs, and env repos' own clients seed with `{}`.
    """
    hint = "The handler reads the raw body, or uses a row field that its request model does not declare."
    bodies: tuple[object, ...] = ({}, [], None)
    for body in bodies:
        expect_no_crash(await trial.send(post(SEED_SESSION, body)), hint)
