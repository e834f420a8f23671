"""Sources: what a site publishes of its changes, for providers that do not push.

A source is a tree of *files*: a sitemap, or an index and the sitemaps that it names. Each file lists URLs,
and what says when they changed. What differs from what was listed before is submitted as a set of the
provider.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from hashlib import blake2b

from lcc_scrapy.domain.roots import URL_MAX

MOST_ENTRIES = 50_000
"""Entries of one file, as the Sitemaps protocol and ResourceSync have it; those behind are not read."""

MOST_FILES = 1000
"""Files of one source; an index that names more is read as far as this."""

TEXT_MAX = 4 * URL_MAX
"""Characters of a text in a file that are looked at."""

KEY_MAX = 512
"""Characters of a name of a Redis key."""

ETAG_MAX = 255
MODIFIED_MAX = 64
ERROR_MAX = 255
LEAST_EVERY = 60
"""Seconds between two runs of a source at least."""

LEAST_EVERY_OF_REDIS = 1
"""The same of a Redis key: a look costs two commits and disturbs no site."""

CLAIM = 60
"""Seconds for which a process has a source to itself; it claims it anew while it runs it."""


class Kind(StrEnum):
    """How a source tells of changes."""

    SITEMAP = "sitemap"
    FEED = "feed"
    RESOURCESYNC = "resourcesync"
    WEBSUB = "websub"
    REDIS = "redis"
    """``url`` is a key of Redis, whose items are taken away."""


class Role(StrEnum):
    """What one file of a source is."""

    INDEX = "index"
    """It names further files."""
    LIST = "list"
    """It names all URLs of its part: what it named before and does not name now is gone."""
    NEWS = "news"
    """It names what changed of late: what it does not name any more says nothing."""


@dataclass(frozen=True, slots=True)
class Source:
    """One row of ``sources``. Times in epoch seconds, 0 = never; ``every`` in seconds.

    ``due`` is when it is looked at next. ``owner`` runs it until ``claimed``. ``failures`` counts runs in a
    row that failed, the last of them with ``error``. ``at`` is when a run last ended, ``changed`` when one
    last submitted anything; ``listed`` URLs are remembered. ``queued``, ``removed``, ``held`` and ``refused``
    are of the run that last submitted or refused anything.

    WebSub: ``callback`` is the name of its callback, ``secret`` what its hub signs with, ``hub`` and
    ``topic`` are where it is subscribed, until ``lease``; ``asked`` is what the hub was asked for last, and
    is to verify.
    """

    sourceid: int
    pid: int
    kind: str
    url: str
    every: int
    created: int = 0
    due: int = 0
    owner: str = ""
    claimed: int = 0
    failures: int = 0
    error: str = ""
    at: int = 0
    changed: int = 0
    listed: int = 0
    queued: int = 0
    removed: int = 0
    held: int = 0
    refused: int = 0
    callback: str = ""
    secret: str = ""
    hub: str = ""
    topic: str = ""
    lease: int = 0
    asked: str = ""


@dataclass(frozen=True, slots=True)
class SourceFile:
    """One file of a source (table ``sourcefiles``), as it was when it was last read to its end.

    ``etag`` and ``modified`` are what its server said, to ask with conditions; empty = nothing. ``told``
    stands for the time that its index said of it when it was read, 0 = none; ``read`` is when that was.
    ``listed`` URLs of it are remembered.
    """

    fileid: int
    sourceid: int
    url: str
    parent: int
    role: str
    etag: str = ""
    modified: str = ""
    told: int = 0
    read: int = 0
    listed: int = 0


@dataclass(frozen=True, slots=True)
class Entry:
    """One URL of a file, as written; ``stamp`` stands for what says when it changed, 0 = nothing does.

    ``gone``: the file says that it was deleted.
    """

    url: str
    stamp: int = 0
    gone: bool = False


@dataclass(frozen=True, slots=True)
class Further:
    """A file that an index names, as written; ``told`` as ``stamp`` of an entry, ``role`` where it is
    said.
    """

    url: str
    told: int = 0
    role: Role | None = None


@dataclass(frozen=True, slots=True)
class Listing:
    """What one file says. ``cut``: there is more of it than is read, so that nothing is gone.

    ``base``: what its URLs are seen from, itself seen from where the file lies.
    """

    role: Role
    entries: tuple[Entry, ...] = ()
    files: tuple[Further, ...] = ()
    hubs: tuple[str, ...] = ()
    topic: str = ""
    cut: bool = False
    base: str = ""


@dataclass(frozen=True, slots=True)
class Change:
    """A URL to be fetched, or removed when it is ``gone``; ``key`` is its ``furlkey``."""

    key: bytes
    furl: str
    stamp: int
    gone: bool = False


@dataclass(frozen=True, slots=True)
class Difference:
    """What a file says that it did not say before; ``absent`` are keys that it named and does not name
    now.
    """

    changes: tuple[Change, ...] = ()
    absent: tuple[bytes, ...] = ()


def stamp_of(*said: str) -> int:
    """Return a number (63 bits) that stands for what says when something changed; 0 = nothing was said.

    The times of sitemaps and feeds are often not what they should be, so that only whether they are the same
    as before matters.
    """
    if not any(said):
        return 0
    digest = blake2b("\0".join(said).encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 1 or 1


def compare(known: Mapping[bytes, int], listed: Iterable[Change]) -> Difference:
    """Return what is new, changed or deleted among what a file lists now; ``known`` are stamps by key.

    Of a URL that is listed several times, the last entry counts. One without a stamp is news only once.
    """
    last = {one.key: one for one in listed}
    changes = tuple(one for one in last.values() if _is_news(known.get(one.key), one))
    return Difference(changes, tuple(key for key in known if key not in last))


def _is_news(known: int | None, one: Change) -> bool:
    return known is None or (one.stamp not in {0, known})


def in_order(files: Sequence[SourceFile]) -> list[SourceFile]:
    """Return files in the order in which they are read: news last, so that a deletion stands."""
    return sorted(files, key=lambda one: one.role == Role.NEWS)


@dataclass(slots=True)
class Report:
    """What a run did. ``files`` were asked for, ``unmodified`` of them had not changed, ``bytes`` came.

    ``refused`` counts URLs by the code that a push of them would get. ``former_names``: some were inside a
    root while names were those of IDNA 2003, so that nothing counts as gone. ``held_up``: the queue had no
    room for more, so that the rest comes later. ``notes`` are for the operator.
    """

    files: int = 0
    unmodified: int = 0
    bytes: int = 0
    entries: int = 0
    sets: int = 0
    queued: int = 0
    removed: int = 0
    held: int = 0
    held_up: bool = False
    former_names: bool = False
    refused: dict[int, int] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def refuse(self, code: int) -> None:
        """Count a URL that was refused."""
        self.refused[code] = self.refused.get(code, 0) + 1

    def note(self, text: str) -> None:
        """Tell the operator something, once."""
        if text not in self.notes and len(self.notes) < _NOTES:
            self.notes.append(text)


_NOTES = 10
