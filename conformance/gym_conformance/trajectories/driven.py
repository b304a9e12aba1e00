"""What came of episodes, so many at once: of those that one process drove, or several at the same time. Values only."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from gym_conformance.findings import EndpointLoad, LoadLevel
from gym_conformance.session.exchange import Exchange
from gym_conformance.session.latencies import Latencies, Samples
from gym_conformance.trajectories.outcome import Difference


@dataclass(frozen=True)
class Strayed:
    """An episode that went otherwise than alone: where it differs, and what was sent and came.

    `in_flight` is how many were at once, `episode` its place among those that are run, and `share` how many of its runs
    went astray.
    """

    in_flight: int
    episode: int
    difference: Difference
    exchanges: tuple[Exchange, ...]
    share: float = 0.0


@dataclass
class Driven:
    """What came of a level.

    Attributes:
        seconds: from the first episode to the last.
        ended: how often each episode ended, by its place among those that are run.
        wrong: how often it then was otherwise than alone.
        counts: of all of them that were `lost`, `crashed`, `unanswered` or `broken`, as `LoadLevel` has them.
        astray: its first run that was.
        latencies: how long replies took.
        requests: that were sent; they were under way for `under_way` seconds.
        fault: why an answer did not come, the first time.
        nodes: of a cluster that drove; 0 where this process did.
        missing: nodes whose part is missing, and why.
    """

    seconds: float = 0.0
    ended: Counter[int] = field(default_factory=Counter)
    wrong: Counter[int] = field(default_factory=Counter)
    counts: Counter[str] = field(default_factory=Counter)
    astray: dict[int, Strayed] = field(default_factory=dict)
    latencies: Latencies = field(default_factory=Latencies)
    requests: int = 0
    under_way: float = 0.0
    fault: str = ""
    nodes: int = 0
    missing: tuple[str, ...] = ()

    @property
    def strayed(self) -> Strayed | None:
        """The first run that went astray of the episode that does so most often."""
        shares = {each: self.wrong[each] / self.ended[each] for each in self.astray}
        worst = max(shares, key=lambda each: shares[each], default=None)
        return None if worst is None else replace(self.astray[worst], share=shares[worst])

    def level(self, in_flight: int, memory: int, cores: float) -> LoadLevel:
        """As reports show it; the server's memory in bytes, and the cores that it kept busy, are 0 where they are not known."""
        counts = {name: self.counts[name] for name in ("lost", "crashed", "unanswered", "broken")}
        endpoints = tuple(_endpoint(name, samples) for name, samples in sorted(self.latencies.of.items()))
        return LoadLevel(
            in_flight,
            self.ended.total(),
            round(self.seconds, 3),
            self.wrong.total(),
            **counts,
            memory=memory,
            cores=round(cores, 2),
            endpoints=endpoints,
            nodes=self.nodes,
            missing=self.missing,
        )


def added_up(in_flight: int, parts: Iterable[Driven]) -> Driven:
    """What came of a level whose parts were driven at the same time; its rate is the sum of theirs."""
    whole, rate = Driven(), 0.0
    for part in parts:
        rate += part.ended.total() / part.seconds
        whole.seconds = max(whole.seconds, part.seconds)
        whole.ended += part.ended
        whole.wrong += part.wrong
        whole.counts += part.counts
        whole.astray = {at: replace(one, in_flight=in_flight) for at, one in part.astray.items()} | whole.astray
        whole.latencies.merge(part.latencies.as_json())
        whole.requests += part.requests
        whole.under_way += part.under_way
        whole.fault = whole.fault or part.fault
        whole.nodes += 1
    whole.seconds = whole.ended.total() / rate if rate else whole.seconds
    return whole


def divided(count: int, among: int) -> list[int]:
    """A number in so many parts, as even as they can be, the greater ones first."""
    part, over = divmod(count, among)
    return [part + 1] * over + [part] * (among - over)


def _endpoint(name: str, samples: Samples) -> EndpointLoad:
    kept = sorted(samples.kept)
    p50, p95, p99 = (kept[min(int(part * len(kept)), len(kept) - 1)] for part in (0.5, 0.95, 0.99))
    return EndpointLoad(name, samples.count, p50, p95, p99)
