"""How many examples a second the generator makes, beside hypothesis-jsonschema; the aim is to keep ahead of a server.

    python benchmarks/generator.py [--examples 100] [--rounds 3] [--bundle FOLDER]

Both make valid values for the same schemas inside a Hypothesis test (generation only, no database), each in a process
of its own: hypothesis-jsonschema 0.23.1 breaks on object schemas from Hypothesis 6.170.12 on, so `uv` runs it in an
environment with the last one before. CPU seconds are counted, which a busy machine disturbs less; the best round
counts. Schemas are those of the tests' keyword corpus that both can take, and, with --bundle, all tools declared in
nemo-gym's bundled rows (the folder that holds `resources_servers`). The first pass includes reading the schemas.
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
from typing import Any

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import HypothesisException
from hypothesis.strategies import SearchStrategy

_ROOT = Path(__file__).resolve().parents[1]
_OTHER = ("hypothesis-jsonschema==0.23.1", "hypothesis<6.170.12")
_SECONDS = 900


def examples_per_second(
    schemas: list[Any], strategy_for: Callable[[Any], SearchStrategy[Any]], examples: int
) -> dict[str, Any]:
    """Examples a CPU second over all schemas, the median of schemas, how many examples, and the schemas that failed."""
    rates, count, failed, seconds = [], 0, [], 0.0
    for number, schema in enumerate(schemas):
        started, made = time.process_time(), [0]
        try:
            _run(strategy_for(schema), examples, made)
        except (HypothesisException, ValueError, TypeError, KeyError) as error:
            failed.append(f"{number}: {type(error).__name__}")
            continue
        spent = time.process_time() - started
        # A finite domain ends early and says little about speed.
        if made[0] >= examples:
            rates.append(made[0] / spent)
            count += made[0]
            seconds += spent
    return {"rate": count / seconds, "median": sorted(rates)[len(rates) // 2], "count": count, "failed": failed}


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


def _theirs(schemas: list[Any], examples: int, rounds: int) -> list[dict[str, Any]] | str:
    """The other generator's passes, or why there are none."""
    uv = shutil.which("uv") or str(Path(sys.executable).with_name("uv"))
    if not Path(uv).exists():
        return "uv is not installed"
    command = [uv, "run", "--no-project", "--python", sys.executable]
    for package in _OTHER:
        command += ["--with", package]
    command += ["python", __file__, "--as-other", "--examples", str(examples), "--rounds", str(rounds)]
    done = subprocess.run(
        command, input=json.dumps(schemas), capture_output=True, text=True, timeout=_SECONDS, check=False
    )
    if done.returncode:
        return done.stderr.strip().splitlines()[-1]
    passes: list[dict[str, Any]] = json.loads(done.stdout)
    return passes


def _passes(
    schemas: list[Any], strategy_for: Callable[[Any], SearchStrategy[Any]], examples: int, rounds: int
) -> list[dict[str, Any]]:
    return [examples_per_second(schemas, strategy_for, examples) for _ in range(rounds)]


def _print(title: str, schemas: list[Any], examples: int, rounds: int) -> None:
    values = importlib.import_module("gym_conformance.values")
    print(f"\n{title}: {len(schemas)} schemas, {examples} examples of each")
    ours = _passes(schemas, values.valid_arguments, examples, rounds)
    _line("valid_arguments, first pass", ours[0])
    _line("valid_arguments", best := max(ours, key=lambda one: one["rate"]))
    _line("near_misses", max(_passes(schemas, values.near_misses, examples, rounds), key=lambda one: one["rate"]))
    theirs = _theirs(schemas, examples, rounds)
    if isinstance(theirs, str):
        print(f"hypothesis-jsonschema: not measured: {theirs}")
        return
    _line("hypothesis-jsonschema, first pass", theirs[0])
    _line("hypothesis-jsonschema", other := max(theirs, key=lambda one: one["rate"]))
    print(f"ratio {best['rate'] / other['rate']:.2f} over all, {best['median'] / other['median']:.2f} of the medians")


def _line(name: str, one: dict[str, Any]) -> None:
    failed = f"; failed on {len(one['failed'])}: {', '.join(one['failed'][:3])}" if one["failed"] else ""
    print(
        f"{name:34} {one['rate']:6.0f}/s over all {one['median']:6.0f}/s median of schemas ({one['count']} examples){failed}"
    )


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
    parser.add_argument("--as-other", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.as_other:
        other = importlib.import_module("hypothesis_jsonschema")
        print(json.dumps(_passes(json.load(sys.stdin), other.from_schema, options.examples, options.rounds)))
        return
    sys.path.insert(0, str(_ROOT))
    corpus = importlib.import_module("tests.values.corpus")
    _print("keywords", list(corpus.KEYWORDS.values()), options.examples, options.rounds)
    if options.bundle:
        _print("nemo-gym's tools", _bundled(options.bundle), options.examples, options.rounds)


if __name__ == "__main__":
    main()
