"""Judging: run a check on a gym, subject by subject, and turn what it raises into findings."""

import asyncio
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from functools import partial

from gym_conformance.checks.launched.other_hosts import OUTSIDE
from gym_conformance.contract.endpoints import LIVENESS
from gym_conformance.diagnoses.all_diagnoses import Diagnoses
from gym_conformance.diagnoses.diagnosis import Case, Missing, TryAgain
from gym_conformance.findings import Cause, Finding, LoadLevel, Verdict
from gym_conformance.gym_under_test import Gym
from gym_conformance.probes.asking import NoSession
from gym_conformance.scouting.learn import BRIEF
from gym_conformance.session.channel import OutOfTime, PathHangs
from gym_conformance.session.curl import curl_script
from gym_conformance.session.exchange import Exchange, Request
from gym_conformance.session.server_fault import Fault, NotSent, ServerFault
from gym_conformance.trajectories.execute import FEW, beside
from gym_conformance.trajectories.trajectory import Schedule, dump
from gym_conformance.trials.bench import Bench
from gym_conformance.trials.check import Check, Level, Need
from gym_conformance.trials.ending import NotApplicable, NotExamined, Untestable, Violation
from gym_conformance.trials.property import knowledge_of
from gym_conformance.trials.trial import Trial

_HINTS = {
    Fault.HANG: "The handler never returns: a lock, or a place in a pool, that a request before it did not give back, a blocking call on the event loop, or a judge model that does not answer. Or the server serves one connection at a time, and another one is still open.",
    Fault.BROKEN: "The server closed the connection in the middle of its reply: it crashed or was killed.",
    Fault.UNREACHABLE: "The server process is gone: it crashed, ran out of memory, or was stopped.",
    Fault.OVERSIZED: "The reply is too long: state that grows with each call, or an endless stream.",
    Fault.INVALID: "The reply is not valid HTTP/1.1; a proxy or a hand-written server is at fault.",
    Fault.TLS: "The TLS connection failed.",
}

#: How often a concurrent schedule is replayed: a race that was lost once is likely to be lost again in so many tries.
_CONCURRENT_TRIES = 10


#: Requests without an answer that may hold all threads or workers of a server.
_HELD = 3

#: Seconds that one subject takes, above which the others are tried concurrently.
_SLOW = 0.3


#: Gentle checks run concurrently if there are at least this many, counting those that have something to wait for.
_SEVERAL = 4


def _passes(finding: Finding) -> bool:
    return finding.verdict in (Verdict.PASS, Verdict.NOT_APPLICABLE)


