"""``lcc uns``: the UNS and intake as a process of their own; crawls then only fetch."""

import click

from lcc_scrapy.cli.context import Lcc, never_to_be_tried_again, pass_lcc
from lcc_scrapy.domain.errors import ConfigurationError


@click.command()
@pass_lcc
@never_to_be_tried_again()
def uns(lcc: Lcc) -> None:
    """Listen for providers and queue their URLs; fetch nothing.

    Crawls that share the database fetch the URLs. Start them with an empty LCC_UNS_ENDPOINTS, so
    that they leave listening and the spool to this process. It runs until SIGTERM or Ctrl-C; the log goes
    to stderr, or to LOG_FILE.

    \b
    lcc uns
    LCC_UNS_ENDPOINTS=tcp:9000 LCC_UNS_ALLOW_PLAIN_REMOTE=yes lcc uns
    lcc -s LCC_DATA_DIR=/srv/lcc uns
    scrapy crawl lcc_push -s LCC_UNS_ENDPOINTS=       # beside it: fetches only
    """  # noqa: D301
    from scrapy.utils.reactor import install_reactor

    from lcc_scrapy.cli.uns_process import UnsProcess
    from lcc_scrapy.machine import logs
    from lcc_scrapy.settings import ASYNCIO_REACTOR

    config, home = lcc.config, lcc.home
    if not config.uns_listen.endpoints:
        raise ConfigurationError("LCC_UNS_ENDPOINTS is empty: say where to listen")
    logs.begin(lcc.settings, config.log_format)
    install_reactor(ASYNCIO_REACTOR)  # asyncio's own loop in any case: decision 44
    from twisted.internet import reactor  # noqa: TID251 - just installed

    UnsProcess(config, home, reactor, lcc.settings).run()
