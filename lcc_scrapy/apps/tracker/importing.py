"""Takes in what another tracker says of its domains: whole or not at all, and of these domains only."""

import gzip
import io
import re
import zlib
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO
from urllib.parse import unquote_to_bytes

from lcc_scrapy.apps.tracker.entries import (
    MOST_DEPTH,
    MOST_DIRECTORIES,
    MOST_ENTRIES,
    TARGET_MAX,
    Held,
    Unlisted,
    is_name,
)
from lcc_scrapy.apps.tracker.exchange import (
    MANIFEST_MAX,
    NOTHING,
    BadExchange,
    Manifest,
    digest_of,
    manifest_name,
)
from lcc_scrapy.apps.tracker.identity import Identity
from lcc_scrapy.apps.tracker.loading import Loaded, Scan, clear, give_up, hide, show, stage
from lcc_scrapy.apps.tracker.registry import HOSTID, MOST_OF_SITE, base_of
from lcc_scrapy.apps.tracker.rules.tracked import ADAPTER_MAX, Host, Place, TrackedDomain
from lcc_scrapy.apps.tracker.store import rows_in
from lcc_scrapy.apps.tracker.summing import Pairs, Row
from lcc_scrapy.db.tx import Store, Tx

CLAIM = 86_400
"""Seconds that an import may take; what a killed one left is removed then."""

LINE_MAX = 20_000
DIRECTORY_MAX = 1_000
UNPACKED_MAX = 8_000_000_000
"""Bytes of a line, of that of a directory, and of one file without compression."""

_DIGESTS = frozenset({16, 20, 32, 64})
_NUMBER = re.compile(rb"0|[1-9]\d{0,17}")
_HEX = re.compile(rb"[0-9a-f]{32}")


@dataclass(frozen=True, slots=True)
class Arrived:
    """Files that are what their manifest says, from ``peer``; ``validator`` is that of the manifest there."""

    manifest: Manifest
    peer: str
    files: Sequence[IO[bytes]]
    validator: str = ""


@dataclass(frozen=True, slots=True)
class _Server:
    """The head of a server: where it is, and what was counted."""

    url: str
    scan: Scan
    counts: Loaded


@dataclass(slots=True)
class _Heads:
    """The servers that were read: each comes once, and a site has no more than a look-up may read.

    ``known`` are the numbers of those that are here already, by URL.
    """

    known: dict[str, int]
    _urls: set[str] = field(default_factory=set)
    _sites: Counter[str] = field(default_factory=Counter)

    def placed(self, server: _Server) -> _Server:
        """Return a server with its number, 0 = it has none yet; raises ``BadExchange``."""
        site = base_of(server.url).site
        if server.url in self._urls:
            raise BadExchange(f"server {server.url} is there twice")
        self._urls.add(server.url)
        self._sites[site] += 1
        if self._sites[site] > MOST_OF_SITE:
            raise BadExchange(f"{site} has more than {MOST_OF_SITE} servers")
        return replace(server, scan=replace(server.scan, hostid=self.known.get(server.url, 0)))


def import_domain(
    store: Store, folder: Path, domain: str, peer: str, now: Callable[[], float]
) -> Manifest | None:
    """Take in the files of a domain from the tracker ``peer``; None = its generation is here already.

    Raises ``BadExchange``; then nothing changed. Blocking, in short transactions but for the last.
    """
    with (folder / manifest_name(domain)).open("rb") as file:
        manifest = Manifest.parse_of(domain, file.read(MANIFEST_MAX + 1))
    if is_here(store, manifest, peer):
        return None
    with ExitStack() as opened:
        files = [opened.enter_context((folder / one.name).open("rb")) for one in manifest.files]
        for one, content in zip(manifest.files, files, strict=True):
            if digest_of(content) != (one.sha256, one.bytes):
                raise BadExchange(f"{one.name} is not what the manifest says")
        take_in(store, Arrived(manifest, peer, files), now)
    return manifest


def is_here(store: Store, manifest: Manifest, peer: str) -> bool:
    """Tell whether a generation is here; raises ``BadExchange`` where the peer may not speak for it."""
    with store.read() as tx:
        return _its_domain(tx, manifest, peer).generation == manifest.generation


def take_in(store: Store, arrived: Arrived, now: Callable[[], float]) -> None:
    """Take in what arrived; raises ``BadExchange``, and then nothing changed."""
    staged: list[_Server] = []
    try:
        _stage(store, arrived, now, staged)
        with store.begin() as tx:
            _show(tx, arrived, staged, int(now()))
    except BaseException:
        for one in staged:
            give_up(store, one.counts.first, one.counts.dirs)
        raise
    finally:
        clear(store, now())


