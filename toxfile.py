"""What tox.ini cannot say: where interpreters and certificates are, how many workers; no interpreter is downloaded."""

import os
import re
import ssl
from collections.abc import MutableMapping
from pathlib import Path

_CPYTHON = re.compile(r"3\.(\d+)\.(\d+)")


def pyenv_bins(root: Path) -> list[str]:
    """The `bin` folders of the CPython 3 releases that pyenv keeps under `root`, newest first."""
    found = [(match, each) for each in root.glob("versions/*") if (match := _CPYTHON.fullmatch(each.name))]
    newest_first = sorted(found, key=lambda pair: tuple(map(int, pair[0].groups())), reverse=True)
    return [str(each / "bin") for _, each in newest_first]


def system_has_certificates() -> bool:
    """Whether OpenSSL's default places hold any certificate; a slim container may have none."""
    places = ssl.get_default_verify_paths()
    return bool(places.cafile) or bool(places.capath and any(Path(places.capath).iterdir()))


def prepare(environ: MutableMapping[str, str]) -> None:
    """Set what uv and pytest-xdist read, without overriding what the user has set.

    With pyenv, `python3.12` on PATH is a shim that refuses to start unless that version is selected; uv
    passes it over and looks on. The real interpreters come last, so that they only fill gaps.
    """
    root = Path(environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    environ["PATH"] = os.pathsep.join([*filter(None, [environ.get("PATH")]), *pyenv_bins(root)])
    # With "manual" uv names a missing interpreter and the command that gets it, and stops there.
    environ.setdefault("UV_PYTHON_DOWNLOADS", "manual")
    # The tests wait half of the time, for servers and for pytest runs of their own.
    environ.setdefault("PYTEST_XDIST_AUTO_NUM_WORKERS", str((os.cpu_count() or 2) * 3 // 2))
    # As pip does, trust what the system trusts: behind a proxy with its own authority nothing else works.
    if system_has_certificates():
        environ.setdefault("UV_SYSTEM_CERTS", "1")


prepare(os.environ)
