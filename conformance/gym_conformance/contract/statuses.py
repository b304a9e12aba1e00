"""Classes of HTTP status (RFC 9110, section 15), each in one place. `http.HTTPStatus` names single ones."""

from http import HTTPStatus
from typing import Final

#: Statuses of a server without such a route; FastAPI answers 405 if another method has one.
UNROUTED: Final = frozenset({HTTPStatus.NOT_FOUND, HTTPStatus.METHOD_NOT_ALLOWED})


#: Statuses of a server, or a proxy before it, for an unauthenticated client; no NeMo Gym server asks for credentials.
UNKNOWN_CLIENT: Final = frozenset({HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN})


def is_success(status: int) -> bool:
    """2xx: the request was accepted."""
    return status // 100 == 2  # noqa: PLR2004 - HTTP's own classes, here and below


def is_redirect(status: int) -> bool:
    """3xx: the client is sent elsewhere."""
    return status // 100 == 3  # noqa: PLR2004


def is_refusal(status: int) -> bool:
    """4xx: the server says that the client is wrong."""
    return status // 100 == 4  # noqa: PLR2004


def is_error(status: int) -> bool:
    """4xx, 5xx, and made-up statuses above: whatever a client raises for."""
    return status >= 400  # noqa: PLR2004


def is_crash(status: int) -> bool:
    """5xx, and made-up statuses above: the server says that it failed."""
    return status >= 500  # noqa: PLR2004
