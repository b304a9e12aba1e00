"""What a 2xx says by its wording."""

import pytest

from gym_conformance.session.exchange import Reply
from gym_conformance.session.refusals import says_no


def of(text: str) -> Reply:
    return Reply(200, (), text.encode(), 0.0)


@pytest.mark.parametrize("text", ["#REF!", "'#VALUE!'", "! no such cell", '"#cell"'])
def test_a_sign_is_a_refusal(text: str) -> None:
    assert says_no(of(text))


@pytest.mark.parametrize("text", ["# Goods\n[1] link", "## Goods", "[1] link"])
def test_a_heading_is_none(text: str) -> None:
    assert not says_no(of(text))
