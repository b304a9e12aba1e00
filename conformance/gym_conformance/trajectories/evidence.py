"""Telling what a trial does from noise: the one rule for every verdict that rests on a comparison. Pure.

What is compared is run again and again, in the form that is suspected (a trial) and in the form that is known to be
sound (a control), in an order that is drawn at random. Each run either differs from what is expected or does not. If
the form of a run had no influence, every assignment of the forms to the runs would have been as likely as the one
that was drawn: how many of them give the trials at least as many differences is an exact test, whatever the server's
noise is made of, and however it drifts.

A run of the suite mistakes noise for a fault at most once in a million times. Its comparison number i may use 1 / (i (i + 1))
of that, which adds up to 1 however many there are; and each look at the numbers has its share of what the comparison
may use. docs/evidence.md has the arithmetic.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from math import comb
from random import Random
from typing import Final

#: How likely it may be that a run of the suite takes noise for a fault, all its comparisons counted.
CHANCE: Final = 1e-6


@dataclass(frozen=True)
class Look:
    """One look at the numbers.

    Attributes:
        trials: how many are added before it.
        controls: how many are added before it.
        share: its share of the part of CHANCE that the comparison may use.
        hopeless: nothing more is tried if chance is still likelier than this.
    """

    trials: int
    controls: int
    share: float
    hopeless: float


#: Nine pairs cannot exclude chance, but show that there is nothing to exclude; 17 that differ each time, and only in
#: the trials, are enough; a race that shows once in five times needs the later looks.
LOOKS: Final = (
    Look(9, 9, 0, 0.8),
    Look(8, 8, 1 / 2, 0.6),
    Look(17, 17, 1 / 4, 0.2),
    Look(34, 34, 1 / 8, 0.02),
    Look(68, 68, 1 / 16, 0.001),
    Look(136, 136, 1 / 16, 0),
)

#: The same if a trial costs many times as much as a control: nine trials that differ each time are enough.
COSTLY: Final = (
    Look(4, 20, 0, 0.8),
    Look(5, 20, 1 / 2, 0.4),
    Look(9, 40, 1 / 4, 0.1),
    Look(18, 80, 1 / 8, 0.01),
    Look(36, 160, 1 / 8, 0),
)

#: One look, for what waits: nearly all of the trials differ, or nothing is said.
SEVENTEEN: Final = (Look(17, 17, 1, 0),)


class Decision(Enum):
    """The result of a comparison."""

    OPEN = "not decided yet"
    DIFFERENT = "the trials differ, and chance is excluded"
    ALIKE = "nothing shows that the trials differ"


@dataclass
class Comparison:
    """Trials and controls of one suspicion, look by look.

    Attributes:
        number: which comparison of the run this is, from 1.
        looks: when to look.
        decision: what it has come to.
        trials: of each look, how many trials differed.
        controls: of each look, how many controls did.
        draw: draws the order.
    """

    number: int
    looks: Sequence[Look] = LOOKS
    decision: Decision = Decision.OPEN
    trials: list[int] = field(default_factory=list)
    controls: list[int] = field(default_factory=list)
    draw: Random = field(default_factory=Random, repr=False)

    def order(self) -> list[bool]:
        """Which runs the next look needs, in their order: True for a trial, False for a control."""
        look = self.looks[len(self.trials)]
        forms = [True] * look.trials + [False] * look.controls
        self.draw.shuffle(forms)
        return forms

    def record(self, forms: Sequence[bool], differed: Sequence[bool]) -> None:
        """Take in the results of the runs of `order`, and look."""
        look = self.looks[len(self.trials)]
        self.trials.append(sum(came for form, came in zip(forms, differed, strict=True) if form))
        self.controls.append(sum(came for form, came in zip(forms, differed, strict=True) if not form))
        chance = self.chance
        if chance <= allowed(self.number) * look.share:
            self.decision = Decision.DIFFERENT
        elif chance > look.hopeless or len(self.trials) == len(self.looks):
            self.decision = Decision.ALIKE

    @property
    def chance(self) -> float:
        """How likely so many differing trials are where the form of a run has no influence."""
        return chance_of(list(zip(self.done, self.trials, self.controls, strict=True)))

    @property
    def done(self) -> Sequence[Look]:
        """The looks that were made."""
        return self.looks[: len(self.trials)]

    def __str__(self) -> str:
        if not self.trials:
            return "not even the first look was over"
        trials = f"{sum(self.trials)} of {sum(look.trials for look in self.done)} trials differed"
        return f"{trials}, and {sum(self.controls)} of {sum(look.controls for look in self.done)} controls"


def allowed(number: int) -> float:
    """What comparison number `number` of a run may use of CHANCE: together they use no more than all of it."""
    return CHANCE / (number * (number + 1))


def chance_of(looks: Sequence[tuple[Look, int, int]]) -> float:
    """The exact chance that the trials of all looks differ at least so often in all, if their form has no influence.

    Args:
        looks: each with the number of its trials that differed, and of its controls; within a look every order of
            trials and controls was as likely.
    """
    ways = [1]  # by the number of trials that differ, in how many of the orders
    for look, trials, controls in looks:
        differed, all_runs = trials + controls, look.trials + look.controls
        here = [comb(differed, each) * comb(all_runs - differed, look.trials - each) for each in range(look.trials + 1)]
        ways = [
            sum(ways[at - each] * here[each] for each in range(max(0, at - len(ways) + 1), min(at, look.trials) + 1))
            for at in range(len(ways) + look.trials)
        ]
    least = sum(trials for _, trials, _ in looks)
    return sum(ways[least:]) / sum(ways)


def chance_so_far(forms: Sequence[bool], differed: Sequence[bool]) -> float:
    """The same for some of a look's runs, trials and controls as they were drawn."""
    made = Look(sum(forms), len(forms) - sum(forms), 0, 0)
    told = sum(form and came for form, came in zip(forms, differed, strict=True))
    return chance_of([(made, told, sum(differed) - told)])
