"""Scans the documents of one provider for links, and lets the queue bring what they lead to.

Documents are read and parsed in a thread of its own, so that neither the event loop nor settling waits for
that; what comes of a few of them is one transaction in the store's thread.
"""

import json
import logging
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any
from urllib.parse import urlsplit

from twisted.internet.defer import Deferred, inlineCallbacks
from twisted.python.failure import Failure

from lcc_scrapy.config.config import Config
from lcc_scrapy.content.decoding import BadCoding
from lcc_scrapy.content.files import ContentAway
from lcc_scrapy.content.stored import decoded
from lcc_scrapy.db.records import RELATION_MAX, DocumentLink
from lcc_scrapy.db.rounds import Rounds
from lcc_scrapy.db.thread import Clock, StoreThread
from lcc_scrapy.db.tx import Tx
from lcc_scrapy.domain.cache import CachedUrl
from lcc_scrapy.domain.errors import ConfigurationError, StoreUnavailable
from lcc_scrapy.domain.providers import State
from lcc_scrapy.domain.removal_guard import DAY
from lcc_scrapy.domain.robots import MAX_BYTES, Robots
from lcc_scrapy.domain.roots import URL_MAX, Root, fetch_url
from lcc_scrapy.feed.content import Content, ContentElsewhere
from lcc_scrapy.links.effort import Effort
from lcc_scrapy.links.links import HTML, read_page
from lcc_scrapy.links.listings import LONGEST, read_listing
from lcc_scrapy.links.parsing import together
from lcc_scrapy.links.rules import LinkRules
from lcc_scrapy.spidering.directives import Directives
from lcc_scrapy.spidering.orphans import Removed
from lcc_scrapy.spidering.submitting import Found, Look, Progress, Read, Reading, Spidering, Terms

_log = logging.getLogger(__name__)

LINKS = 3000
"""Links in one transaction, but those of one page always go together."""

LINKS_READ = 4 * LINKS
"""Links of one look, beyond those of its last document: further documents are left to the next look."""

BUDGET = 0.05
"""Seconds after which a job of the store's thread takes no further transaction."""

PAGES = HTML
LISTS = frozenset(
    (
        "application/xml",
        "text/xml",
        "application/rss+xml",
        "application/atom+xml",
        "application/rdf+xml",
        "application/gzip",
        "application/x-gzip",
    )
)
"""Mimetypes of sitemaps and feeds."""

NOWHERE = -1
"""The depth at which not even start pages are: no link is followed because of it."""

SOON = 0.1
"""Seconds from the news that a document was stored until it is read, with others that came meanwhile."""


@dataclass(frozen=True, slots=True)
class Visits:
    """Which URLs of a provider are visited: ``start`` pages first, its roots where none are given.

    ``every``: seconds after which a URL is visited again, 0 = never; ``adaptive``: each URL when it is due
    by what is known of its changes, whatever ``every`` is. ``depth``: links from a start page at most, None =
    any number of them. ``urls``: how many URLs spiders may know in all, 0 = no limit. ``once``: it ends when
    nothing is left. ``sitemaps``: start pages are also those of the roots' hosts' sitemaps.
    ``directives``: there are no start pages, and links are followed as far as directives reach only.
    ``sample``: instead of all that, so many documents that were pushed are looked at; 0 = none.
    """

    pid: int
    start: tuple[str, ...] = ()
    every: float = 0.0
    adaptive: bool = False
    depth: int | None = None
    urls: int = 0
    once: bool = True
    sitemaps: bool = False
    directives: bool = False
    sample: int = 0

    @property
    def again(self) -> bool:
        """Tell whether anything is visited more than once."""
        return self.adaptive or self.every > 0


