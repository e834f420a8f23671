"""``lcc tracker serve``: the mirror tracker over HTTP."""

from typing import TYPE_CHECKING

import click

from lcc_scrapy.apps.tracker.settings import TrackerRules
from lcc_scrapy.cli.context import Lcc, never_to_be_tried_again, pass_lcc
from lcc_scrapy.cli.web import needs_web
from lcc_scrapy.domain.errors import ConfigurationError
from lcc_scrapy.domain.http_serving import Endpoint

if TYPE_CHECKING:
    from lcc_scrapy.config.config import Config


@click.command()
@click.option("--listen", default="", metavar="ENDPOINT", help="Listen here, not at LCC_TRACKER_ENDPOINT.")
@pass_lcc
@never_to_be_tried_again()
def serve(lcc: Lcc, *, listen: str) -> None:
    """Tell whoever asks where exact replicas are, over HTTP.

    It runs until SIGTERM or Ctrl-C; SIGHUP reads the policy and the certificate again. The log goes to
    stderr, or to LOG_FILE.

    \b
    lcc tracker serve
    lcc tracker serve --listen 127.0.0.1:9090
    curl 'http://127.0.0.1:8090/?url=ftp://ftp.example.org/pub/app/1.0/&format=json'
    """  # noqa: D301
    with needs_web("lcc tracker serve"):
        from lcc_scrapy.apps.tracker.serving import make_app
        from lcc_scrapy.web.server import Server
    from lcc_scrapy.machine import logs

    endpoint = _endpoint(lcc.config, listen)
    logs.begin(lcc.settings, lcc.config.log_format)
    with lcc.store() as store:
        serving = make_app(lcc.config, store)
        Server(serving.app, endpoint, lcc.config.http, renewing=serving.renew).serve_until_told()


def _endpoint(config: "Config", listen: str) -> Endpoint:
    try:
        found = Endpoint.parse(listen) if listen else config.of(TrackerRules).endpoint
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--listen") from None
    if found is None:
        raise ConfigurationError("LCC_TRACKER_ENDPOINT is empty: say where to listen")
    return found
