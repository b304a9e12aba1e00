"""The gate as a user runs it: exit status, and what is said."""

from dataclasses import replace
from pathlib import Path

import pytest

from gym_conformance.checks.registry import CHECKS
from gym_conformance.findings import Verdict
from gym_conformance.options import Options
from gym_conformance.plugin.summary import Tally, write_summary
from tests.gate.conftest import Run

ACCEPTED = """
[[accepted]]
check = "verify-scores-rows"
subject = "example.jsonl:3"
reason = "the row is to be fixed"
"""
SCORING = ("-k", "verify-scores-rows or verify-floor", "--gym-data", "data")


@pytest.fixture
def baseline(repo: Path) -> Path:
    file = repo / "gym-baseline.toml"
    file.write_text(ACCEPTED)
    return file


def test_a_finding_fails_the_run(run: Run, grumpy_url: str) -> None:
    result = run("--gym-url", grumpy_url, *SCORING)
    assert result.returncode == 1, result.stdout
    assert "Not fit to train on. Fix first: verify-scores-rows" in result.stdout


@pytest.mark.parametrize("workers", [(), ("-n", "2")])
def test_an_accepted_finding_does_not(run: Run, grumpy_url: str, baseline: Path, workers: tuple[str, ...]) -> None:
    result = run("--gym-url", grumpy_url, *SCORING, "--gym-baseline", str(baseline), *workers)
    assert result.returncode == 0, result.stdout
    assert "accepted: verify-scores-rows, example.jsonl:3: the row is to be fixed" in result.stdout
    assert "1 accepted" in result.stdout
    assert "No MUST broken but what is accepted, judging by the 2 checks that ran." in result.stdout


def test_the_baseline_can_stand_in_the_ini_file(run: Run, repo: Path, grumpy_url: str, baseline: Path) -> None:
    repo.joinpath("pytest.ini").write_text(f"[pytest]\ngym_baseline = {baseline.name}\n")
    assert run("--gym-url", grumpy_url, *SCORING).returncode == 0


@pytest.mark.parametrize("workers", [(), ("-n", "2")])
def test_an_entry_that_no_longer_fails_is_red(
    run: Run, good_url: str, baseline: Path, workers: tuple[str, ...]
) -> None:
    result = run("--gym-url", good_url, *SCORING, "--gym-baseline", str(baseline), *workers)
    assert result.returncode == 1, result.stdout
    assert "gym-baseline.toml:2: verify-scores-rows, example.jsonl:3: it no longer fails; remove" in result.stdout
    assert "The baseline is stale: fix its entries." in result.stdout


def test_an_entry_for_a_deselected_check_is_not_stale(run: Run, good_url: str, baseline: Path) -> None:
    result = run("--gym-url", good_url, "-k", "verify-floor", "--gym-data", "data", "--gym-baseline", str(baseline))
    assert result.returncode == 0, result.stdout


def test_an_entry_whose_date_has_passed_is_red(run: Run, grumpy_url: str, baseline: Path) -> None:
    baseline.write_text(ACCEPTED + "until = 2020-01-31\n")
    result = run("--gym-url", grumpy_url, *SCORING, "--gym-baseline", str(baseline))
    assert result.returncode == 1, result.stdout
    assert "it was accepted until 2020-01-31" in result.stdout


@pytest.mark.parametrize("workers", [(), ("-n", "2")])
def test_an_entry_for_no_check_is_red(run: Run, good_url: str, baseline: Path, workers: tuple[str, ...]) -> None:
    baseline.write_text('[[accepted]]\ncheck = "verify-flour"\nreason = "a slip"\n')
    result = run(
        "--gym-url",
        good_url,
        "-k",
        "verify-floor or flour",
        "--gym-data",
        "data",
        "--gym-baseline",
        str(baseline),
        *workers,
    )
    assert result.returncode == 1, result.stdout
    assert "gym-baseline.toml:1: verify-flour, *: there is no such check" in result.stdout


@pytest.mark.parametrize("text", ["[[accepted]\n", ACCEPTED.replace("the row is to be fixed", "")])
def test_a_bad_baseline_is_one_line_and_exit_status_4(run: Run, good_url: str, baseline: Path, text: str) -> None:
    baseline.write_text(text)
    result = run("--gym-url", good_url, "--gym-baseline", str(baseline))
    assert result.returncode == 4
    (line,) = filter(None, result.stderr.splitlines())
    assert line.startswith("ERROR: --gym-baseline: ")


@pytest.mark.parametrize("workers", [(), ("-n", "2")])
def test_the_first_baseline(run: Run, repo: Path, grumpy_url: str, workers: tuple[str, ...]) -> None:
    """Written, refused while a reason is missing, and then it accepts all."""
    result = run("--gym-url", grumpy_url, *SCORING, "--gym-baseline-write", "new.toml", *workers)
    assert result.returncode == 1
    assert "new.toml was written; fill in each reason" in result.stdout
    new = repo / "new.toml"
    assert run("--gym-url", grumpy_url, *SCORING, "--gym-baseline", "new.toml").returncode == 4
    assert run("--gym-url", grumpy_url, *SCORING, "--gym-baseline-write", "new.toml").returncode == 4
    new.write_text(new.read_text().replace('reason = ""', 'reason = "known"'))
    again = run("--gym-url", grumpy_url, *SCORING, "--gym-baseline", "new.toml")
    assert again.returncode == 0, again.stdout


def test_a_baseline_of_nothing_says_so(run: Run, good_url: str) -> None:
    """Its name, which may come from elsewhere, tells the terminal nothing else."""
    result = run("--gym-url", good_url, *SCORING, "--gym-baseline-write", "new\x1b[31m.toml")
    assert result.returncode == 0
    assert "new\\x1b[31m.toml was written without an entry: nothing fails the run." in result.stdout


class _Lines(list[str]):
    """What is written to a terminal."""

    def write_line(self, line: str, **_: bool) -> None:
        self.append(line)

    def write_sep(self, sep: str, title: str) -> None:
        self.append(f"{sep} {title}")


def test_a_verdict_counts_what_is_accepted() -> None:
    passes, fails = CHECKS[3:5]
    accepted = replace(fails.finding(Verdict.FAIL), accepted="known")
    tally = Tally(Options(), (passes, fails), found={passes.id: [passes.finding(Verdict.PASS)], fails.id: [accepted]})
    lines = _Lines()
    write_summary(lines, tally)
    assert lines[-1] == "Fit to train on, with 1 accepted violation."


def test_a_fault_of_ours_is_exit_status_3_and_no_baseline(run: Run, repo: Path, good_url: str) -> None:
    fault = "import gym_conformance.judge\n\nasync def judge(self, check):\n    raise RuntimeError('ours')\n\n"
    repo.joinpath("conftest.py").write_text(fault + "gym_conformance.judge.Judge.judge = judge\n")
    result = run("--gym-url", good_url, *SCORING, "--gym-baseline-write", "new.toml")
    assert result.returncode == 3, result.stdout
    assert "this is not a finding about the server" in result.stdout
    assert not repo.joinpath("new.toml").exists()
