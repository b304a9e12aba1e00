"""Names of ids, and names of what sound servers share between sessions."""

import pytest

from gym_conformance.trajectories.names_of_ids import ends_in_id
from gym_conformance.trials.before_and_after import by_design


@pytest.mark.parametrize(
    "name", ["id", "ID", "order_id", "orderId", "orderID", "orderid", "ORDERID", "jobid", "taskid"]
)
def test_a_name_whose_last_word_is_an_id_ends_in_one(name: str) -> None:
    assert ends_in_id(name)


@pytest.mark.parametrize("name", ["paid", "isPaid", "amount_paid", "valid", "grid", "highest_bid", "VOID", "idle", ""])
def test_a_word_that_only_ends_like_one_does_not(name: str) -> None:
    assert not ends_in_id(name)


@pytest.mark.parametrize(
    "place",
    [(2, "body", "orderid"), (2, "body", "ids", 0), (2, "body", "orders", 1, "updated_at"), (0, "body", "sessions")],
)
def test_running_ids_times_and_counts_are_shared_by_design(place: tuple[str | int, ...]) -> None:
    assert by_design(place, 7, 8)


@pytest.mark.parametrize(
    "place", [(2, "body", "grid", 0), (2, "body", "best_bid"), (2, "body", "clients", 0, "balance")]
)
def test_what_the_world_holds_is_not(place: tuple[str | int, ...]) -> None:
    assert not by_design(place, 7, 8)


def test_of_flags_only_those_of_a_cache_are() -> None:
    assert by_design((2, "body", "cached"), False, True)
    assert not by_design((2, "body", "overtime"), False, True)
    assert not by_design((2, "body", "id_checked_by_date"), False, True)