def _its_domain(tx: Tx, manifest: Manifest, peer: str) -> TrackedDomain:
    """Return the domain, if the peer may speak for it."""
    its = rows_in(tx).tracked_domain(manifest.domain, lock=False)
    if its is None or not its.peer or its.peer != str(Place.parse(peer)):
        raise BadExchange(f"{peer} may not speak for domain {manifest.domain}")
    if its.generation > manifest.generation:
        raise BadExchange(f"generation {manifest.generation} is older than {its.generation}, which is here")
    return its


def _stage(store: Store, arrived: Arrived, now: Callable[[], float], staged: list[_Server]) -> None:
    """Write the rows of all servers where nobody is shown them, and add these to ``staged``."""
    said = arrived.manifest
    left = said.directories
    bounds = (said.servers * LINE_MAX + left * DIRECTORY_MAX, UNPACKED_MAX, UNPACKED_MAX)
    readers = [_Lines(file, most) for file, most in zip(arrived.files, bounds, strict=True)]
    with store.read() as tx:
        heads = _Heads({one.url: one.hostid for one in rows_in(tx).hosts(said.domain)})
    try:
        while head := readers[0].head():
            server = heads.placed(_server(head, int(now())))
            if [one.head() for one in readers[1:]] != [head[:1], head[:1]]:
                raise BadExchange(f"the files differ at server {server.url}")
            left -= server.counts.dirs
            if left < 0 or len(staged) >= said.servers:
                raise BadExchange("there are more servers or directories than the manifest says")
            staged.append(_stage_one(store, server, readers, now))
        if left or len(staged) != said.servers:
            raise BadExchange("there are fewer servers or directories than the manifest says")
        if any(one.head() for one in readers[1:]):
            raise BadExchange("the files name different servers")
    except (OSError, EOFError, zlib.error) as error:
        raise BadExchange(f"a file cannot be unpacked: {error}") from None
    finally:
        for one in readers:
            one.close()


def _stage_one(store: Store, server: _Server, readers: list["_Lines"], now: Callable[[], float]) -> _Server:
    hostid = server.scan.hostid
    if not hostid:
        with store.begin() as tx:
            hostid = tx.take(HOSTID, 1)
    readers[1].most, readers[2].most = server.counts.links, server.counts.files
    rows = _rows(server.counts.dirs, *readers)
    counts = stage(store, hostid, rows, server.counts, lambda: now() + CLAIM)
    counts = replace(counts, digests=readers[2].pairs)
    return replace(server, scan=replace(server.scan, hostid=hostid), counts=counts)


def _show(tx: Tx, arrived: Arrived, staged: list[_Server], now: int) -> None:
    """Show all servers of the domain and no others, in the caller's transaction."""
    rows = rows_in(tx)
    its = _its_domain(tx, arrived.manifest, arrived.peer)
    known = {one.url: one for one in rows.hosts(its.domain)}
    for site in {base_of(one.url).site for one in staged}:
        if any(one.domain != its.domain for one in rows.hosts_at(site)):
            raise BadExchange(f"{site} is of another domain than {its.domain}")
    for server in staged:
        place = base_of(server.url)
        if known.pop(server.url, None) is None:
            rows.put_host(Host(server.scan.hostid, its.domain, server.url, place.site, now, due=_NEVER))
        show(tx, server.scan, server.counts)
    for gone in known.values():
        hide(tx, gone)
        rows.delete_host(gone.hostid)
    generation, validator = arrived.manifest.generation, arrived.validator
    rows.put_tracked_domain(replace(its, generation=generation, validator=validator, checked=now, error=""))


_NEVER = (1 << 62) - 1
"""When servers of others are due: this tracker does not list them."""


def _server(columns: list[bytes], now: int) -> _Server:
    """Read the head of a server; none was listed later than ``now``, whatever the clock of the peer says."""
    try:
        url, scanned, adapter, *counts = (one.decode("ascii") for one in columns)
        at, dirs, files, links, unsound = map(int, (scanned, *counts))
        place = base_of(url)
    except ValueError:
        raise BadExchange("a server with other columns than there are") from None
    if str(place) != url or len(adapter) > ADAPTER_MAX or not adapter.isprintable():
        raise BadExchange("a server with a URL or adapter as no tracker writes it")
    most = max(files, links, unsound)
    if min(at, dirs - 1, files, links, unsound) < 0 or dirs > MOST_DIRECTORIES or most > MOST_ENTRIES:
        raise BadExchange(f"server {url}: numbers out of bounds")
    return _Server(url, Scan(0, min(at, now), adapter), Loaded(dirs, files, links, 0, unsound))


