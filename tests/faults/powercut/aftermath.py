"""What a power cut left is looked at as the LCC itself looks at it when it comes back, and promises are counted."""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from hashlib import sha256

from scrapy.settings import Settings
from sqlalchemy.exc import DBAPIError

from lcc_scrapy.app.opening import check_owner, machine_number, open_store
from lcc_scrapy.cli.initialise import found
from lcc_scrapy.config.config import Config, load
from lcc_scrapy.content.decoding import BadCoding
from lcc_scrapy.content.files import ContentFiles, relative_path
from lcc_scrapy.content.stored import decoded
from lcc_scrapy.db.sql.store import SqlStore
from lcc_scrapy.domain.compression import ZSTD
from lcc_scrapy.domain.cursor import Position
from lcc_scrapy.domain.errors import LccError
from lcc_scrapy.feed.store_feed import StoreFeed
from lcc_scrapy.intake.absorbing import Intake
from lcc_scrapy.intake.spooled import SpooledFile
from lcc_scrapy.machine.data_directory import DataDirectory
from lcc_scrapy.ops.verification import Kind, Verification
from lcc_scrapy.uns.spool import SpoolFolder
from tests.faults.powercut.story import DOCUMENTS, PIDS, Contents, ProviderSet, body, contents_after, curl
from tests.harness import Lcc

GONE = 0
"""The version of a document that is removed."""


@dataclass(frozen=True)
class Promises:
    """What had been told before a cut: to the operator, to providers, to the content user."""

    ready: bool = False
    providers: bool = False
    accepted: int = 0
    """Sets whose acceptance had been sent: the first so many."""
    cursor: str = ""
    seen: dict[str, int] = field(default_factory=dict)
    """The newest seq that the content user saw, by docid."""

    def and_accepted(self) -> "Promises":
        """Return these and one more set."""
        return replace(self, accepted=self.accepted + 1)

    def and_told(self, what: dict[str, object]) -> "Promises":
        """Return these and what the story noted."""
        if "cursor" in what:
            newer = {docid: seq for docid, seq in what["seen"] if seq > self.seen.get(docid, 0)}
            return replace(self, cursor=str(what["cursor"]), seen=self.seen | newer)
        return replace(self, **dict.fromkeys(what, True))


def contents(sets: Sequence[ProviderSet]) -> list[Contents]:
    """Return what the providers have after no set, the first, the first two, …"""
    states: list[Contents] = [{}]
    for one in sets:
        states.append(contents_after(states[-1], one))
    return states


def losses(lcc: Lcc, promises: Promises, site: str, sets: Sequence[ProviderSet]) -> list[str]:
    """Bring an LCC back as its processes do, but for fetching, and return every promise that is not kept."""
    config = load(Settings(), lcc.settings)
    try:
        if not promises.ready:
            _initialise_again(config)
        return list(_Look(lcc, config, promises, site, sets).all())
    except LccError as error:
        return [f"does not come up: {error}"]
    except (DBAPIError, sqlite3.DatabaseError) as error:
        return [f"the database is broken: {error}"]


def _initialise_again(config: Config) -> None:
    """Do what the operator does whose ``lcc init`` did not come to its end."""
    if not (config.data_dir / "lcc.json").exists():
        found(config)


