"""How much a search tries: the profiles of `--gym-profile`. It imports nothing, because every pytest run loads it."""

from dataclasses import dataclass, replace
from typing import Final


@dataclass(frozen=True)
class Profile:
    """How much is tried.

    Attributes:
        name: its name in `--gym-profile`.
        examples: about how many are tried for each property.
        seconds: after this long no new example begins, and after as long again no more shrinking of one that was found.
        floor: this many examples are tried however long they take, up to `patience` seconds.
        derandomize: whether the examples are the same each time.
        quiet: a search ends once this many examples in a row brought nothing new; 0 for never.
        relaunches: whether a server that the suite launched is relaunched even without a suspicion, however long that
            takes.
    """

    name: str
    examples: int
    seconds: float
    floor: int = 0
    derandomize: bool = False
    quiet: int = 0
    relaunches: bool = False

    @property
    def patience(self) -> float:
        """Seconds in which a search must reach its floor."""
        return max(PATIENCE * self.seconds, LEAST_PATIENCE)

    @property
    def enough(self) -> str:
        """What to use if this profile tried too little."""
        longer = next((one.name for one in PROFILES.values() if one.seconds > self.seconds), "")
        return f"--gym-profile {longer}" if longer else "a faster server"


#: tests/twins/test_properties.py finds its faults with the same `quiet`; benchmarks/until_found.py shows how early.
QUICK: Final = Profile("quick", 200, 1.0, floor=8, quiet=10)

PROFILES: Final = {
    profile.name: profile
    for profile in (
        Profile("smoke", 8, 0.1, floor=2),
        QUICK,
        Profile("ci", 500, 10.0, floor=40, derandomize=True, relaunches=True),
        Profile("thorough", 3000, 300.0, floor=200, relaunches=True),
    )
}


#: A verdict must not depend on the load of the machine: to reach its floor, a search may take this many times its
#: seconds, and at least this many seconds.
PATIENCE, LEAST_PATIENCE = 10.0, 10.0


@dataclass(frozen=True)
class Search:
    """How to search: the profile, and the seed if the user gave one."""

    profile: Profile = QUICK
    seed: int | None = None

    def divided(self, size: int) -> "Search":
        """The same search if each example is a batch of `size`."""
        examples, floor = -(-self.profile.examples // size), -(-self.profile.floor // size)
        return replace(self, profile=replace(self.profile, examples=examples, floor=floor))


USUAL: Final = Search()
