"""One trial: a check tries one subject over a channel, and what the channel records becomes the reproduction."""

from collections.abc import Iterable, Mapping
from http import HTTPStatus
from typing import Any, Final

from gym_conformance.calibration.reward_counts import RewardCounts
from gym_conformance.contract.dataset_rows import Call, Row
from gym_conformance.contract.endpoints import VERIFY
from gym_conformance.contract.session_cookies import NO_COOKIES, Cookies
from gym_conformance.contract.statuses import is_crash, is_redirect, is_refusal, is_success
from gym_conformance.drift.tool_drift import Drift
from gym_conformance.findings import LoadLevel, ProcessReading
from gym_conformance.gym_under_test import BARE_ROW, Gym
from gym_conformance.probes.drift_row import DriftRow
from gym_conformance.probes.live_answer import NOTHING_TRIED, Live
from gym_conformance.session.channel import Channel
from gym_conformance.session.contracts import CookieHabit, Session, post
from gym_conformance.session.exchange import Reply, Request, reply_of
from gym_conformance.trajectories.trajectory import Schedule
from gym_conformance.trials.bench import Bench, Learned, Settings, Tried
from gym_conformance.trials.ending import NotApplicable, Untestable, Violation
from gym_conformance.trials.launched import Launched, TimesAsked


class Trial:
    """What a check's function works with.

    Attributes:
        note: how a pass came about.
        caution: why a pass says less than it seems to.
        schedule: the shortest one that broke a property.
        volatile: places in replies that were not compared because they differ between two runs alone.
        hidden: how many values these are, and among how many.
        once: whether one run that differs is enough: chance was excluded before, or will be.
        shrinking: whether a shorter example is being looked for.
        among: whether others are tried at the same time, so that a failure is only a suspicion.
        dismissed: differences that chance may explain.
        drift: rows for the drift report.
        readings: of the server's process.
        load: what came of episodes, at each number of them at once.
        rewards: what rows earn.
        log: the last lines that a launched server has printed since the trial began.
    """

    def __init__(self, bench: Bench, channel: Channel | None = None) -> None:
        self.bench = bench
        self.channel = channel or Channel(bench.gym.endpoint)
        self.note = ""
        self.caution = ""
        self.volatile: set[str] = set()
        self.hidden = (0, 0)
        self.once = False
        self.shrinking = False
        self.among = False
        self.dismissed: list[str] = []
        self.schedule: Schedule | None = None
        self.drift: list[DriftRow] = []
        self.readings: list[ProcessReading] = []
        self.load: list[LoadLevel] = []
        self.rewards: RewardCounts | None = None
        self._asked = self.launched.asked
        self.log = self.launched.listen()

    @property
    def gym(self) -> Gym:
        """The gym under test."""
        return self.bench.gym

    @property
    def met_framework(self) -> bool:
        """Whether the server set NeMo Gym's own session cookie in this trial."""
        return any(exchange.received.session_id is not None for exchange in self.channel.exchanges)

    @property
    def settings(self) -> Settings:
        """How to try the gym."""
        return self.bench.settings

    @property
    def launched(self) -> Launched:
        """What is known of a gym that the suite launched."""
        return self.bench.launched

    @property
    def learned(self) -> Learned:
        """What trials have found out so far."""
        return self.bench.learned

    @property
    def tried(self) -> Tried:
        """How much has been tried so far."""
        return self.bench.tried

    @property
    def asked(self) -> TimesAsked:
        """How often our mocks have been asked since the trial began."""
        return self.launched.asked.since(self._asked)

    def expect_own_score(self) -> None:
        """Raise `NotApplicable` if a mock of ours has been asked since the trial began, because a reward may come from it."""
        if mocked := self.asked.mocked:
            raise NotApplicable(mocked)

    def tell(self, drift: Drift, live: Live = NOTHING_TRIED) -> None:
        """Put the drift into the report, with what the live server said."""
        self.drift.append(DriftRow.of(drift, live))

    async def send(self, request: Request) -> Reply:
        """Send a request unchanged."""
        return reply_of(await self.channel.send(request))

    def session(self, row: Row | None = None, habit: CookieHabit = CookieHabit.REPLACING) -> Session:
        """A session that is not seeded yet, on `row` or the gym's first row."""
        return self.gym.contract.session(self.channel, row or self.gym.row, habit)

    async def open(
        self, row: Row | None = None, habit: CookieHabit = CookieHabit.REPLACING, channel: Channel | None = None
    ) -> Session:
        """A seeded session, over the trial's own channel unless another is given.

        Raises:
            Untestable: the server refuses the seed, which is another check's finding.
        """
        session = self.gym.contract.session(channel or self.channel, row or self.gym.row, habit)
        ensure_opened(row or self.gym.row, reply_of(await session.seed()))
        return session

    async def call(self, session: Session, call: Call) -> Reply:
        """Run one tool call in the session."""
        return reply_of(await session.call(call))

    async def verify(self, session: Session, response: Mapping[str, Any], **fields: Any) -> Reply:
        """Have the response scored in the session."""
        return reply_of(await session.verify(response, **fields))

    async def verify_fresh(self, response: Mapping[str, Any], row: Row | None = None) -> Reply:
        """Have the response scored in a fresh session in which nothing else is done."""
        return await self.verify(await self.open(row), response)

    async def scored(self, session: Session, response: Mapping[str, Any], **fields: Any) -> dict[str, Any]:
        """The JSON object that verify answers, for checks that examine it.

        Raises:
            Untestable: verify does not score this response, which is another check's finding.
        """
        reply = await self.verify(session, response, **fields)
        if not is_success(reply.status):
            raise Untestable(f"a score: /verify answered {reply.status}; see verify-scores-rows and verify-degenerate")
        if not isinstance(reply.said, dict):
            raise Untestable("a score: /verify did not answer a JSON object; see verify-scores-rows")
        return reply.fields

    async def verify_bare(self, response: Mapping[str, Any], cookies: Cookies = NO_COOKIES) -> Reply:
        """Verify the gym's first row outside of any session."""
        return await self.send(post(VERIFY, {**self.gym.row.data, "response": response}, cookies))


