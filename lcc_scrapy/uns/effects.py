"""Effects: what the session orders. ``protocol`` carries them out in this order and decides nothing."""

from dataclasses import dataclass, field

from lcc_scrapy.domain.entries import RefusedUrl, UrlEntry
from lcc_scrapy.domain.runs import EntryRun
from lcc_scrapy.wire.messages import Init, SetStart, UrlRun


@dataclass(frozen=True, slots=True)
class Write:
    """Send bytes to the provider."""

    data: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class Authenticate:
    """Ask the login service; answered with ``LoginGranted`` or ``LoginRefused``."""

    init: Init


@dataclass(frozen=True, slots=True)
class OpenSet:
    """Begin a spool file; a failure is answered with ``SpoolFailed``, here and in all that follows."""

    start: SetStart


@dataclass(frozen=True, slots=True)
class Record:
    """Append an entry to the spool file."""

    entry: UrlEntry


@dataclass(frozen=True, slots=True)
class RecordRun:
    """Append a run of entries to the spool file."""

    run: EntryRun


@dataclass(frozen=True, slots=True)
class TakeOneByOne:
    """Let the URLs of a run come one by one, before all else that the provider said."""

    run: UrlRun


@dataclass(frozen=True, slots=True)
class CommitSet:
    """Make the spool file durable; answered with ``SetStored`` or ``SpoolFailed``."""

    unreadable: int
    """Refused URLs of which not even the key could be read."""


@dataclass(frozen=True, slots=True)
class CountSet:
    """Dry run: ask about the finished file, drop it; ``SetCounted`` or ``SpoolFailed`` answer."""

    unreadable: int


@dataclass(frozen=True, slots=True)
class NoteRefused:
    """Let the login service keep why URLs of the set that was just accepted were refused."""

    refused: tuple[RefusedUrl, ...]


@dataclass(frozen=True, slots=True)
class DropSet:
    """Remove the unfinished spool file."""


@dataclass(frozen=True, slots=True)
class HalfClose:
    """All is said: close our side, read and discard the rest within the limits."""


@dataclass(frozen=True, slots=True)
class Close:
    """Close the connection after what was written has gone out."""


Effect = (
    Write | Authenticate | OpenSet | Record | RecordRun | TakeOneByOne
    | CommitSet | CountSet | NoteRefused | DropSet | HalfClose | Close
)  # fmt: skip