@dataclass
class Judge:
    """Runs checks on one gym.

    Attributes:
        upcoming: the checks that it will be asked to run, as far as they are known.
        silent: since when the server no longer answers; '' while it does.
        asked: how a check ends if a need is not met, by the need's name; None if it is met.
        told: the check that reports a path as hanging.
        passed: findings of gentle checks that passed while they ran concurrently; None until that was tried.
    """

    bench: Bench
    upcoming: Sequence[Check] = ()
    diagnoses: Diagnoses = field(default_factory=Diagnoses)
    silent: str = ""
    asked: dict[str, tuple[Verdict, str, bool] | None] = field(default_factory=dict)
    told: dict[str, str] = field(default_factory=dict)
    passed: dict[str, list[Finding]] | None = None

    @property
    def gym(self) -> Gym:
        """The gym under test."""
        return self.bench.gym

    async def judge(self, check: Check) -> list[Finding]:
        """Run a check: a finding for each subject, and at least one."""
        if unmet := await self._unmet(check):
            return [unmet]
        try:
            self.gym.endpoint.ensure_time()
        except OutOfTime as over:
            return [self._finding(check, "server", Verdict.UNTESTABLE, str(over))]
        if check.gentle and self.passed is None:
            self.passed = await self._judge_gently()
        if self.passed and (passed := self.passed.pop(check.id, None)):
            return passed
        findings: list[Finding] = []
        try:
            subjects = iter(check.subjects(Trial(self.bench)))
            for subject in subjects:
                began = time.monotonic()
                findings.append(self._placed(await self._try(check, subject), subject))
                if check.beside and time.monotonic() - began > _SLOW:
                    findings += await self._beside(check, tuple(subjects))
                if self.silent:
                    return findings
        except OutOfTime as over:  # while finding out what to try, as huge definitions are compared
            findings.append(self._finding(check, "server", Verdict.UNTESTABLE, str(over)))
        findings += await self._afterwards(check)
        return findings or [self._finding(check, "server", Verdict.NOT_APPLICABLE, "there is nothing to try")]

    async def _beside(self, check: Check, subjects: Sequence[object]) -> list[Finding]:
        """Try subjects concurrently, and those that do not pass once more, alone."""
        with self.gym.endpoint.forgiving():
            findings = await beside(partial(self._try, check, subject, among=True) for subject in subjects)
        self.silent = ""
        return [
            self._placed(found if _passes(found) else await self._try(check, subject), subject)
            for found, subject in zip(findings, subjects, strict=True)
        ]

    async def _judge_gently(self) -> dict[str, list[Finding]]:
        """Run the gentle checks concurrently, and what mostly waits, unless the server takes long for one session after the other."""
        gentle = [check for check in self.upcoming if check.gentle]
        waiting = [check for check in self.upcoming if check.waits]
        if len(gentle) + len(waiting) < _SEVERAL or not await self._is_worth_it():
            return {}
        gentle = [check for check in gentle if not await self._unmet(check)]
        waiting = [check for check in waiting if not await self._unmet(check)]
        with self.gym.endpoint.forgiving():
            passed, _ = await asyncio.gather(
                beside(partial(self._passes_gently, check) for check in gentle),
                beside(partial(self._waits_gently, check) for check in waiting),
            )
        return {check.id: findings for check, findings in zip(gentle, passed, strict=True) if findings}

    async def _is_worth_it(self) -> bool:
        """Whether sessions are brief, so that at least what waits does not wait alone, or many at once take no longer.

        If anything hung before, the rest is asked for one after another: each such request may hold a thread of the server.
        """
        if self.gym.endpoint.hung:
            return False
        with suppress(ServerFault, NotSent), self.gym.endpoint.forgiving():
            known = await knowledge_of(Trial(self.bench))
            return known.at_once > 1 or known.session_seconds + known.call_seconds <= BRIEF
        return False

    async def _waits_gently(self, check: Check) -> None:
        """Try what a property mostly waits for; unless it passes, that is tried again with the property."""
        trial = Trial(self.bench)
        trial.among = True
        with suppress(Exception):  # whatever it is, it recurs then, or was due to the others
            if check.waits:
                await check.waits(trial)

    async def _passes_gently(self, check: Check) -> list[Finding]:
        """A finding for each subject; none unless all plainly pass, so that the check is judged alone."""

        async def passed(subject: object) -> Finding:
            trial = Trial(self.bench)
            trial.among = True
            trial.tried.trials += 1
            await check.body(trial, subject)
            finding = self._with_what_is_told(self._pass(check, subject, trial), trial)
            return self._placed(finding, subject)

        try:
            subjects = check.subjects(Trial(self.bench))
            findings = await beside([partial(passed, one) for one in subjects], FEW if check.beside else 1)
        except Exception:  # noqa: BLE001 - whatever it is, it recurs alone, or was due to the others
            return []
        return [] if any(finding.caution for finding in findings) else findings

    async def read(self, check: Check) -> list[Finding]:
        """Run a check of files: nothing is sent, not even to see whether the server still answers."""
        return [await self._try(check, subject) for subject in check.subjects(Trial(self.bench))]

    async def _unmet(self, check: Check) -> Finding | None:
        """A finding for the first need of the check that this gym does not meet."""
        for need in check.needs:
            if need.name not in self.asked:
                self.asked[need.name] = await self._ask(need)
            if answer := self.asked[need.name]:
                verdict, reason, missing = answer
                return replace(self._finding(check, "server", verdict, reason), not_examined=missing)
        return None

    async def _ask(self, need: Need) -> tuple[Verdict, str, bool] | None:
        """How a check ends without the need, why, and whether the user could have provided it; None if it is met."""
        trial = Trial(self.bench)
        try:
            await need.ask(trial)
            # a server may have said what it lacks only once, in reply to the first requests
            await self.diagnoses.explain(self._case(trial))
        except NotApplicable as reason:
            return Verdict.NOT_APPLICABLE, str(reason), isinstance(reason, NotExamined)
        except (Untestable, NoSession, NotSent) as missing:
            return Verdict.UNTESTABLE, self.diagnoses.needs or str(missing), False
        except ServerFault as fault:
            return Verdict.UNTESTABLE, self.diagnoses.needs or f"a server that answers: {self.silent or fault}", False
        return None

    async def replay(self, check: Check, schedule: Schedule) -> list[Finding]:
        """Try one schedule that broke a property before, several times if it is concurrent."""
        attempt = check.attempt
        if attempt is None:
            raise ValueError(f"{check.id} is not a property of trajectories")

        async def body(trial: Trial, _: object) -> None:
            trial.schedule = schedule
            for _again in range(_CONCURRENT_TRIES if schedule.concurrent else 1):
                trial.channel.exchanges.clear()
                await attempt(trial, schedule)

        found = await self._try(replace(check, body=body), "the replayed trajectory")
        # without the sessions that the attempt puts beside it, or a replay of the replay would be longer each time
        again = dump(schedule, check.id, self.gym.endpoint.secrets) if found.replay else ""
        return [replace(found, replay=again)]

    async def _try(self, check: Check, subject: object, *, among: bool = False) -> Finding:
        if self.silent:
            return self._finding(check, subject, Verdict.UNTESTABLE, f"a server that answers: {self.silent}")
        trial = Trial(self.bench)
        trial.among = among
        trial.tried.trials += 1
        finding = await self._ended(check, subject, trial)
        return self._with_what_is_told(finding, trial)

    def _with_what_is_told(self, finding: Finding, trial: Trial) -> Finding:
        """The finding, completed with what the trial has for reports."""
        rows = tuple(row.as_json(self.gym.endpoint.secrets) for row in trial.drift)
        return replace(
            finding,
            drift=rows,
            readings=tuple(map(asdict, trial.readings)),
            load=tuple(asdict(self._level(level)) for level in trial.load),
            rewards=(asdict(trial.rewards.spread(self._script, self._show)),) if trial.rewards else (),
        )

    def _level(self, level: LoadLevel) -> LoadLevel:
        """A level of a load for a reader: the server decides which paths there are, and may have secrets in them."""
        return replace(
            level, endpoints=tuple(replace(one, endpoint=self._show(one.endpoint)) for one in level.endpoints)
        )

    async def _ended(self, check: Check, subject: object, trial: Trial, *, repeated: bool = False) -> Finding:
        try:
            await check.body(trial, subject)
        except Violation as violation:
            return await self._explained(check, subject, violation, trial)
        except NotApplicable as reason:
            found = self._finding(check, subject, Verdict.NOT_APPLICABLE, str(reason))
            return replace(found, not_examined=isinstance(reason, NotExamined))
        except (Untestable, NoSession, NotSent) as missing:
            untold = self._untold(missing) if check.level is Level.MUST and not repeated else None
            if untold:
                trial.channel.adopt_fault(untold)
                return await self._explained(check, subject, untold, trial)
            hangs = isinstance(missing, PathHangs) and self.diagnoses.needs
            return self._finding(check, subject, Verdict.UNTESTABLE, hangs or str(missing))
        except ServerFault as fault:
            return await self._unanswered(check, subject, fault, trial, repeated=repeated)
        return self._pass(check, subject, trial)

    def _pass(self, check: Check, subject: object, trial: Trial) -> Finding:
        passed = self._finding(check, subject, Verdict.PASS, trial.note)
        return replace(passed, caution=self._show(trial.caution))

    async def _unanswered(
        self, check: Check, subject: object, fault: ServerFault, trial: Trial, *, repeated: bool
    ) -> Finding:
        """The violation, unless a diagnosis explains it otherwise, or another check has told that the path hangs."""
        if fault.fault is Fault.UNREACHABLE:
            self.silent = f"it stopped answering in {check.id}"
        asked = fault.exchange.request if fault.exchange and fault.fault is Fault.HANG else None
        told_by = self.told.get(asked.path) if asked else None
        if asked and told_by not in (None, check.id):
            needs = f"an answer of {asked.method} {asked.path}, which hangs; see {told_by}"
            return self._finding(check, subject, Verdict.UNTESTABLE, needs)
        if asked and trial.among:  # tried again alone, which shows what the others had to do with it
            return self._finding(check, subject, Verdict.UNTESTABLE, f"a server that answers: {fault}")
        trial.channel.adopt_fault(fault)
        return await self._explained(check, subject, fault, trial, repeated=repeated or told_by is not None)

    def _untold(self, missing: Exception) -> ServerFault | None:
        """How a path hung, if no finding reports it: each check left it to others, or met it before it could judge."""
        last = missing.last if isinstance(missing, PathHangs) else None
        return last if last and last.exchange and last.exchange.request.path not in self.told else None

    async def _explained(
        self, check: Check, subject: object, cause: Violation | ServerFault, trial: Trial, *, repeated: bool = False
    ) -> Finding:
        """The violation, unless a diagnosis explains it otherwise."""
        if isinstance(cause, Violation) and cause.cause is Cause.WORN_OUT:
            return self._violation(check, subject, cause, trial)  # it explains the others
        fault = cause if isinstance(cause, ServerFault) else None
        match await self.diagnoses.explain(
            self._case(trial, fault, repeated=repeated, outside=OUTSIDE not in check.needs)
        ):
            case Missing(needs):
                return self._finding(check, subject, Verdict.UNTESTABLE, needs)
            case TryAgain(note):
                trial.channel.exchanges.clear()
                trial.note = note
                return await self._ended(check, subject, trial, repeated=True)
        return self._violation(check, subject, cause, trial)

    def _case(
        self, trial: Trial, fault: ServerFault | None = None, *, repeated: bool = False, outside: bool = True
    ) -> Case:
        return Case(
            self.bench,
            tuple(trial.channel.exchanges),
            fault,
            trial.asked if outside else trial.asked._replace(outside=0),
            repeated,
            trial.log,
        )

    async def _afterwards(self, check: Check) -> list[Finding]:
        """Whatever a check sent, the server must still answer afterwards."""
        trial = Trial(self.bench)
        try:
            await trial.send(Request("GET", LIVENESS))
        except ServerFault as fault:
            self.silent = f"it stopped answering in {check.id}"
            return [self._violation(check, "server, afterwards", fault, trial)]
        except PathHangs as hangs:
            self.silent = str(hangs)
        except NotSent:
            pass  # no time, or no room beside what this check holds: the next check reports that, or has room
        return []

    def _as_violation(self, cause: Violation | ServerFault) -> Violation:
        if isinstance(cause, Violation):
            return cause
        seconds, hint = f"{self.gym.endpoint.timeout:g} s", self._held_up(cause) + _HINTS[cause.fault]
        if ended := self._ended_by(cause):
            last = dict.fromkeys(f"{each.request.method} {each.request.path}" for each in ended)
            hint = f"The server process is gone: it crashed on one of its last requests ({', '.join(last)}), or was stopped."
        asked_for = f" to {cause.exchange.request.method} {cause.exchange.request.path}" if cause.exchange else ""
        expected = f"a whole HTTP reply{asked_for} within {seconds}"
        return Violation(expected, f"{cause.fault}: {cause.detail}", hint, Cause.UNANSWERED)

    def _held_up(self, fault: ServerFault) -> str:
        """A sentence about the path that hung most if it is another one, and so often that it may hold up the rest; or ''."""
        if fault.fault is not Fault.HANG or fault.exchange is None:
            return ""
        [(path, times)] = self.gym.endpoint.given_up.most_common(1) or [("", 0)]
        if times < _HELD or path == fault.exchange.request.path:
            return ""
        return f"{times} requests to {path} got no answer in time before, and may hold all threads or workers: mend that first. "

    def _ended_by(self, cause: Violation | ServerFault) -> list[Exchange]:
        """If the server is gone, the last request that it answered, and the first few that it did not."""
        if not isinstance(cause, ServerFault) or cause.fault is not Fault.UNREACHABLE:
            return []
        endpoint = self.gym.endpoint
        return [*filter(None, [endpoint.answered]), *endpoint.unanswered]

    def _violation(self, check: Check, subject: object, cause: Violation | ServerFault, trial: Trial) -> Finding:
        """A violation, or a note; a note whose request was not answered is untestable."""
        violation, verdict, reason = self._as_violation(cause), Verdict.FAIL, ""
        if violation.cause:
            self.bench.learned.causes.add(violation.cause)
        if check.level is Level.NOTE:
            unanswered = isinstance(cause, ServerFault)
            verdict = Verdict.UNTESTABLE if unanswered else Verdict.NOTE
            reason = f"a server that answers: {cause}" if unanswered else ""
        if verdict is Verdict.FAIL:
            self._tell_hanging({each.request.path for each in trial.channel.exchanges if each.hung}, check)
        endpoint, schedule = self.gym.endpoint, trial.schedule
        return replace(
            self._finding(check, subject, verdict, reason),
            expected=self._show(violation.expected),
            actual=self._show(violation.actual),
            why=check.why,
            hint=self._show(violation.hint),
            reproduce=tuple(self._script(self._ended_by(cause) or trial.channel.exchanges)),
            trajectory=tuple(self._show(step) for step in schedule.lines()) if schedule else (),
            replay=dump(schedule, check.id, endpoint.secrets) if schedule else "",
            framework=check.framework and trial.met_framework and verdict is not Verdict.UNTESTABLE,
            cause=violation.cause,
        )

    def _tell_hanging(self, paths: set[str], check: Check) -> None:
        """Note which paths a finding of this check reports as hanging.

        What a check sends may be odd. So a path that hung for it is asked again by others, which may send what is ordinary,
        until a MUST has told it; from then on it is left alone where it goes on hanging.
        """
        for path in paths - self.told.keys():
            self.gym.endpoint.hangs.pop(path, None)
        if check.level is Level.MUST:
            self.told = dict.fromkeys(paths, check.id) | self.told

    def _script(self, exchanges: Sequence[Exchange]) -> list[str]:
        """The shell commands that send the same requests."""
        endpoint = self.gym.endpoint
        return curl_script(exchanges, endpoint.url, endpoint.headers, endpoint.timeout, secrets=endpoint.secrets)

    def _finding(self, check: Check, subject: object, verdict: Verdict, reason: str = "") -> Finding:
        return check.finding(verdict, self._show(reason), subject=self._show(str(subject)))

    def _placed(self, finding: Finding, subject: object) -> Finding:
        """The finding, with its subject's place in the dataset."""
        source = self.gym.source(subject)
        return replace(finding, file=self._show(str(source.path)), line=source.line) if source else finding

    def _show(self, text: str) -> str:
        return self.gym.endpoint.secrets.show(text)
