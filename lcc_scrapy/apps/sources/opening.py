"""What runs of sources need, made of the settings."""

import codecs
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from types import MappingProxyType
from typing import Any

from lcc_scrapy.apps.sources.callbacks import CallbackService
from lcc_scrapy.apps.sources.draining import Redis
from lcc_scrapy.apps.sources.redis_key import client_of
from lcc_scrapy.apps.sources.registry import Registry
from lcc_scrapy.apps.sources.runner import AT_A_TIME, Runner
from lcc_scrapy.apps.sources.settings import SourceSettings
from lcc_scrapy.apps.sources.submitting import rules_of
from lcc_scrapy.apps.sources.subscribing import Subscriber
from lcc_scrapy.config.config import Config
from lcc_scrapy.db.tx import Store
from lcc_scrapy.domain.errors import ConfigurationError
from lcc_scrapy.http.credentials import Credentials
from lcc_scrapy.http.outgoing import Outgoing, tls_context
from lcc_scrapy.kit.claims import this_process
from lcc_scrapy.kit.fetching import CONNECTIONS, Fetcher
from lcc_scrapy.kit.work import Work, in_executor
from lcc_scrapy.machine.wake_redis import waker


def fetcher_of(
    config: Config, agent: str, credentials: Credentials | None = None, *, verify: bool = True
) -> Fetcher:
    """Return what fetches; its connections open when they are first needed, inside an event loop."""
    outgoing = Outgoing(CONNECTIONS, tls_context(verify=verify))
    fetcher = Fetcher(outgoing, agent, config.fetch_timeout, config.fetch_deadline)
    fetcher.credentials = credentials or fetcher.credentials
    return fetcher


def runner_of(
    config: Config,
    store: Store,
    work: Work,
    agent: str,
    settings: Mapping[str, Any] = MappingProxyType({}),
    *,
    credentials: Credentials | None = None,
    verify: bool = True,
) -> Runner:
    """Return what runs sources in this process; ``settings`` are Scrapy's, of which REDIS_* are read."""
    registry = Registry(store, this_process(), config.timezone, config.turns.backoff)
    fetcher = fetcher_of(config, agent, credentials, verify=verify)
    subscriber = Subscriber(registry, work, fetcher, config.public_url)
    wake = waker(config.data_dir, config.wake_redis)
    return Runner(
        registry,
        work,
        fetcher,
        rules_of(config),
        redis_of(config, settings),
        touched=lambda _: wake(),
        subscriber=subscriber,
    )


def redis_of(config: Config, settings: Mapping[str, Any]) -> Redis:
    """Return how Redis is reached; nothing of it is imported or opened before it is needed."""
    encoding = str(settings.get("REDIS_ENCODING") or "utf-8")
    threads = ThreadPoolExecutor(AT_A_TIME, "lcc-redis")
    client = cache(partial(_client, settings, config.of(SourceSettings).redis_url, encoding))
    return Redis(client, encoding, in_executor(threads))


def _client(settings: Mapping[str, Any], url: str, encoding: str) -> Any:
    try:
        codecs.lookup(encoding)
    except LookupError as error:
        raise ConfigurationError(f"REDIS_ENCODING: {error}") from None
    return client_of(settings, url)


def callback_service(config: Config, store: Store, agent: str) -> CallbackService:
    """Return what answers hubs in a process on asyncio; its database jobs have a thread of their own."""
    return CallbackService(runner_of(config, store, in_executor(ThreadPoolExecutor(1, "lcc-websub")), agent))
