"""The command line: `python -m gym_mocks` serves the reference server, `gym-mocks serve` a whole gym."""

import argparse
import importlib
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path

EXAMPLES = ("weather", "game", "sandbox", "robot")
STOPS = (signal.SIGINT, signal.SIGTERM)


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve until Ctrl-C or SIGTERM; the exit code: 0, or 2 for what cannot be served."""
    parser = _parser()
    given = parser.parse_args(arguments)
    for number in STOPS:
        signal.signal(number, _stop)
    try:
        if given.command is None:
            _serve_reference()
        else:
            _serve_gym(given)
    except KeyboardInterrupt:
        return 0
    except (OSError, ValueError, OverflowError) as error:
        print(f"gym-mocks: {error}", file=sys.stderr)  # noqa: T201 - a command line prints
        return 2
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "gym-mocks",
        description="An in-process NeMo Gym on loopback. Without a command: its reference resources server alone.",
    )
    commands = parser.add_subparsers(dest="command", metavar="command")
    serve = commands.add_parser("serve", help="serve a head, environments with their agents, and a policy")
    serve.add_argument(
        "--env",
        action="append",
        choices=EXAMPLES,
        help="an example environment; repeatable (default: weather)",
    )
    serve.add_argument(
        "--config",
        type=Path,
        action="append",
        default=[],
        help="an env's configs/*.yaml, with mocks for all of its servers",
    )
    serve.add_argument("--host", default="127.0.0.1", help="where to listen (default: %(default)s, this machine alone)")
    serve.add_argument("--head-port", type=int, default=0, help="the head's port (default: any free one)")
    serve.add_argument(
        "--policy",
        choices=("solve", "echo", "generate"),
        default="solve",
        help="what the policy does: solve the examples (and echo what is none of theirs), echo, or call tools at random (default: solve)",
    )
    serve.add_argument("--token-fields", action="store_true", help="send prompt_token_ids and the like")
    serve.add_argument("--write-config", type=Path, help="write the global configuration to this file")
    return parser


def _serve_reference() -> None:
    from gym_mocks.reference import DATA, reference_app  # noqa: PLC0415 - each command loads what it needs
    from gym_mocks.serving import serve  # noqa: PLC0415

    with serve(reference_app()) as url:
        _say(f"reference server: {url}", f"its rows:         {DATA}", "Ctrl-C stops it.")
        _wait()


def _serve_gym(given: argparse.Namespace) -> None:
    from gym_mocks.gym import MockGym  # noqa: PLC0415 - likewise
    from gym_mocks.policy import echo, generated, scripted_rows  # noqa: PLC0415
    from gym_mocks.run_helper import AnyTools  # noqa: PLC0415

    with MockGym(token_fields=given.token_fields, host=given.host, head_port=given.head_port) as gym:
        modules = [importlib.import_module(f"gym_mocks.examples.{name}") for name in given.env or ["weather"]]
        for module in modules:
            gym.add_env(module.server(), module.ROWS)
        for path in given.config:
            gym.add_config(path, stand_in=AnyTools)
        rows = [row for module in modules for row in module.ROWS]
        solutions = [solution for module in modules for solution in module.SOLUTIONS]
        policies = {"solve": scripted_rows(rows, solutions, otherwise=echo), "echo": echo, "generate": generated()}
        gym.policy.default = policies[given.policy]
        if given.write_config:
            gym.write_config(given.write_config)
        servers = [f"{name}: {gym.url(name)}" for name in gym.names]
        _say(f"head: {gym.head_url}", *servers, "Ctrl-C stops it.")
        _wait()


def _stop(*_: object) -> None:
    """End whatever is under way, also a start that waits for a file; another signal ends what hangs as it closes."""
    for number in STOPS:
        signal.signal(number, signal.SIG_DFL)
    raise KeyboardInterrupt


def _wait() -> None:
    """Wait in short turns: on Windows Ctrl-C does not end a wait that has no limit."""
    while True:
        time.sleep(0.5)


def _say(*lines: str) -> None:
    print(*lines, sep="\n", flush=True)  # noqa: T201 - a command line prints


if __name__ == "__main__":
    sys.exit(main())
