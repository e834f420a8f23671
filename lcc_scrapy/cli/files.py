"""``lcc files``: the content files of this machine, for `lcc web` on another one."""

import logging
import socket
import time
from ipaddress import ip_address
from typing import TYPE_CHECKING

import click

from lcc_scrapy.cli.context import Lcc, never_to_be_tried_again, pass_lcc
from lcc_scrapy.domain.errors import ConfigurationError

if TYPE_CHECKING:
    from lcc_scrapy.domain.http_serving import Endpoint

_log = logging.getLogger(__name__)


@click.command()
@pass_lcc
@never_to_be_tried_again()
def files(lcc: Lcc) -> None:
    """Serve this machine's content files to other machines.

    It listens at LCC_FILES_ENDPOINT. Clients need a token of scope `files`.

    With several crawl machines, it runs on each of them, and notes in the database where that is. `lcc web`,
    `lcc query`, `lcc export` and ContentUser on other machines find it there; LCC_FILES_TOKEN_FILE holds
    their token. It runs until SIGTERM or Ctrl-C.

    \b
    lcc token add machine-1 --scope files > token      # once; kept on machine 1
    LCC_FILES_ENDPOINT=10.0.0.2:8081 lcc files         # on machine 2, with LCC_HTTP_CERTIFICATE
    LCC_FILES_TOKEN_FILE=token lcc web                 # on machine 1
    """  # noqa: D301
    from lcc_scrapy.machine import logs

    config = lcc.config
    if config.files_endpoint is None:
        raise ConfigurationError("LCC_FILES_ENDPOINT is empty: say where to listen")
    if config.content_url:
        raise ConfigurationError("contents lie in LCC_CONTENT_URL: other machines read them there")
    logs.begin(lcc.settings, config.log_format)
    from lcc_scrapy.app.opening import machine_number
    from lcc_scrapy.feed.tokens import StoreTokens
    from lcc_scrapy.ops.machines import register_address
    from lcc_scrapy.web.files import FilesApp
    from lcc_scrapy.web.server import Server

    with lcc.store() as store:
        server = Server(
            FilesApp(config.content_dir, StoreTokens(store), time.time),
            config.files_endpoint,
            config.http,
        )
        address = config.files_address or _address(
            config.files_endpoint, secure=bool(config.http.certificate)
        )
        register_address(store, machine_number(config, store), address)
        _log.info("other machines find it at %s", address or "no address: LCC_FILES_ADDRESS is empty")
        server.serve_until_told()


def _address(endpoint: "Endpoint", *, secure: bool) -> str:
    """Return how other machines reach an endpoint; empty where they do not without a proxy."""
    if endpoint.is_private or not endpoint.port:
        return ""
    host = endpoint.host
    if secure or ip_address(host).is_unspecified:
        host = socket.getfqdn()
    return f"{'https' if secure else 'http'}://{f'[{host}]' if ':' in host else host}:{endpoint.port}"
