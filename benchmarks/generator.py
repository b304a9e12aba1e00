"""How many examples a second the generator makes, beside hypothesis-jsonschema; the aim is to keep ahead of a server.

    python benchmarks/generator.py [--examples 100] [--rounds 3] [--bundle FOLDER [--most 40]]

Both make valid values for the same schemas inside a Hypothesis test (generation only, no database), each in a process
of its own: hypothesis-jsonschema 0.23.1 breaks on object schemas from Hypothesis 6.170.10 on, so `uv` runs it in an
environment with the last one before. CPU seconds are counted, which a busy machine disturbs less; the best round
counts. Schemas are those of the tests' keyword corpus and, with --bundle, tools declared in
nemo-gym's bundled rows (the folder that holds `resources_servers`). The ratio is over the schemas that
both can take; the first pass includes reading them.
"""

import argparse
import importlib
import json
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.strategies import SearchStrategy

_ROOT = Path(__file__).resolve().parents[1]
_OTHER = ("hypothesis-jsonschema==0.23.1", "hypothesis==6.170.9")
_SECONDS = 900

StrategyFor = Callable[[Any], SearchStrategy[Any]]
Pass = dict[str, float | None]


def measured(schemas: list[Any], strategy_for: StrategyFor, examples: int) -> Pass:
    """CPU seconds for one example of each schema, by its place in the list; None where it failed.

    A schema with fewer different values than examples is left out: Hypothesis stops early, and little is measured.
    """
    found: Pass = {}
    for number, schema in enumerate(schemas):
        started, made = time.process_time(), [0]
        try:
            _run(strategy_for(schema), examples, made)
        except Exception:  # noqa: BLE001 (that a generator fails on a schema, however it does, is a result)
            found[str(number)] = None
        else:
            if made[0] >= examples:
                found[str(number)] = (time.process_time() - started) / made[0]
    return found


def _run(strategy: SearchStrategy[Any], examples: int, made: list[int]) -> None:
    @settings(
        max_examples=examples,
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(strategy)
    def count(_: Any) -> None:
        made[0] += 1

    count()


def _theirs(schemas: list[Any], examples: int, rounds: int) -> list[Pass] | str:
    """The other generator's passes, or why there are none."""
    uv = shutil.which("uv") or str(Path(sys.executable).with_name("uv"))
    if not Path(uv).exists():
        return "uv is not installed"
    command = [uv, "run", "--no-project", "--python", sys.executable]
    for package in _OTHER:
        command += ["--with", package]
    command += ["python", __file__, "--as-other", "--examples", str(examples), "--rounds", str(rounds)]
    try:
        done = subprocess.run(
            command, input=json.dumps(schemas), capture_output=True, text=True, timeout=_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        return f"not done within {_SECONDS} s"
    if done.returncode:
        return done.stderr.strip().splitlines()[-1]
    passes: list[Pass] = json.loads(done.stdout)
    return passes


def _passes(schemas: list[Any], strategy_for: StrategyFor, examples: int, rounds: int) -> list[Pass]:
    return [measured(schemas, strategy_for, examples) for _ in range(rounds)]


def _print(title: str, schemas: list[Any], examples: int, rounds: int) -> None:
    values = importlib.import_module("gym_schemas.strategies")
    print(f"\n{title}: {len(schemas)} schemas, {examples} examples of each, in CPU time")
    ours = _passes(schemas, values.valid_arguments, examples, rounds)
    misses = _passes(schemas, values.near_misses, examples, rounds)
    theirs = _theirs(schemas, examples, rounds)
    other: list[Pass] = [] if isinstance(theirs, str) else theirs
    same = [number for number in ours[0] if all(one.get(number) for one in (*ours, *other))]
    best = _line("valid_arguments", ours, same)
    _line("near_misses", misses, [number for number in misses[0] if misses[0][number]])
    if isinstance(theirs, str):
        print(f"hypothesis-jsonschema: not measured: {theirs}")
        return
    ratio = best / _line("hypothesis-jsonschema", other, same)
    each = median((other[-1][number] or 0) / (ours[-1][number] or 1) for number in same)
    print(f"ratio {ratio:.2f} over the {len(same)} schemas that both can take, {each:.2f} on the median one of them")


def _line(name: str, passes: list[Pass], numbers: list[str]) -> float:
    """Print the first and the best pass over those schemas; the best one's examples a second."""
    rates = [len(numbers) / sum(one[number] or 0 for number in numbers) for one in passes]
    failed = [number for number, seconds in passes[0].items() if seconds is None]
    said = f"; failed on {len(failed)}, such as number {failed[0]}" if failed else ""
    print(f"{name:22} {max(rates):5.0f} examples/s ({rates[0]:.0f} in the first pass, {len(numbers)} schemas){said}")
    return max(rates)


def _bundled(folder: Path) -> list[Any]:
    schemas: dict[str, Any] = {}
    for path in sorted((folder / "resources_servers").glob("*/data/*.jsonl")):
        for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
            try:
                tools = json.loads(line)["responses_create_params"]["tools"]
            except (ValueError, KeyError, TypeError):
                continue
            for tool in tools or ():
                parameters = tool.get("parameters") if isinstance(tool, dict) else None
                if isinstance(parameters, dict):
                    schemas.setdefault(json.dumps(parameters, sort_keys=True), parameters)
    return list(schemas.values())


def main() -> None:
    """Print both generators' rates."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--examples", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--bundle", type=Path)
    parser.add_argument("--most", type=int, default=40, help="about how many of the bundle's schemas, evenly chosen")
    parser.add_argument("--as-other", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.as_other:
        other = importlib.import_module("hypothesis_jsonschema")
        print(json.dumps(_passes(json.load(sys.stdin), other.from_schema, options.examples, options.rounds)))
        return
    sys.path.insert(0, str(_ROOT))
    corpus = importlib.import_module("tests.schemas.corpus")
    _print("keywords", list(corpus.KEYWORDS.values()), options.examples, options.rounds)
    if options.bundle:
        tools = _bundled(options.bundle)
        _print("nemo-gym's tools", tools[:: max(1, len(tools) // options.most)], options.examples, options.rounds)


if __name__ == "__main__":
    main()
