"""``lcc query``: the query socket, as a process of its own."""

import click

from lcc_scrapy.cli.context import Lcc, never_to_be_tried_again, pass_lcc
from lcc_scrapy.domain.errors import ConfigurationError


@click.command()
@click.option(
    "--listen",
    "endpoints",
    multiple=True,
    metavar="ENDPOINT",
    help="Listen here instead of at LCC_QUERY_ENDPOINTS; may be repeated.",
)
@pass_lcc
@never_to_be_tried_again()
def query(lcc: Lcc, endpoints: tuple[str, ...]) -> None:
    """Answer queries of content users over a socket, in XML.

    Clients over TCP need a token (`lcc token add`). At a Unix socket, file permissions decide. It runs until
    SIGTERM or Ctrl-C; the log goes to stderr, or to LOG_FILE.

    \b
    lcc query --listen tcp:9001:interface=127.0.0.1
    lcc query --listen unix:/run/lcc/query:mode=660
    LCC_QUERY_ENDPOINTS=ssl:9001:privateKey=key.pem:certKey=chain.pem lcc query
    """  # noqa: D301
    from dataclasses import replace

    from scrapy.utils.reactor import install_reactor

    from lcc_scrapy.cli.query_process import QueryProcess
    from lcc_scrapy.machine import logs
    from lcc_scrapy.settings import ASYNCIO_REACTOR

    config = lcc.config
    if endpoints:
        config = replace(config, query_listen=replace(config.query_listen, endpoints=endpoints))
    if not config.query_listen.endpoints:
        raise ConfigurationError("say where to listen: --listen or LCC_QUERY_ENDPOINTS")
    home = lcc.home
    logs.begin(lcc.settings, config.log_format)
    install_reactor(ASYNCIO_REACTOR)  # asyncio's own loop in any case: decision 44
    from twisted.internet import reactor  # noqa: TID251 - just installed

    QueryProcess(config, home, reactor, lcc.settings).run()
