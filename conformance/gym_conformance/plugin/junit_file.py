"""`--gym-report FILE.xml`: pytest's own JUnit file, written atomically as all reports are."""

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from _pytest.junitxml import LogXML, xml_key

from gym_conformance.documents import write_whole
from gym_conformance.options import Options

_TAKEN = pytest.StashKey[LogXML]()


def ask_for_junit(config: pytest.Config, options: Options) -> None:
    """Have pytest collect the data of `--junitxml`, whose plugin is configured after ours.

    Raises:
        pytest.UsageError: pytest is to write a different JUnit file already.
    """
    for path in _files(options):
        if getattr(config.option, "xmlpath", None) not in (None, str(path)):
            raise pytest.UsageError(f"--gym-report '{path}': pytest writes one JUnit file; give one .xml")
        config.option.xmlpath = str(path)


def take_junit(config: pytest.Config, options: Options) -> None:
    """Let pytest collect, but not write: it would open the file, follow links, and only then fill it."""
    made = config.stash.get(xml_key, None)
    if made is None or not _files(options):
        return
    config.stash[_TAKEN] = made
    config.pluginmanager.unregister(made)
    vars(made).update(pytest_sessionfinish=None, pytest_terminal_summary=None)  # pytest takes only routines as hooks
    config.pluginmanager.register(made)


def write_junit(config: pytest.Config, path: Path) -> None:
    """Write the file; does nothing if pytest collected nothing.

    Raises:
        OSError: it cannot be written; nothing is left behind.
    """
    if (made := config.stash.get(_TAKEN, None)) is None:
        return
    with TemporaryDirectory(prefix="gym-conformance-junit-") as folder:
        whole = Path(folder, path.name)
        made.logfile = str(whole)
        LogXML.pytest_sessionfinish(made)
        write_whole(path, whole.read_bytes())


def _files(options: Options) -> list[Path]:
    return [path for path in options.reports if path.suffix == ".xml"]
