"""What strangers may ask of LCC_PUSH_ENDPOINTS beside ``POST /v1/push``, as far as the settings have it."""

from collections.abc import Iterator

from fastapi import APIRouter

from lcc_scrapy.config.config import Config
from lcc_scrapy.db.tx import Store
from lcc_scrapy.domain.indexnow import OFF
from lcc_scrapy.domain.providers import Provider
from lcc_scrapy.indexnow import routes as indexnow
from lcc_scrapy.indexnow.keys import Keys
from lcc_scrapy.indexnow.queueing import Queueing
from lcc_scrapy.indexnow.service import IndexNow
from lcc_scrapy.login.passwords import hash_made_up, made_up
from lcc_scrapy.machine.wake_redis import waker
from lcc_scrapy.mail import routes as mail
from lcc_scrapy.mail.unsubscribing import Unsubscribing
from lcc_scrapy.registration.serving import registration_routes
from lcc_scrapy.sources import routes as websub
from lcc_scrapy.sources.opening import callback_service

NAME_MAX = 255


def make_indexnow(config: Config, store: Store) -> IndexNow | None:
    """Return the service, None where LCC_INDEXNOW is off."""
    rules = config.indexnow
    if rules.mode == OFF:
        return None

    def made(pid: int, root: str) -> Provider:
        """Return a provider with the defaults of `lcc provider add`, which nobody can log in as."""
        secret = hash_made_up(made_up())
        return Provider(pid, secret, name=f"IndexNow {root}"[:NAME_MAX], fullsetsallowed=config.fullsets)

    wake = waker(config.data_dir, config.wake_redis)
    queueing = Queueing(store, config.policy, config.queue_max, wake)
    return IndexNow(Keys(store, rules, made), queueing, rules)


def public_routes(config: Config, store: Store) -> Iterator[APIRouter]:
    """Yield the routes of registration, IndexNow, hubs of WebSub, and links in mail."""
    yield from registration_routes(config, store)
    service = make_indexnow(config, store)
    if service is not None:
        yield indexnow.make_router(service)
    if config.public_url:
        yield websub.make_router(callback_service(config, store, config.agent))
        yield mail.make_router(Unsubscribing(store, config.public_url))
