import json
import secrets
from base64 import b64decode, b64encode
from dataclasses import dataclass, field
from functools import cached_property
from http.cookies import _unquote as unquote  # what Starlette unquotes with

from gym_mocks.resources.signing import Signer

MAX_AGE = 14 * 24 * 60 * 60  # seconds: Starlette's default, which nemo-gym keeps


@dataclass(frozen=True)
class SignedCookie:
    """The session cookie, as Starlette's SessionMiddleware writes and reads it.

    nemo-gym names it `{ClassName}___{config.name}` and signs it with a key that is that very name, so that
    anybody can forge one (nemo_gym/server_utils.py of 0.4.0, `get_session_middleware_key`). Here the key is
    random.

    Attributes:
        name: the cookie's name.
        key: the signing key; random for each server unless given.
        attributes: what follows the value in `Set-Cookie`.
    """

    name: str
    key: str = field(default_factory=secrets.token_hex, repr=False)
    attributes: str = f"path=/; Max-Age={MAX_AGE}; httponly; samesite=lax"

    @cached_property
    def _signer(self) -> Signer:
        return Signer(self.key)

    def read(self, header: str) -> str | None:
        """The session id in a `Cookie` header; None where there is none that this server has signed."""
        value = _cookies(header).get(self.name)
        if value is None:
            return None
        content = self._signer.content(value.encode(), MAX_AGE)
        try:
            session_id = json.loads(b64decode(content or b"")).get("session_id")
        except (ValueError, AttributeError):
            return None
        return session_id if isinstance(session_id, str) else None

    def write(self, session_id: str) -> str:
        """The content of the `Set-Cookie` header for a session."""
        content = b64encode(f'{{"session_id": {json.dumps(session_id)}}}'.encode())
        return f"{self.name}={self._signer.sign(content).decode()}; {self.attributes}"


def _cookies(header: str) -> dict[str, str]:
    pairs = (part.partition("=") for part in header.split(";") if part.strip())
    return {name.strip(): unquote(value.strip()) for name, _, value in pairs}
