"""Small values that only the store keeps: sets being absorbed, logins, leases, errors to be told."""

from dataclasses import dataclass

ABSORBING_COUNT = "count"
ABSORBING_KEYS = "keys"
ABSORBING_REMOVALS = "removals"
ABSORBING_HOLDS = "holds"
ABSORBING_ENTRIES = "entries"
ABSORBED = "absorbed"

PROVIDERS_CHANGED = "providers"
"""Counter that rises whenever somebody changes a provider, whose ``revision`` it then is."""

LEASE = "lease"
"""The counter of lease tokens."""

PAUSED = "paused"
"""The fact (``lccinfo``) that nothing is to be fetched from anybody."""


@dataclass(frozen=True, slots=True)
class ProviderSet:
    """A set on its way from the spool into the queue (table ``psets``).

    ``phase`` and ``progress`` (bytes of the spool file) say where to go on after a crash. ``held`` counts the
    removals that the guard held. ``counted`` is what the guard needs to know: the documents that a partial
    set removes, or the URLs that waited for their first fetch when a full set was judged.
    """

    psetid: int
    pid: int
    connseq: int
    setid: str
    digest: str
    full: bool
    received: int
    phase: str
    progress: int
    absorbed: int = 0
    held: int = 0
    started: int = 0
    counted: int = 0


@dataclass(frozen=True, slots=True)
class OpenLogin:
    """A login that may still bring a set, or whose set waits in the spool of a UNS (table ``logins``).

    ``uns`` is the id of that spool. ``passed`` = sets of later logins did not wait for this one any more.
    """

    pid: int
    connseq: int
    uns: str
    at: int
    passed: bool = False


@dataclass(frozen=True, slots=True)
class Uns:
    """A UNS, by the id of its spool: on which host, and its last sign of life (table ``unses``)."""

    uns: str
    note: str
    seen: int


@dataclass(frozen=True, slots=True)
class UrlErrorRecord:
    """A final failure kept for its provider; ``attributes`` is JSON of what was submitted."""

    pid: int
    code: int
    text: str
    url: str
    attributes: str
    at: int
    errorid: int = 0


@dataclass(frozen=True, slots=True)
class LastOutcome:
    """What last happened to a URL, for ``lcc explain``."""

    urlkey: bytes
    pid: int
    code: int
    text: str
    at: int


@dataclass(frozen=True, slots=True)
class StoredTurn:
    """A turn key with URLs waiting, or leased (table ``turns``). Times are epoch seconds.

    ``owner`` is the worker that may fetch for it, nobody when empty; ``token`` tells one lease from
    another. It is free from ``look_at`` (hours) and ``not_before`` (bandwidth, failing host) on.
    ``arrivals`` rises whenever URLs arrive, so that nobody puts a turn to rest over news.
    """

    turnkey: str
    owner: str = ""
    token: int = 0
    priority: int = 0
    waiting: int = 0
    look_at: float = 0.0
    not_before: float = 0.0
    failures: int = 0
    failing_since: float = 0.0
    arrivals: int = 0


@dataclass(slots=True)
class TurnDelta:
    """By how much the URLs of a turn change; ``priority`` is for a turn that is new."""

    waiting: int = 0
    arrived: bool = False
    priority: int = 0


@dataclass(frozen=True, slots=True)
class WorkerRow:
    """A crawl process at work (table ``workers``); its leases hold until ``expires`` (epoch seconds).

    ``token`` tells this run of it from earlier ones; ``places`` and ``in_use`` are fetches that may run
    and that do, ``held`` its turns, ``rate`` the bytes per second it transferred of late.
    """

    owner: str
    token: int
    machineid: int
    process: int
    started: int
    expires: int
    places: int = 0
    in_use: int = 0
    held: int = 0
    rate: int = 0
    hungry: bool = False


@dataclass(frozen=True, slots=True)
class DoomedFile:
    """A content file that no row needs any more; it may go from ``not_before`` on."""

    machineid: int
    fileid: int
    len: int
    not_before: int


@dataclass(frozen=True, slots=True)
class SetPart:
    """One row of ``qpsdb``: how many URLs of a set wait for the same hours."""

    psetid: int
    timeofday: str
    pid: int
    starttimeslot: int
    pri: int
    nurls: int
