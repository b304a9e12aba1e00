"""The pytest plugin's entry point: options and markers.

Every pytest run on the user's machine loads this module, so it imports only pytest and the table of options; everything
else is loaded when an option needs it.
"""

import os

import pytest

from gym_conformance.options import TABLE, Option

_LEVELS = {
    "must": "a rule that fails the run when it is violated",
    "should": "a rule that warns (and fails the run with --gym-strict)",
    "note": "a fact worth knowing, never a violation",
}


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options, each also as an ini option of the same name with underscores."""
    group = parser.getgroup("gym", "gym conformance (judge a NeMo Gym resources server)")
    for row in TABLE.values():
        if row.metavar:
            action = "append" if row.many else "store"
            # without a value it is True, which the table refuses in one line, unlike argparse
            group.addoption(
                row.name, metavar=row.metavar, action=action, help=row.help, nargs="?", const=row.bare or True
            )
        else:
            group.addoption(row.name, action="store_true", help=row.help)
        if row.ini:
            parser.addini(row.ini_key, row.ini_help, type=row.ini_type)  # type: ignore[arg-type]  # a literal
    parser.addini(
        "gym_github", "under GitHub Actions, write annotations and the step summary", type="bool", default=True
    )


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> int | None:
    """With --gym-watch, this process judges nothing: it starts a pytest run at each change."""
    if not config.option.gym_watch or "GYM_CONFORMANCE_WATCHED" in os.environ:
        return None
    from gym_conformance.plugin.interrupting import end_as_by_ctrl_c  # noqa: PLC0415 - only needed here

    end_as_by_ctrl_c(config)
    from gym_conformance.fleet.watching import watch  # noqa: PLC0415 - heavy, and only needed here

    return watch(config)


def pytest_configure(config: pytest.Config) -> None:
    """Register the level markers and, if an option asks for it, the suite."""
    for level, meaning in _LEVELS.items():
        config.addinivalue_line("markers", f"{level}: {meaning} (gym-conformance)")
    if any(_given(config, row) for row in TABLE.values() if row.chooses):
        from gym_conformance.plugin.as_they_are import import_as_they_are  # noqa: PLC0415 - before what it speeds up

        import_as_they_are()
        from gym_conformance.plugin.interrupting import Ending  # noqa: PLC0415 - before what it must outlast

        config.pluginmanager.register(Ending(config), "gym-ending")
        if config.option.gym_demo and not config.option.collectonly and not hasattr(config, "workerinput"):
            from gym_conformance.plugin.demo import demo_of  # noqa: PLC0415 - it starts up while we import the rest

            demo_of(config)
        from gym_conformance.fleet.fleet_session import start  # noqa: PLC0415 - heavy, and only needed here

        start(config)
    elif given := [arg for arg in config.invocation_params.args if str(arg).startswith("--gym-")]:
        name = str(given[0]).partition("=")[0]
        raise pytest.UsageError(
            f"{name}: there is nothing to judge; give --gym-url URL, --gym-env DIR or --gym-demo too"
        )


def _given(config: pytest.Config, row: Option) -> bool:
    on_line = getattr(config.option, row.ini_key)
    return on_line not in (None, False, []) or bool(config.getini(row.ini_key))
