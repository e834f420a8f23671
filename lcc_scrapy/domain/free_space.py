"""Room on disks: when to begin nothing new, and when to give up the reserve. Sizes in bytes."""

from dataclasses import dataclass

TIGHT = 1_000_000
"""Free space that counts as none: the next commit may need more."""

MARGIN = 0.25
"""Share of the floor that has to be free beyond it before work goes on, so that it does not stutter."""


@dataclass(frozen=True, slots=True)
class Reserve:
    """``floor`` is to stay free, ``ballast`` lies in a file that can be given up; 0 = none."""

    floor: int
    ballast: int

    def wanted(self, *, resting: bool) -> int:
        """Return the free space from which on work may go on."""
        return self.floor + int(MARGIN * self.floor) if resting else self.floor

    def gives_up(self, free: int, *, full: bool) -> bool:
        """Tell whether the ballast has to go; ``full``: something found no room."""
        return bool(self.ballast) and (full or free < min(TIGHT, self.ballast))

    def renews(self, free: int) -> bool:
        """Tell whether there is room for a ballast, and for work beside it."""
        return bool(self.ballast) and free >= self.ballast + max(TIGHT, self.wanted(resting=True))
