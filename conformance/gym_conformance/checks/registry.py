"""All checks, in the order in which they run and are reported."""

from functools import cache
from types import ModuleType
from typing import Final

from gym_conformance.checks.calls import effects, errors, generated
from gym_conformance.checks.entry_points import foreign_checks
from gym_conformance.checks.episodes import run, step, step_sessions
from gym_conformance.checks.isolation import beside_others, earlier, sandbox_lending, told
from gym_conformance.checks.launched import (
    accepted,
    files,
    judge_models,
    judge_prompts,
    model,
    other_hosts,
    restart,
    sandbox_troubles,
)
from gym_conformance.checks.reward import calibrated, every_row, repeat, rewritings, unearned
from gym_conformance.checks.server import compressed, live, load, metrics, pages, programs, resources, wearing_out, wire
from gym_conformance.checks.sessions import cookies, pauses, readiness, rows_read, seed, typed, typed_close, web
from gym_conformance.checks.tools import defaults, drift, mcp, mcp_calls, mcp_tokens, routes, unread
from gym_conformance.checks.verify import echo, failure_kinds, inputs, rewards, unfinished, whole_groups
from gym_conformance.trials.check import Check


def _checks(module: ModuleType) -> tuple[Check, ...]:
    return tuple(value for value in vars(module).values() if isinstance(value, Check))


_MODULES = (
    *(live, seed, rows_read, readiness, cookies, routes, drift, defaults, unread, mcp, mcp_calls, mcp_tokens),
    *(inputs, rewards, unfinished, whole_groups, echo, failure_kinds, generated, errors, effects),
    *(beside_others, earlier, told, sandbox_lending, repeat, pages, compressed, rewritings, unearned, calibrated),
    *(typed, typed_close, web, step_sessions, step, run, resources, wearing_out, pauses, programs),
    metrics,  # last: where the framework's own endpoint hangs, all else is judged
)

#: This package's own, of any server.
CHECKS: Final[tuple[Check, ...]] = tuple(found for module in _MODULES for found in _checks(module))

#: About an env's folder: nothing is sent, and no server need be there.
FILES: Final[tuple[Check, ...]] = _checks(files)

#: What a verify makes of its judge's words, and an episode of its model's, tried after all others where the suite is
#: judge and model.
JUDGE_MODELS: Final[tuple[Check, ...]] = (
    _checks(judge_models) + _checks(judge_prompts) + _checks(model) + _checks(sandbox_troubles)
)

#: Tried only where a load is asked for.
LOAD: Final[tuple[Check, ...]] = _checks(load) + _checks(wire)

#: Tried only where whole datasets are asked for.
EVERY_ROW: Final[tuple[Check, ...]] = _checks(every_row)

#: What becomes of it where other hosts fail; then all that it asked of them is known.
OUTSIDE: Final[tuple[Check, ...]] = _checks(other_hosts)

#: The last: they end the server's process, and what was in it is gone.
RESTARTS: Final[tuple[Check, ...]] = _checks(restart)

#: What its launch showed.
LAUNCHING: Final[tuple[Check, ...]] = _checks(accepted)

#: Tried only on envs that the suite launches itself.
LAUNCHED: Final[tuple[Check, ...]] = FILES + LAUNCHING + JUDGE_MODELS + OUTSIDE + RESTARTS


@cache
def all_checks() -> tuple[Check, ...]:
    """`CHECKS`, and those of other packages before the last of them; read once, since metadata of all packages is.

    Raises:
        BadCheck: a package's check cannot be used.
    """
    last = _checks(metrics)
    return (*CHECKS[: -len(last)], *foreign_checks(CHECKS + LAUNCHED), *last)
