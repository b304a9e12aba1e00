"""What a server's OpenAPI document says about its tools and its kind."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import Any

from gym_conformance.contract.endpoints import (
    CLOSE,
    CLOSE_CAPABILITY,
    CLOSE_SESSION,
    CONTROL,
    RESERVED,
    RESPONSES,
    RUN,
    SANDBOX_ACCESS,
    SEED_SESSION,
    VERIFY,
)
from gym_conformance.contract.episode import EPISODE_FIELDS
from gym_conformance.contract.identity import SESSION_ID

#: `/{path}` and `/{path:path}`: one route for every tool.
_CATCH_ALL = re.compile(r"/\{[^/{}]+\}")

#: What FastAPI declares wherever it reads arguments.
_OF_FASTAPI = "HTTPValidationError"

_GYMNASIUM = frozenset({"/reset", "/step"})


class ServerKind(StrEnum):
    """The kind of server, which decides which checks apply."""

    TOOLS = "tool server"
    CATCH_ALL = "catch-all server"
    SINGLE_TURN = "single-turn server"
    GYMNASIUM = "gymnasium-style server"
    ENVIRONMENT = "environment server"
    OTHER = "no resources server"


def phrase(kind: str) -> str:
    """A kind with its article."""
    article = "" if kind.startswith("no ") else "an " if kind[:1] in "aeiou" else "a "
    return article + kind


@dataclass(frozen=True)
class Api:
    """The POST routes of a server. `known` is False if it serves no readable OpenAPI document."""

    known: bool = False
    posts: frozenset[str] = frozenset()
    document: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @cached_property
    def tools(self) -> frozenset[str]:
        """Names that a tool call would reach by their own route."""
        return frozenset(
            path[1:]
            for path in self.posts - ({CLOSE} if self.closes_web_sessions else frozenset())
            if path[1:].partition("/")[0] not in RESERVED and "{" not in path and path != "/"
        )

    @property
    def is_generated(self) -> bool:
        """Whether FastAPI made the document, from the same types by which it takes calls: one written by hand may differ."""
        try:
            return _OF_FASTAPI in self.document["components"]["schemas"]
        except (KeyError, TypeError):
            return False

    @property
    def closes_web_sessions(self) -> bool:
        """Whether it declares that it closes sessions by the capability that their client created."""
        return any(CLOSE_CAPABILITY in fields for fields in self._bodies(CLOSE))

    @property
    def is_of_main(self) -> bool:
        """Whether it has routes that only NeMo Gym's main documents, which is not released."""
        routes = any(path == SANDBOX_ACCESS or path.startswith(CONTROL) for path in self.posts)
        return routes or self.closes_web_sessions

    @property
    def typed(self) -> bool:
        """Whether it declares that it accepts typed seeds and closes sessions."""
        return CLOSE_SESSION in self.posts and any(SESSION_ID in fields for fields in self._bodies(SEED_SESSION))

    @property
    def typed_only(self) -> bool:
        """Whether it accepts no other seed."""
        return self.typed and all(SESSION_ID in fields for fields in self._bodies(SEED_SESSION))

    @property
    def episodes(self) -> bool:
        """Whether it declares that `/run` accepts episode requests, and no flat rows."""
        return any(fields.keys() >= EPISODE_FIELDS for fields in self._bodies(RUN))

    def _bodies(self, path: str) -> list[Mapping[str, Any]]:
        """The fields of a path's body, in each form that it may have."""
        try:
            operation = self.document["paths"][path]["post"]
            schema = operation["requestBody"]["content"]["application/json"]["schema"]
            found = [self._component(form).get("properties", {}) for form in schema.get("anyOf", [schema])]
        except (KeyError, TypeError, AttributeError):
            return []  # an undeclared body
        return [fields if isinstance(fields, dict) else {} for fields in found]

    def _component(self, schema: Mapping[str, Any]) -> Mapping[str, Any]:
        name = schema.get("$ref", "").removeprefix("#/components/schemas/")
        found: Mapping[str, Any] = self.document["components"]["schemas"][name] if name else schema
        return found

    @property
    def catch_alls(self) -> frozenset[str]:
        """The routes that accept every tool."""
        return frozenset(path for path in self.posts if _CATCH_ALL.fullmatch(path))

    @property
    def catch_all(self) -> bool:
        """Whether one route accepts every tool."""
        return bool(self.catch_alls)

    @property
    def kind(self) -> ServerKind:
        """The kind of server with these routes; only meaningful if the document is known."""
        if not {SEED_SESSION, VERIFY} & self.posts:
            if self.posts >= _GYMNASIUM:
                return ServerKind.GYMNASIUM
            # an agent serves /run too, but also the policy's responses
            return ServerKind.ENVIRONMENT if RUN in self.posts and RESPONSES not in self.posts else ServerKind.OTHER
        if self.catch_all:
            return ServerKind.CATCH_ALL
        return ServerKind.TOOLS if self.tools else ServerKind.SINGLE_TURN


def read_openapi(document: object) -> Api:
    """Read an OpenAPI document; anything else gives an unknown `Api`."""
    paths = document.get("paths") if isinstance(document, dict) else None
    if not isinstance(paths, dict) or not isinstance(document, dict):
        return Api()
    routed = {path: routes for path, routes in paths.items() if path.startswith("/")}  # others are no paths (OpenAPI 3)
    posts = frozenset(path for path, routes in routed.items() if isinstance(routes, dict) and "post" in routes)
    return Api(known=True, posts=posts, document=document)
