"""Ctrl-C, SIGTERM and SIGHUP: an interrupted run still writes its reports and stops its servers. Cheap to import."""

import os
import signal
import threading
import time
from functools import partial

import pytest

_STDERR = 2
#: Windows has no SIGHUP.
_OTHERS = [signal.Signals[name] for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
#: Seconds within which two signals count as one: a terminal signals a whole process group, and our parent, such as tox
#: or --gym-watch, forwards the signal that it got.
_ONE_PRESS = 0.5
_ENDING = b"\nThe run is ending: reports are written, servers stopped. Ctrl-C once more ends it at once.\n"


def end_as_by_ctrl_c(config: pytest.Config) -> None:
    """Let the signals of others that end a run act like Ctrl-C until pytest ends.

    With SIGTERM CI cancels a job and a cluster reclaims a node; SIGHUP comes when the terminal is gone. Does nothing
    unless Python itself handles Ctrl-C, which a shell prevents for background jobs, and leaves alone each signal that
    something else handles (`nohup`); nor in an xdist worker, which its controller ends.
    """
    free = signal.getsignal(signal.SIGINT) is signal.default_int_handler and not hasattr(config, "workerinput")
    for number in _OTHERS if free and threading.current_thread() is threading.main_thread() else ():
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, lambda *_: signal.raise_signal(signal.SIGINT))
            config.add_cleanup(partial(_give_back, number))


def _give_back(number: signal.Signals) -> None:
    signal.signal(number, signal.SIG_DFL)


class Ending:
    """Handles the second Ctrl-C, which says that the run is ending, and the third, which ends it at once.

    pytest handles the first one. Python's own handling of the second would break off the cleanup with a traceback. The
    guard of a launched server ends that server however this process ends.
    """

    def __init__(self, config: pytest.Config) -> None:
        end_as_by_ctrl_c(config)
        config.add_cleanup(self._restore)
        self._before: object = None
        self._more = 0
        self._pressed = 0.0

    @pytest.hookimpl(tryfirst=True)
    def pytest_keyboard_interrupt(self) -> None:
        """Take over Ctrl-C from now on: pytest's own report of the first one already takes half a second."""
        if self._before is None and threading.current_thread() is threading.main_thread():
            self._pressed = time.monotonic()
            self._before = signal.signal(signal.SIGINT, self._again)

    def _again(self, *_: object) -> None:
        before, self._pressed = self._pressed, time.monotonic()
        if self._pressed - before < _ONE_PRESS:
            return
        self._more += 1
        if self._more > 1:
            os._exit(pytest.ExitCode.INTERRUPTED)
        os.write(_STDERR, _ENDING)  # print() might be in progress, and is not reentrant

    def _restore(self) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)  # type: ignore[arg-type]  # as `signal` returned it
            self._before = None
