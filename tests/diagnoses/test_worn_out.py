"""Where no session is opened any more, what cannot be tried is untestable, and only the seeds are told."""

from gym_conformance.checks.registry import CHECKS
from gym_conformance.findings import Cause, Verdict
from tests.twins.judging import running
from tests.twins.test_wearing_out import HasPlaces

_CHECKS = {check.id: check for check in CHECKS}


def test_a_cookie_is_not_blamed_for_a_server_that_opens_no_session() -> None:
    with running(HasPlaces(60)) as run:
        run.judge(_CHECKS["isolation-earlier"])
        (worn,) = run.judge(_CHECKS["resources-seeds"])
        (later,) = run.judge(_CHECKS["cookie-unsigned-id"])
    assert (worn.verdict, worn.cause) == (Verdict.FAIL, Cause.WORN_OUT)
    assert later.verdict is Verdict.UNTESTABLE
    assert "resources-seeds" in later.reason
