"""``lcc query``, ``lcc front query``: the query socket as a process of its own; its check for operators."""

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from lcc_scrapy.apps.query.settings import QuerySettings
from lcc_scrapy.cli.context import Lcc, never_to_be_tried_again, pass_lcc
from lcc_scrapy.domain.errors import ConfigurationError

if TYPE_CHECKING:
    from lcc_scrapy.config.config import Config
    from lcc_scrapy.db.tx import Store
    from lcc_scrapy.ops.doctor import Check, Finding, ReadSettings


_LISTEN = click.option(
    "--listen",
    "endpoints",
    multiple=True,
    metavar="ENDPOINT",
    help="Listen here instead of at LCC_QUERY_ENDPOINTS; may be repeated.",
)


@click.command()
@_LISTEN
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
    config = _listening(lcc, endpoints)
    home = lcc.home
    reactor = _reactor(lcc, config)
    from lcc_scrapy.apps.query.process import QueryProcess

    QueryProcess(config, home, reactor, lcc.settings).run()


@click.command("query")
@_LISTEN
@pass_lcc
@never_to_be_tried_again()
def front_query(lcc: Lcc, endpoints: tuple[str, ...]) -> None:
    """Answer queries about all sub-LCCs over a socket, in XML.

    It is `lcc query` over all of them. Clients over TCP need a token of the front (`lcc token add --front`).
    It runs until SIGTERM or Ctrl-C; the log goes to stderr, or to LOG_FILE.

    \b
    lcc front query --listen tcp:9001:interface=127.0.0.1
    """  # noqa: D301
    config = _listening(lcc, endpoints)
    reactor = _reactor(lcc, config)
    from lcc_scrapy.apps.query.front import FrontQueryProcess

    FrontQueryProcess(config, reactor, lcc.settings).run()


def _listening(lcc: Lcc, endpoints: tuple[str, ...]) -> "Config":
    """Return the settings with the endpoints to listen at."""
    config, rules = lcc.config, lcc.config.of(QuerySettings)
    if endpoints:
        rules = replace(rules, listen=replace(rules.listen, endpoints=endpoints))
    if not rules.listen.endpoints:
        raise ConfigurationError("say where to listen: --listen or LCC_QUERY_ENDPOINTS")
    return replace(config, of_apps=config.of_apps.with_group(rules))


def _reactor(lcc: Lcc, config: "Config") -> Any:
    """Begin to log, and return the reactor, which does not run yet."""
    from scrapy.utils.reactor import install_reactor

    from lcc_scrapy.machine import logs
    from lcc_scrapy.settings import ASYNCIO_REACTOR

    logs.begin(lcc.settings, config.log_format)
    install_reactor(ASYNCIO_REACTOR)  # asyncio's own loop in any case: decision 44
    from twisted.internet import reactor  # noqa: TID251 - just installed

    return reactor


def _check(config: "Config", _store: "Store | None", _settings: "ReadSettings") -> Iterator["Finding"]:
    """Look at the certificates of the endpoints."""
    from lcc_scrapy.ops.doctor import certificates

    yield from certificates(config.of(QuerySettings).listen.endpoints)


CHECK: "Check" = _check
