"""Ctrl-C, pressed again while an interrupted run comes to its end."""

import pytest

pytest_plugins = ["pytester"]

#: Presses Ctrl-C in the first check, and so often again when pytest has taken it and looks at where it came.
PRESSED = """
import signal
import time
import pytest

def pytest_runtest_setup(item):
    signal.raise_signal(signal.SIGINT)

@pytest.hookimpl(trylast=True)
def pytest_keyboard_interrupt():
    for _ in range({again}):
        time.sleep(0.6)
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)  # as whoever started it passes on what a terminal has told it already
"""


@pytest.mark.parametrize("again", [0, 1, 2])
def test_ctrl_c_again_ends_a_run_without_a_traceback(pytester: pytest.Pytester, again: int) -> None:
    pytester.makeconftest(PRESSED.format(again=again))
    run = pytester.runpytest_subprocess("--gym-demo", "--gym-report", "report.json", "-p", "no:cacheprovider")
    assert run.ret == pytest.ExitCode.INTERRUPTED
    assert "Traceback" not in f"{run.stdout}{run.stderr}"
    assert ("The run is ending" in str(run.stderr)) is (again > 0)
    assert (pytester.path / "report.json").exists() is (again < 2)
    if again < 2:
        run.stdout.fnmatch_lines(["*KeyboardInterrupt"])
