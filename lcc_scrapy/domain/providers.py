"""Providers: who may push, how much, how fast and when (seed 001 "Provider information", table ``pidb``)."""

from dataclasses import dataclass
from enum import StrEnum

from lcc_scrapy.domain.timeslots import ALWAYS

TOO_MANY_FILES = 609
TOO_MUCH_SPACE = 610

FIRST_PID = 1_000_000
"""Registration gives out pids from here on; those below are the operator's alone."""

PIDS = "registered"
"""The counter of pids that registration has given out, from ``FIRST_PID`` on."""

FRONT_FIRST_PID = 1_000_000_000
"""Registration at a front gives out pids from here on: no LCC behind it counts so far by itself."""

FRONT_PIDS = "registered-at-front"
"""The counter of pids that a front has given out to this LCC, from ``FRONT_FIRST_PID`` on."""


class State(StrEnum):
    """What a provider may do: *active* and *paused* ones log in, only *active* ones are fetched from."""

    PENDING = "pending"
    ACTIVE = "active"
    PAUSED = "paused"
    """May push; nothing is fetched until resumed."""
    DISABLED = "disabled"
    MOVING = "moving"
    """Is to go to another sub-LCC: what is under way ends, and nothing else begins (``front/moving.py``)."""
    IN_TRANSIT = "in transit"
    """Its rows are copied to another sub-LCC: for all that write, there is no such provider."""


class Wanted(StrEnum):
    """Why a full set is wanted, by rising gravity; the empty text means that none is (seed 003 section 5).

    An operator may give a reason in other words; such a one is graver than none, and no graver than any.
    """

    NO = ""
    OLD_FILES = "old files"
    EXPIRED_FILES = "expired files"
    CACHE_CRASH = "cache crash"


class Orphans(StrEnum):
    """What becomes of documents that spiders found, when no way along links leads to them any more."""

    KEEP = "keep"
    """They stay, and are visited as all others."""
    CONFIRM = "confirm"
    """They stay, and are not visited; their removal waits for the operator."""
    REMOVE = "remove"
    """They are removed, unless they are too many."""


REASON_MAX = 32
"""Characters of a reason why a full set is wanted."""


def checked_reason(text: str) -> str:
    """Return a reason why a full set is wanted as it is told; raises ``ValueError``."""
    if len(text) > REASON_MAX or not (text.isascii() and (not text or text.isprintable())):
        raise ValueError(f"expected at most {REASON_MAX} ASCII characters")
    return text.strip()


def gravity(reason: str) -> float:
    """Return a number that is higher for a graver reason to want a full set."""
    order: list[str] = list(Wanted)
    return order.index(reason) if reason in order else 0.5


def graver(standing: str, reason: str) -> str:
    """Return the reason to tell a provider when another one comes to that which stands: the graver one."""
    return str(max(reason, standing, key=gravity))


class Render(StrEnum):
    """Whether a browser renders the pages of a provider."""

    NEVER = ""
    YES = "yes"
    ENDED = "ended"
    """Not any more: each rendition goes with the next fetch of its page."""


AT_ONCE_MAX = 64
"""Fetches at a time that a provider may permit."""


@dataclass(frozen=True, slots=True)
class Provider:
    """One row of ``pidb``. Limits of 0 mean "no limit"; ``fullsetsallowed`` None = unlimited, 0 = none."""

    pid: int
    password: str
    filesmax: int = 0
    spacemax: int = 0
    fullsetsallowed: int | None = None
    bandwidth: int = 0
    timeofday: str = ALWAYS
    priority: int = 0
    fileused: int = 0
    spaceused: int = 0
    lastconnseq: int = 0
    lastconnip: str = ""
    nurlerrs: int = 0
    nurlproc: int = 0
    name: str = ""
    contact: str = ""
    state: str = State.ACTIVE
    timezone: str = ""
    fullsetwanted: str = Wanted.NO
    turngroup: str = ""
    allowprivate: bool = False
    ignorerobots: bool = False
    strictmtime: bool = False
    declared: str = ""
    fullsetsused: int = 0
    fullsetsince: int = 0
    removedsince: int = 0
    removed: int = 0
    created: int = 0
    lastconntime: int = 0
    revision: int = 0
    wantedseq: int = 0
    """Its last login when the full set was wanted: only one that is sent after it fulfils the request."""
    confirmed: int = 0
    """When it last logged in while no full set was wanted, which confirms all its documents."""
    heldremovals: int = 0
    narrowing: bool = False
    """Its roots were changed, and not all documents have been looked at since."""
    revisit: str = ""
    """Its bounds for adaptive revisits, as ``revisits.Bounds`` writes them; empty = those of all others."""
    fallback: float = 0.0
    """The share of changes that it may miss to push before its documents are visited as well; 0 = any."""
    fallingback: bool = False
    """It missed more, and is visited."""
    countedsince: int = 0
    """Since when its pushed changes are counted; 0 = since it was registered."""
    mimetypes: str = ""
    """Patterns of the types that its documents may have, blanks between them; empty = those of all others."""

    orphans: str = Orphans.KEEP
    atonce: int = 1
    """How many of its URLs may be fetched at a time."""

    render: str = Render.NEVER
    """Whether a browser renders its pages."""

    mismatched: int = 0
    """Its last tries in a row that brought something else than it declared; see ``domain/convergence.py``."""

    @property
    def turnkey(self) -> str:
        """The key of the turn in which it is fetched from: its group's, or its own."""
        return self.turngroup or str(self.pid)

    def accepted_types(self, others: tuple[str, ...]) -> tuple[str, ...]:
        """Return the patterns of accepted types; ``others`` are those of providers without their own."""
        return tuple(self.mimetypes.split()) or others

    def fullsets_left(self, now: float, period: float) -> int | None:
        """Return how many unsolicited full sets may still come in this period; None = unlimited."""
        if self.fullsetsallowed is None:
            return None
        used = self.fullsetsused if now - self.fullsetsince < period else 0
        return max(0, self.fullsetsallowed - used)


def quota_refusal(provider: Provider, files: int, space: int, before: int | None, length: int) -> int:
    """Return 609 or 610 when a body of ``length`` bytes does not fit, 0 when it is to be stored.

    ``files`` and ``space`` (bytes) are in use now; ``before`` is the length of the copy that the body
    replaces, None for a new document. What does not make usage grow always fits, also over the quota.
    """
    if before is None and provider.filesmax and files >= provider.filesmax:
        return TOO_MANY_FILES
    growth = length - (before or 0)
    return TOO_MUCH_SPACE if provider.spacemax and growth > 0 and space + growth > provider.spacemax else 0
