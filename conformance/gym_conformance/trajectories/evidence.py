"""Telling an effect from noise: the one rule for every verdict that depends on a comparison. Pure.

A comparison makes runs in the form that is suspected (trials) and in the form that is known to be sound (controls), in
a random order. Each run either differs from what is expected or does not. If the form of a run had no influence, every
assignment of forms to runs would have been as likely as the one that was drawn. Counting how many assignments give the
trials at least as many differences is therefore an exact test, whatever the server's noise consists of and however it
drifts.

A run of the suite mistakes noise for a fault at most once in a million runs. Its comparison number i may use 1 / (i (i
+ 1)) of that chance, which adds up to at most 1 however many there are, and each look at the numbers gets its share of
what the comparison may use. docs/evidence.md has the arithmetic.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from math import comb
from random import Random
from typing import Final

#: The chance that a run of the suite mistakes noise for a fault, over all its comparisons.
CHANCE: Final = 1e-6


@dataclass(frozen=True)
class Look:
    """One look at the numbers.

    Attributes:
        trials: how many are added before it.
        controls: how many are added before it.
        share: its share of what the comparison may use of CHANCE.
        hopeless: the comparison ends if chance is still likelier than this.
    """

    trials: int
    controls: int
    share: float
    hopeless: float


#: Nine pairs cannot exclude chance, but can show that there is nothing to find. 17 pairs suffice if each trial differs
#: and no control does. A race that shows once in five times needs the later looks.
LOOKS: Final = (
    Look(9, 9, 0, 0.8),
    Look(8, 8, 1 / 2, 0.6),
    Look(17, 17, 1 / 4, 0.2),
    Look(34, 34, 1 / 8, 0.02),
    Look(68, 68, 1 / 16, 0.001),
    Look(136, 136, 1 / 16, 0),
)

#: The same for trials that cost many times as much as a control: nine trials that all differ suffice.
COSTLY: Final = (
    Look(4, 20, 0, 0.8),
    Look(5, 20, 1 / 2, 0.4),
    Look(9, 40, 1 / 4, 0.1),
    Look(18, 80, 1 / 8, 0.01),
    Look(36, 160, 1 / 8, 0),
)

#: A single look, for trials that wait: nearly all of them must differ.
SEVENTEEN: Final = (Look(17, 17, 1, 0),)


class Decision(Enum):
    """The result of a comparison."""

    OPEN = "not decided yet"
    DIFFERENT = "the trials differ, and chance is excluded"
    ALIKE = "nothing shows that the trials differ"


@dataclass
class Comparison:
    """The trials and controls of one suspicion, look by look.

    Attributes:
        looks: when to look.
        number: the number of this comparison within the run, from 1; to be set before the first look is recorded.
        decision: the result so far.
        trials: for each look, how many trials differed.
        controls: for each look, how many controls differed.
        draw: draws the order.
    """

    looks: Sequence[Look] = LOOKS
    number: int = 0
    decision: Decision = Decision.OPEN
    trials: list[int] = field(default_factory=list)
    controls: list[int] = field(default_factory=list)
    draw: Random = field(default_factory=Random, repr=False)

    def order(self) -> list[bool]:
        """The runs that the next look needs, in order: True for a trial, False for a control."""
        look = self.looks[len(self.trials)]
        forms = [True] * look.trials + [False] * look.controls
        self.draw.shuffle(forms)
        return forms

    def record(self, forms: Sequence[bool], differed: Sequence[bool]) -> None:
        """Record the results of the runs of `order`, and decide."""
        look = self.looks[len(self.trials)]
        self.trials.append(sum(differs for form, differs in zip(forms, differed, strict=True) if form))
        self.controls.append(sum(differs for form, differs in zip(forms, differed, strict=True) if not form))
        chance = self.chance
        if chance <= allowed(self.number) * look.share:
            self.decision = Decision.DIFFERENT
        elif chance > look.hopeless or len(self.trials) == len(self.looks):
            self.decision = Decision.ALIKE

    @property
    def chance(self) -> float:
        """The chance of this many differing trials if the form of a run has no influence."""
        return chance_of(list(zip(self.done, self.trials, self.controls, strict=True)))

    @property
    def is_noise(self) -> bool:
        """Whether it is over, and each control differed."""
        return bool(self.trials) and sum(self.controls) == sum(look.controls for look in self.done)

    @property
    def done(self) -> Sequence[Look]:
        """The looks made so far."""
        return self.looks[: len(self.trials)]

    def __str__(self) -> str:
        if not self.trials:
            return "not even the first look was over" if self.decision is Decision.OPEN else "each control differs"
        trials = f"{sum(self.trials)} of {sum(look.trials for look in self.done)} trials differed"
        return f"{trials}, and {sum(self.controls)} of {sum(look.controls for look in self.done)} controls"


def allowed(number: int) -> float:
    """The part of CHANCE that this comparison of a run may use; all of them together use at most all of it."""
    return CHANCE / (number * (number + 1))


def chance_of(looks: Sequence[tuple[Look, int, int]]) -> float:
    """The exact chance that at least this many trials differ over all looks, if their form has no influence.

    Args:
        looks: each with the number of its trials that differed, and of its controls; within a look, every order of
            trials and controls was equally likely.
    """
    ways = [1]  # the number of orders, by the number of trials that differ
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
    """The same for a part of a look's runs, in the order drawn."""
    made = Look(sum(forms), len(forms) - sum(forms), 0, 0)
    trials = sum(form and differs for form, differs in zip(forms, differed, strict=True))
    return chance_of([(made, trials, sum(differed) - trials)])
