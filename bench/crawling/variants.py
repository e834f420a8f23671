"""The crawlers that are compared: how each is made ready for a job, started, and what it must have kept."""

import os
import secrets
import sqlite3
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import redis

from crawling import counts, own_code
from crawling.filling import fill
from crawling.lcc import LCC, Lcc, clean_environment, database, no_mariadb
from crawling.running import Failed, Launch
from crawling.site import Site

SCRAPY = (sys.executable, "-m", "scrapy")
HERE = Path(__file__).parent
RIVALS = HERE / "rivals.py"
IMPORTED = {"PYTHONPATH": os.pathsep.join((str(HERE.parent), os.environ.get("PYTHONPATH", "")))}
"""With which crawls find their part of this bench."""
AT_A_TIME = 64
"""Fetches in flight: the LCC's default. With fewer providers one of each, which is all that the LCC does."""

CROWD = 5000
"""From so many providers on, rows of the queue are written as intake would write them: sets take minutes."""

EQUAL = {"ROBOTSTXT_OBEY": "1", "LOG_LEVEL": "INFO"}
"""What the LCC has by default, and every Scrapy project by its template or soon after."""

AIOHTTP = "scrapy.core.downloader.handlers._aiohttp.AiohttpDownloadHandler"
TUNED = {
    "CONCURRENT_ITEMS": "1",
    "ASYNCIO_EVENT_LOOP": "uvloop.Loop",
    "DOWNLOAD_HANDLERS": f'{{"http": "{AIOHTTP}", "https": "{AIOHTTP}"}}',
}
REDIS = "redis://127.0.0.1:6379"