def expect_status(reply: Reply, statuses: Iterable[int], hint: str) -> None:
    """Require one of these statuses."""
    allowed = tuple(statuses)
    if reply.status not in allowed:
        cause = _REDIRECTS if is_redirect(reply.status) else _BY_STATUS.get(reply.status, hint)
        raise Violation("status " + " or ".join(map(str, allowed)), describe(reply), cause)


def expect_success(reply: Reply, hint: str) -> None:
    """Require 200 or another 2xx: clients raise for all other statuses, and do not tell these apart."""
    if not is_success(reply.status):
        expect_status(reply, [HTTPStatus.OK], hint)


def expect_cookie(reply: Reply, kept: object) -> None:
    """Require a seed's reply to set a session cookie; `kept` is what a client keeps of its cookies."""
    if not kept:
        hint = "The application has no sessions (a nemo-gym server's setup_webserver() calls setup_session_middleware(app), other frameworks have their own), or a proxy strips the header."
        raise Violation("a Set-Cookie header", f"status {reply.status} with Set-Cookie {list(reply.set_cookies)}", hint)


_REDIRECTS = "It redirects, which clients do not follow: give the server's own URL, without a proxy that sends them elsewhere; see seed-no-redirects."

#: What is likely of statuses that the framework, or a proxy, answers before the server's own code is asked.
_BY_STATUS: Final[dict[int, str]] = {
    HTTPStatus.TOO_MANY_REQUESTS: "Requests are limited by address or in total: the rollouts of a batch come from one "
    "address, hundreds at once.",
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: "The framework, or a proxy before it, limits the size of a body: raise the limit, "
    "since a verify brings the whole rollout, with its tokens and log probabilities.",
}


def expect_no_crash(reply: Reply, hint: str, given: str = "") -> None:
    """Require any status but a 5xx; `given` names what was sent."""
    if is_crash(reply.status):
        raise Violation("any status below 500" + (f" to {given}" if given else ""), describe(reply), hint)


def ensure_opened(row: Row, reply: Reply) -> None:
    """Ensure that the server accepted the seed.

    Raises:
        Untestable: it did not, which is another check's finding.
    """
    refuse_made_up(row, reply)
    if not is_success(reply.status):
        raise Untestable(f"a session: /seed_session answered {reply.status}; see seed-accepts-rows")


def refuse_made_up(row: Row, reply: Reply) -> None:
    """End the trial if the server rightly refused the bare row that stands in for missing data.

    Raises:
        Untestable: it did.
    """
    if row is BARE_ROW and is_refusal(reply.status):
        raise Untestable(f"dataset rows (--gym-data); the server answers {reply.status} to a made-up row")


def expect_object(reply: Reply, hint: str) -> dict[str, Any]:
    """Require a JSON object as the reply's body."""
    if not isinstance(reply.said, dict):
        raise Violation("a JSON object", describe(reply), _ENCODING if "\ufffd" in reply.text else hint)
    return reply.fields


_ENCODING: Final = "The reply is in another encoding: JSON is UTF-8 (RFC 8259, section 8.1)."


def describe(reply: Reply) -> str:
    """A reply in one line: its status and body, or where it redirects to."""
    if is_redirect(reply.status) and (place := reply.header("location")):
        return f"status {reply.status} to {place}"
    return f"status {reply.status}, body {reply.text}" if reply.body else f"status {reply.status}, no body"
