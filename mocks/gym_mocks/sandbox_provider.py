"""A sandbox provider for nemo-gym (0.5.0 on) that runs nothing: it asks `gym_mocks.sandboxes` what a sandbox would answer.

It needs nothing of this package, so that it can be loaded by its path where only nemo-gym is installed. The config is
`sandbox: {gym_mocks: {url: http://127.0.0.1:PORT}}`; the protocol is `SandboxProvider` in
nemo_gym/sandbox/providers/base.py (0.5.0 to 0.7.0).
"""

import asyncio
import base64
import importlib
import json
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any

#: Seconds that one answer may take.
_SOON = 60.0

_OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class ScriptedProvider:
    """Every sandbox of one `Sandboxes`."""

    name = "gym_mocks"

    def __init__(self, url: str, **_: Any) -> None:
        self._url = url
        self._types = importlib.import_module("nemo_gym.sandbox.providers")

    async def create(self, spec: Any) -> Any:
        """A sandbox; raises nemo-gym's `SandboxCreateError` where none is to be had."""
        said = await self._ask("create", image=spec.image, files=dict(spec.files), env=dict(spec.env))
        return self._types.SandboxHandle(sandbox_id=said["id"], provider_name=self.name, raw=None)

    async def exec(self, handle: Any, command: str, **options: Any) -> Any:
        """What the command is said to have printed."""
        told = {key: value for key, value in options.items() if key in ("cwd", "env", "timeout_s", "user")}
        said = await self._ask("exec", id=handle.sandbox_id, command=command, **told)
        return self._types.SandboxExecResult(
            said["stdout"], said["stderr"], said["return_code"], said.get("error_type")
        )

    async def upload_file(self, handle: Any, source_path: Path, target_path: str) -> None:
        """Keep a file."""
        content = await asyncio.to_thread(Path(source_path).read_bytes)
        await self._ask(
            "upload", id=handle.sandbox_id, path=str(target_path), content=base64.b64encode(content).decode()
        )

    async def download_file(self, handle: Any, source_path: str, target_path: Path) -> None:
        """Write a file that was kept, or scripted; raises FileNotFoundError."""
        said = await self._ask("download", id=handle.sandbox_id, path=str(source_path))
        await asyncio.to_thread(Path(target_path).write_bytes, base64.b64decode(said["content"]))

    async def status(self, handle: Any) -> Any:
        """Running, until it is closed."""
        said = await self._ask("status", id=handle.sandbox_id)
        return self._types.SandboxStatus(said["status"])

    async def close(self, handle: Any) -> None:
        """End it."""
        await self._ask("close", id=handle.sandbox_id)

    async def aclose(self) -> None:
        """Nothing is held open."""

    async def serialize_handle(self, handle: Any, *, scope: str | None = None) -> dict[str, Any]:  # noqa: ARG002 - its protocol
        """What `connect` takes."""
        return {"sandbox_id": handle.sandbox_id}

    async def connect(self, descriptor: Mapping[str, Any]) -> Any:
        """The same sandbox in another process."""
        return self._types.SandboxHandle(sandbox_id=str(descriptor["sandbox_id"]), provider_name=self.name, raw=None)

    async def _ask(self, operation: str, **given: Any) -> dict[str, Any]:
        said: dict[str, Any] = await asyncio.to_thread(self._post, operation, given)
        if "raise" in said:
            raise {
                "create": self._types.SandboxCreateError,
                "file": FileNotFoundError,
            }.get(said["raise"], RuntimeError)(said["message"])
        return said

    def _post(self, operation: str, given: dict[str, Any]) -> Any:
        body = json.dumps(given, default=str).encode()
        asked = urllib.request.Request(f"{self._url}/{operation}", body, {"Content-Type": "application/json"})  # noqa: S310 - http, on loopback
        with _OPENER.open(asked, timeout=_SOON) as reply:
            return json.loads(reply.read())
