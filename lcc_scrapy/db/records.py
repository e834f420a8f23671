"""Small values that only the store keeps: sets being absorbed, logins, leases, errors to be told."""

import json
from dataclasses import dataclass
from typing import Final, NamedTuple

from lcc_scrapy.domain.absorption import OPEN
from lcc_scrapy.domain.queue import QueuedUrl
from lcc_scrapy.domain.retries import Backoff

ABSORBING_COUNT = "count"
ABSORBING_KEYS = "keys"
ABSORBING_ABSENT = "absent"
ABSORBING_REMOVALS = "removals"
ABSORBING_HOLDS = "holds"
ABSORBING_ENTRIES = "entries"
ABSORBED = "absorbed"

PROVIDERS_CHANGED = "providers"
"""Counter that rises whenever somebody changes a provider, whose ``revision`` it then is."""

RELATION_MAX = 32
"""Characters of a link's relation."""

JOB_MAX = 64
"""Characters of a job's name."""

IDLE_MAX = 255
"""Characters of the reason why a worker hands out no URL."""

LEASE = "lease"
"""The counter of lease tokens."""

FEED = "feed"
"""The counter of the feed's seq, and the last of the rows that whoever writes has to wait for.

All lock them in this order, or two would wait for each other: blocks of file ids, providers (rising),
turns (rising), what else belongs to these, the counts of all fetches, the tallies, ``CONFIRMED``, this
one. It stays locked until the commit, so that no later seq is seen before an earlier one.
"""

CONFIRMED = "confirmed"
"""The counter of confirmations: of documents whose site was asked and that were unchanged."""

FORGOTTEN = "forgotten"
"""The counter of the highest seq whose tombstone was dropped because of its age."""

AE_POSITION = "ae position"
AE_PEAK = "ae peak"
AE_PAGES = "ae pages"
AE_SKIPPED = "ae skipped"
AE_FAILED = "ae failed"
"""Counters of the annotation engine: places given out in its queue, the most documents that ever waited there
at a time; documents that were annotated, that have no text, and that no processor survived."""

ANNOTATED = "annotated"
"""The fact (``lccinfo``) up to which seq the annotation engine read the feed: that waits in its queue, or is
done."""

ACI_NUMBER = "aci"
"""The counter of the ``number`` of ACIs; it stays locked until the commit, as ``FEED``."""

PAUSED = "paused"
"""The fact (``lccinfo``) that nothing is to be fetched from anybody."""


