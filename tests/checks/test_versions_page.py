"""docs/versions.md is rendered from what was seen, never written by hand."""

from tests.nemo_gym.mocks.versions import PAGE, page


def test_the_page_is_current() -> None:
    assert PAGE.read_text() == page(), "run: python -m tests.nemo_gym.mocks.versions"