@dataclass(frozen=True)
class Job:
    """What is to be crawled by one run, and where it may write."""

    site: Site
    folder: Path
    providers: int
    size: int
    """Bytes of a page."""
    pages: int
    """In all; a multiple of ``providers``."""
    missing: int = 0
    """How many of them are not there."""

    @property
    def pids(self) -> range:
        """Return the providers' numbers."""
        return range(1, self.providers + 1)

    def urls(self, pid: int) -> list[str]:
        """Return the URLs of a provider."""
        return self.site.urls(pid, self.size, self.pages // self.providers)

    def expect(self, kept: int) -> None:
        """Raise ``Failed`` unless all pages were kept."""
        if kept != self.pages - self.missing:
            raise Failed(f"{kept:,} of {self.pages - self.missing:,} pages were kept: see {self.folder}")

    def expect_own_code(self) -> None:
        """Raise ``Failed`` unless the own pipeline had the title of every page."""
        had = counts.total(self.folder, counts.TITLES)
        if had != self.pages:
            raise Failed(f"{had:,} of {self.pages:,} titles came to the own pipeline: see {self.folder}")

    def expect_passages(self) -> None:
        """Raise ``Failed`` unless all pages went through ``LccPipeline``."""
        if self.passed() != 1:
            raise Failed(f"{self.passed():.3%} of the pages went through LccPipeline: see {self.folder}")

    def passed(self) -> float:
        """Return which share of the pages went through ``LccPipeline``."""
        return counts.total(self.folder, counts.PASSAGES) / (self.pages - self.missing)


@dataclass(frozen=True)
class Ready:
    """A crawl that can be started; ``check`` raises ``Failed`` when it has not kept what it had to.

    ``settled`` tells how many pages are durable so far, where that comes later than their end; ``through``,
    at the end, which share of them went through ``LccPipeline``.
    """

    launch: Launch
    check: Callable[[], None]
    settled: Callable[[], int] | None = None
    through: Callable[[], float] | None = None


Prepare = Callable[..., AbstractContextManager[Ready]]
"""Makes a crawl ready for a ``Job``, with ``own=True`` one with own code (of one process only).

What it used on servers is given back when everything has been measured.
"""


@dataclass(frozen=True)
class Variant:
    """A crawler: its short name, what it is, pages/s that it surely does, and how it is made ready."""

    name: str
    title: str
    pace: int
    prepare: Prepare
    missing: Callable[[], str] = lambda: ""
    """Tells why it cannot run here, or nothing."""


# --- Scrapy -------------------------------------------------------------------------------------------


def scrapy(
    job: Job, settings: dict[str, str], *, keeps: bool = False, processes: int = 1, own: bool = False
) -> Ready:
    """Prepare plain Scrapy; the providers' pages are queued in turns."""
    at_a_time = str(min(AT_A_TIME, job.providers))
    concurrency = {"CONCURRENT_REQUESTS": at_a_time, "CONCURRENT_REQUESTS_PER_DOMAIN": at_a_time}
    options = [f"-s{name}={value}" for name, value in {**EQUAL, **concurrency, **settings}.items()]
    kept = job.folder / "kept"
    if keeps:
        options += ["-a", f"keep={kept}"]
    if own:
        options += ["-a", "own_code=1", f"-sITEM_PIPELINES={own_code.PIPELINE}"]
    commands = []
    for part in range(processes):
        in_turns = zip(*(job.urls(pid) for pid in job.pids[part::processes]), strict=True)
        urls = job.folder / f"urls{part}"
        urls.write_text("\n".join(url for turn in in_turns for url in turn))
        commands.append([*SCRAPY, "runspider", str(RIVALS), "-a", f"urls={urls}", *options])

    def check() -> None:
        if keeps:
            job.expect(rows_in(kept))
        if own:
            job.expect_own_code()

    return Ready(Launch(commands, clean_environment() | IMPORTED, job.folder), check)


def rows_in(kept: Path) -> int:
    with closing(sqlite3.connect(kept / "pages.sqlite")) as rows:
        return int(rows.execute("select count(*) from pages").fetchone()[0])


@contextmanager
def shipped(job: Job, *, own: bool = False) -> Iterator[Ready]:
    yield scrapy(job, {}, own=own)


@contextmanager
def shipped_twice(job: Job) -> Iterator[Ready]:
    yield scrapy(job, {}, processes=2)


@contextmanager
def tuned(job: Job, *, own: bool = False) -> Iterator[Ready]:
    yield scrapy(job, TUNED, own=own)


@contextmanager
def jobdir(job: Job, *, own: bool = False) -> Iterator[Ready]:
    yield scrapy(job, {"JOBDIR": str(job.folder / "job")}, keeps=True, own=own)


@contextmanager
def scrapy_redis(job: Job, *, own: bool = False) -> Iterator[Ready]:
    prefix = f"lcc-bench:{secrets.token_hex(4)}"
    settings = {
        "SCHEDULER": "scrapy_redis.scheduler.Scheduler",
        "DUPEFILTER_CLASS": "scrapy_redis.dupefilter.RFPDupeFilter",
        "SCHEDULER_QUEUE_KEY": f"{prefix}:%(spider)s:requests",
        "SCHEDULER_DUPEFILTER_KEY": f"{prefix}:%(spider)s:dupefilter",
        "REDIS_URL": REDIS,
    }
    try:
        yield scrapy(job, settings, keeps=True, own=own)
    finally:
        with closing(redis.Redis.from_url(REDIS)) as server:
            for key in server.scan_iter(f"{prefix}:*"):
                server.delete(key)


def no_redis() -> str:
    try:
        with closing(redis.Redis.from_url(REDIS)) as server:
            server.ping()
    except redis.RedisError:
        return f"no Redis at {REDIS}"
    return ""


# --- the LCC ------------------------------------------------------------------------------------------

CRAWL = (*SCRAPY, "crawl", "lcc_push", "-a", "stop_when_done=1")
COUNTING = ("-s", 'EXTENSIONS={"crawling.passages.Passages": 0}')
OWN_CODE = (
    *SCRAPY, "runspider", str(HERE / "lcc_own_code.py"), "-a", "stop_when_done=1",
    "-s", f"ITEM_PIPELINES={own_code.PIPELINE}",
)  # fmt: skip
WORKERS = (*LCC, *COUNTING, "crawl", "--workers", "2", "-a", "stop_when_done=1")


@contextmanager
def on(
    kind: str,
    job: Job,
    command: Sequence[str] = (),
    *,
    own: bool = False,
    settings: Mapping[str, str] | None = None,
) -> Iterator[Ready]:
    """Prepare the crawl of an LCC whose queue is full; by default of one process."""
    with database(kind, job.folder) as url:
        final = {"LCC_RETRY_DELAYS": ""} if job.missing else {}  # a 404 of what was declared is tried again
        lcc = Lcc(job.folder, url, {**final, **(settings or {})})
        lcc.command("init")
        if job.providers < CROWD:
            lcc.register({pid: job.site.root(pid) for pid in job.pids})
            lcc.push({pid: job.urls(pid) for pid in job.pids}, job.site.pages[job.size])
        else:
            each = job.pages // job.providers
            fill(lcc.environment | IMPORTED, job.site, job.providers, each, size=job.size)
        command = command or (*(OWN_CODE if own else CRAWL), *COUNTING)

        def check() -> None:
            job.expect(lcc.cached())
            job.expect_passages()
            if own:
                job.expect_own_code()

        launch = Launch([command], lcc.environment | IMPORTED, job.folder)
        yield Ready(launch, check, lambda: job.pages - lcc.waiting(), job.passed)


@contextmanager
def in_bucket(job: Job) -> Iterator[Ready]:
    """Prepare the crawl of an LCC whose contents go to rclone's S3 server, which writes to the same disk."""
    sys.path.insert(0, str(HERE.parents[1]))
    from tests.s3_server import CREDENTIALS, s3_on_disk  # noqa: PLC0415 - nobody else needs the tests

    with (
        s3_on_disk(job.folder / "buckets") as server,
        on("sqlite", job, settings={**CREDENTIALS, "LCC_CONTENT_URL": server.url}) as ready,
    ):
        yield ready


ONE_PROCESS = (
    Variant("scrapy", "Scrapy as shipped, in memory, keeps nothing", 400, shipped),
    Variant("tuned", "Scrapy tuned, in memory, keeps nothing", 800, tuned),
    Variant("jobdir", "Scrapy with JOBDIR, file and committed row per page", 150, jobdir),
    Variant("redis", "scrapy-redis, file and committed row per page", 150, scrapy_redis, no_redis),
    Variant("lcc-sqlite", "lcc-scrapy on SQLite, everything durable", 800, partial(on, "sqlite")),
    Variant(
        "lcc-mariadb", "lcc-scrapy on MariaDB, everything durable", 800, partial(on, "mariadb"), no_mariadb
    ),
)
TWO_PROCESSES = (
    Variant("scrapy-2", "two processes of Scrapy as shipped", 800, shipped_twice),
    Variant("lcc-2", "two processes of lcc-scrapy on SQLite", 1_500, partial(on, "sqlite", command=WORKERS)),
)


def with_own_code(one: Variant) -> Variant:
    """Return a crawler of one process with a team's callback and pipeline."""
    title, prepare = f"own code: {one.title}", partial(one.prepare, own=True)
    return replace(one, name=f"{one.name}-own", title=title, pace=one.pace // 2, prepare=prepare)


VARIANTS = (*ONE_PROCESS, *map(with_own_code, ONE_PROCESS), *TWO_PROCESSES)
"""All of them; a name with ``-2`` is that of two processes side by side, one with ``-own`` has own code."""

ASKED_FOR = (Variant("lcc-s3", "lcc-scrapy on SQLite, contents in object storage (rclone)", 200, in_bucket),)
"""Run only where they are named."""

BY_NAME = {one.name: one for one in (*VARIANTS, *ASKED_FOR)}
