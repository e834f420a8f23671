"""Scans one server: the adapter that its URL asks for, checksum files, and the bounds that hold for all.

Nothing of a listing is loaded before all of it came and was read once.
"""

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field
from itertools import chain, islice
from pathlib import Path as Folder
from typing import IO, Self

from lcc_scrapy.apps.tracker import manifests, rsync
from lcc_scrapy.apps.tracker.effort import CannotScan, Effort
from lcc_scrapy.apps.tracker.entries import Directory, Path
from lcc_scrapy.apps.tracker.ftp import Ftp, Refused
from lcc_scrapy.apps.tracker.ftp_listing import FtpListing
from lcc_scrapy.apps.tracker.http_index import HttpListing, http_url
from lcc_scrapy.apps.tracker.listed import Known, Listed, Unchanged
from lcc_scrapy.apps.tracker.rules.tracked import Place
from lcc_scrapy.apps.tracker.settings import ScanLimits
from lcc_scrapy.apps.tracker.spool import Files, visible
from lcc_scrapy.http.outgoing import NoConnection, Outgoing, why
from lcc_scrapy.kit.fetching import Fetcher, Whose

MANIFESTS = 100
"""Checksum files that are read of one server."""

_IF_PRIVATE = "its address is private: see `lcc tracker server set --allow-private`"

Reader = Callable[[Path, IO[bytes]], Awaitable[None]]
"""Pours a file of a server into one here; nothing where the server refuses it."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A server to be scanned, and how: ``bandwidth`` in bytes per second, 0 = no limit."""

    place: Place
    bandwidth: int = 0
    private: bool = False
    known: Known = field(default_factory=Known)


@dataclass(frozen=True, slots=True)
class Scanned(AbstractContextManager["Scanned"]):
    """A listing that may be loaded, and what it took; its files are closed at the end of the block."""

    listed: Listed
    digests: manifests.Digests
    effort: Effort
    files: Files

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.files.close()

    def __iter__(self) -> Iterator[Directory]:
        """Yield what the server lists; names with a leading dot are left out."""
        listing = visible(chain.from_iterable(self.listed.parts))
        return manifests.with_digests(listing, self.digests) if self.digests else listing


@dataclass(slots=True)
class Scanner:
    """Scans servers over the connections of ``outgoing``; large listings wait in ``folder``."""

    outgoing: Outgoing
    agent: str
    limits: ScanLimits
    folder: Folder

    async def scan(self, asked: Asked, now: float) -> Scanned | Unchanged:
        """List a server; raises ``CannotScan``, or ``Unlisted`` where its listing cannot be used.

        ``now`` in epoch seconds, for the age of a listing.
        """
        files = Files(self.folder)
        found: Scanned | Unchanged | None = None
        try:
            async with asyncio.timeout(self.limits.deadline):
                found = await self._scan(_Scan(asked, Effort(self.limits, asked.bandwidth), files, now))
                return found
        except TimeoutError:
            raise CannotScan(f"not done after {self.limits.deadline:g} s (LCC_TRACKER_DEADLINE)") from None
        except (NoConnection, OSError) as error:
            raise CannotScan(why(error, _IF_PRIVATE)) from None
        finally:
            if not isinstance(found, Scanned):
                files.close()

    async def _scan(self, scan: "_Scan") -> Scanned | Unchanged:
        match scan.asked.place.scheme:
            case "ftp":
                return await self._ftp(scan)
            case "rsync":
                return await self._rsync(scan)
            case _:
                return await self._http(scan)

    # --- by each adapter -----------------------------------------------------------------------------

    async def _ftp(self, scan: "_Scan") -> Scanned | Unchanged:
        asked, place = scan.asked, scan.asked.place
        ftp = await Ftp.begin(self.outgoing, place.host, place.port, scan.effort, private=asked.private)
        try:
            base = b"/" + b"/".join(place.path)
            listing = FtpListing(ftp, base, asked.known, scan.now, scan.files.new)
            listed = await listing.run()

            async def read(path: Path, file: IO[bytes]) -> None:
                with suppress(Refused):
                    await ftp.retrieve(b"RETR " + listing.place(path), file.write)

            return await scan.whole(listed, read)
        finally:
            ftp.close()

    async def _rsync(self, scan: "_Scan") -> Scanned | Unchanged:
        asked, place, effort = scan.asked, scan.asked.place, scan.effort
        if not place.path:
            raise CannotScan("the URL of an rsync server names a module: rsync://HOST/MODULE/")
        looking = self.outgoing.address(place.host, place.port, private=asked.private)
        address = await effort.patiently(looking)
        path = os.fsdecode(b"/".join(place.path)) + "/"
        words = rsync.command(address, place.port, path, effort.limits.patience)
        spool = await rsync.listed(words, effort, scan.files.new)
        return await scan.whole(Listed("rsync", (spool,)), None)

    async def _http(self, scan: "_Scan") -> Scanned | Unchanged:
        asked, limits = scan.asked, self.limits
        base = http_url(asked.place)
        fetcher = Fetcher(self.outgoing, self.agent, limits.patience, limits.deadline)
        whose = Whose({base.netloc}, asked.private, bandwidth=asked.bandwidth)
        listing = HttpListing(fetcher, base, whose, scan.effort, asked.known, scan.now, scan.files.new)
        return await scan.whole(await listing.run(), listing.read)


@dataclass(frozen=True, slots=True)
class _Scan:
    """One scan, and what holds for all adapters."""

    asked: Asked
    effort: Effort
    files: Files
    now: float

    async def whole(self, listed: Listed | Unchanged, read: Reader | None) -> Scanned | Unchanged:
        """Read a listing to its end, and the checksum files that it names where they can be read."""
        if isinstance(listed, Unchanged):
            return listed
        found = await asyncio.to_thread(_checked, listed.parts, self.effort.limits)
        collected = manifests.Collected()
        for path in found if read is not None else ():
            assert read is not None
            file = self.files.new()
            await read(path, file)
            await asyncio.to_thread(_add_digests, file, path[:-1], collected)
        return Scanned(listed, collected.digests, self.effort, self.files)


def _checked(parts: Iterable[Iterable[Directory]], limits: ScanLimits) -> list[Path]:
    """Hold a listing to the bounds, and return the paths of its checksum files."""
    counting = Effort(limits)

    def counted() -> Iterator[Directory]:
        for one in visible(chain.from_iterable(parts)):
            counting.enter(len(one.files) + len(one.dirs) + len(one.links), len(one.path))
            yield one

    found = manifests.found_in(counted())
    first = list(islice(found, MANIFESTS))
    for _ in found:
        pass
    return first


def _add_digests(file: IO[bytes], below: Path, collected: manifests.Collected) -> None:
    file.seek(0)
    collected.add(iter(lambda: file.readline(manifests.LINE_MAX), b""), below)
