"""Where the suite uses the mocks: the head and the models for launched servers."""

from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any
from urllib.parse import urlsplit

from gym_conformance.launch.specification import PeerAddresses
from gym_conformance.trials.launched import OtherHosts, SandboxTrouble, Saying

#: The forms of a verdict that judges of nemo-gym's own envs accept, for prompts whose form the mock does not recognise;
#: some take any A for a yes.
_VERDICTS = {
    Saying.YES: "Yes, correct: A. [[A=B]] [[YES]] \\boxed{yes} Judgement: Yes. Score: 10",
    Saying.NO: "No, incorrect: B. [[NO]] \\boxed{no} Judgement: No. Score: 0",
    Saying.GARBAGE: '{"score": [[[ \u2603 </answer>',
}

#: As vLLM words it.
_TOO_LONG = "This model's maximum context length is 8192 tokens. However, your request has 50001 input tokens."

#: Seconds of delay: longer than any client of a server under test waits.
_HANG = 900.0


class MockPeers:
    """The mocks for the servers that this process launches; they start with the first server."""

    def __init__(self, started: ExitStack) -> None:
        self._started = started
        self._head: Any = None
        self._policy: Any = None
        self._asked = 0
        self._outside: Any = None
        self._sandboxes: Any = None
        self._peers: PeerAddresses | None = None
        self.settled = OtherHosts.DOWN

    @property
    def addresses(self) -> PeerAddresses:
        """Their addresses."""
        if self._peers is None:
            from gym_mocks import sandbox_provider  # noqa: PLC0415
            from gym_mocks.head import Head  # noqa: PLC0415 - only needed for launching
            from gym_mocks.outside import Outside  # noqa: PLC0415
            from gym_mocks.participants import Participants  # noqa: PLC0415
            from gym_mocks.policy import FakePolicy  # noqa: PLC0415
            from gym_mocks.sandboxes import Sandboxes  # noqa: PLC0415
            from gym_mocks.serving import Host  # noqa: PLC0415

            host = Host()
            self._started.callback(host.close)
            self._outside = self._started.enter_context(Outside())
            self._sandboxes = self._started.enter_context(Sandboxes())
            self._head, self._policy = Head({}), FakePolicy()
            self.says(Saying.USUAL)
            self._peers = PeerAddresses(
                _address(host.serve(self._head)),
                _address(host.serve(Participants(self._counted()))),
                self._outside.address,
                self._sandboxes.url,
                str(sandbox_provider.__file__),
            )
        return self._peers

    @property
    def asked(self) -> int:
        """How many requests the policy got."""
        return self._asked

    @property
    def prompts(self) -> list[Mapping[str, Any]]:
        """The requests to the policy since it was last told what to say."""
        return [call.body for call in self._policy.calls]

    def says(self, saying: Saying | str) -> None:
        """Have the policy, which is every model server, answer this; yes and no in the form that is asked for."""
        from gym_mocks.policy import PolicyFault, Say, judging  # noqa: PLC0415

        # not the echo: the prompts of judges contain every verdict
        said = _VERDICTS.get(saying, _VERDICTS[Saying.NO]) if isinstance(saying, Saying) else saying
        in_form = isinstance(saying, Saying) and saying is not Saying.GARBAGE
        self._policy.calls.clear()
        self._policy.default = judging(favourable=saying is Saying.YES, words=said) if in_form else lambda _: Say(said)
        self._policy.faults.clear()
        if saying is Saying.BROKEN:
            self._policy.fail(PolicyFault("invalid_json"))
        if saying is Saying.FAILURE:
            self._policy.fail(PolicyFault("status", status=500))
        if saying is Saying.TOO_LONG:
            self._policy.fail(PolicyFault("status", status=400, message=_TOO_LONG))
        if saying is Saying.NOTHING:
            self._policy.fail(PolicyFault("latency", seconds=_HANG))

    @property
    def requests(self) -> dict[str, int]:
        """The requests to other hosts, and how often each came."""
        found: dict[str, int] = self._outside.requests if self._outside else {}
        return found

    def let(self, hosts: OtherHosts) -> None:
        """Have other hosts behave like this from now on."""
        from gym_mocks.outside import Outage  # noqa: PLC0415

        self._outside.outage = Outage[hosts.name]

    def settle(self, hosts: OtherHosts) -> None:
        """Have other hosts behave like this from now on, and again after each check that changes it."""
        self.settled = hosts
        self.let(hosts)

    @property
    def asked_sandboxes(self) -> int:
        """How many requests the sandboxes got."""
        return int(self._sandboxes.asked) if self._sandboxes else 0

    @property
    def left_sandboxes(self) -> list[str]:
        """Sandboxes that were created, and that nobody tried to close."""
        left: list[str] = self._sandboxes.left if self._sandboxes else []
        return left

    def let_sandboxes(self, trouble: SandboxTrouble) -> None:
        """Have sandboxes fail like this from now on."""
        from gym_mocks.sandboxes import SandboxFault  # noqa: PLC0415

        self._sandboxes.fault = SandboxFault[trouble.name]

    def forget(self) -> None:
        """Prepare for another server: forget the requests to other hosts, and make those unavailable."""
        if self._outside:
            self._outside.forget()
            self._sandboxes.forget()
            self.settle(OtherHosts.DOWN)

    def _counted(self) -> Any:
        async def counted(scope: Any, receive: Any, send: Any) -> None:  # a function: uvicorn misjudges bound methods
            self._asked += scope["type"] == "http"
            await self._policy(scope, receive, send)

        return counted

    def tell_head(self, config: Mapping[str, Any]) -> None:
        """Have the head serve this config."""
        self._head.config = config


def _address(url: str) -> tuple[str, int]:
    parts = urlsplit(url)
    assert parts.hostname is not None  # noqa: S101 - our own URL has both
    assert parts.port is not None  # noqa: S101
    return parts.hostname, parts.port