def start_pages(tx: Tx, visits: Visits) -> tuple[str, ...]:
    """Return where visits begin; raises ``ConfigurationError`` when they cannot."""
    pid, provider = visits.pid, tx.provider(visits.pid)
    if provider is None:
        raise ConfigurationError(f"there is no provider {pid}: see `lcc provider list`")
    if provider.state not in {State.ACTIVE, State.PAUSED}:
        raise ConfigurationError(f"provider {pid} is {provider.state}: nothing may be fetched from it")
    roots = tuple(map(Root.parse, tx.roots(pid)))
    outside = next((url for url in visits.start if not fetch_url(url, roots)), "")
    if outside:
        raise ConfigurationError(f"start page {outside} lies outside the roots of provider {pid}")
    if visits.directives:
        return ()
    pages = tuple(fetch_url(url, roots) for url in visits.start) or tuple(map(str, roots))
    return (*pages, *_lists(roots)) if visits.sitemaps else pages


def _lists(roots: tuple[Root, ...]) -> list[str]:
    """Return where sites have their sitemaps, or say where these are, as far as that is inside the roots."""
    hosts = dict.fromkeys(replace(root.url, path="/", query="") for root in roots)
    places = [f"{host}{name}" for host in hosts for name in ("robots.txt", "sitemap.xml")]
    return [place for place in places if fetch_url(place, roots)]


def terms_of(rules: LinkRules, visits: Visits, queue_max: int) -> Terms:
    """Return on what terms visits follow links; their text is the same in every process."""
    said = json.dumps(asdict(rules), default=sorted)
    depth = NOWHERE if visits.directives else visits.depth
    return Terms(depth, visits.urls, queue_max, said, "sitemaps" if visits.sitemaps else "")


@dataclass(frozen=True, slots=True)
class _Advanced:
    """What a job took in: ``look`` is what is left of it, None = another one was faster."""

    look: Look | None
    done: Progress


class Reader:
    """Reads documents for links; runs in a thread of its own."""

    def __init__(self, content: Content, rules: LinkRules, permits: Callable[[int], bool]) -> None:
        self._content = content
        self._rules = rules
        self._permits = permits

    def read(self, look: Look) -> list[Read]:
        """Read the first documents of a look: as many as have ``LINKS_READ`` links."""
        return together(self._read_some, look)

    def _read_some(self, look: Look) -> list[Read]:
        read: list[Read] = []
        known: dict[str, str] = {}  # pages of one site share most of their links
        links = 0
        for reading in look.documents:
            if links >= LINKS_READ:
                break
            read.append(self._read(reading, look.roots, known))
            links += len(read[-1].links)
        return read

    def _read(self, reading: Reading, roots: tuple[Root, ...], known: dict[str, str]) -> Read:
        effort = Effort()
        links = self._links(reading, effort) if reading.links is None else reading.links
        if effort.cut:
            _log.warning("read for links in part, it takes too long: %(url)s", {"url": reading.row.furl})
        depth = reading.depth + 1
        if reading.row.served_type not in PAGES:
            depth = reading.depth  # what a list names is as near to the start as the list
        if not self._permits(depth):
            return Read(reading, links, (), effort.cut)
        followed = [link.url for link in links if not link.nofollow]
        known |= {url: fetch_url(url, roots) for url in followed if url not in known}
        targets = (known[url] for url in followed)
        found = tuple(Found(furl, depth, reading.row.urlkey) for furl in targets if furl)
        return Read(reading, links, found, effort.cut)

    def _links(self, reading: Reading, effort: Effort) -> tuple[DocumentLink, ...]:
        row = reading.row
        where = row.final_url or row.furl
        if row.served_type in PAGES:
            return self._of_page(reading, where, effort)
        if row.served_type in LISTS:
            listing = read_listing(self._body(row, LONGEST), where, self._rules, effort)
            return tuple(DocumentLink(one.url, "listed") for one in (*listing.sitemaps, *listing.pages))
        if urlsplit(where).path == "/robots.txt":
            robots = Robots.parse(self._body(row, MAX_BYTES), self._rules.agent)
            return tuple(DocumentLink(url, "sitemap") for url in robots.sitemaps if len(url) <= URL_MAX)
        return ()

    def _of_page(self, reading: Reading, where: str, effort: Effort) -> tuple[DocumentLink, ...]:
        row, rules = reading.row, self._rules
        body = self._body(row, rules.longest)
        served = row.served_type, row.served_charset
        page = read_page(body, where, *served, reading.headers, rules, effort)
        return tuple(
            DocumentLink(link.url, link.relation[:RELATION_MAX], link.nofollow or not page.follow)
            for link in page.links
        )

    def _body(self, row: CachedUrl, most: int) -> bytes:
        try:
            with self._content.open(row) as file:
                return decoded(file, row.file_encoding).read(most)
        except (BadCoding, ContentElsewhere) as error:
            _log.warning("not read for links: %s", error)
        except ContentAway as error:
            raise StoreUnavailable(f"not read for links: {error.strerror}") from None
        except OSError as error:
            _log.debug("document %s was replaced or removed meanwhile: %s", row.docid, error)
        return b""


