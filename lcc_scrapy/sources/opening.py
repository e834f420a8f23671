"""What runs of sources need, made of the settings."""

from lcc_scrapy.config.config import Config
from lcc_scrapy.http.outgoing import Outgoing, tls_context
from lcc_scrapy.sources.fetching import CONNECTIONS, Fetcher
from lcc_scrapy.sources.submitting import Rules


def fetcher_of(config: Config, agent: str, *, verify: bool = True) -> Fetcher:
    """Return what fetches; its connections open when they are first needed, inside an event loop."""
    outgoing = Outgoing(CONNECTIONS, tls_context(verify=verify))
    return Fetcher(outgoing, agent, config.fetch_timeout, config.fetch_deadline)


def rules_of(config: Config) -> Rules:
    """Return what holds for what is submitted."""
    return Rules(config.policy, config.queue_max, config.source_urls)
