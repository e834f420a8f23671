"""A little LCC for the annotation engine: documents on a store, and processors inside the test."""

import os
from collections import deque
from dataclasses import replace
from io import BytesIO

from lcc_scrapy.annotation.engine import Engine
from lcc_scrapy.annotation.jobs import Result
from lcc_scrapy.annotation.messages import FAILED, PAGE, RENEW, URDS, findings_of, said_urds
from lcc_scrapy.annotation.processor import Processing
from lcc_scrapy.annotation.profile_feed import profile_changes
from lcc_scrapy.content.files import relative_name
from lcc_scrapy.db.claim import Claim
from lcc_scrapy.db.records import FEED
from lcc_scrapy.domain.annotation_limits import AnnotationRules
from lcc_scrapy.domain.cache import CachedUrl, Tombstone
from lcc_scrapy.domain.entries import urlkey
from lcc_scrapy.domain.urds import Keyword, Urd
from lcc_scrapy.domain.versions import version_of

NOW = 1_800_000_000_000
SITE = "http://www.example.org/"


def urd(owner="anna", uri="*", words=("java",), **other):
    keywords = tuple(Keyword(word, 1) for word in words)
    return Urd(0, owner, uri, keywords=keywords, **other)


class Site:
    """Documents in the cache of a store; their contents in memory by file number, or below a folder."""

    def __init__(self, store, folder=None):
        self.store = store
        self.folder = folder
        self.files = {}
        self.pid = 7

    def key(self, name, mimetype="text/html"):
        return urlkey(self.pid, SITE + name, mimetype)

    def cache(self, *names, text="java", mimetype="text/html"):
        for name in names:
            self._put(name, text.encode() if isinstance(text, str) else text, mimetype)

    def _put(self, name, body, mimetype):
        with self.store.begin() as tx:
            fileid = tx.take("test files", 1)
            self._keep(fileid, body)
            row = self._row(name, mimetype, fileid, len(body), tx.take(FEED, 1))
            old = tx.cached([row.urlkey]).get(row.urlkey)
            if old is None:
                tx.insert_cached([row])
            else:
                tx.insert_versions([version_of(old, NOW // 1000)])
                tx.update_cached([row])

    def _keep(self, fileid, body):
        if self.folder is None:
            self.files[fileid] = body
            return
        path = self.folder / relative_name(1, fileid)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(body)

    def _row(self, name, mimetype, fileid, length, seq):
        url = SITE + name
        return CachedUrl(
            urlkey=urlkey(self.pid, url, mimetype), pid=self.pid, curl=url, mimetype=mimetype, subtype="",
            burl=None, furl=url, mtime=None, len=None, md5=None, timeofday="", fetched_time=NOW // 1000,
            fetched_machineid=1, fetched_fileid=fileid, fetched_len=length, fetched_md5="0" * 32,
            sha256="0" * 64, served_type=mimetype, served_charset="", file_encoding="", final_url=url,
            etag="", last_modified="", confirmed_time=NOW // 1000, seq=seq,
        )  # fmt: skip

    def touch(self, name):
        """Give a document another place in the feed, with the same content."""
        with self.store.begin() as tx:
            (row,) = tx.cached([self.key(name)]).values()
            tx.update_cached([replace(row, seq=tx.take(FEED, 1))])

    def remove(self, name):
        with self.store.begin() as tx:
            (row,) = tx.cached([self.key(name)]).values()
            tx.delete_cached([row.urlkey])
            seq = tx.take(FEED, 1)
            tomb = Tombstone(row.urlkey, row.pid, row.curl, row.mimetype, row.furl, "404", NOW // 1000, seq)
            tx.put_tombstones([tomb])

    def open(self, row):
        if self.folder is not None:
            return (self.folder / relative_name(1, row.fetched_fileid)).open("rb")
        return BytesIO(self.files[row.fetched_fileid])


class InsidePool:
    """One processor in the process of the test. ``held`` keeps jobs back; ``failing`` names pages that fail."""

    def __init__(self, site):
        self.count = 1
        self._site = site
        self._jobs = deque()
        self._processing = Processing(link_texts=True)
        self._revision = 0
        self.held = False
        self.failing = {}
        self.pages = []

    def give(self, job):
        self._jobs.append(job)

    def results(self, _seconds):
        return [] if self.held else [self._result(self._jobs.popleft()) for _ in range(len(self._jobs))]

    def _result(self, job):
        self._renew()
        self.pages.append(job.row.furl.removeprefix(SITE))
        row = job.row
        if row.furl in self.failing:
            return Result(job, failed=self.failing[row.furl])
        bodies = []
        for one in (row, job.previous):
            if one is not None:
                with self._site.open(one) as file:
                    bodies.append(file.read())
        said = [PAGE, row.furl, row.served_type, "", list(job.owners), NOW, job.only, job.is_old]
        answer = self._processing.answer(said, bodies)
        if answer[0] == FAILED:
            return Result(job, failed=answer[1])
        return Result(job, findings_of(answer[1]))

    def _renew(self):
        change = profile_changes(self._site.store, self._revision)
        self._processing.answer([URDS, said_urds(change.changed), list(change.removed)], [])
        self._processing.answer([RENEW, change.afresh or not self._revision], [])
        self._revision = change.revision


def engine_of(site, pool=None, *, effects=None, keeps=True, owner="host", **rules):
    claim = Claim(site.store, "annotating", owner, lambda: NOW // 1000)
    assert claim.take()
    return Engine(
        site.store, claim, pool or InsidePool(site), AnnotationRules(**rules), now=lambda: NOW,
        effects=effects, keeps=keeps,
    )  # fmt: skip


def acis(store):
    with store.read() as tx:
        return tx.acis_after(0, None, 10_000)


def found(store):
    """Return (page, owner) of all ACIs, sorted."""
    return sorted((one.uri.removeprefix(SITE), one.owner) for one in acis(store))


def processors(pid):
    """Return the processors of a process, whichever of its threads started them."""
    found = []
    for task in os.listdir(f"/proc/{pid}/task"):
        try:
            with open(f"/proc/{pid}/task/{task}/children", encoding="ascii") as file:
                found += map(int, file.read().split())
        except OSError:
            continue
    return found
