"""``lcc crawl``: several crawl processes on one machine, started, watched and stopped together."""

import os
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

import click

from lcc_scrapy.cli.context import UNWORKABLE, Failure, Lcc, Unworkable, never_to_be_tried_again, pass_lcc
from lcc_scrapy.domain.errors import StoreUnavailable

if TYPE_CHECKING:
    from lcc_scrapy.cli.supervisor import Program


@click.command()
@click.option("--workers", type=click.IntRange(1, 64), default=1, show_default=True, help="Crawl processes.")
@click.option("--spider", default="lcc_push", show_default=True, help="The spider that each of them runs.")
@click.option(
    "-a", "arguments", metavar="NAME=VALUE", multiple=True, help="Spider argument; may be repeated."
)
@click.option("--no-uns", is_flag=True, help="Listen nowhere: `lcc uns` runs beside it.")
@pass_lcc
@never_to_be_tried_again()
def crawl(lcc: Lcc, *, workers: int, spider: str, arguments: tuple[str, ...], no_uns: bool) -> None:
    """Run several crawl processes, and start those that fail again.

    They share the queue, its turns and LCC_BANDWIDTH.

    With more than one worker, a process of its own listens for providers (LCC_UNS_ENDPOINTS), as `lcc uns`
    does. A process that is killed is back within a second; one that fails waits longer each time. SIGTERM
    or Ctrl-C stops them all, a second one at once; SIGHUP makes them read settings and certificates again.
    Outside a Scrapy project they run with the LCC's own settings.

    \b
    lcc crawl --workers 3
    lcc crawl --workers 2 --no-uns        # beside `lcc uns`
    """  # noqa: D301
    from lcc_scrapy.cli.supervisor import Supervisor
    from lcc_scrapy.machine import logs
    from lcc_scrapy.machine.watchdog import SignsOfLife

    _ = lcc.home
    _check_database(lcc)
    logs.begin(lcc.settings, lcc.config.log_format)
    listens = _serves_uns(lcc, spider) and not no_uns and bool(lcc.config.uns_listen.endpoints)
    crawls, its_uns = _programs(lcc, workers, spider, arguments, listens=listens)
    signs_of_life = SignsOfLife(health_file=lcc.config.health_file)
    status = Supervisor(crawls, its_uns, lcc.config.watchdog, signs_of_life).run()
    if status:
        kind = Unworkable if status == UNWORKABLE else Failure
        raise kind(f"a crawl process could not begin: it ended with status {status}")


def _check_database(lcc: Lcc) -> None:
    """Refuse a database with which no crawl process could begin; one that is away is waited for."""
    from lcc_scrapy.app.opening import check_store, unchecked_store

    store = unchecked_store(lcc.config)
    try:
        with suppress(StoreUnavailable):
            check_store(store, apps=lcc.config.apps)
    finally:
        store.close()


def _programs(
    lcc: Lcc, workers: int, spider: str, arguments: tuple[str, ...], *, listens: bool
) -> tuple[list["Program"], "Program | None"]:
    """Return the crawl processes, and the UNS where that is a process of its own."""
    from lcc_scrapy.cli.supervisor import Program

    ours = {name: value for name, value in lcc.given.items() if name.startswith("LCC_")}
    given = [word for name in sorted(lcc.given.keys() - ours) for word in ("-s", f"{name}={lcc.given[name]}")]
    environment = _environment() | ours  # a database's address is nothing for the process list
    own_uns = listens and workers > 1
    crawling = [sys.executable, "-m", "scrapy", "crawl", spider, *given]
    for argument in arguments:
        crawling += ["-a", argument]
    if own_uns or not listens:
        crawling += ["-s", "LCC_UNS_ENDPOINTS="]
    listening = [sys.executable, "-m", "lcc_scrapy.cli.main", *given, "uns"]
    crawls = [Program("a crawl process", crawling, environment) for _ in range(workers)]
    return crawls, Program("the UNS", listening, environment) if own_uns else None


def _serves_uns(lcc: Lcc, spider: str) -> bool:
    """Tell whether processes of a spider listen for providers."""
    from scrapy.addons import AddonManager
    from scrapy.spiderloader import get_spider_loader
    from scrapy.utils.project import inside_project

    settings = lcc.settings.copy()
    if not inside_project():
        settings.setmodule("lcc_scrapy.settings", priority="project")
    AddonManager.load_pre_crawler_settings(settings)
    loader = get_spider_loader(settings)
    try:
        return bool(getattr(loader.load(spider), "serves_uns", False))
    except KeyError:
        raise Unworkable(f"no spider {spider}: there are {', '.join(sorted(loader.list()))}") from None


def _environment() -> dict[str, str]:
    """Return the environment of the processes: outside a Scrapy project, the LCC's own settings hold."""
    from scrapy.utils.project import inside_project

    own = {} if inside_project() else {"SCRAPY_SETTINGS_MODULE": "lcc_scrapy.settings"}
    return {**os.environ, **own}
