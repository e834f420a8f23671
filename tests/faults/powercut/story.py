"""What is recorded: an LCC is made, two providers push sets, a content user reads along.

``python -m tests.faults.powercut.story FOLDER SITE SETS [CARE]`` runs under strace. What somebody was told
is noted in the record itself, as a write to ``/dev/null``.
"""

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import md5
from pathlib import Path

from lcc_scrapy.db.sql.store import SqlStore
from lcc_scrapy.domain.cursor import Position
from lcc_scrapy.domain.providers import Provider
from lcc_scrapy.domain.selection import Selection
from lcc_scrapy.feed.reader import Reader
from lcc_scrapy.feed.store_feed import StoreFeed
from tests.acceptance.pushers import Conversation
from tests.faults.powercut.careless import environment
from tests.harness import BIN, Lcc, wait_for

MARK = "a power cut may come after: "
PIDS = (1, 2)
DOCUMENTS = 36
"""Of each provider, at most. All sets together remove fewer than the removal guard looks at."""

MEMORY_BODY = 20_000

Contents = dict[tuple[int, int], int]
"""What a provider has, by (pid, document): the number of the set that brought its newest version."""


@dataclass(frozen=True, slots=True)
class ProviderSet:
    """A set as it is pushed: documents with a new version, and documents that go."""

    number: int
    pid: int
    full: bool
    updates: tuple[tuple[int, int], ...]
    """(document, version); a full set names old versions too."""
    removals: tuple[int, ...] = ()


def provider_sets(count: int) -> list[ProviderSet]:
    """Return the sets of the story; the same ones at every call."""
    chance = random.Random(2001)
    has: Contents = {}
    made = []
    for number in range(1, count + 1):
        one = _set(chance, number, PIDS[number % 2], has)
        made.append(one)
        has = contents_after(has, one)
    return made


def _set(chance: random.Random, number: int, pid: int, has: Contents) -> ProviderSet:
    there = sorted(document for owner, document in has if owner == pid)
    fresh = tuple((document, number) for document in sorted(chance.sample(range(DOCUMENTS), 12)))
    going = tuple(sorted(chance.sample(there, min(len(there), chance.choice((1, 2))))))
    if number % 5 in {3, 4}:
        kept = {document: has[pid, document] for document in there if document not in going}
        return ProviderSet(number, pid, full=True, updates=tuple(sorted({**kept, **dict(fresh)}.items())))
    named = {document for document, _ in fresh}
    return ProviderSet(number, pid, full=False, updates=fresh, removals=tuple(set(going) - named))


def contents_after(has: Contents, one: ProviderSet) -> Contents:
    """Return what the providers have when a set has been absorbed, and everything fetched."""
    left = {
        key: version
        for key, version in has.items()
        if key[0] != one.pid or not (one.full or key[1] in one.removals)
    }
    return left | {(one.pid, document): version for document, version in one.updates}


def body(pid: int, document: int, version: int) -> bytes:
    """Return a document; every sixth is too large to be handled in memory."""
    line = f"<p>{pid} {document} {version} {md5(f'{pid}/{document}/{version}'.encode()).hexdigest()}</p>\n".encode()
    return line * (900 if document % 6 == 0 else 1 + document * 3)


def write_site(root: Path, sets: list[ProviderSet]) -> None:
    """Write every version of every document where its provider says it is."""
    for one in sets:
        for document, version in one.updates:
            path = root / f"p{one.pid}" / str(version) / f"{document}.html"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(body(one.pid, document, version))


def curl(site: str, pid: int, document: int) -> str:
    """Return the URL under which a document is known, whatever its version."""
    return f"{site}p{pid}/{document}.html"


def _urls(site: str, one: ProviderSet) -> Iterator[dict[str, object]]:
    for document, version in one.updates:
        data = body(one.pid, document, version)
        yield {
            "c": curl(site, one.pid, document),
            "f": f"{site}p{one.pid}/{version}/{document}.html",
            "mimetype": "text/html",
            "len": len(data),
            "md5": md5(data).hexdigest(),
        }
    for document in one.removals:
        yield {"c": curl(site, one.pid, document), "f": "", "mimetype": "text/html"}


