"""``lcc web``: the HTTP API for content users, and pushes over HTTP."""

import logging
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING

import click

from lcc_scrapy.cli.context import Lcc, never_to_be_tried_again, pass_lcc
from lcc_scrapy.domain.errors import ConfigurationError, MissingExtra

if TYPE_CHECKING:
    from lcc_scrapy.config.config import Config

_OF_THE_EXTRA = frozenset({"fastapi", "markupsafe", "prometheus_client", "starlette", "warcio"})

_log = logging.getLogger(__name__)


@click.command()
@pass_lcc
@never_to_be_tried_again()
def web(lcc: Lcc) -> None:
    """Serve changes and contents over HTTP, and take pushes.

    It listens at LCC_WEB_ENDPOINT for content users, who need a token (`lcc token add`), and at
    LCC_PUSH_ENDPOINTS for providers, who push with their password or a token of scope `push`. Either may be
    empty. Registration (LCC_REGISTRATION), IndexNow (LCC_INDEXNOW), hubs of WebSub and links in mail
    (LCC_PUBLIC_URL) are served at LCC_PUSH_ENDPOINTS too.

    It runs until SIGTERM or Ctrl-C; the log goes to stderr, or to LOG_FILE. docs/http-api.md tells what can
    be asked for, docs/http-push.md how to push.

    \b
    lcc web
    lcc -s LCC_WEB_ENDPOINT=127.0.0.1:9080 web
    curl -H "Authorization: Bearer $(cat token)" http://127.0.0.1:8080/v1/changes
    lcc -s LCC_PUSH_ENDPOINTS=127.0.0.1:9443 web
    curl -u 7:PASSWORD --data-binary @set.xml http://127.0.0.1:9443/v1/push
    """  # noqa: D301
    from lcc_scrapy.machine import logs

    config = lcc.config
    if config.web_endpoint is None and not config.push_endpoints:
        raise ConfigurationError("LCC_WEB_ENDPOINT and LCC_PUSH_ENDPOINTS are empty: say where to listen")
    if config.content_redirect and not config.content_url:
        raise ConfigurationError("LCC_CONTENT_REDIRECT: contents lie in files; it needs LCC_CONTENT_URL")
    logs.begin(lcc.settings, config.log_format)
    with needs_web("lcc web"):
        without_effect = unserved(config)
    for name in without_effect:
        _log.warning("%s is set, and nothing serves it: set LCC_PUSH_ENDPOINTS", name)
    if config.push_endpoints:
        _serve_both(lcc)
    else:
        _serve_content_users(lcc)


def unserved(config: "Config") -> list[str]:
    """Return the settings that have an effect at LCC_PUSH_ENDPOINTS only, where there is none."""
    if config.push_endpoints:
        return []
    own = ["LCC_PUBLIC_URL"] if config.public_url else []
    return own + [name for part in config.apps.parts("public_routes") for name in part.settings(config)]


def _serve_content_users(lcc: Lcc) -> None:
    with needs_web("lcc web"):
        from lcc_scrapy.cli.web_api import make_api
        from lcc_scrapy.web.server import Server

    config = lcc.config
    assert config.web_endpoint is not None
    with lcc.store() as store, lcc.reads(store) as reads, closing(make_api(config, store, reads)) as api:
        Server(api.app, config.web_endpoint, config.http, api.stop).serve_until_told()


def _serve_both(lcc: Lcc) -> None:
    from scrapy.utils.reactor import install_reactor

    from lcc_scrapy.settings import ASYNCIO_REACTOR

    install_reactor(ASYNCIO_REACTOR)  # uvicorn serves on the same loop
    from twisted.internet import reactor  # noqa: TID251 - just installed

    from lcc_scrapy.cli.web_process import WebProcess

    with needs_web("lcc web"):
        process = WebProcess(lcc.config, lcc.home, reactor, lcc.settings)
    process.run()


@contextmanager
def needs_web(command: str) -> Iterator[None]:
    """Say what to install where the extra is missing."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in _OF_THE_EXTRA:
            raise
        raise MissingExtra("web", f"what `{command}` needs ({error})") from None
