import signal
import threading

from gym_mocks.reference import DATA, reference_app
from gym_mocks.serving import serve


def main() -> None:
    """Serve the reference server until Ctrl-C or SIGTERM."""
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    with serve(reference_app()) as url:
        print(f"reference server: {url}\nits rows:         {DATA}\nCtrl-C stops it.", flush=True)  # noqa: T201
        stop.wait()


if __name__ == "__main__":
    main()
