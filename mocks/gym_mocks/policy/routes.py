from dataclasses import dataclass
from threading import Lock
from typing import Self

from gym_mocks.policy.policies import Policy


@dataclass(frozen=True)
class Route:
    """A policy bound to a name; leaving its `with` block releases it."""

    name: str
    policy: Policy
    api_key: str
    routes: "Routes"

    def release(self) -> None:
        """Take the route away; requests for it are then unknown. Releasing twice does nothing."""
        self.routes.release(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


class Routes:
    """The active routes, by model name or API key, as Verifiers' proxy keeps one for each rollout.

    One active route takes any name; with several, an unknown name finds none.
    """

    def __init__(self) -> None:
        self._by_name: dict[str, Route] = {}
        self._by_key: dict[str, Route] = {}
        self._lock = Lock()  # tests bind in their thread, requests look up in the server's

    def __len__(self) -> int:
        return len(self._by_name)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the active routes."""
        with self._lock:
            return tuple(self._by_name)

    def bind(self, name: str, policy: Policy, *, api_key: str = "") -> Route:
        """Bind a policy to a name, in place of what was bound to it."""
        route = Route(name, policy, api_key, self)
        with self._lock:
            before = self._by_name.get(name)
            if before is not None:
                self._by_key.pop(before.api_key, None)
            self._by_name[name] = route
            if api_key:
                self._by_key[api_key] = route
        return route

    def release(self, route: Route) -> None:
        """Take a route away, if it is still the one of its name."""
        with self._lock:
            if self._by_name.get(route.name) is route:
                del self._by_name[route.name]
                self._by_key.pop(route.api_key, None)

    def find(self, model: str, api_key: str) -> Route | None:
        """The route of a request, or None."""
        with self._lock:
            named = self._by_name.get(model) or self._by_key.get(api_key)
            return named or (next(iter(self._by_name.values())) if len(self._by_name) == 1 else None)
