"""Interfaces of what the UNS needs from the rest of the LCC; ``app.wiring`` chooses what implements them."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from twisted.internet.defer import Deferred

from lcc_scrapy.domain import timeslots
from lcc_scrapy.domain.entries import RefusedUrl
from lcc_scrapy.domain.roots import Root
from lcc_scrapy.wire.messages import InitAccepted


@dataclass(frozen=True, slots=True)
class Login:
    """A provider that has been let in, with all that its set is checked against."""

    pid: int
    accepted: InitAccepted
    roots: tuple[Root, ...]
    timeofday: str = timeslots.ALWAYS
    """The provider's own mask."""
    slots: int = timeslots.HOURS_PER_WEEK
    """Hours in a mask of this LCC, 24 or 168."""
    fullsets_left: int | None = None
    """Full sets that may still come unasked; None = no limit."""
    fullsets_charged: int = 0
    """Counted full sets that this UNS had accepted from this provider before."""
    empty: bool = False
    """Nothing is known of this provider's site yet: its full set is not counted."""
    counted_sets: frozenset[str] = frozenset()
    """Ids of full sets that were counted already; the same one again is not refused with 202."""
    errors_upto: int = 0
    """Highest row id among the reported errors; ``logout`` forgets up to it."""

    @property
    def full_set_is_free(self) -> bool:
        """Whether a full set that comes now is not counted."""
        return self.empty or self.accepted.quota.fullset_wanted

    @property
    def seq(self) -> int:
        """Number of this login; sets of one provider are taken in the order of it."""
        return self.accepted.seq


@dataclass(frozen=True, slots=True)
class DryRun:
    """What a set would do to the documents of its provider: remove some, or have their removal held."""

    would_remove: int
    would_hold: int = 0


class LoginService(Protocol):
    """Knows the providers. All failures come through the Deferreds."""

    def login(self, provider_id: str, password: str, ip: str) -> Deferred[Login]:
        """Let a provider in and count the login.

        Fails with ``Refusal`` (101, 102, 103) or ``StoreUnavailable`` (answered as 103).
        """

    def logout(self, login: Login, refused: int = 0) -> Deferred[None]:
        """The provider has got the whole answer: forget the errors it was told (``errors_upto``)."""

    def note_refused(self, login: Login, refused: Sequence[RefusedUrl]) -> Deferred[None]:
        """Keep why these URLs of a set were refused, for `lcc explain`; only the newest of a provider."""

    def dry_run(self, login: Login, spooled: Path) -> Deferred[DryRun]:
        """Tell what the set in ``spooled`` would remove.

        The file is complete, but neither synced nor accepted; it is deleted when the Deferred fires.
        """


class Resources(Protocol):
    """What this process has to work with: room on its disks, descriptors."""

    @property
    def short(self) -> bool:
        """Tell whether nothing new should be begun now."""

    def notice(self, error: BaseException) -> None:
        """Take note of an error that may come from a want of them; does not return when the disk failed."""


class Unlimited:
    """Resources without a limit."""

    short = False

    def notice(self, error: BaseException) -> None:
        """Do nothing about it."""


UNLIMITED = Unlimited()


class AcceptedSets(Protocol):
    """Where accepted sets are picked up. Both calls return at once and do not raise."""

    def set_arrived(self, path: Path) -> None:
        """A set is on disk and was accepted."""

    def no_set_came(self, pid: int, seq: int) -> None:
        """A login can bring no set any more: those of later ones need not wait for it."""
