"""What differs between versions of nemo-gym: `python -m tests.nemo_gym.mocks.versions` writes docs/versions.md.

`versions.json` has for each version the replies that are not as those of the reference, how its agent plays where the
mock agent plays otherwise, and what the suite finds on a few bundled servers. `test_versions.py` and
`test_agent_to_the_letter.py` hold the version that is installed to it.
"""

import json
import os
from importlib.metadata import version
from pathlib import Path
from typing import Any

SEEN = Path(__file__).with_name("versions.json")
PAGE = Path(__file__).parents[3] / "docs" / "versions.md"

#: Why an agent plays otherwise than the mock agent; where the requests differ, the replies do, and are not compared.
WHY = {
    "status 500": "0.2.1 fails where a call's arguments are no JSON",
    "requests": "0.7.0 ends where a turn has neither a message nor a call, which the others ask again",
    "cookies": "0.7.0 adds a reply's cookies to those it has; with the others a tool's 500, which sets none, loses the session",
    "usage": "0.2.1 counts the first turn twice; 0.6.0 and 0.7.0 keep the number of reasoning tokens",
    "mask_sample": "a field that 0.7.0 adds",
}

_HEAD = """# Versions of nemo-gym

How nemo-gym's own class answers, where it is not as the reference server of `gym_mocks` does (`=` where it is), how its
`simple_agent` plays, and what the suite finds on the same bundled servers. This page is made from runs on each version:
`tox -m versions`, and `python -m tests.nemo_gym.mocks.versions`.
"""

_AGENT = """## Its agent

Where a run with `simple_agent` is not to the letter as one with the mock agent: the runs of
`tests/nemo_gym/mocks/test_agent_to_the_letter.py`, on the same resources server and policy."""

#: What NeMo Gym's main documents and no release has, and what the suite makes of it.
_MAIN = """## What comes next

NeMo Gym's main, as far as its documentation says: nothing of it is on PyPI, and nothing here was run. So no rule that rests on
it is above SHOULD, and each says so. `tests/twins/of_main.py` has a server that speaks all of it, which fails nothing.

| what | page of the documentation | here |
| --- | --- | --- |
| modules moved to `nemo_gym.server_runtime` and `nemo_gym.config` | server_runtime.base_server, config.global_config | the launcher finds either place |
| Ray need not be installed | infrastructure/scale-cpu-work-with-ray | the launcher does without |
| 404 to a tool call in a session that is lost, a masked sample to its verify | server_runtime.base_resources_server | as good as going on, for `restart-session`; `gym_mocks.resources.LostSessions` answers so |
| 410 where the worker that held a session is gone | server_runtime.request_handling.session_routing | the same |
| 409 to a seed or close that conflicts | server_runtime.testing.session_conformance | a refusal as any other, in section `typed`; `gym_mocks.resources.TypedSessions` answers so |
| a close that names another episode; a close without the cookie, after a lost seed reply; a verify after the close | server_runtime.testing.session_conformance | `typed-close-foreign`, `typed-close-lost`, `typed-verify-closed`, each a SHOULD |
| `/ng-control/...` | checkpoint control | no tools |
| `/sandbox_access`: one sandbox for each session | checkpoint control, server_runtime.sandbox_lending | no tool; `isolation-sandbox`, a SHOULD; `gym_mocks.resources.LentSandboxes` answers so |
| `/close` with `_ng_session_close_token`: a web session's, which the seed names by `_ng_session_id` | web.session, environment-tutorials/web-session-lifecycle | no tool; `web-seed`, `web-close`, each a SHOULD; `gym_mocks.resources.WebSessions` answers so |
| 503 to a close whose release failed, with `closed: false` | environment-tutorials/web-session-lifecycle | as good as 200, for `web-close` |
| failure reports in a reply header, `X-NG-Failure-Report`, on good replies and bad ones | observability/rollout-failures, core.failure_transport | no verdict looks at it, since the pages do not say how it is written: a report on a good reply may tell of what a retry mended, and what is masked says so in the body, too; `gym_mocks.resources.FailureReports` sends one |
| kinds of failures, a list that grows, and a server's own, `<server>:<kind>` | core.failure_kinds; released as nemo_gym/failure_kinds.py (0.7.0) | `verify-failure-kind`, a SHOULD, of their form |
| a verify is sent again only if `/reverify_mode` says stateless | agents.utils.verify_call | `repeat-verify` does not apply to a server with a route of main's that does not say so |
"""

FEW = 3


def known(part: str, name: str, found: Any) -> Any:
    """What is written down for the version that is installed; GYM_RECORD=1 writes `found` there (without xdist)."""
    everything = json.loads(SEEN.read_text())
    ours = everything.setdefault(version("nemo-gym"), {}).setdefault(part, {})
    if os.environ.get("GYM_RECORD"):
        ours.pop(name, None)
        ours |= {} if found is None else {name: found}
        numbers = sorted(everything, key=lambda each: tuple(map(int, each.split("."))))
        SEEN.write_text(json.dumps({number: everything[number] for number in numbers}, indent=1) + "\n")
    return ours.get(name)


def page() -> str:
    """The page as Markdown."""
    seen: dict[str, Any] = json.loads(SEEN.read_text())
    probes = dict.fromkeys(probe for version in seen.values() for probe in version["probes"])
    servers = dict.fromkeys(server for version in seen.values() for server in version["findings"])
    replies = [[f"`{probe}`", *(version["probes"].get(probe, "=") for version in seen.values())] for probe in probes]
    found = [
        [f"`{server}`", *(", ".join(version["findings"].get(server, ["not there"])) for version in seen.values())]
        for server in servers
    ]
    kinds = [kind for kind in WHY if any(kind in runs for each in seen.values() for runs in each["agent"].values())]
    played = [[kind, *(_runs(each["agent"], kind) for each in seen.values()), WHY[kind]] for kind in kinds]
    sections = {
        "## Replies": _table(["probe", *seen], replies),
        _AGENT: _table(["what", *seen, "why"], played),
        "## Findings\n\nMUST and SHOULD, properties left out.": _table(["server", *seen], found),
    }
    return "\n".join([_HEAD, *(line for title, table in sections.items() for line in (title, "", *table, "")), _MAIN])


def _runs(agent: dict[str, list[str]], kind: str) -> str:
    """Which runs differ in this."""
    names = [name for name, kinds in agent.items() if kind in kinds]
    return (", ".join(names) if len(names) <= FEW else f"{len(names)} runs") or "="


def _table(head: list[str], rows: list[list[str]]) -> list[str]:
    return [_line(head), _line(["---"] * len(head)), *map(_line, rows)]


def _line(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    PAGE.write_text(page())