def lcc_in(folder: Path) -> Lcc:
    """Return the LCC of a folder."""
    return Lcc(
        folder,
        "",
        {
            "LCC_MEMORY_BODY": str(MEMORY_BODY),
            "LCC_FULLSETS": "1000",
            "LCC_FILE_GRACE": "1s",
            "LCC_BALLAST": "64k",
            "LCC_CONTENT_COMPRESSION": "zstd",
            "LCC_KEEP_VERSIONS": "1",
        },
    )


class Told:
    """Notes in the record what somebody was told just now."""

    def __init__(self) -> None:
        self._nowhere = os.open("/dev/null", os.O_WRONLY)

    def __call__(self, **what: object) -> None:
        os.write(self._nowhere, (MARK + json.dumps(what)).encode())


class ContentUser(threading.Thread):
    """Follows the feed, and tells after each look what it has seen: its cursor, and every change with its seq."""

    def __init__(self, url: str, told: Told) -> None:
        super().__init__()
        self._store = SqlStore(url)
        self._told = told
        self._cursor: Position | None = None
        self.ending = threading.Event()

    def run(self) -> None:
        while not self.ending.wait(0.02):
            self.look()
        self._store.close()

    def look(self) -> None:
        reader = Reader(StoreFeed(self._store), Selection(), self._cursor)
        seen = [(row.urlkey.hex(), row.seq) for page in reader.pages() for row in page]
        if reader.position != self._cursor:
            self._cursor = reader.position
            self._told(cursor=str(self._cursor), seen=seen)


def _start(lcc: Lcc, care: str) -> None:
    surroundings = {**lcc.environment, **(environment(care) if care else {})}
    with (lcc.folder / "crawl.log").open("ab") as log:
        lcc.crawl = subprocess.Popen(
            [str(BIN / "scrapy"), "crawl", "lcc_push"], env=surroundings, cwd=lcc.cwd, stdout=log, stderr=log
        )
    wait_for(lambda: lcc.listens() or lcc.crawl.poll() is not None, 60, "the UNS")
    assert lcc.crawl.poll() is None, lcc.log_text()[-3000:]


def _push(lcc: Lcc, site: str, one: ProviderSet) -> None:
    conversation = Conversation(lcc.port, one.pid)
    assert "init_accepted" in conversation.login_answer()
    answer = conversation.push("full" if one.full else "partial", list(_urls(site, one)))
    assert "set_accepted" in answer, answer
    conversation.close()


def main(folder: Path, site: str, count: int, care: str) -> None:
    """Run the story."""
    told = Told()
    lcc = lcc_in(folder)
    lcc.lcc("init")
    told(ready=True)
    lcc.register(
        *(Provider(pid, "", allowprivate=True) for pid in PIDS),
        roots=[[f"{site}p{pid}/"] for pid in PIDS],
    )
    told(providers=PIDS)
    try:
        _start(lcc, care)
        _push_all(lcc, site, provider_sets(count), told)
        assert lcc.stop() == 0
    finally:
        lcc.stop(signal.SIGKILL)


def _push_all(lcc: Lcc, site: str, sets: list[ProviderSet], told: Told) -> None:
    user = ContentUser(lcc.shared_url, told)
    user.start()
    chance = random.Random(len(sets))
    try:
        for one in sets:
            _push(lcc, site, one)
            time.sleep(chance.choice((0, 0, 0.1, 0.3)))
            if one is sets[len(sets) // 2]:
                _select(lcc, told)
        lcc.wait_until_fetched(60)
    finally:
        user.ending.set()
        user.join(300)


def _select(lcc: Lcc, told: Told) -> None:
    done = lcc.lcc("select", "--format", "jsonl")
    changes = [json.loads(line) for line in done.stdout.splitlines()]
    cursor = done.stderr.removeprefix("cursor: ").strip()
    told(cursor=cursor, seen=[(change["docid"], change["seq"]) for change in changes])


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), sys.argv[4] if len(sys.argv) > 4 else "")
