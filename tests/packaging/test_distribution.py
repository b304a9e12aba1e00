"""What the installed distribution says of itself and carries, read where a user's tools read it."""

import json
from importlib.metadata import Distribution, distribution, entry_points
from importlib.resources import files

import pytest


@pytest.fixture(scope="module")
def installed() -> Distribution:
    return distribution("gym-conformance")


def test_pytest_finds_the_plugin() -> None:
    (entry,) = entry_points(group="pytest11", name="gym_conformance")
    assert entry.value == "gym_conformance.plugin"


@pytest.mark.parametrize("package", ["gym_conformance", "gym_mocks", "gym_schemas"])
def test_type_checkers_find_the_marker(package: str) -> None:
    assert files(package).joinpath("py.typed").is_file()


def test_license_is_named_and_shipped(installed: Distribution) -> None:
    assert installed.metadata["License-Expression"] == "Apache-2.0"
    assert installed.metadata.get_all("License-File") == ["LICENSE"]
    assert "Apache License" in (installed.read_text("licenses/LICENSE") or "")


def test_wheel_ships_the_three_packages_and_nothing_else(installed: Distribution) -> None:
    """A stray top-level `mocks`, `fixtures` or `tests` would shadow, or be shadowed by, the user's own."""
    origin = json.loads(installed.read_text("direct_url.json") or "{}")
    if origin.get("dir_info", {}).get("editable"):
        pytest.skip("an editable install lists no modules")
    shipped = {path.parts[0] for path in installed.files or []} - {".."}  # the command's script, in the bin folder
    assert {name for name in shipped if not name.endswith(".dist-info")} == {
        "gym_conformance",
        "gym_mocks",
        "gym_schemas",
    }
