"""Latency is a few numbers, however many requests there were, and whichever process sent them."""

import json

from gym_conformance.reports.endpoint_latency import Latency
from gym_conformance.session.latencies import ENDPOINTS, KEPT, OTHERS, Latencies, Samples


def samples(*seconds: float) -> Samples:
    made = Samples()
    for each in seconds:
        made.add(each)
    return made


def test_few_are_all_kept() -> None:
    latency = Latency.of("POST /verify", samples(0.3, 0.1, 0.2))
    assert latency.seconds == (0.1, 0.2, 0.3)
    assert latency.as_json() == {
        "endpoint": "POST /verify",
        "count": 3,
        "median_ms": 200.0,
        "p95_ms": 300.0,
        "max_ms": 300.0,
        "seconds": [0.1, 0.2, 0.3],
    }


def test_of_many_a_fair_choice_the_count_and_the_slowest() -> None:
    made = samples(9.0, *(number / 10_000 for number in range(10_000)))
    latency = Latency.of("POST /verify", made)
    assert latency.requests == made.count == 10_001
    assert KEPT <= len(latency.seconds) <= KEPT + 1
    assert latency.quantile(1) == 9.0
    assert 0.4 < latency.quantile(0.5) < 0.6


def test_processes_are_put_together() -> None:
    here, there = Latencies(), Latencies()
    for number in range(3_000):
        here.add("POST /verify", 0.1)
        there.add("POST /verify", 0.3 if number else 5.0)
    there.add("GET /", 0.01)
    here.merge(json.loads(json.dumps(there.as_json())))
    together = here.of["POST /verify"]
    assert (together.count, together.slowest, len(together.kept)) == (6_000, 5.0, KEPT)
    assert 0.4 < sum(each < 0.2 for each in together.kept) / KEPT < 0.6
    assert here.of["GET /"].count == 1


def test_endpoints_without_end_share_a_place() -> None:
    made = Latencies()
    for number in range(3 * ENDPOINTS):
        made.add(f"POST /tool_{number}", 0.1)
    assert len(made.of) == ENDPOINTS + 1
    assert made.of[OTHERS].count == 2 * ENDPOINTS
