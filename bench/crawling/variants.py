"""The crawlers that are compared: how each is made ready for a job, started, and what it must have kept."""

import secrets
import sqlite3
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import redis

from crawling.lcc import LCC, Lcc, clean_environment, database, no_mariadb
from crawling.running import Failed, Launch
from crawling.site import Site

SCRAPY = (sys.executable, "-m", "scrapy")
RIVALS = Path(__file__).parent / "rivals.py"
AT_A_TIME = 64
"""Fetches in flight: the LCC's default. With fewer providers one of each, which is all that the LCC does."""

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

    @property
    def pids(self) -> range:
        """Return the providers' numbers."""
        return range(1, self.providers + 1)

    def urls(self, pid: int) -> list[str]:
        """Return the URLs of a provider."""
        return self.site.urls(pid, self.size, self.pages // self.providers)

    def expect(self, kept: int) -> None:
        """Raise ``Failed`` unless all pages were kept."""
        if kept != self.pages:
            raise Failed(f"{kept:,} of {self.pages:,} pages were kept: see {self.folder}")


@dataclass(frozen=True)
class Ready:
    """A crawl that can be started; ``check`` raises ``Failed`` when it has not kept what it had to.

    ``settled`` tells how many pages are durable so far, where that comes later than their end.
    """

    launch: Launch
    check: Callable[[], None]
    settled: Callable[[], int] | None = None


Prepare = Callable[[Job], AbstractContextManager[Ready]]
"""Makes a crawl ready; what it used on servers is given back when everything has been measured."""


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


def scrapy(job: Job, settings: dict[str, str], *, keeps: bool = False, processes: int = 1) -> Ready:
    """Prepare plain Scrapy; the providers' pages are queued in turns."""
    at_a_time = str(min(AT_A_TIME, job.providers))
    concurrency = {"CONCURRENT_REQUESTS": at_a_time, "CONCURRENT_REQUESTS_PER_DOMAIN": at_a_time}
    options = [f"-s{name}={value}" for name, value in {**EQUAL, **concurrency, **settings}.items()]
    kept = job.folder / "kept"
    if keeps:
        options += ["-a", f"keep={kept}"]
    commands = []
    for part in range(processes):
        in_turns = zip(*(job.urls(pid) for pid in job.pids[part::processes]), strict=True)
        urls = job.folder / f"urls{part}"
        urls.write_text("\n".join(url for turn in in_turns for url in turn))
        commands.append([*SCRAPY, "runspider", str(RIVALS), "-a", f"urls={urls}", *options])
    launch = Launch(commands, clean_environment(), job.folder)
    return Ready(launch, lambda: job.expect(rows_in(kept)) if keeps else None)


def rows_in(kept: Path) -> int:
    with closing(sqlite3.connect(kept / "pages.sqlite")) as rows:
        return int(rows.execute("select count(*) from pages").fetchone()[0])


@contextmanager
def shipped(job: Job) -> Iterator[Ready]:
    yield scrapy(job, {})


@contextmanager
def shipped_twice(job: Job) -> Iterator[Ready]:
    yield scrapy(job, {}, processes=2)


@contextmanager
def tuned(job: Job) -> Iterator[Ready]:
    yield scrapy(job, TUNED)


@contextmanager
def jobdir(job: Job) -> Iterator[Ready]:
    yield scrapy(job, {"JOBDIR": str(job.folder / "job")}, keeps=True)


@contextmanager
def scrapy_redis(job: Job) -> Iterator[Ready]:
    prefix = f"lcc-bench:{secrets.token_hex(4)}"
    settings = {
        "SCHEDULER": "scrapy_redis.scheduler.Scheduler",
        "DUPEFILTER_CLASS": "scrapy_redis.dupefilter.RFPDupeFilter",
        "SCHEDULER_QUEUE_KEY": f"{prefix}:%(spider)s:requests",
        "SCHEDULER_DUPEFILTER_KEY": f"{prefix}:%(spider)s:dupefilter",
        "REDIS_URL": REDIS,
    }
    try:
        yield scrapy(job, settings, keeps=True)
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
WORKERS = (*LCC, "crawl", "--workers", "2", "-a", "stop_when_done=1")


@contextmanager
def on(kind: str, job: Job, command: Sequence[str] = CRAWL) -> Iterator[Ready]:
    """Prepare the crawl of an LCC whose queue is full."""
    with database(kind, job.folder) as url:
        lcc = Lcc(job.folder, url)
        lcc.command("init")
        lcc.register({pid: job.site.root(pid) for pid in job.pids})
        lcc.push({pid: job.urls(pid) for pid in job.pids}, job.site.pages[job.size])
        launch = Launch([command], lcc.environment, job.folder)
        yield Ready(launch, lambda: job.expect(lcc.cached()), lambda: job.pages - lcc.waiting())


VARIANTS = (
    Variant("scrapy", "Scrapy as shipped, in memory, keeps nothing", 400, shipped),
    Variant("tuned", "Scrapy tuned, in memory, keeps nothing", 800, tuned),
    Variant("jobdir", "Scrapy with JOBDIR, file and committed row per page", 150, jobdir),
    Variant("redis", "scrapy-redis, file and committed row per page", 150, scrapy_redis, no_redis),
    Variant("lcc-sqlite", "lcc-scrapy on SQLite, everything durable", 800, lambda job: on("sqlite", job)),
    Variant(
        "lcc-mariadb", "lcc-scrapy on MariaDB, everything durable", 800, lambda job: on("mariadb", job),
        no_mariadb,
    ),
    Variant("scrapy-2", "two processes of Scrapy as shipped", 800, shipped_twice),
    Variant("lcc-2", "two processes of lcc-scrapy on SQLite", 1_500, lambda job: on("sqlite", job, WORKERS)),
)  # fmt: skip
"""All of them; a name with ``-2`` is that of two processes side by side."""

BY_NAME = {one.name: one for one in VARIANTS}
