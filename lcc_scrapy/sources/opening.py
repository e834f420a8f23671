"""What runs of sources need, made of the settings."""

from concurrent.futures import ThreadPoolExecutor

from lcc_scrapy.config.config import Config
from lcc_scrapy.db.tx import Store
from lcc_scrapy.http.outgoing import Outgoing, tls_context
from lcc_scrapy.machine.wake_file import WakeFile
from lcc_scrapy.sources.callbacks import CallbackService
from lcc_scrapy.sources.fetching import CONNECTIONS, Fetcher
from lcc_scrapy.sources.registry import Registry, this_process
from lcc_scrapy.sources.runner import Runner
from lcc_scrapy.sources.submitting import Rules
from lcc_scrapy.sources.subscribing import Subscriber
from lcc_scrapy.sources.work import Work, in_executor


def fetcher_of(config: Config, agent: str, *, verify: bool = True) -> Fetcher:
    """Return what fetches; its connections open when they are first needed, inside an event loop."""
    outgoing = Outgoing(CONNECTIONS, tls_context(verify=verify))
    return Fetcher(outgoing, agent, config.fetch_timeout, config.fetch_deadline)


def runner_of(config: Config, store: Store, work: Work, agent: str, *, verify: bool = True) -> Runner:
    """Return what runs sources in this process."""
    registry = Registry(store, this_process(), config.timezone, config.turns.backoff)
    fetcher = fetcher_of(config, agent, verify=verify)
    subscriber = Subscriber(registry, work, fetcher, config.public_url)
    wake = WakeFile(config.data_dir)
    return Runner(
        registry, work, fetcher, rules_of(config), touched=lambda _: wake.touch(), subscriber=subscriber
    )


def callback_service(config: Config, store: Store, agent: str) -> CallbackService:
    """Return what answers hubs in a process on asyncio; its database jobs have a thread of their own."""
    return CallbackService(runner_of(config, store, in_executor(ThreadPoolExecutor(1, "lcc-websub")), agent))


def rules_of(config: Config) -> Rules:
    """Return what holds for what is submitted."""
    return Rules(config.policy, config.queue_max, config.source_urls)