class _Look:
    def __init__(
        self, lcc: Lcc, config: Config, promises: Promises, site: str, sets: Sequence[ProviderSet]
    ) -> None:
        self._lcc = lcc
        self._config = config
        self._promises = promises
        self._site = site
        self._sets = sets

    def all(self) -> Iterator[str]:
        home = DataDirectory.find(self._config.data_dir)
        if damage := self._integrity():
            yield damage
            return
        store = open_store(self._config)
        try:
            check_owner(home, store)
            content = ContentFiles(self._config.content_dir, machine_number(self._config, store))
            content.prepare()
            if self._promises.providers:
                yield from self._users_view(store)
                yield from self._absorb(store)
                yield from self._documents()
            yield from self._files(store, content)
        finally:
            store.close()

    def _integrity(self) -> str:
        """Look at the database as a whole; opening it rolls back what was not committed. Empty = it is whole."""
        with closing(sqlite3.connect(self._config.data_dir / "lcc.sqlite")) as connection:
            said = connection.execute("pragma integrity_check").fetchall()
        return "" if said == [("ok",)] else f"integrity_check: {said[:3]}"

    def _users_view(self, store: SqlStore) -> Iterator[str]:
        """Look whether what the content user saw is still so, or was replaced by something later."""
        if not self._promises.cursor:
            return
        feed = StoreFeed(store)
        Position.parse(self._promises.cursor).check(feed.head())
        newest = {row.urlkey.hex(): row.seq for row in feed.look(0, 1 << 20).rows}
        for docid, seq in self._promises.seen.items():
            if newest.get(docid, 0) < seq:
                yield f"change {seq} of {docid} was seen, now it is at {newest.get(docid)}"

    def _absorb(self, store: SqlStore) -> Iterator[str]:
        spool = SpoolFolder(self._config.spool_dir)
        spool.lock()
        try:
            yield from (f"set aside: {damaged.reason}" for damaged in spool.recover())
            for waiting in spool.ready():
                with closing(Intake(store, SpooledFile(waiting.path), self._config.policy)) as intake:
                    while not intake.step(0).finished:
                        pass
                spool.remove([waiting])
        finally:
            spool.unlock()

    def _documents(self) -> Iterator[str]:
        """Compare cache and queue with what providers have after the accepted sets.

        One more may be there: it was on disk when the power went, and its provider did not hear so.
        """
        cached, wanted = self._versions()
        for key, version in wanted.items():
            if 0 < version < cached.get(key, GONE):
                yield f"{key} is at version {cached[key]}, and {version} would overwrite it"
        if self._lcc.sql("select count(*) from pidb") != [(len(PIDS),)]:
            yield "a provider is gone"
        has = {key: version for key, version in (cached | wanted).items() if version}
        states = contents(self._sets)[self._promises.accepted :][:2]
        if has not in states:
            yield from _differences(has, states[0])

    def _versions(self) -> tuple[Contents, Contents]:
        """Return which versions are cached, and which are waiting to be fetched (``GONE`` = to be removed)."""
        known = _keys(self._site)
        rows = self._lcc.sql("select curl, furl from lccurl")
        cached = {known[url]: _version(furl) for url, furl in rows}
        assert len(cached) == len(rows), "a URL has two rows"
        wanted = {
            known[url]: GONE if operation == "nothing" else _version(furl)
            for url, furl, operation in self._lcc.sql("select curl, furl, operation from qdb")
        }
        return cached, wanted

    def _files(self, store: SqlStore, content: ContentFiles) -> Iterator[str]:
        """Compare rows and files; a file that no row has is no loss, be it whole or half."""
        found = list(Verification(store, content, self._config.policy).run())
        yield from (f"{one.kind}: {one.detail}" for one in found if one.kind is not Kind.NO_ROW)
        lone = {one.fileid for one in found if one.kind is Kind.NO_ROW}
        whole = self._digests()
        for fileid, _ in content.all_files():
            if fileid not in lone and not any(
                _digest(content, fileid, coding) in whole for coding in ("", ZSTD)
            ):
                yield f"a half file: {relative_path(content.machineid, fileid)}"

    def _digests(self) -> set[bytes]:
        return {
            sha256(body(one.pid, document, version)).digest()
            for one in self._sets
            for document, version in one.updates
        }


def _digest(content: ContentFiles, fileid: int, coding: str) -> bytes:
    """Return the digest of what a file decodes to; empty where it does not."""
    try:
        with decoded(content.open(fileid), coding) as stream:
            return sha256(stream.read()).digest()
    except BadCoding:
        return b""


def _keys(site: str) -> dict[object, tuple[int, int]]:
    return {curl(site, pid, document): (pid, document) for pid in PIDS for document in range(DOCUMENTS)}


def _version(furl: object) -> int:
    return int(str(furl).split("/")[-2])


def _differences(has: Contents, should: Contents) -> Iterator[str]:
    for key in sorted(has.keys() | should.keys()):
        if has.get(key) != should.get(key):
            yield f"(pid, document) {key}: version {has.get(key)} instead of {should.get(key)}"


def cached_documents(lcc: Lcc, site: str) -> Contents:
    """Return what is in the cache, as ``(pid, document): version``, by the bytes of the content files."""
    known = _keys(site)
    rows = lcc.sql("select curl, furl, fetched_machineid, fetched_fileid, file_encoding from lccurl")
    found = {}
    for url, furl, machineid, fileid, coding in rows:
        key, version = known[url], _version(furl)
        right = lcc.content(machineid, fileid, coding) == body(*key, version)
        found[key] = version if right else -1
    return found
