"""``lcc files``: the content files of this machine, for `lcc web` on another one."""

import time

import click

from lcc_scrapy.cli.context import Lcc, never_to_be_tried_again, pass_lcc
from lcc_scrapy.cli.web import needs_web, service
from lcc_scrapy.domain.errors import ConfigurationError


@click.command()
@pass_lcc
@never_to_be_tried_again()
def files(lcc: Lcc) -> None:
    """Serve this machine's content files at LCC_FILES_ENDPOINT, to holders of a token of scope `files`.

    With several crawl machines, it runs on each of them; LCC_FILES_MACHINES and LCC_FILES_TOKEN_FILE tell
    `lcc web`, `lcc export` and ContentUser where they are. It runs until SIGTERM or Ctrl-C.

    \b
    lcc token add machine-1 --scope files > token      # once; kept on machine 1
    LCC_FILES_ENDPOINT=10.0.0.2:8081 lcc files         # on machine 2, with LCC_HTTP_CERTIFICATE
    LCC_FILES_MACHINES=2=https://m2.example.org:8081 LCC_FILES_TOKEN_FILE=token lcc web    # on machine 1
    """  # noqa: D301
    from lcc_scrapy import logs

    config = lcc.config
    if config.files_endpoint is None:
        raise ConfigurationError("LCC_FILES_ENDPOINT is empty: say where to listen")
    logs.begin(lcc.settings, config.log_format)
    with needs_web("lcc files"):
        from lcc_scrapy.users.web.files import make_app
        from lcc_scrapy.users.web.serving import Server
    from lcc_scrapy.storage.tokens import StoreTokens

    with lcc.store() as store:
        tokens = StoreTokens(store)
        app = make_app(config.content_dir, tokens, silence=config.http_silence, now=time.time)
        Server(app, service(config, config.files_endpoint)).serve_until_told()