def _rows(count: int, digests: "_Lines", links: "_Lines", contents: "_Lines") -> Iterator[Row]:
    """Yield the directories of a server; raises ``BadExchange`` where they are no tree in order."""
    above = deque([(0, 1, 0)])
    following, last = 1, b""
    links.begin()
    contents.begin()
    for number in range(count):
        dirs, name, identity = _directory(digests.columns(4))
        parent, left, depth = above.popleft()
        if number and not (is_name(name) and (name > last or not last)):
            raise BadExchange("names of directories that cannot be, or not in their order")
        last = name if left > 1 else b""
        if left > 1:
            above.appendleft((parent, left - 1, depth))
        if dirs:
            above.append((number, dirs, depth + 1))
        following += dirs
        if following > count or (not above and number + 1 < count):
            raise BadExchange("the directories of a server are no tree")
        if depth > MOST_DEPTH:
            raise BadExchange(f"directories more than {MOST_DEPTH} deep")
        here = _targets(links, number), _contents(contents, number)
        yield number, parent, following - dirs, dirs, name if number else b"", identity, *here


def _directory(columns: list[bytes]) -> tuple[int, bytes, Identity | None]:
    dirs, name, md5, sha = columns
    if md5 == sha == NOTHING.encode():
        return _number(dirs), unquote_to_bytes(name), None
    if not (_HEX.fullmatch(md5) and _HEX.fullmatch(sha)):
        raise BadExchange("an identity that is none")
    identity = Identity(bytes.fromhex(md5.decode()), bytes.fromhex(sha.decode()))
    return _number(dirs), unquote_to_bytes(name), identity


def _number(text: bytes) -> int:
    if not _NUMBER.fullmatch(text) or int(text) > MOST_DIRECTORIES:
        raise BadExchange("a number that is none")
    return int(text)


def _targets(lines: "_Lines", number: int) -> Pairs:
    found = tuple((name, unquote_to_bytes(target)) for name, target in lines.of(number))
    if any(not 0 < len(target) <= TARGET_MAX for _, target in found):
        raise BadExchange("a symbolic link that cannot be")
    return found


def _contents(lines: "_Lines", number: int) -> Pairs:
    try:
        found = tuple((name, bytes.fromhex(digest.decode())) for name, digest in lines.of(number))
    except ValueError:
        raise BadExchange("a digest that is none") from None
    if any(len(digest) not in _DIGESTS for _, digest in found):
        raise BadExchange("a digest that is none")
    return found


class _Lines:
    """A file of lines, read as far as it is wanted; a server has had ``pairs`` lines, of ``most``."""

    def __init__(self, file: IO[bytes], unpacked: int) -> None:
        file.seek(0)
        self._file = io.BufferedReader(gzip.GzipFile(fileobj=file, mode="rb"), 1 << 16)
        self._left = min(unpacked, UNPACKED_MAX)
        self._next: list[bytes] | None = None
        self._held = Held()
        self.pairs = self.most = 0

    def begin(self) -> None:
        """Begin the lines of another server."""
        self.pairs, self._held = 0, Held()

    def close(self) -> None:
        """End reading; the file stays open."""
        self._file.close()

    def _peek(self) -> list[bytes] | None:
        """Return the columns of the next line; None at the end."""
        if self._next is None:
            line = self._file.readline(LINE_MAX + 1)
            self._left -= len(line)
            if self._left < 0 or (line and not line.endswith(b"\n")):
                raise BadExchange("a file or line that is too long, or cut")
            self._next = line[:-1].split(b"\t") if line else None
        return self._next

    def head(self) -> list[bytes] | None:
        """Return the columns behind the S of a server; None at the end."""
        columns, self._next = self._peek(), None
        if columns is not None and (columns[0] != b"S" or len(columns) == 1):
            raise BadExchange("lines of no server")
        return None if columns is None else columns[1:]

    def columns(self, count: int) -> list[bytes]:
        """Return the columns of a line that has to be there."""
        columns, self._next = self._peek(), None
        if columns is None or len(columns) != count:
            raise BadExchange("a line is missing, or has other columns than there are")
        return columns

    def of(self, number: int) -> Iterator[tuple[bytes, bytes]]:
        """Yield name and value of a directory's lines, by rising name."""
        last = b""
        while (columns := self._peek()) is not None and columns[0] == b"%d" % number:
            _, name, value = self.columns(3)
            plain = unquote_to_bytes(name)
            if not is_name(plain) or plain <= last:
                raise BadExchange("names that cannot be, or not in their order")
            last = plain
            self._hold(len(plain) + len(value))
            self.pairs += 1
            if self.pairs > self.most:
                raise BadExchange("more links or digests than the server has links or files")
            yield plain, value

    def _hold(self, size: int) -> None:
        try:
            self._held.add(1, size)
        except Unlisted as error:
            raise BadExchange(f"links or digests: {error}") from None
