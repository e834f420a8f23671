"""``lcc web``: the HTTP API for content users."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from lcc_scrapy.cli.context import Lcc, never_to_be_tried_again, pass_lcc
from lcc_scrapy.domain.errors import ConfigurationError, MissingExtra

if TYPE_CHECKING:
    from lcc_scrapy.config.config import Config
    from lcc_scrapy.content_user import ContentUser
    from lcc_scrapy.db.sql.store import SqlStore
    from lcc_scrapy.web.ports import Lcc as WebLcc


@click.command()
@pass_lcc
@never_to_be_tried_again()
def web(lcc: Lcc) -> None:
    """Serve changes and contents over HTTP.

    It listens at LCC_WEB_ENDPOINT.

    Clients need a token (`lcc token add`). It runs until SIGTERM or Ctrl-C; the log goes to stderr,
    or to LOG_FILE. docs/http-api.md tells what can be asked for.

    \b
    lcc web
    lcc -s LCC_WEB_ENDPOINT=127.0.0.1:9080 web
    curl -H "Authorization: Bearer $(cat token)" http://127.0.0.1:8080/v1/changes
    """  # noqa: D301
    from lcc_scrapy.machine import logs

    config = lcc.config
    endpoint = config.web_endpoint
    if endpoint is None:
        raise ConfigurationError("LCC_WEB_ENDPOINT is empty: say where to listen")
    logs.begin(lcc.settings, config.log_format)
    with needs_web("lcc web"):
        from lcc_scrapy.resourcesync.routes import make_router
        from lcc_scrapy.web import app
        from lcc_scrapy.web.server import Server
    from lcc_scrapy.content_user import ContentUser
    from lcc_scrapy.resourcesync.publication_rows import StorePublications

    with lcc.store() as store, ContentUser(config) as user:
        documents = make_router(StorePublications(store), config.web_url)
        made = app.make_app(_seen(config, store, user), [documents])
        Server(made, endpoint, config.http, lambda: app.stop(made)).serve_until_told()


@contextmanager
def needs_web(command: str) -> Iterator[None]:
    """Say what to install where the extra is missing."""
    try:
        yield
    except ImportError as error:
        raise MissingExtra("web", f"what `{command}` needs ({error})") from None


def _seen(config: "Config", store: "SqlStore", user: "ContentUser") -> "WebLcc":
    from lcc_scrapy.feed.named_cursors import StoreCursors
    from lcc_scrapy.feed.tokens import StoreTokens
    from lcc_scrapy.ops.metrics import measures
    from lcc_scrapy.web.ports import Lcc as WebLcc

    return WebLcc(
        user.feed,
        user.open,
        StoreTokens(store),
        StoreCursors(store),
        lambda: measures(store, config.spool_dir, int(time.time()), config.policy.push_grace),
        bounds=config.web,
    )
