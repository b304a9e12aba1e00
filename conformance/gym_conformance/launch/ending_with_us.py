"""Programs that must not outlive this process, however it ends."""

import sys
from signal import Signals
from typing import Final

_PRCTL: Final = (
    "import ctypes, os, sys; ctypes.CDLL(None).prctl(1, int(sys.argv[1]), 0, 0, 0); os.execv(sys.argv[2], sys.argv[2:])"
)


def ending_with_us(by: Signals) -> tuple[str, ...]:
    """A command prefix that, on Linux, sends the program this signal when this process ends, even by SIGKILL."""
    return (sys.executable, "-I", "-S", "-c", _PRCTL, str(int(by))) if sys.platform == "linux" else ()
