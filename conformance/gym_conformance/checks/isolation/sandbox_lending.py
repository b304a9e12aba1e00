"""Sandboxes that a server lends to whoever plays the episode, one for each session."""

import json
from typing import Final

from gym_conformance.contract.endpoints import SANDBOX_ACCESS
from gym_conformance.contract.statuses import is_success
from gym_conformance.session.contracts import post
from gym_conformance.session.exchange import Reply, reply_of
from gym_conformance.trials.check import check
from gym_conformance.trials.ending import NotApplicable, Violation
from gym_conformance.trials.needs import RESOURCES_SERVER, need
from gym_conformance.trials.trial import Trial, describe

#: What says which sandbox it is: `DirectSandboxConnection` in nemo_gym/sandbox/access.py (0.5.1 on).
_DESCRIPTOR: Final = "descriptor"

_LENT = need(
    "lent sandboxes",
    lambda trial: SANDBOX_ACCESS in trial.gym.api.posts,
    f"its OpenAPI document has no {SANDBOX_ACCESS} (NeMo Gym's main)",
)


@check(
    "isolation-sandbox",
    "Each session SHOULD have a sandbox of its own",
    why="two rollouts in one sandbox overwrite each other's files, and both rewards are noise.",
    needs=[RESOURCES_SERVER, _LENT],
)
async def isolation_sandbox(trial: Trial, _: object) -> None:
    """Asks for the sandboxes of two sessions, and for one without a session, which may be refused.

    The two must have different descriptors, and neither of them may be given out without a session.

    Our inference, from the documentation of NeMo Gym's main, not released (`nemo_gym.server_runtime.sandbox_lending`):
    "one per resources session"; the form is that of `SandboxAccess` in nemo_gym/sandbox/access.py (0.5.1 on).
    """
    ask = post(SANDBOX_ACCESS, {})
    lent = [_lent(reply_of(await (await trial.open()).send(ask))) for _session in range(2)]
    stranger = await trial.send(ask)
    if is_success(stranger.status):
        lent.append(_lent(stranger))
    if len(set(lent)) < len(lent):
        hint = "Keep sandboxes by the session's id, and lend none to a request without a session."
        raise Violation("another sandbox for each session", f"the same one: {lent[0]}", hint)


def _lent(reply: Reply) -> str:
    """Which sandbox a reply lends.

    Raises:
        NotApplicable: none.
        Violation: it does not say.
    """
    if not is_success(reply.status):
        raise NotApplicable(f"no sandbox is lent: {describe(reply)}")
    connection = reply.fields.get("connection")
    if not isinstance(connection, dict) or not isinstance(connection.get(_DESCRIPTOR), dict):
        raise Violation("a connection with a descriptor", describe(reply), "Answer with a SandboxAccess.")
    return json.dumps(connection[_DESCRIPTOR], sort_keys=True)
