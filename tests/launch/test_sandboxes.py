"""Sandboxes that run nothing: what is asked of them is known, what goes wrong is chosen, and leaks are found."""

import asyncio
import json
import sys
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import httpx
import pytest

from gym_conformance.checks.registry import LAUNCHED
from gym_conformance.findings import Verdict
from gym_conformance.plugin.mocks import MockPeers
from gym_conformance.trials.launched import Launched
from gym_mocks.reference import ReferenceServer
from gym_mocks.resources import Score, TaskRow
from gym_mocks.sandbox_provider import ScriptedProvider
from gym_mocks.sandboxes import CommandResult, Sandboxes, SandboxFault
from tests.twins.judging import ended, running, telling

OF_SANDBOXES = [check for check in LAUNCHED if check.section == "sandbox"]


@pytest.mark.parametrize(
    ("operation", "body"),
    [
        ("exec", b"{}"),
        ("exec", b'{"id": "a", "command": 5}'),
        ("create", b'{"files": 5}'),
        ("close", b"[" * 100_000),
        ("status", b"\xff"),
        ("download", b"null"),
    ],
)
def test_what_the_provider_would_not_send_is_refused(operation: str, body: bytes) -> None:
    with Sandboxes() as sandboxes:
        assert httpx.post(f"{sandboxes.url}/{operation}", content=body).status_code == 400
        assert httpx.post(f"{sandboxes.url}/create", content=b'{"files": {"a": "\\ud800"}}').json() == {
            "id": "sandbox-1"
        }
        broken = httpx.post(f"{sandboxes.url}/upload", json={"path": "b", "content": "a"}).json()
        assert broken["message"] == "the content is no base64"


