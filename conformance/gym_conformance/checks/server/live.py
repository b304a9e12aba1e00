"""Liveness: what clients wait for before they begin.

Source: `setup_liveness` in nemo_gym/server_utils.py and `SimpleResourcesServer.setup_webserver` in
nemo_gym/base_resources_server.py.
"""

from http import HTTPStatus

from gym_conformance.contract.endpoints import LIVENESS, SEED_SESSION, VERIFY
from gym_conformance.contract.openapi import ServerKind
from gym_conformance.contract.statuses import UNROUTED
from gym_conformance.session.contracts import post
from gym_conformance.session.exchange import Request
from gym_conformance.session.unserved import is_served
from gym_conformance.trials.check import check
from gym_conformance.trials.ending import Violation
from gym_conformance.trials.trial import Trial, describe, expect_no_crash


@check(
    "live-root",
    "GET / MUST answer",
    why="Verifiers and `gym env status` wait for an answer there first; without one, training never starts.",
)
async def live_root(trial: Trial, _: object) -> None:
    """Requests `/`; any status below 500 counts as an answer, and so does 501, from a server that implements no GET.

    Source: `setup_liveness` in nemo_gym/server_utils.py (from 0.3.0); earlier servers answer 404, which counts too.
    """
    reply = await trial.send(Request("GET", LIVENESS))
    if reply.status != HTTPStatus.NOT_IMPLEMENTED:
        expect_no_crash(reply, "The liveness route fails.")


def _endpoints(trial: Trial) -> tuple[str, ...]:
    return () if trial.gym.kind in (ServerKind.GYMNASIUM, ServerKind.ENVIRONMENT) else (SEED_SESSION, VERIFY)


@check(
    "live-endpoints",
    "The server MUST serve seed_session and verify",
    why="without them no rollout can begin or end.",
    subjects=_endpoints,
)
async def live_endpoints(trial: Trial, path: str) -> None:
    """Posts the first row to `/seed_session` and an empty object to `/verify`; neither may answer 405, or 404 as an unknown path does.

    A 404 may have other reasons, such as a session that was never opened, or a row without a task; a route that the
    OpenAPI document lists counts as served. Gymnasium-style servers (`/reset` and `/step`) and environment servers
    (`/run`) follow other contracts and are exempt.

    Source: `SimpleResourcesServer.setup_webserver` in nemo_gym/base_resources_server.py (every version).
    """
    # The very first session is one that a client would open: some servers keep for good what it is seeded with.
    body = dict(trial.gym.row.data) if path == SEED_SESSION else {}
    reply = await trial.send(post(path, body))
    if path in trial.gym.api.posts or reply.status not in UNROUTED:
        return
    asked = len(trial.channel.exchanges)
    session = trial.session()
    await session.seed()
    served = reply.status == HTTPStatus.NOT_FOUND and await is_served(session, path.removeprefix("/"), [body])
    del trial.channel.exchanges[asked:]
    if not served:
        raise Violation(
            f"POST {path}",
            describe(reply),
            "This URL is not a resources server (an agent serves /run, the head /global_config_dict_yaml), or its path prefix is missing.",
        )
