"""``lcc front registration``: site owners register at one address for all sub-LCCs."""

import click

from lcc_scrapy.apps.registration.rules import OFF
from lcc_scrapy.apps.registration.settings import RegistrationRules
from lcc_scrapy.cli.context import Lcc, never_to_be_tried_again, pass_lcc
from lcc_scrapy.cli.web import needs_web
from lcc_scrapy.domain.errors import ConfigurationError


@click.command()
@pass_lcc
@never_to_be_tried_again()
def registration(lcc: Lcc) -> None:
    """Let site owners register, each in the sub-LCC that has most room.

    It serves the pages and the JSON API of registration at LCC_PUSH_ENDPOINTS, as `lcc web` does for one LCC,
    with the same settings (LCC_REGISTRATION and others). It writes into the --database of the sub-LCCs. It
    runs until SIGTERM or Ctrl-C; the log goes to stderr, or to LOG_FILE.

    \b
    lcc front registration
    lcc -s LCC_REGISTRATION=open -s LCC_PUSH_ENDPOINTS=127.0.0.1:9443 front registration
    """  # noqa: D301
    from scrapy.utils.reactor import install_reactor

    from lcc_scrapy.machine import logs
    from lcc_scrapy.settings import ASYNCIO_REACTOR

    config = lcc.config
    if config.of(RegistrationRules).mode == OFF:
        raise ConfigurationError("LCC_REGISTRATION is off: say who may register, `approve` or `open`")
    if not config.push_endpoints:
        raise ConfigurationError("LCC_PUSH_ENDPOINTS is empty: say where to listen")
    logs.begin(lcc.settings, config.log_format)
    install_reactor(ASYNCIO_REACTOR)  # uvicorn serves on the same loop
    from twisted.internet import reactor  # noqa: TID251 - just installed

    with needs_web("lcc front registration"):
        from lcc_scrapy.apps.registration.front_process import FrontRegistrationProcess

    FrontRegistrationProcess(config, reactor, lcc.settings).run()
