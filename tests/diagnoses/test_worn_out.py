"""Where no session is opened any more, what cannot be tried is untestable, and only the seeds are told."""

from gym_conformance.checks.registry import CHECKS
from gym_conformance.findings import Cause, Verdict
from gym_conformance.options import Options
from gym_conformance.plugin.target_run import Run
from gym_mocks.serving import serve
from tests.twins.test_wearing_out import HasPlaces
from tests.twins.twin import dataset

_CHECKS = {check.id: check for check in CHECKS}


def test_a_cookie_is_not_blamed_for_a_server_that_opens_no_session() -> None:
    with serve(HasPlaces(60)) as url:
        run = Run(url, Options(url=url), dataset())
        try:
            run.judge(_CHECKS["isolation-earlier"])
            (worn,) = run.judge(_CHECKS["resources-seeds"])
            (later,) = run.judge(_CHECKS["cookie-unsigned-id"])
        finally:
            run.close()
    assert (worn.verdict, worn.cause) == (Verdict.FAIL, Cause.WORN_OUT)
    assert later.verdict is Verdict.UNTESTABLE
    assert "resources-seeds" in later.reason