@pytest.fixture
def _nemo_gym(monkeypatch: pytest.MonkeyPatch) -> None:
    """The types that a provider answers with, in nemo-gym's place."""
    types = ModuleType("nemo_gym.sandbox.providers")
    vars(types).update(
        SandboxHandle=SimpleNamespace,
        SandboxExecResult=CommandResult,
        SandboxStatus=str,
        SandboxCreateError=type("SandboxCreateError", (RuntimeError,), {}),
    )
    for name in ("nemo_gym", "nemo_gym.sandbox"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    monkeypatch.setitem(sys.modules, "nemo_gym.sandbox.providers", types)


SPEC = SimpleNamespace(image="python:3.12", files={"/a": "kept"}, env={})


@pytest.mark.usefixtures("_nemo_gym")
def test_a_provider_answers_what_is_scripted(tmp_path: Path) -> None:
    with Sandboxes(run=lambda command: CommandResult(stdout=command.upper(), return_code=3)) as sandboxes:

        async def use() -> None:
            provider = ScriptedProvider(sandboxes.url)
            handle = await provider.create(SPEC)
            assert sandboxes.left == [handle.sandbox_id]
            result = await provider.exec(handle, "make test", timeout_s=5)
            assert (result.stdout, result.return_code) == ("MAKE TEST", 3)
            (tmp_path / "b").write_bytes(b"\xff")
            await provider.upload_file(handle, tmp_path / "b", "/b")
            for path, content in (("/a", b"kept"), ("/b", b"\xff")):
                await provider.download_file(handle, path, tmp_path / "back")
                assert (tmp_path / "back").read_bytes() == content
            with pytest.raises(FileNotFoundError, match="/c"):
                await provider.download_file(handle, "/c", tmp_path / "back")
            again = await provider.connect(await provider.serialize_handle(handle))
            assert await provider.status(again) == "running"
            await provider.close(again)
            assert await provider.status(handle) == "stopped"

        asyncio.run(use())
        assert sandboxes.left == []
        assert sandboxes.commands == [(sandboxes.made[0], "make test")]


@pytest.mark.usefixtures("_nemo_gym")
def test_each_fault_is_what_it_says() -> None:
    async def seen(sandboxes: Sandboxes, fault: SandboxFault) -> str:
        provider = ScriptedProvider(sandboxes.url)
        handle = await provider.create(SPEC)
        sandboxes.fault = fault
        try:
            if fault in (SandboxFault.NOT_CREATED, SandboxFault.NO_CAPACITY):
                await provider.create(SPEC)
            result = await provider.exec(handle, "true")
            if fault is SandboxFault.NOT_CLOSED:
                await provider.close(handle)
        except RuntimeError as error:
            return f"{type(error).__name__}: {error}"
        return f"{result.return_code} {len(result.stdout)} {result.error_type}"

    with Sandboxes() as sandboxes:
        found = {}
        for fault in SandboxFault:
            sandboxes.forget()
            found[fault.name] = asyncio.run(seen(sandboxes, fault))
    assert found["NONE"] == "0 0 None"
    assert found["NOT_CREATED"].startswith("SandboxCreateError")
    assert found["NO_CAPACITY"].startswith("SandboxCreateError: no capacity")
    assert found["FAILED"] == "1 0 None"
    assert found["TIMEOUT"] == "125 0 timeout"
    assert found["KILLED"] == "137 0 None"
    assert found["ENDLESS"].startswith("0 8388608")
    assert found["BAD_GATEWAY"] == "RuntimeError: 502 Bad Gateway"
    assert found["NOT_CLOSED"].startswith("RuntimeError")


@pytest.fixture
def mocks() -> Iterator[MockPeers]:
    with ExitStack() as started:
        peers = MockPeers(started)
        assert peers.addresses.sandboxes
        yield peers


class _Runs(ReferenceServer):
    """Makes a sandbox, runs a command in it, and closes it, whatever happens."""

    def __init__(self, mocks: MockPeers) -> None:
        super().__init__()
        self.sandboxes = mocks.addresses.sandboxes

    async def ask(self, operation: str, **given: Any) -> Any:
        request = urllib.request.Request(f"{self.sandboxes}/{operation}", json.dumps(given).encode())  # noqa: S310 - http, on loopback
        said = json.loads((await asyncio.to_thread(urllib.request.urlopen, request)).read())
        if "raise" in said:
            raise OSError(said["message"])
        return said

    async def score(self, session_id: str, row: TaskRow, response: dict[str, Any]) -> Score:
        try:
            made = await self.ask("create")
        except OSError:
            return Score(0.0)
        try:
            self.read(await self.ask("exec", id=made["id"], command="make test"))
        except OSError:
            pass
        finally:
            await self.end(made["id"])
        return await super().score(session_id, row, response)

    async def end(self, sandbox: str) -> None:
        with suppress(OSError):
            await self.ask("close", id=sandbox)

    def read(self, result: dict[str, Any]) -> None:
        """Take anything."""


class _Assumes(_Runs):
    def read(self, result: dict[str, Any]) -> None:
        assert result["return_code"] == 0


class _Leaks(_Runs):
    """Does not close a sandbox whose command was killed."""

    killed = False

    def read(self, result: dict[str, Any]) -> None:
        self.killed = result["return_code"] == 137

    async def end(self, sandbox: str) -> None:
        if not self.killed:
            await super().end(sandbox)


class _Grades(_Runs):
    """Scores by the status of its command, and masks what no sandbox has graded."""

    def ungraded(self) -> Score:
        return Score(0.0, fields={"mask_sample": True})

    async def score(self, session_id: str, row: TaskRow, response: dict[str, Any]) -> Score:
        del session_id, row, response
        try:
            made = await self.ask("create")
            try:
                result = await self.ask("exec", id=made["id"], command="make test")
            finally:
                await self.end(made["id"])
        except OSError:
            return self.ungraded()
        return Score(float(not result["return_code"]))


class _Gives(_Grades):
    def ungraded(self) -> Score:
        return Score(1.0)


class _Blames(_Grades):
    def ungraded(self) -> Score:
        return Score(0.0)


class _AsksNone(ReferenceServer):
    def __init__(self, _: MockPeers) -> None:
        super().__init__()


@pytest.mark.parametrize(
    ("server", "fails", "passes"),
    [
        (_Runs, set[str](), {"sandbox-answers", "sandbox-closed"}),
        (_Assumes, {"sandbox-answers"}, {"sandbox-closed"}),
        (_Leaks, {"sandbox-closed"}, {"sandbox-answers"}),
        (_Grades, set[str](), {"sandbox-answers", "sandbox-closed"}),
        (_Gives, {"sandbox-answers"}, {"sandbox-closed"}),
        (_Blames, {"sandbox-answers"}, {"sandbox-closed"}),
        (_AsksNone, set[str](), set[str]()),
    ],
)
def test_a_twin_fails_exactly_its_own(
    server: Callable[[MockPeers], ReferenceServer], fails: set[str], passes: set[str], mocks: MockPeers
) -> None:
    with running(server(mocks), launched=Launched(sandboxes=mocks), timeout=60.0) as run:
        found = {check.id: run.judge(check) for check in OF_SANDBOXES}
    assert telling(found) == fails, [(one.subject, one.reason, one.actual) for each in found.values() for one in each]
    assert ended(found, Verdict.PASS) == passes
    if server is _Leaks:
        leaking = {one.subject for one in found["sandbox-closed"] if one.verdict is Verdict.FAIL}
        assert leaking == {"commands are killed for memory, with 137"}
    if server in (_Gives, _Blames):
        outages = {one.subject for one in found["sandbox-answers"] if one.verdict is Verdict.FAIL}
        assert outages == {"creation fails", "there is no capacity", "commands are answered with 502"}