@dataclass(frozen=True, slots=True)
class ProviderSet:
    """A set on its way from the spool into the queue (table ``psets``).

    ``phase`` and ``progress`` (bytes of the spool file) say where to go on after a crash. ``held`` counts the
    removals that the guard held. ``counted`` is what the guard needs to know: the documents that a partial
    set removes, or the URLs that waited for their first fetch when it decided about a full set.

    What a full set does not name is counted, and then removed or held: first what waits, as it arrived, as
    far as ``progress`` says, then documents, by rising key, as far as ``upto`` says (None = not begun).
    ``absent`` are documents, ``unfetched`` URLs that wait for their first fetch.
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
    upto: bytes | None = None
    absent: int = 0
    unfetched: int = 0


class SetName(NamedTuple):
    """What a provider's set has in common with an exact resend of it: the provider's own id, the digest."""

    pid: int
    setid: str
    digest: str


LAST_KEY = b"\xff" * 16
"""Up to here are all keys."""

LAST_NUMBER = (1 << 63) - 1
"""Up to here are all numbers of waiting URLs."""


@dataclass(frozen=True, slots=True)
class Ledger:
    """What some providers have together, as the books say: documents, their bytes, removals that are held."""

    providers: int
    documents: int
    space: int
    held: int


Login = tuple[int, int]
"""A provider and the number of its login."""


@dataclass(frozen=True, slots=True)
class OpenLogin:
    """A login that may still bring a set, or whose set waits in the spool of a UNS (table ``logins``).

    ``uns`` is the id of that spool. ``passed`` = its UNS was given up for dead: its set may not be absorbed.
    ``overtaken`` = sets of later logins were absorbed first; ``overtaking`` has the keys that these named.
    """

    pid: int
    connseq: int
    uns: str
    at: int
    passed: bool = False
    stage: str = OPEN
    overtaken: bool = False


@dataclass(frozen=True, slots=True)
class Overtaking:
    """A key that the set of a login named which was absorbed before that of an earlier one."""

    urlkey: bytes
    pid: int
    connseq: int


@dataclass(frozen=True, slots=True)
class Uns:
    """A UNS, by the id of its spool: on which host, and its last sign of life (table ``unses``)."""

    uns: str
    note: str
    seen: int


REFUSED_TYPES: Final = "refused 703"
"""The tally of URLs that were refused for their type when they were pushed."""
NOT_ACCEPTED: Final = "failed 703"
"""The tally of found URLs that were served as a type that is not accepted."""


@dataclass(frozen=True, slots=True)
class UrlErrorRecord:
    """A final failure kept for its provider.

    ``attributes`` is JSON of what was made of what it was submitted with, ``sent`` is JSON of that itself
    (None = not known).
    """

    pid: int
    code: int
    text: str
    url: str
    attributes: str
    at: int
    errorid: int = 0
    sent: str | None = None

    @property
    def submitted(self) -> dict[str, str]:
        """What the provider sent with the URL, as far as that is known."""
        found: dict[str, str] = json.loads(self.sent or self.attributes)
        return found


OUTCOME_FAILED = "failed"
"""A fetch failed for good."""

OUTCOME_RETRYING = "retrying"
"""A fetch failed, and the URL waits to be fetched again."""

OUTCOME_REFUSED = "refused"
"""The URL was refused when its provider sent it; ``urlkey`` may be that of no document."""

OUTCOME_STORED = "stored"
"""The document was stored, although its provider was told of an error (607, 608)."""

OUTCOME_WITHDRAWN = "withdrawn"
"""Its provider removed the URL after it had failed."""

OUTCOME_STATE_MAX = 12
"""Characters of a state."""


@dataclass(frozen=True, slots=True)
class LastOutcome:
    """What last went wrong with a URL, for ``lcc explain`` and ``lcc retry``; ``at`` in epoch seconds.

    ``curl`` and ``furl`` are as submitted, cut to what a column holds; empty in rows older than schema 0017.
    ``submitted`` is JSON of the rest of the row that was fetched (see ``last_outcomes``), None = not known.
    """

    urlkey: bytes
    pid: int
    code: int
    text: str
    at: int
    state: str = OUTCOME_FAILED
    curl: str = ""
    mimetype: str = ""
    furl: str = ""
    submitted: str | None = None


@dataclass(frozen=True, slots=True)
class StoredTurn:
    """A turn key with URLs waiting, or leased (table ``turns``). Times are epoch seconds.

    ``owner`` is the worker that may fetch for it, nobody when empty; ``token`` tells one lease from
    another. It is free from ``look_at`` (hours) and ``not_before`` (bandwidth, failing hosts) on.
    ``arrivals`` rises whenever URLs arrive, so that nobody puts a turn to rest over news.
    """

    turnkey: str
    owner: str = ""
    token: int = 0
    priority: int = 0
    waiting: int = 0
    look_at: float = 0.0
    not_before: float = 0.0
    arrivals: int = 0


@dataclass(frozen=True, slots=True)
class FailingHost:
    """How a turn waits for one of its hosts (table ``failinghosts``); see ``domain.retries.Backoff``.

    ``blamed`` is JSON; an entry without a key is a broken section. ``early`` is left out: the host is asked
    when its wait is over.
    """

    turnkey: str
    host: str
    not_before: float
    failures: int
    since: float
    wait: float
    blamed: str

    @classmethod
    def of(cls, turnkey: str, host: str, backoff: Backoff) -> "FailingHost":
        """Return the row of a host."""
        urls = [[key.hex(), *rest] for key, *rest in backoff.blamed]
        blamed = json.dumps([*urls, *(["", 0, 0, section] for section in backoff.broken)])
        return cls(turnkey, host, backoff.not_before, backoff.failures, backoff.since, backoff.wait, blamed)

    @property
    def backoff(self) -> Backoff:
        """Return how the turn waits."""
        said = json.loads(self.blamed)
        blamed = tuple((bytes.fromhex(key), *rest) for key, *rest in said if key)
        broken = tuple(section for key, *_, section in said if not key)
        return Backoff(self.not_before, self.failures, self.since, self.wait, blamed, broken)


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
    and that do, ``paced`` those beside them that are behind a limit of their own. ``held`` counts its turns,
    ``rate`` the bytes per second it transferred of late. ``pid`` is the only provider it fetches from, 0 = it
    fetches from any. ``job`` is the longest job of its store thread of late, which took ``job_ms``.
    ``idle`` says why it hands out no URL at all, "" = it does.
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
    pid: int = 0
    paced: int = 0
    job_ms: int = 0
    job: str = ""
    idle: str = ""


@dataclass(frozen=True, slots=True)
class LongFetch:
    """A fetch that takes long, as its worker told of it last (table ``fetches``); it may have ended since.

    It holds under the lease that ``owner`` and ``token`` name. ``since`` is when it began, ``paced`` when it
    first had to wait for bandwidth (epoch seconds, 0 = it did not); ``transferred`` of ``size`` bytes
    (0 = not known) had arrived.
    """

    turnkey: str
    owner: str
    token: int
    urlkey: bytes
    since: int
    paced: int
    transferred: int
    size: int


@dataclass(frozen=True, slots=True)
class FileToDelete:
    """A content file that no row needs any more; it may go from ``not_before`` on."""

    machineid: int
    fileid: int
    len: int
    not_before: int


@dataclass(frozen=True, slots=True)
class FileBlock:
    """File ids that one process hands out (table ``fileblocks``): from ``first`` to the end of a folder.

    ``block`` numbers these folders. ``owner`` is the worker that holds the block, ``token`` its process: no
    other one may store a file under these ids.
    """

    machineid: int
    block: int
    first: int
    owner: str
    token: int


@dataclass(frozen=True, slots=True)
class DocumentLink:
    """One link of a document (table ``links``, in the order of the page).

    ``url`` is absolute and without fragment, ``relation`` how the page names it (``a``, ``frame``,
    ``canonical`` …). ``nofollow``: the page asks robots not to go there.
    """

    url: str
    relation: str
    nofollow: bool = False


@dataclass(frozen=True, slots=True)
class Spidered:
    """A URL that a spider found (table ``spidered``), by ``furlkey``.

    ``depth`` counts links from a start page, 0 = it is one. ``parent`` is the key of the document that it was
    found in, None = it was not found in one. ``visited`` is when a visit last ended (epoch seconds), 0 = one
    is still to come; ``code`` what that visit failed with, 0 = nothing.

    What is known of its changes: ``answered`` is when a visit last did not fail (0 = none yet), ``every`` the
    interval of visits since then (seconds), ``changes`` in how many visits in a row it was found changed.
    ``due`` is when to revisit it adaptively, 0 = a visit is to come, or its provider tells of changes.
    """

    furlkey: bytes
    pid: int
    furl: str
    depth: int
    parent: bytes | None
    found: int
    visited: int = 0
    code: int = 0
    answered: int = 0
    every: int = 0
    changes: int = 0
    due: int = 0


@dataclass(frozen=True, slots=True)
class Ownership:
    """Somebody's interest in a URL (table ``owners``), by ``furlkey`` and ``owner``, who may be "": nobody.

    It goes on to what can be reached from there by ``reach`` links. ``due``: what the documents from there
    link to is still to be looked at for that. ``asked``: the depth that directives by hand asked for at this
    URL, -1 = none did: the interest comes from links or from a URD.
    """

    furlkey: bytes
    owner: str
    pid: int
    reach: int = 0
    due: bool = False
    asked: int = -1


@dataclass(frozen=True, slots=True)
class Irrelevant:
    """A document whose content was dropped because it concerns nobody (table ``irrelevant``).

    With ``etag`` and ``last_modified`` it is asked for conditionally; ``sha256`` is that of the content. Its
    links stay in the table ``links``. ``terms`` are those of the scan that had read them ("" = no spider was
    there): under others the page is to be read again, as one that is not known. ``dropped`` in epoch seconds.
    """

    urlkey: bytes
    pid: int
    furl: str
    etag: str
    last_modified: str
    sha256: str
    terms: str
    dropped: int


@dataclass(frozen=True, slots=True)
class Unwanted:
    """A document that concerned nobody when it had this ``seq``: it is to be dropped."""

    urlkey: bytes
    seq: int


@dataclass(frozen=True, slots=True)
class Withdrawal:
    """That the interests of an owner are to be computed anew, for it wants less (table ``withdrawals``).

    ``changes`` rises whenever one of them is added or goes farther meanwhile.
    """

    owner: str
    changes: int


@dataclass(frozen=True, slots=True)
class Scan:
    """How far a provider's documents were looked through for links (table ``scans``).

    Everything in the feed up to ``seq`` was, on ``terms`` (a digest of what decides which links are
    followed). ``since`` is when these terms began to hold, ``at`` when the scan last went on (epoch seconds);
    ``pages`` were read and ``urls`` submitted in all. The links of everything up to ``taken`` are in the
    table ``links``, as ``rules`` (a digest of what decides which links a document has) find them.
    """

    pid: int
    seq: int = 0
    terms: str = ""
    since: int = 0
    at: int = 0
    pages: int = 0
    urls: int = 0
    rules: str = ""
    taken: int = 0


@dataclass(frozen=True, slots=True)
class Suspect:
    """A pushed document that had changed, or gone, when it was sampled (table ``suspects``).

    Nobody had said so. If nobody does until the grace after ``found`` (epoch seconds) is over, the change was
    missed.
    """

    urlkey: bytes
    pid: int
    found: int


@dataclass(frozen=True, slots=True)
class Missed:
    """What was counted of a provider's changes (table ``misses``, a row for each day).

    ``pushed``: changes and removals of known documents that it pushed. ``sampled``: its documents that were
    sampled, the content of which had not been looked at for ``watched`` seconds together;
    ``missed``: changes found so that it did not push.
    """

    pushed: int = 0
    sampled: int = 0
    missed: int = 0
    watched: int = 0


EVERYBODY = 0
"""The pid under which fetches of all providers together are counted."""


class Fetched(NamedTuple):
    """What became of a provider's fetches: a result of settling and its wire code, 0 = none."""

    pid: int
    result: str
    code: int


@dataclass(frozen=True, slots=True)
class Oldest:
    """The URL that has waited longest, and when its set was taken in (epoch seconds, 0 = not known)."""

    row: QueuedUrl
    since: int


Queue = tuple[int, str]
"""What waits of one provider under one mask."""


@dataclass(frozen=True, slots=True)
class Head:
    """The next rows of a queue that are wanted: ``limit`` of those behind a (psetid, position)."""

    pid: int
    mask: str
    behind: tuple[int, int]
    limit: int


@dataclass(frozen=True, slots=True)
class SetPart:
    """One row of ``qpsdb``: how many URLs of a set wait for the same hours."""

    psetid: int
    timeofday: str
    pid: int
    starttimeslot: int
    pri: int
    nurls: int
