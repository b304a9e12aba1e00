"""Ctrl-C and SIGTERM: a run that is interrupted comes to its end, writes its reports and stops its servers. Light to import."""

import os
import signal
import threading
import time

import pytest

_STDERR = 2
#: Seconds within which two signals are one press: a terminal tells a whole process group, and who started us, such as tox or
#: --gym-watch, passes on what it was told.
_ONE_PRESS = 0.5
_ENDING = b"\nThe run is ending: reports are written, servers stopped. Ctrl-C once more ends it at once.\n"


def end_as_by_ctrl_c(config: pytest.Config) -> None:
    """Let SIGTERM, by which CI cancels a job and a cluster takes a node back, do as Ctrl-C until pytest ends.

    Only where both are Python's own to handle, as they are not in what a shell starts in the background; an xdist worker is its
    controller's to end.
    """
    own = (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM))
    free = own == (signal.default_int_handler, signal.SIG_DFL) and not hasattr(config, "workerinput")
    if free and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))
        config.add_cleanup(_give_back)


def _give_back() -> None:
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


class Ending:
    """After the first Ctrl-C, which pytest takes: the next one says that the run is ending, and the one after it ends it at once.

    Left to Python, the next one would break off whatever is being cleaned up, with a traceback. What was launched is ended by
    its guard, whichever way this process ends.
    """

    def __init__(self, config: pytest.Config) -> None:
        end_as_by_ctrl_c(config)
        config.add_cleanup(self._restore)
        self._before: object = None
        self._more = 0
        self._pressed = 0.0

    @pytest.hookimpl(tryfirst=True)
    def pytest_keyboard_interrupt(self) -> None:
        """Take what Ctrl-C does from now on: pytest's own account of the first one takes half a second by itself."""
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
        os.write(_STDERR, _ENDING)  # what is being printed meanwhile is not to be entered again

    def _restore(self) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)  # type: ignore[arg-type]  # what `signal` gave
            self._before = None
