import re
from collections import Counter
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from gym_mocks.resources import Score, TaskRow, last_text
from gym_mocks.resources.models import Arguments

Category = Literal["fruit", "tool", "book"]
StockPlace = Literal["shelf", "van"]
ItemName = Annotated[str, Field(min_length=1, max_length=40)]
Quantity = Annotated[int, Field(ge=1, le=999)]


class Amount(Arguments):
    """So many pieces of an item."""

    item: ItemName
    quantity: Quantity


class StockLine(BaseModel):
    """One line of a stock list."""

    model_config = ConfigDict(defer_build=True)

    item: str
    category: Category
    place: StockPlace
    quantity: int


Pieces = Counter[tuple[str, Category, StockPlace]]


@dataclass
class Stock:
    """What a session's stockroom holds.

    Attributes:
        pieces: how many of (item, category, place); never below 1.
        reads: how often the policy has looked.
    """

    pieces: Pieces = field(default_factory=Counter)
    reads: int = 0

    @property
    def lines(self) -> list[StockLine]:
        """The stock list, sorted."""
        return [
            StockLine(item=item, category=category, place=place, quantity=quantity)
            for (item, category, place), quantity in sorted(self.pieces.items())
        ]


class Seed(BaseModel):
    """What a row's seed says; a seed that says nothing opens an empty stockroom."""

    model_config = ConfigDict(defer_build=True)

    stock: list[StockLine] = []


class StockRow(TaskRow):
    """A row of the dataset."""

    expected_stock: list[StockLine]
    expected_answer: int


def open_stock(row: Seed) -> Stock:
    """The stockroom as a row starts it."""
    return Stock(_counted(row.stock))


def add_stock(state: Stock, amount: Amount, category: Category, place: StockPlace) -> dict[str, int]:
    """Put pieces of an item into a place; says how many of it are there now."""
    key = (amount.item, category, place)
    state.pieces[key] += amount.quantity
    return {"quantity": state.pieces[key]}


def move_stock(state: Stock, amount: Amount, origin: StockPlace, destination: StockPlace) -> dict[str, bool | str]:
    """Move pieces of an item from one place to another."""
    held = [(key, count) for key, count in sorted(state.pieces.items()) if key[::2] == (amount.item, origin)]
    if sum(count for _, count in held) < amount.quantity:
        return {"moved": False, "error": f"there are not so many pieces in the {origin}"}
    left = amount.quantity
    for (item, category, place), count in held:
        taken = min(left, count)
        state.pieces[item, category, place] -= taken
        state.pieces[item, category, destination] += taken
        left -= taken
    state.pieces = +state.pieces
    return {"moved": True}


def count_stock(state: Stock, item: ItemName, place: StockPlace | None) -> dict[str, int]:
    """Count the pieces of an item in one place, or in all where the place is null."""
    state.reads += 1
    places = {place} if place else {"shelf", "van"}
    counts = (n for (name, _, where), n in state.pieces.items() if name == item and where in places)
    return {"quantity": sum(counts)}


def list_stock(state: Stock, category: Category | None) -> dict[str, list[StockLine]]:
    """List the stock of one category, or all of it where the category is null."""
    state.reads += 1
    return {"lines": [line for line in state.lines if category in {None, line.category}]}


def verify(state: Stock, row: StockRow, response: dict[str, Any]) -> Score:
    """Half for the stock as it should be, half for the right number from a policy that has looked it up."""
    stocked = state.pieces == _counted(row.expected_stock)
    numbers = re.findall(r"-?\d{1,9}(?:\.\d{1,9})?", last_text(response["output"]))
    answered = state.reads > 0 and [float(number) for number in numbers[-1:]] == [row.expected_answer]
    return Score.summed({"stock": 0.5 * stocked, "answer": 0.5 * answered})


def _counted(lines: list[StockLine]) -> Pieces:
    pieces: Pieces = Counter()
    for line in lines:
        pieces[line.item, line.category, line.place] += line.quantity
    return pieces
