"""One table of options: pytest's own, the ini keys, README's, and the values are made from it."""

from pathlib import Path

import pytest

from gym_conformance.contract.endpoints import CONTRACTS
from gym_conformance.option_readers import BadOption
from gym_conformance.options import TABLE, Option, Options, read_options, readme_table
from gym_conformance.trajectories.profiles import PROFILES

_README = Path(__file__).parents[2] / "README.md"


def test_readme_has_the_table_as_it_is() -> None:
    """`python -m gym_conformance.options` prints it."""
    assert readme_table() in _README.read_text()


def test_every_field_is_an_option_of_its_own() -> None:
    assert len({row.name for row in TABLE.values()}) == len(TABLE)
    assert all(row.name.startswith("--gym-") for row in TABLE.values())


def test_what_is_not_given_has_its_default() -> None:
    assert read_options({}) == Options()


@pytest.mark.parametrize("row", TABLE.values(), ids=lambda row: row.name)
def test_pytest_knows_each_as_the_table_has_it(row: Option, pytestconfig: pytest.Config) -> None:
    assert getattr(pytestconfig.option, row.ini_key) in (None, False)
    if row.ini:
        assert not pytestconfig.getini(row.ini_key)
    else:
        with pytest.raises((ValueError, KeyError)):
            pytestconfig.getini(row.ini_key)


def test_help_names_all_that_can_be_chosen() -> None:
    """These texts are written by hand, so that they read well."""
    assert all(name in TABLE["contract"].help for name in CONTRACTS)
    assert all(name in TABLE["profile"].help for name in PROFILES)


@pytest.mark.parametrize("name", ["headers", "settings"])
def test_what_may_be_a_secret_is_not_in_the_message(name: str) -> None:
    with pytest.raises(BadOption) as bad:
        read_options({name: ["hunter2"]})
    assert "hunter2" not in str(bad.value)
