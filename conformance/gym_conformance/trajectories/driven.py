"""Results of driving many episodes concurrently, in one process or several at the same time. Values only."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from gym_conformance.findings import EndpointLoad, LoadLevel
from gym_conformance.session.exchange import Exchange
from gym_conformance.session.latencies import Latencies, Samples
from gym_conformance.trajectories.outcome import Difference


@dataclass(frozen=True)
class Strayed:
    """An episode that went differently than it does alone: the difference, and the exchanges.

    `in_flight` is how many episodes ran concurrently, `episode` its index among those that are driven, and `share` the
    share of its runs that went astray.
    """

    in_flight: int
    episode: int
    difference: Difference
    exchanges: tuple[Exchange, ...]
    share: float = 0.0


@dataclass
class Driven:
    """The results of one level of load.

    Attributes:
        seconds: from the first episode to the last.
        ended: by episode index, how often it ended.
        wrong: by episode index, how often it differed from its run alone.
        counts: how many episodes were `lost`, `crashed`, `unanswered` or `broken`; see `LoadLevel`.
        astray: by episode index, its first run that went astray.
        latencies: how long replies took.
        requests: how many were sent.
        under_way: seconds for which requests were in flight.
        fault: why a reply failed to come, the first time.
        nodes: how many cluster nodes drove the load; 0 if this process did.
        missing: nodes whose results are missing, and why.
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
        """The first stray run of the episode that goes astray most often."""
        shares = {each: self.wrong[each] / self.ended[each] for each in self.astray}
        worst = max(shares, key=lambda each: shares[each], default=None)
        return None if worst is None else replace(self.astray[worst], share=shares[worst])

    def level(self, in_flight: int, memory: int, cores: float) -> LoadLevel:
        """The level for reports; the server's memory, in bytes, and the cores it kept busy are 0 if unknown."""
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
    """The results of a level whose parts were driven at the same time; its rate is the sum of theirs."""
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
    """Divide a number into `among` parts, as even as possible, the larger ones first."""
    part, over = divmod(count, among)
    return [part + 1] * over + [part] * (among - over)


def _endpoint(name: str, samples: Samples) -> EndpointLoad:
    kept = sorted(samples.kept)
    p50, p95, p99 = (kept[min(int(part * len(kept)), len(kept) - 1)] for part in (0.5, 0.95, 0.99))
    return EndpointLoad(name, samples.count, p50, p95, p99)
