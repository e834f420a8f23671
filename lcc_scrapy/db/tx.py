"""What one transaction can do: verbs over rows, no rules. Either all of a transaction happens or nothing."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from lcc_scrapy.db.records import (
    DocumentLink,
    Fetched,
    FileBlock,
    FileToDelete,
    Head,
    LastOutcome,
    Ledger,
    Login,
    LongFetch,
    Missed,
    Oldest,
    OpenLogin,
    Overtaking,
    Ownership,
    ProviderSet,
    Queue,
    Scan,
    SetName,
    SetPart,
    Spidered,
    StoredTurn,
    Suspect,
    TurnDelta,
    Uns,
    UrlErrorRecord,
    WorkerRow,
)
from lcc_scrapy.domain.arrivals import NewRow
from lcc_scrapy.domain.cache import CachedUrl, Tombstone, UrlMeta
from lcc_scrapy.domain.named_cursors import NamedCursor
from lcc_scrapy.domain.providers import Provider
from lcc_scrapy.domain.queue import QueuedUrl
from lcc_scrapy.domain.tokens import Token
from lcc_scrapy.domain.versions import Version

FEED = "feed"
"""The counter of the feed's seq, and the last of the rows that whoever writes has to wait for.

All lock them in this order, or two would wait for each other: blocks of file ids, providers (rising),
turns (rising), what else belongs to these, the counts of all fetches, the tallies, this one. It stays
locked until the commit, so that no later seq is seen before an earlier one.
"""

FORGOTTEN = "forgotten"
"""The counter of the highest seq whose tombstone was dropped because of its age."""


class Tx(Protocol):
    """A running transaction. Sequences come back in the order the verb names."""

    # providers
    def provider(self, pid: int) -> Provider | None:
        """Return a provider without locking it."""

    def providers_of(self, pids: Iterable[int]) -> dict[int, Provider]:
        """Return some providers without locking them."""

    def note_logins(self, rows: Sequence[Mapping[str, object]]) -> None:
        """Set ``lastconnseq``, ``lastconnip``, ``lastconntime`` and ``confirmed`` of providers (``pid``)."""

    def lock_providers(self, pids: Iterable[int]) -> dict[int, Provider]:
        """Return providers and keep others from changing them until the end of the transaction."""

    def providers(self, after: int = -1, limit: int = 1000) -> list[Provider]:
        """Return providers by rising pid."""

    def narrowing_pids(self, after: int, limit: int) -> list[int]:
        """Return the providers (rising) whose roots changed, while their rows were not looked at for that."""

    def unconfirmed(self, before: int, after: int, limit: int) -> list[Provider]:
        """Return providers by rising pid that have documents, and have confirmed none since ``before``."""

    def insert_provider(self, provider: Provider, roots: Sequence[str]) -> None:
        """Add a provider."""

    def insert_providers(self, rows: Sequence[tuple[Provider, Sequence[str]]]) -> None:
        """Add several, each with its roots."""

    def known_pids(self, pids: Sequence[int]) -> set[int]:
        """Return those of the pids that providers have."""

    def update_provider(self, pid: int, values: Mapping[str, object]) -> None:
        """Set columns of a provider."""

    def add_to_provider(self, pid: int, deltas: Mapping[str, int]) -> None:
        """Add to counters of a provider."""

    def add_to_providers(self, deltas: Mapping[int, Mapping[str, int]]) -> None:
        """Add to counters of providers, by pid; they have to be locked."""

    def delete_provider(self, pid: int) -> None:
        """Remove a provider and all that is kept of it, but its documents and what waits."""

    def members(self, turnkeys: Iterable[str]) -> list[Provider]:
        """Return the providers whose turns these are, by rising pid."""

    def changed_providers(self, revision: int, limit: int = 1000) -> list[Provider]:
        """Return the providers that changed after a revision, by rising revision."""

    def member_pids(self, turnkeys: Iterable[str]) -> set[int]:
        """Return the pids of the providers whose turns these are."""

    def roots(self, pid: int) -> list[str]:
        """Return the roots of a provider in the order they were given."""

    def roots_of(self, pids: Iterable[int]) -> dict[int, list[str]]:
        """Return the same for several providers at once."""

    def rooted_at(self, host: str) -> list[tuple[int, str]]:
        """Return (pid, root) of all roots in whose text this host stands, by rising pid."""

    def replace_roots(self, pid: int, roots: Sequence[str]) -> None:
        """Set the roots of a provider."""

    # queue
    def queued(self, keys: Iterable[bytes]) -> dict[bytes, QueuedUrl]:
        """Return the waiting rows among ``keys``."""

    def insert_queued(self, rows: Sequence[QueuedUrl]) -> None:
        """Add rows that are new to the queue."""

    def append_new(self, sets: Mapping[tuple[int, int], Sequence[NewRow]]) -> None:
        """Add rows of sets (pid, psetid) that are new to the queue; ``domain.arrivals`` has their values."""

    def known(self, keys: Sequence[bytes]) -> set[bytes]:
        """Return those of the keys that wait or are cached."""

    def update_queued(self, rows: Sequence[QueuedUrl]) -> None:
        """Replace rows."""

    def delete_queued(self, keys: Sequence[bytes]) -> None:
        """Remove rows."""

    def heads(self, wanted: Sequence[Head]) -> Mapping[Queue, list[QueuedUrl]]:
        """Return the next rows of different queues, without those set aside; each queue's in its order."""

    def return_due(self, pid: int, mask: str, now: int) -> int:
        """Bring rows back that were set aside until ``now``; return how many."""

    def next_due(self, queues: Sequence[Queue]) -> Mapping[Queue, int]:
        """Return when the first rows that were set aside are due; queues without such rows are left out."""

    def queued_of(self, pid: int, after: int, limit: int) -> list[QueuedUrl]:
        """Return a provider's waiting rows behind a number (0 = all), as they arrived."""

    def reach_waiting(self, pid: int, after: int, limit: int) -> int:
        """Return the number up to which ``limit`` rows of a provider follow; ``LAST_NUMBER``: all or fewer.

        Rows are numbered as they arrive, and keep their number as long as they wait.
        """

    def add_to_parts(self, deltas: Mapping[tuple[int, str, int], int], pri: Mapping[int, int]) -> None:
        """Add to the counts of set parts, keyed (psetid, mask, pid); parts at 0 go. ``pri``: per pid."""

    def parts(self, pid: int) -> list[SetPart]:
        """Return a provider's set parts by rising psetid."""

    def masks(self, pids: Iterable[int]) -> dict[int, list[str]]:
        """Return the different masks that each provider's waiting URLs have, sorted."""

    def waiting(self, pid: int) -> dict[tuple[int, str], int]:
        """Count a provider's waiting rows by (psetid, mask): what its set parts should say."""

    def count_before(self, row: QueuedUrl) -> int:
        """Count the rows of the same provider that come before one, without those set aside."""

    # cache
    def cached(self, keys: Iterable[bytes]) -> dict[bytes, CachedUrl]:
        """Return the cached rows among ``keys``."""

    def insert_cached(self, rows: Sequence[CachedUrl]) -> None:
        """Add rows."""

    def update_cached(self, rows: Sequence[CachedUrl]) -> None:
        """Replace rows."""

    def delete_cached(self, keys: Sequence[bytes]) -> None:
        """Remove rows with their meta rows and links."""

    def cached_of(self, pid: int, after: bytes, limit: int) -> list[CachedUrl]:
        """Return a provider's rows by rising key."""

    def usage(self, pid: int) -> tuple[int, int]:
        """Count a provider's cached documents and their bytes: what its quota counters should say."""

    def mark_seen(self, keys: Sequence[bytes], psetid: int, now: int) -> None:
        """Note that a full set names these URLs: cached rows are confirmed."""

    def release(self, keys: Sequence[bytes]) -> int:
        """End the holds that sets and fetches put on these documents; return how many there were."""

    def name_cached(self, keys: Sequence[bytes], psetid: int) -> int:
        """Note that a set names these URLs; return how many are cached and were not named by it before."""

    def confirmations(self, pid: int, after: bytes, limit: int) -> list[tuple[bytes, int]]:
        """Return (key, confirmed_time) of a provider's documents by rising key."""

    def reach(self, pid: int, after: bytes, limit: int) -> bytes:
        """Return the key up to which ``limit`` documents of a provider follow; ``LAST_KEY``: all or fewer."""

    def unseen(self, pid: int, psetid: int, after: bytes, upto: bytes, limit: int) -> list[bytes]:
        """Return keys (rising, up to ``upto``) of pushed documents that no set from ``psetid`` on named."""

    def unseen_waiting(
        self, pid: int, psetid: int, after: int, upto: int, limit: int
    ) -> list[tuple[int, bytes]]:
        """Return (number, key) of pushed URLs that wait, and that no set from ``psetid`` on named."""

    def count_absent(self, pid: int, psetid: int, after: bytes, upto: bytes) -> int:
        """Count what ``unseen`` would return, without documents that ``mark_unfetched`` counted before."""

    def count_waiting(self, pid: int, after: int, upto: int) -> int:
        """Count a provider's pushed URLs that wait for their first fetch, ``upto`` included."""

    def mark_unfetched(self, pid: int, psetid: int, after: int, upto: int) -> int:
        """Mark and count those of them that no set from ``psetid`` on named.

        Whoever fetches one meanwhile leaves the mark at the document.
        """

    def held(self, pid: int, limit: int, after: bytes = b"") -> list[bytes]:
        """Return keys (rising) whose removal is held."""

    def count_held(self, pid: int) -> int:
        """Count them: what the provider's counter should say."""

    def put_meta(self, rows: Sequence[UrlMeta]) -> None:
        """Add or replace answers."""

    def meta(self, key: bytes) -> UrlMeta | None:
        """Return the answer a document came with."""

    def metas(self, keys: Iterable[bytes]) -> dict[bytes, UrlMeta]:
        """Return the answers that these documents came with."""

    def put_links(self, links: Mapping[bytes, Sequence[DocumentLink]]) -> None:
        """Set the links of documents, in the order of their pages."""

    def links_of(self, key: bytes) -> list[DocumentLink]:
        """Return the links of a document, in the order of the page."""

    def put_tombstones(self, rows: Sequence[Tombstone]) -> None:
        """Add or replace tombstones."""

    def delete_tombstones(self, keys: Sequence[bytes]) -> set[bytes]:
        """Remove the tombstones of documents that are back; return the keys that had one."""

    def old_tombstones(self, before: int, limit: int) -> list[int]:
        """Return the seqs (rising) of the first tombstones, as far as all are of before ``before``."""

    def drop_tombstones(self, upto: int) -> None:
        """Remove the tombstones up to a seq."""

    def changes(
        self, after: int, limit: int, pid: int | None = None, upto: int | None = None
    ) -> list[CachedUrl | Tombstone]:
        """Return documents and tombstones by rising seq, up to one if it is given.

        Nothing with a lower seq than the last one returned appears afterwards.
        """

    def find_url(self, url: str) -> tuple[list[CachedUrl], list[QueuedUrl], list[Tombstone]]:
        """Return all that is known of a URL given as curl, fetch URL or docid."""

    def documents(self, after: bytes, limit: int) -> list[CachedUrl]:
        """Return the rows of all providers by rising key."""

    def files_of(self, machineid: int, fileids: Sequence[int]) -> dict[int, CachedUrl]:
        """Return the rows whose content lies in these files."""

    # versions
    def versions(self, keys: Iterable[bytes]) -> dict[bytes, list[Version]]:
        """Return the earlier contents that are kept of these documents, newest first."""

    def insert_versions(self, rows: Sequence[Version]) -> None:
        """Add versions."""

    def delete_versions(self, seqs: Sequence[int]) -> None:
        """Remove versions."""

    def next_versioned(self, after: int) -> int | None:
        """Return the first provider behind ``after`` of whose documents versions are kept."""

    def version_times(self, pid: int, after: bytes, limit: int) -> list[tuple[bytes, int]]:
        """Return (key, replaced_time) of versions of a provider's documents by rising key."""

    def version_files(self, machineid: int, fileids: Sequence[int]) -> set[int]:
        """Return those of the files that hold a version."""

    # spidering
    def cached_at(self, furlkeys: Iterable[bytes]) -> dict[bytes, list[CachedUrl]]:
        """Return the documents that are fetched from these URLs, by furlkey; if any."""

    def present_at(self, furlkeys: Iterable[bytes]) -> set[bytes]:
        """Return those of these URLs from which a document is fetched, or something waits to be."""

    def locate(self, pid: int, after: int, upto: int) -> None:
        """Let ``waiting_at`` know of a provider's rows that wait, by their numbers (``reach_waiting``).

        Those that ``append_new`` was given without ``furlkey`` are not known to it.
        """

    def waiting_at(self, furlkeys: Iterable[bytes]) -> dict[bytes, bytes]:
        """Return those of these URLs from which something waits to be fetched, each with a key of that."""

    def spidered(self, furlkeys: Iterable[bytes]) -> dict[bytes, Spidered]:
        """Return what spiders found among these URLs."""

    def insert_spidered(self, rows: Sequence[Spidered]) -> None:
        """Add URLs that are new to spiders."""

    def spidered_of(self, pid: int, after: bytes, limit: int) -> list[Spidered]:
        """Return what spiders found at a provider's behind ``after``, by rising ``furlkey``."""

    def delete_spidered(self, furlkeys: Sequence[bytes]) -> None:
        """Forget that spiders found these URLs."""

    def visit_again(self, furlkeys: Sequence[bytes]) -> None:
        """Note that visits of these URLs are to come."""

    def visited(self, rows: Sequence[Spidered]) -> None:
        """Note of URLs that spiders know how their last visits ended, and when the next ones are due."""

    def due(self, pid: int, upto: int, limit: int) -> list[Spidered]:
        """Return a provider's URLs that were due at ``upto`` or before, earliest first."""

    def overdue(self, pid: int, before: int, limit: int) -> list[Spidered]:
        """Return a provider's URLs that were last visited before ``before``, oldest visits first."""

    def count_spidered(self, pid: int) -> int:
        """Count the URLs that spiders found at a provider's."""

    def owners_of(self, furlkeys: Iterable[bytes]) -> dict[bytes, list[Ownership]]:
        """Return who has an interest in these URLs, as far as somebody has, by owner."""

    def ownerships(self, pairs: Iterable[tuple[bytes, str]]) -> dict[tuple[bytes, str], Ownership]:
        """Return the interests among these pairs of furlkey and owner."""

    def put_owners(self, rows: Sequence[Ownership]) -> None:
        """Add or replace interests."""

    def let_dig(self, furlkeys: Iterable[bytes]) -> None:
        """Make interests in these URLs due where they go on to what is linked there."""

    def to_dig(self, pid: int, limit: int) -> list[Ownership]:
        """Return interests in a provider's URLs that are due, by furlkey."""

    def scan(self, pid: int) -> Scan | None:
        """Return how far a provider's documents were looked through for links."""

    def scanned(self, pids: Collection[int]) -> set[int]:
        """Return those of the providers whose documents are looked through for links."""

    def put_scan(self, scan: Scan) -> None:
        """Note it."""

    # changes that were not pushed
    def add_missed(self, pid: int, day: int, deltas: Mapping[str, int]) -> None:
        """Add to what is counted of a provider's changes on a day (since the epoch); it has to be locked."""

    def missed(self, pid: int, since: int) -> Missed:
        """Return what was counted from a day on."""

    def all_missed(self, since: int) -> dict[int, Missed]:
        """Return the sums since a day of every provider that was sampled since, by pid."""

    def all_suspects(self, upto: int) -> dict[int, int]:
        """Return how many suspects found until then each provider has that has any."""

    def sampled_providers(self, since: int) -> list[int]:
        """Return the pids, rising, of whom documents were sampled from a day on."""

    def falling_pids(self, after: int, limit: int) -> list[int]:
        """Return the providers (rising) whose samples may let all their documents be visited, or none."""

    def suspected_pids(self, upto: int, after: int, limit: int) -> list[int]:
        """Return the providers (rising) with suspects found up to then."""

    def forget_missed(self, before: int, limit: int = 1000) -> int:
        """Remove some of what was counted before a day; return how many rows."""

    def put_suspects(self, rows: Sequence[Suspect]) -> None:
        """Add or replace documents that had changed though nobody said so."""

    def count_suspects(self, pid: int, upto: int) -> int:
        """Count those of a provider that were found up to a moment."""

    def suspected(self, pids: Collection[int]) -> set[int]:
        """Return those of the providers of whom there are any."""

    def suspects(self, pid: int, after: int, upto: int, limit: int) -> list[bytes]:
        """Return keys of a provider's that were found later than ``after`` and up to ``upto``."""

    def drop_suspects(self, pid: int, after: int, upto: int, keys: Sequence[bytes]) -> int:
        """Forget those of the keys that ``suspects`` could return; return how many."""

    # counters and files
    def take(self, counter: str, count: int) -> int:
        """Raise a counter by ``count`` and return the first of the numbers taken (from 1)."""

    def peek(self, counter: str) -> int:
        """Return the last number taken from a counter, 0 = none."""

    def delete_later(self, files: Sequence[FileToDelete]) -> None:
        """Hand files to the delete manager."""

    def files_to_delete(self, machineid: int, now: int, limit: int) -> list[FileToDelete]:
        """Return files that may go now, oldest first."""

    def known_to_delete(self, machineid: int, fileids: Sequence[int]) -> set[int]:
        """Return those of the files that are doomed already."""

    def forget_deleted(self, machineid: int, fileids: Sequence[int]) -> None:
        """Forget files that are gone."""

    def put_block(self, block: FileBlock) -> None:
        """Add a block of file ids, or give one to somebody else."""

    def blocks_of(self, machineid: int) -> list[FileBlock]:
        """Return the blocks of a machine by rising number."""

    def lock_blocks(self, machineid: int, numbers: Iterable[int]) -> dict[int, FileBlock]:
        """Return those of these blocks that are there, and keep others from locking or changing them."""

    def drop_blocks(self, machineid: int, numbers: Iterable[int]) -> None:
        """Forget blocks."""

    # errors and outcomes
    def add_errors(self, rows: Sequence[UrlErrorRecord], keep: int) -> None:
        """Keep final failures for their providers, the newest ``keep`` of each."""

    def errors(self, pid: int, limit: int) -> list[UrlErrorRecord]:
        """Return the newest kept failures, oldest of them first."""

    def forget_errors(self, pid: int, upto: int) -> None:
        """Remove failures that were delivered."""

    def put_outcomes(self, rows: Sequence[LastOutcome]) -> None:
        """Keep the last outcome of each URL."""

    def outcome(self, key: bytes) -> LastOutcome | None:
        """Return the last outcome of a URL."""

    def outcomes_named(self, url: str) -> list[LastOutcome]:
        """Return the last outcomes of a URL given as curl, fetch URL or docid, whosever it is."""

    def outcomes_in(
        self, pid: int, state: str, after: tuple[int, bytes], upto: int, limit: int
    ) -> list[LastOutcome]:
        """Return a provider's outcomes in a state behind (at, urlkey), up to a time, in this order."""

    def withdraw_outcomes(self, keys: Sequence[bytes]) -> None:
        """Note that these URLs, as far as they failed, were removed by their providers since."""

    def trim_outcomes(self, pid: int, state: str, keep: int, limit: int = 1000) -> None:
        """Remove a provider's oldest outcomes in a state beyond the newest ``keep``, ``limit`` at most."""

    def forget_outcomes(self, before: int, limit: int = 1000) -> int:
        """Remove some of the outcomes older than ``before``; return how many."""

    # sets
    def pset_of(self, pid: int, connseq: int) -> ProviderSet | None:
        """Return the set that a login brought, if its absorption began."""

    def psets_of(self, logins: Collection[Login]) -> dict[Login, ProviderSet]:
        """Return the sets that some logins brought, as far as their absorption began."""

    def full_set_after(self, pid: int, connseq: int) -> bool:
        """Tell whether absorption of a full set of a later login of a provider began."""

    def sent_before(self, names: Collection[SetName], since: int) -> set[SetName]:
        """Return those names that sets have whose absorption began at ``since`` or later."""

    def set_ids(self, pid: int, since: int) -> list[str]:
        """Return the ids of a provider's full sets of late, the newest thousand at most."""

    def insert_psets(self, psets: Sequence[ProviderSet]) -> None:
        """Note that sets are being absorbed."""

    def update_pset(self, pset: ProviderSet) -> None:
        """Note how far its absorption is."""

    def held_psets(self, pid: int) -> list[ProviderSet]:
        """Return sets whose removals are held, oldest first."""

    def forget_psets(self, before: int, after: int = 0, limit: int = 1000) -> int:
        """Remove notes of sets absorbed before ``before``, except those with held removals.

        Looks at the next sets after the number ``after``; returns the last number, 0 = all were looked at.
        """

    # logins and UNSes
    def insert_logins(self, logins: Sequence[OpenLogin]) -> None:
        """Note logins whose sets may come."""

    def logins(self, logins: Collection[Login]) -> dict[Login, OpenLogin]:
        """Return those of some logins whose set may come or waits in a spool."""

    def earlier_logins(self, logins: Mapping[int, int]) -> list[OpenLogin]:
        """Return the earliest such login of each provider (pid: connseq) before the one given.

        One for each UNS, stage, and whether it was overtaken. Those that were passed over do not count.
        """

    def mark_logins(self, stages: Mapping[Login, str]) -> None:
        """Note the stages of logins."""

    def overtake(self, pid: int, connseq: int) -> None:
        """Note that a set is absorbed before those of all earlier logins of its provider."""

    def put_overtaking(self, rows: Sequence[Overtaking]) -> None:
        """Keep the keys that such a set names, or replace those with the same key."""

    def named_later(self, keys: Sequence[bytes], connseq: int) -> set[bytes]:
        """Return those of the keys that sets of later logins named that were absorbed already."""

    def overtaking(self, pid: int, connseq: int, after: bytes, limit: int) -> list[bytes]:
        """Return such keys of a provider, by rising key."""

    def forget_overtaking(self, limit: int) -> int:
        """Forget keys of providers of whom no login is overtaken; return how many (all of them if fewer)."""

    def logins_of(self, uns: str, after: tuple[int, int], limit: int) -> list[OpenLogin]:
        """Return the logins at a UNS by rising (pid, connseq)."""

    def pass_over(self, pid: int, before: int, uns: str) -> int:
        """Let nobody wait any more for a provider's logins before ``before`` at a UNS; return how many."""

    def drop_logins(self, logins: Collection[Login]) -> None:
        """Forget logins: they brought no set, or their sets were absorbed."""

    def put_uns(self, uns: Uns) -> None:
        """Add or replace a UNS."""

    def unses(self) -> list[Uns]:
        """Return all UNSes that ever gave a sign of life, by id."""

    # turns and workers
    def add_to_turns(self, deltas: Mapping[str, TurnDelta]) -> None:
        """Add to the counts of turns; new ones begin free, those that end at 0 and are free go."""

    def lock_turns(self, turnkeys: Iterable[str]) -> dict[str, StoredTurn]:
        """Return turns, kept from changing until the end of the transaction."""

    def turnkeys(self, after: str, limit: int) -> list[str]:
        """Return the keys of turns, rising."""

    def turn(self, turnkey: str) -> StoredTurn | None:
        """Return a turn without locking it."""

    def arrivals(self, turnkeys: Iterable[str]) -> dict[str, int]:
        """Return what had arrived in turns."""

    def free_turns(self, now: float, limit: int, only: str | None = None) -> list[StoredTurn]:
        """Return turns that nobody holds and that may go on now, by falling priority."""

    def lease_turns(self, turnkeys: Sequence[str], owner: str, token: int) -> None:
        """Give turns to a worker."""

    def change_turn(self, turnkey: str, values: Mapping[str, object]) -> None:
        """Set columns of a turn."""

    def rest_turns(self, leases: Sequence[StoredTurn]) -> None:
        """Give turns back as they are here, each if it is still leased under its owner and token.

        Where URLs arrived meanwhile its ``look_at`` becomes 0; a turn without any goes, unless it has to
        remember its ``not_before``.
        """

    def forget_turns(self, now: float) -> None:
        """Remove turns without URLs that have nothing to remember any more."""

    def wake_turns(self) -> None:
        """Let all turns be looked at again, whatever hours they wait for."""

    def free_turns_of(self, owner: str) -> int:
        """Take all turns from a worker, and what it told of its fetches; return how many turns."""

    def leased_turns(self, owner: str) -> dict[str, int]:
        """Return the turns of a worker with their tokens."""

    def count_turns(self, now: float) -> int:
        """Count the turns that somebody works on, or could now."""

    def workers(self) -> list[WorkerRow]:
        """Return the workers that registered, by rising owner."""

    def put_worker(self, worker: WorkerRow) -> None:
        """Add or replace a worker."""

    def beat(self, worker: WorkerRow) -> bool:
        """Replace a worker that is still registered under the same token; tell whether it is."""

    def renew_lease(self, owner: str, token: int, expires: int) -> bool:
        """Let the leases of a worker hold until then, if it is still registered under this token; tell so."""

    def drop_worker(self, owner: str) -> None:
        """Forget a worker."""

    def put_fetches(self, fetches: Sequence[LongFetch]) -> None:
        """Add or replace fetches that take long, one for each turn."""

    def drop_fetches(self, owner: str, turnkeys: Collection[str]) -> None:
        """Remove those of some turns, as far as they are a worker's."""

    def long_fetch(self, turnkey: str) -> LongFetch | None:
        """Return what was told last of a fetch in a turn."""

    def count_above(self, owner: str, priority: int) -> int:
        """Count the turns of a worker that have URLs waiting and a higher priority."""

    # what happened
    def tally(self, counts: Mapping[str, int]) -> None:
        """Count things that happened; nothing but the metrics rests on that."""

    def tallies(self) -> dict[str, int]:
        """Return how often each has happened."""

    def count_fetches(self, counts: Mapping[Fetched, int], begun: int) -> None:
        """Add to what is counted of fetches in the span of time that began then (epoch seconds)."""

    def fetch_counts(self, since: int, pid: int) -> dict[tuple[str, int], int]:
        """Return how often each (result, code) of a provider was counted in spans from then on."""

    def forget_fetch_counts(self, before: int, limit: int = 1000) -> int:
        """Remove some of what was counted in spans that began before then; return how many rows."""

    def oldest_waiting(self, pid: int | None = None) -> Oldest | None:
        """Return the URL that has waited longest, of one provider or of all, by the order of sets."""

    def ledger(self) -> dict[str, Ledger]:
        """Return what the providers of each state have together."""

    # content users
    def insert_token(self, token: Token) -> None:
        """Let a token be known."""

    def token(self, digest: str) -> Token | None:
        """Return what is known of a token."""

    def tokens(self) -> list[Token]:
        """Return all tokens, oldest first."""

    def note_token_use(self, digest: str, now: int) -> None:
        """Note when a token was used last; it stays as it is when a later use was noted."""

    def delete_token(self, digest: str) -> None:
        """Forget a token."""

    def named_cursors(self, owner: str | None = None, limit: int = 1000) -> list[NamedCursor]:
        """Return the cursors of an owner, or of all, by owner and name."""

    def put_named_cursor(self, cursor: NamedCursor) -> None:
        """Add or replace a cursor."""

    def delete_named_cursor(self, owner: str, name: str) -> bool:
        """Forget a cursor; tells whether there was one."""

    # machines, identity
    def machine(self, identity: str) -> int | None:
        """Return the number of a machine."""

    def insert_machine(self, identity: str, note: str, now: int) -> int:
        """Register a machine and return its number."""

    def machine_addresses(self) -> dict[int, str]:
        """Return where machines say that their files are to be had, by their numbers."""

    def set_machine_address(self, machine: int, address: str) -> None:
        """Note where the files of a machine are to be had; empty = nowhere."""

    def info(self, name: str) -> str | None:
        """Return a fact about this LCC."""

    def infos(self, names: Sequence[str]) -> dict[str, str]:
        """Return the facts among these names that are known."""

    def set_info(self, name: str, value: str) -> None:
        """Set a fact about this LCC; an empty value takes the fact away."""

    def queued_total(self) -> int:
        """Count all waiting URLs."""

    def waiting_urls(self, pids: Iterable[int]) -> dict[int, int]:
        """Return how many URLs of each of these providers wait (``pidb.nurlproc``)."""

    def totals(self) -> dict[str, int]:
        """Return counts for ``lcc status``: versions, doomed; by the books: queued, cached, bytes."""


class Store(Protocol):
    """A place that keeps rows. Blocking; call it from one thread."""

    def begin(self) -> AbstractContextManager[Tx]:
        """Open a writing transaction; commits at the end of the block, rolls back on an error.

        Raises ``StoreUnavailable`` when the database does not answer or a commit's outcome is unknown.
        """

    def read(self) -> AbstractContextManager[Tx]:
        """Open a short reading transaction that never keeps a writer waiting for long."""

    def snapshot(self) -> AbstractContextManager[Tx]:
        """Open a reading transaction, all of whose answers are of one moment; it locks nothing."""

    def close(self) -> None:
        """Give connections back."""
