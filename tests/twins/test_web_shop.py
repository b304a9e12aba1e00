"""A shop whose cart is emptied by a checkout, with a quantity that may be left out: nothing is recorded."""

from dataclasses import dataclass, field

import pytest

from gym_conformance.dataset import Dataset
from gym_conformance.scouting.learn import find
from gym_mocks.resources import ResourcesServer
from gym_mocks.wire import HttpRefusal
from tests.twins.judging import judge, on_gym, telling
from tests.twins.twin import said_by_users

_STOCK = {"runner": 9, "beanie": 4}


@dataclass
class Visit:
    """One session."""

    stock: dict[str, int]
    adds_first: bool
    cart: dict[str, int] = field(default_factory=dict)

    def add(self, product: str, quantity: int) -> None:
        if product not in _STOCK:
            raise HttpRefusal(400, "there is no such product")
        before = self.cart.get(product, 0)
        if self.adds_first:
            self.cart[product] = before + quantity
        if not 1 <= quantity <= self.stock[product]:
            raise HttpRefusal(400, "there are not so many")
        self.cart[product] = before + quantity

    def remove(self, product: str) -> None:
        if product not in self.cart:
            raise HttpRefusal(400, "it is not in the cart")
        del self.cart[product]

    def checkout(self) -> int:
        if not self.cart:
            raise HttpRefusal(400, "the cart is empty")
        for product, quantity in self.cart.items():
            self.stock[product] -= quantity
        ordered, self.cart = sum(self.cart.values()), {}
        return ordered


def _shop(habit: str) -> ResourcesServer:
    for_all = dict(_STOCK)

    def visit() -> Visit:
        stock = for_all if habit == "sells for all" else dict(_STOCK)
        return Visit(stock, adds_first=habit == "adds what it refuses")

    def find_product(state: Visit, query: str) -> dict[str, list[dict[str, object]]]:
        """Find products."""
        return {"found": [{"product": name, "left": left} for name, left in state.stock.items() if name == query]}

    def add(state: Visit, product: str, quantity: int = 1) -> dict[str, dict[str, int]]:
        """Put something into the cart."""
        state.add(product, quantity)
        return {"cart": state.cart}

    def remove(state: Visit, product: str) -> dict[str, dict[str, int]]:
        """Take something out of the cart."""
        state.remove(product)
        return {"cart": state.cart}

    def checkout(state: Visit) -> dict[str, int]:
        """Order what is in the cart."""
        return {"ordered": state.checkout()}

    return ResourcesServer("shop", tools=[find_product, add, remove, checkout], verify=lambda: 0.0, state=visit)


def _rows(server: ResourcesServer) -> Dataset:
    said = ("Order a 'runner' for me.", "I need a 'beanie'.")
    return said_by_users(said, server.declarations)


@pytest.mark.parametrize(
    ("habit", "told"),
    [
        ("sells its own", set()),
        ("sells for all", {"isolation-earlier"}),
        ("adds what it refuses", {"calls-refused-harmless"}),
    ],
)
def test_what_becomes_of_carts_and_stocks_is_told(habit: str, told: set[str]) -> None:
    server = _shop(habit)
    checks = {"isolation-earlier", "calls-refused-harmless", "calls-valid"}
    assert telling(judge(server, _rows(server), checks=checks)) == told


def test_what_was_added_is_removed_before_a_checkout_takes_it() -> None:
    server = _shop("sells its own")
    found = on_gym(server, find, _rows(server))
    names = [call.name for call in found.taken[0].calls]
    assert names[: names.index("checkout")] == ["find_product", "add", "remove", "add"]
