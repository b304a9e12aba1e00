"""Serves the reference server until standard input ends; prints its URL and the file of its rows."""

import os
import signal
import sys

from gym_mocks.reference import DATA, reference_app
from gym_mocks.serving import serve


def main() -> None:
    """Serve until whoever started us says that it is enough, or is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C in a terminal reaches us, too, and is meant for our parent
    with serve(reference_app()) as url:
        # As bytes: what standard output encodes a text in is the machine's choice, or PYTHONIOENCODING's.
        sys.stdout.buffer.write(os.fsencode(f"{url}\n{DATA}\n"))
        sys.stdout.buffer.flush()
        sys.stdin.buffer.read()


if __name__ == "__main__":
    main()