class Scanner:
    """Goes through the feed of one provider; ``touched`` is called when URLs of it were queued.

    ``count`` adds to a statistic: its name, and how much.

    ``removed`` is told of orphans that were removed (key, reason).

    ``at_end``: at the last look there was nothing left to be read, or nothing more may be followed.
    """

    def __init__(
        self,
        spidering: Spidering,
        thread: StoreThread,
        readers: StoreThread,
        reader: Reader,
        clock: Clock,
        *,
        visits: Visits,
        poll: float,
        touched: Callable[[], object],
        count: Callable[[str, int], object],
        removed: Callable[[Removed], object] = lambda _: None,
        now: Callable[[], float] = time.time,
        ticks: Callable[[], float] = time.monotonic,
    ) -> None:
        self._count = count
        self._ticks = ticks
        self._removed = removed
        self._orphans: Iterator[Removed] | None = None
        self._next_look = 0.0
        self._spidering = spidering
        self._directives = Directives(spidering)
        self._thread = thread
        self._readers = readers
        self._reader = reader
        self._rounds = Rounds(clock, self._go_on, lambda: SOON if self._news else poll, "look for links")
        self._visits = visits
        self._touched = touched
        self._now = now
        self._begun = now()
        self._seeded = False
        self._at_end = False
        self._full = False
        self._news = False

    def start(self) -> None:
        """Begin with the start pages."""
        self._rounds.begin_in(0.0)

    def stop(self) -> Deferred[None]:
        """End after the step that is running."""
        return self._rounds.stop()

    def apply(self, config: Config) -> None:
        """Go on with another policy and another limit of the queue."""
        self._spidering.policy = config.policy
        self._spidering.terms = replace(self._spidering.terms, queue_max=config.queue_max)

    def look_soon(self) -> None:
        """Take note that there may be something new to be read."""
        self._news = True
        self._rounds.begin_in(SOON)

    def is_done(self) -> bool:
        """Tell whether nothing is left to be visited or read (in the store's thread)."""
        if not (self._visits.once and self._seeded and self._at_end):
            return False
        return self._nothing_left() and not self._is_to_look()

    def _nothing_left(self) -> bool:
        return self._spidering.is_done(self._before(), full=self._full)

    def _before(self) -> int:
        """Return before when a URL was last visited, or was due, that is to be visited again; 0 = none is."""
        if not self._visits.again:
            return 0
        return int((self._begun if self._visits.once else self._now()) - self._visits.every)

    # --- steps -----------------------------------------------------------------------------------

    @inlineCallbacks
    def _go_on(self) -> Any:
        """Go on for as long as there is anything to be done now."""
        if not self._seeded:
            while (yield self._thread.run(self._spidering.locate)):
                pass
            seeded = yield self._thread.run(self._spidering.seed, self._visits.start, self._time())
            self._seeded = True
            self._tell(seeded.urls)
        while not self._rounds.stopping:
            self._news = False
            look = yield self._thread.run(self._spidering.look, self._time())
            self._at_end = look.at_end
            if not look.admitted or not (yield self._step(look)):
                break

    @inlineCallbacks
    def _step(self, look: Look) -> Any:
        """Take the scan forward, or visit again; tell whether there may be more to do at once."""
        if look.documents:
            return (yield self._read_and_take_in(look))
        if look.upto > look.scan.seq:
            yield self._thread.run(self._spidering.advance, look, [], look.upto, self._time())
            return not look.at_end
        dug = yield self._thread.run(self._directives.dig, self._time())
        if dug is not None:
            self._tell(dug.urls)
            self._full = dug.full
            return not dug.held_up
        looked_at = 0
        if self._visits.again:
            looked_at = yield self._thread.run(self._spidering.revisit, self._before(), self._time())
            self._tell(looked_at)
        if looked_at:
            return True
        removed = yield self._thread.run(self._orphan_step)
        self._removed(removed or ())
        return removed is not None

    def _orphan_step(self) -> Removed | None:
        """Go on with a look for orphans, one transaction of it; None when there is nothing to look for."""
        look, self._orphans = self._orphans, None  # one that fails begins anew
        if look is None:
            if not self._is_to_look() or not self._nothing_left():
                return None
            look = self._spidering.orphans(self._time()).run()
        removed = next(look, None)
        if removed is None:
            self._next_look = self._now() + DAY
        else:
            self._orphans = look
        return removed

    def _is_to_look(self) -> bool:
        return self._now() >= self._next_look and self._spidering.may_have_orphans()

    @inlineCallbacks
    def _read_and_take_in(self, look: Look) -> Any:
        """Read documents, the next ones while the last ones are taken in: else nothing is found for long.

        Fetches are several times as fast as one step after the other would be.
        """
        look, read = yield self._read(look)
        while True:
            reading_ahead = self._read_ahead(look).addErrback(_left_for_later)
            goes_on = yield self._take_in(look, read)
            ahead = yield reading_ahead
            if not goes_on or ahead is None or self._rounds.stopping:
                return goes_on
            look, read = ahead

    @inlineCallbacks
    def _read_ahead(self, look: Look) -> Any:
        """Return what follows a look, and what was read of it; None where nothing does."""
        behind = replace(look.scan, seq=look.upto)
        ahead = yield self._thread.run(self._spidering.look, self._time(), behind)
        if not ahead.admitted or not ahead.documents:
            return None
        return (yield self._read(ahead))

    @inlineCallbacks
    def _read(self, look: Look) -> Any:
        """Read a look in the readers' thread: return what was read of it, and a look at just these documents.

        Those that were read in part only are counted.
        """
        read = yield self._readers.run(self._reader.read, look)
        cut = sum(one.cut for one in read)
        if cut:
            self._count("lcc/read_in_part", cut)
        return look.first(len(read)), read

    @inlineCallbacks
    def _take_in(self, look: Look, read: Sequence[Read]) -> Any:
        """Take in what was read; tell whether to go on."""
        waiting = deque(portions(read))
        while waiting:
            advanced = yield self._thread.run(self._advance, look, waiting)
            self._tell(advanced.done.urls)
            if advanced.look is None:
                return True
            look, self._full = advanced.look, advanced.done.full
            self._at_end |= self._full
            if advanced.done.held_up or self._rounds.stopping:
                return False
        return True

    def _advance(self, look: Look, waiting: deque[list[Read]]) -> _Advanced:
        """Take in portions for ``BUDGET`` seconds (in the store's thread).

        With one portion a job, each would wait for a commit of fetched pages, and a scan would fall behind.
        """
        until, urls = self._ticks() + BUDGET, 0
        while True:
            portion = waiting.popleft()
            upto = portion[-1].reading.row.seq if waiting else look.upto
            done = self._spidering.advance(look, portion, upto, self._time())
            if done is None:
                return _Advanced(None, Progress(urls))
            urls += done.urls
            look = replace(look, scan=replace(look.scan, seq=upto))
            if done.held_up or not waiting or self._ticks() >= until:
                return _Advanced(look, replace(done, urls=urls))

    def _tell(self, urls: int) -> None:
        if urls:
            self._touched()

    def _time(self) -> int:
        return int(self._now())


def _left_for_later(failure: Failure) -> None:
    """Leave what could not be read ahead to the next look, which says why."""
    _log.debug("not read ahead: %s", failure.getErrorMessage())


def portions(read: Sequence[Read]) -> list[list[Read]]:
    """Cut what was read into transactions of about ``LINKS`` links."""
    cut: list[list[Read]] = []
    links = 0
    for one in read:
        if not cut or links + len(one.links) > LINKS:
            cut.append([])
            links = 0
        cut[-1].append(one)
        links += len(one.links)
    return cut
